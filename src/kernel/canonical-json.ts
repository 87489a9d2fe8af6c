/**
 * Compact JSON with the keys of every object in UTF-16 code-unit order, so that equal content has equal bytes. Takes what
 * JSON.parse gives; `undefined` members are left out as JSON.stringify does.
 */
export function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map((item) => canonicalJson(item ?? null)).join(',')}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'null'
  if ('toJSON' in value && typeof value.toJSON === 'function') return JSON.stringify(value)
  const members: string[] = []
  for (const key of Object.keys(value).toSorted()) {
    const member = (value as Record<string, unknown>)[key] // an own key of it
    if (member !== undefined) members.push(`${JSON.stringify(key)}:${canonicalJson(member)}`)
  }
  return `{${members.join(',')}}`
}

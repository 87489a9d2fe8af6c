const listMember = /(?:^|,)[ \t]*((?:W\/)?"[^"]*")[ \t]*(?=,|$)/g

/**
 * The member of an `If-None-Match` header that names `tag`, in the very bytes the caller sent; undefined when none does.
 * Weak comparison; lists and `*` are understood (`*` is answered with the tag itself).
 */
export function matchingTag(header: string | undefined, tag: string): string | undefined {
  if (header === undefined) return undefined
  if (header === tag) return tag
  if (header.trim() === '*') return tag
  for (const [, member = ''] of header.matchAll(listMember)) {
    if ((member.startsWith('W/') ? member.slice(2) : member) === tag) return member
  }
  return undefined
}

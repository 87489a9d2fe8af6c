import { commandRowsMax, keyDaysDefault, keyDaysMax, keyNameCharsMax } from '../kernel/limits.ts'
import { StartError } from '../kernel/start-error.ts'
import { addSecretKey, operatorKeys, withdrawSecretKey } from '../tenancy/index.ts'
import { change } from './change.ts'
import { type Input, textOf } from './command.ts'
import { withDatabase } from './database.ts'
import { print, printRows } from './print.ts'

export async function listKeys(input: Input): Promise<void> {
  await withDatabase('keys', async ({ pool }) => {
    const workspaceId = textOf(input, 'workspace') ?? null
    const rows = (await operatorKeys(pool, { workspaceId, limit: commandRowsMax })).map((key) => ({
      id: key.id,
      workspace: key.workspaceId,
      name: key.name,
      created: key.createdAt.toISOString(),
      expires: key.expiresAt?.toISOString() ?? null,
      used: key.lastUsedAt?.toISOString() ?? null,
      revoked: key.revokedAt?.toISOString() ?? null,
    }))
    printRows(rows, { json: input.options.json === true })
  })
}

/** The secret is printed alone, so that it can be piped; everything else is in the list. */
export async function createKey(input: Input): Promise<void> {
  const [workspaceId = ''] = input.words
  const name = textOf(input, 'name') ?? 'Made by the operator'
  if (name.trim() === '' || name.length > keyNameCharsMax)
    throw new StartError(`--name has 1 to ${keyNameCharsMax} characters`)
  const expiresInDays = daysOf(input)
  await change('keys', async (tx) => {
    const { secret } = await addSecretKey(tx, workspaceId, { name, expiresInDays })
    return () => print(secret)
  })
}

export async function revokeKey({ words: [keyId = ''] }: Input): Promise<void> {
  await change('keys', async (tx) => {
    await withdrawSecretKey(tx, keyId)
    return () => print(`revoked ${keyId}: it is refused within a second`)
  })
}

function daysOf(input: Input): number | null {
  const text = textOf(input, 'expires-in-days')
  if (input.options['no-expiry'] === true) {
    if (text !== undefined) throw new StartError('--no-expiry and --expires-in-days exclude each other')
    return null
  }
  const days = Number(text ?? keyDaysDefault)
  if (Number.isInteger(days) && days >= 1 && days <= keyDaysMax) return days
  throw new StartError(`--expires-in-days accepts 1 to ${keyDaysMax}; --no-expiry makes a key that stays`)
}

import { text } from 'node:stream/consumers'
import { randomText } from '../kernel/ids.ts'
import { commandRowsMax, emailCharsMax, passwordCharsMax, passwordCharsMin } from '../kernel/limits.ts'
import { StartError } from '../kernel/start-error.ts'
import { addUser, operatorUsers, setPassword, signOut, verifyUser } from '../tenancy/index.ts'
import { change } from './change.ts'
import { type Input, textOf } from './command.ts'
import { withDatabase } from './database.ts'
import { print, printRows } from './print.ts'

export async function listUsers({ options }: Input): Promise<void> {
  await withDatabase('users', async ({ pool }) => {
    const rows = (await operatorUsers(pool, commandRowsMax)).map((user) => ({
      id: user.id,
      email: user.email,
      name: user.name,
      verified: user.emailVerified,
      created: user.createdAt.toISOString(),
      workspaces: user.workspaces.join(', '),
    }))
    printRows(rows, { json: options.json === true })
  })
}

export async function createUser(input: Input): Promise<void> {
  const email = emailOf(input)
  const { password, isOurs } = await passwordOf(input)
  const name = textOf(input, 'name') ?? email.split('@')[0] ?? email
  await change('users', async (tx) => {
    const { userId, workspaceId } = await addUser(tx, { email, name, password, workspace: textOf(input, 'workspace') })
    return () => {
      print(`created user ${userId}, verified${workspaceId === undefined ? '' : `, owner of workspace ${workspaceId}`}`)
      if (isOurs) print(`password ${password}`)
    }
  })
}

export async function verifyEmail(input: Input): Promise<void> {
  const email = emailOf(input)
  await change('users', async (tx) => {
    const isNew = await verifyUser(tx, email)
    return () => print(`${email} is verified${isNew ? '' : ', as it was before'}`)
  })
}

export async function changePassword(input: Input): Promise<void> {
  const email = emailOf(input)
  const { password, isOurs } = await passwordOf(input)
  await change('users', async (tx) => {
    await setPassword(tx, email, password)
    return () => {
      print(`${email} has a new password, and every session has ended`)
      if (isOurs) print(`password ${password}`)
    }
  })
}

export async function endSessions(input: Input): Promise<void> {
  const email = emailOf(input)
  await change('users', async (tx) => {
    await signOut(tx, email)
    return () => print(`every session of ${email} has ended`)
  })
}

function emailOf({ words: [email = ''] }: Input): string {
  if (email.length <= emailCharsMax && /^[^\s@]+@[^\s@]+$/.test(email)) return email
  throw new StartError(`"${email}" is no e-mail address`)
}

/** From standard input, where neither the history of a shell nor the list of processes shows it; or one of ours. */
async function passwordOf({ options }: Input): Promise<{ password: string; isOurs: boolean }> {
  if (options['password-stdin'] !== true) return { password: randomText(20), isOurs: true }
  const password = (await text(process.stdin)).replace(/\r?\n$/, '')
  if (password.length >= passwordCharsMin && password.length <= passwordCharsMax) return { password, isOurs: false }
  throw new StartError(`a password has ${passwordCharsMin} to ${passwordCharsMax} characters`)
}

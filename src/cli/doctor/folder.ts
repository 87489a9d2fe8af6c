import { access, constants, stat, statfs } from 'node:fs/promises'
import { join } from 'node:path'
import type { Config } from '../../config.ts'
import { freeDiskBytesMin } from '../../kernel/limits.ts'
import { masterKeyPath } from '../../master-key.ts'
import { type Finding, ok, problem, warning } from './finding.ts'

/** DATA_DIR: whether it can be used, who can read what lies in it, and how much room is left. */
export async function lookAtFolder({ dataDir, databaseUrl, masterKey }: Config): Promise<Finding[]> {
  if (!(await modeOf(dataDir))) return [ok('data folder', `${dataDir} is not there yet: the first start makes it`)]
  return [
    await lookAtUse(dataDir),
    ...(await lookAtSecrets({ dataDir, databaseUrl, masterKey })),
    await lookAtRoom(dataDir),
  ]
}

async function lookAtUse(dataDir: string): Promise<Finding> {
  try {
    await access(dataDir, constants.R_OK | constants.W_OK | constants.X_OK)
    return ok('data folder', dataDir)
  } catch {
    return problem(
      'data folder',
      `${dataDir} cannot be written by this user`,
      `give it to the user who runs Turnpike, or set DATA_DIR`,
    )
  }
}

async function lookAtSecrets({
  dataDir,
  databaseUrl,
  masterKey,
}: Pick<Config, 'dataDir' | 'databaseUrl' | 'masterKey'>): Promise<Finding[]> {
  const key = masterKeyPath(dataDir)
  const firstRun = join(dataDir, 'first-run.json')
  const [keyMode, firstRunMode] = [await modeOf(key), await modeOf(firstRun)]
  const findings: Finding[] = []
  if (masterKey) findings.push(ok('master key', 'MASTER_KEY is set'))
  else if (keyMode === undefined && databaseUrl === undefined && (await modeOf(join(dataDir, 'postgres'))))
    findings.push(
      problem(
        'master key',
        `${key} is gone`,
        'bring it back from where you keep it: without it the database does not start',
      ),
    )
  else if (keyMode !== undefined && (keyMode & 0o077) !== 0)
    findings.push(problem('master key', `others may read ${key}`, `chmod 600 ${key}`))
  else if (keyMode !== undefined)
    findings.push(ok('master key', `${key}; a copy of it belongs in another place than your backups`))
  if (firstRunMode !== undefined && (firstRunMode & 0o077) !== 0)
    findings.push(
      problem('first run', `others may read ${firstRun}, which holds keys`, `chmod 600 ${firstRun}, or delete it`),
    )
  return findings
}

async function lookAtRoom(dataDir: string): Promise<Finding> {
  const { bavail, bsize, blocks } = await statfs(dataDir)
  const [free, whole] = [bavail * bsize, blocks * bsize]
  const says = `${gigabytes(free)} of ${gigabytes(whole)} GB free for ${dataDir}`
  if (free >= freeDiskBytesMin && free >= whole / 20) return ok('disk', says)
  return warning('disk', says, 'make room: PostgreSQL stops when it cannot write')
}

function gigabytes(bytes: number): string {
  return (bytes / 1e9).toFixed(1)
}

async function modeOf(path: string): Promise<number | undefined> {
  return (await stat(path).catch(() => undefined))?.mode
}

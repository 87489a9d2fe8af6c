import { readConfig } from '../config.ts'
import { StartError } from '../kernel/start-error.ts'
import type { Input } from './command.ts'
import { lookAtDatabase } from './doctor/database.ts'
import { type Finding, ok, problem } from './doctor/finding.ts'
import { lookAtFolder } from './doctor/folder.ts'
import { lookAtMail } from './doctor/mail.ts'
import { print } from './print.ts'

/**
 * `doctor`: looks at everything an operator may have got wrong, and says what to do about it. Changes nothing. Exit code 1
 * when there is a problem; a warning is none.
 */
export async function doctor({ options }: Input): Promise<void> {
  const findings = await look()
  for (const finding of findings) print(options.json ? JSON.stringify(finding) : lineOf(finding))
  const problems = findings.filter(({ state }) => state === 'problem').length
  const warnings = findings.filter(({ state }) => state === 'warning').length
  if (!options.json) print(`doctor: ${problems} problems, ${warnings} warnings`)
  if (problems > 0) process.exitCode = 1
}

async function look(): Promise<Finding[]> {
  try {
    const config = readConfig()
    const settings = ok('settings', config.databaseUrl ? 'your PostgreSQL (DATABASE_URL)' : 'the embedded PostgreSQL')
    // One after the other: looking at the database may start it.
    return [
      settings,
      ...(await lookAtFolder(config)),
      ...(await lookAtDatabase(config)),
      await lookAtMail(config.smtpUrl),
    ]
  } catch (error) {
    if (!(error instanceof StartError)) throw error
    return [problem('settings', error.message, 'correct the environment variable; README.md lists all settings')]
  }
}

function lineOf({ state, name, says, mend }: Finding): string {
  const line = `${state.padEnd(9)}${name.padEnd(14)}${says}`
  return mend === undefined ? line : `${line}\n${' '.repeat(23)}→ ${mend}`
}

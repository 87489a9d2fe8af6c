/**
 * `npm run audit:deps`: compares the locked dependencies with the advisories that the npm registry knows. Ends with 1 for one
 * of high or critical severity in what the service runs with, and with 2 when the registry cannot be asked: no answer is no
 * clean bill.
 */
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'

interface Report {
  vulnerabilities?: Record<string, { severity: string; range: string; fixAvailable: unknown }>
  message?: string
  error?: { summary?: string }
}

const { stdout } = spawnSync('npm', ['audit', '--omit=dev', '--json'], {
  cwd: join(import.meta.dirname, '..'),
  encoding: 'utf8',
  timeout: 60_000,
})
process.exitCode = judge(reportIn(stdout))

function reportIn(text: string): Report {
  try {
    return JSON.parse(text) as Report // as npm documents it
  } catch {
    return {}
  }
}

function judge({ vulnerabilities, message, error }: Report): number {
  if (vulnerabilities === undefined) {
    console.error(
      `not checked: the registry gave no answer (${error?.summary || message || 'no connection'}). Try again with a connection.`,
    )
    return 2
  }
  const found = Object.entries(vulnerabilities)
  for (const [name, { severity, range, fixAvailable }] of found) {
    console.log(`${severity}: ${name} ${range}${fixAvailable ? ' (npm audit fix mends it)' : ''}`)
  }
  const grave = found.filter(([, { severity }]) => severity === 'high' || severity === 'critical')
  console.log(`${found.length} advisories for what the service runs with, ${grave.length} of them high or critical`)
  return grave.length > 0 ? 1 : 0
}

import { type Finding, verifyLedger } from '../entitlements/index.ts'
import { withDatabase } from './database.ts'
import { print } from './print.ts'

/**
 * `ledger verify`: one line per finding, then one that sums up. Beside the service or without it; exit code 1 when the tables
 * don't say what their entries say, and when it cannot tell.
 */
export async function verifyCommand(): Promise<void> {
  await withDatabase('ledger verify', async ({ pool, signal }) => {
    const counts = await verifyLedger(pool, { onFinding: (finding) => print(lineOf(finding)), signal })
    const totals = Object.entries(counts).map(([name, count]) => `${name}=${count}`)
    print(`ledger: ${counts.findings === 0 ? 'OK' : 'DIFFERENT'} ${totals.join(' ')}`)
    if (counts.findings > 0) process.exitCode = 1
  })
}

function lineOf({ rule, ids, expected, found }: Finding): string {
  const where = Object.entries(ids).map(([name, id]) => `${name}=${typeof id === 'string' ? JSON.stringify(id) : id}`)
  return `finding: ${rule} ${where.join(' ')} expected=${JSON.stringify(expected)} found=${JSON.stringify(found)}`
}

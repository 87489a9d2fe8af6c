import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'

/** `ledger verify` as an operator runs it, in a process of its own. */
export async function verify(settings: Record<string, string>): Promise<{ code: number; out: string; err: string }> {
  const child = spawn(process.execPath, ['src/main.ts', 'ledger', 'verify'], {
    cwd: join(import.meta.dirname, '../..'),
    env: { PATH: process.env.PATH, NODE_COMPILE_CACHE: 'node_modules/.cache/turnpike', ...settings },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const [out, err, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')])
  return { code: Number(code), out, err }
}

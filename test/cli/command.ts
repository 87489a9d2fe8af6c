import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'

export interface Said {
  code: number
  out: string
  err: string
}

/** A command as an operator runs it, in a process of its own. */
export async function turnpike(args: string[], settings: Record<string, string> = {}, stdin = ''): Promise<Said> {
  const child = spawn(process.execPath, [join(import.meta.dirname, '../../src/main.ts'), ...args], {
    cwd: join(import.meta.dirname, '../..'),
    env: { PATH: process.env.PATH, NODE_COMPILE_CACHE: 'node_modules/.cache/turnpike', ...settings },
    stdio: ['pipe', 'pipe', 'pipe'],
  })
  child.stdin.on('error', () => {}) // of commands that read nothing
  child.stdin.end(stdin)
  const [out, err, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')])
  return { code: Number(code), out, err }
}

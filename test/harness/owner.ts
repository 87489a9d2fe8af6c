import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'

/** A process of its own that owns an embedded database. Disposing stops it cleanly. */
interface Owner extends AsyncDisposable {
  process: ChildProcess
  /** Its address and main process, or why it could not have it. */
  said: Promise<{ url: string; processId: number; refusal?: string }>
  /** kill -9 */
  kill(): Promise<void>
}

export interface OwnerOptions {
  clone?: string
  node?: string
  uid?: number
  gid?: number
}

export function runOwner(dataDir: string, { clone, node, ...account }: OwnerOptions = {}): Owner {
  const root = clone ?? join(import.meta.dirname, '../..')
  const child = spawn(node ?? process.execPath, [join(root, 'test/harness/embedded-owner.ts'), dataDir], {
    ...account,
    cwd: root,
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const ended = once(child, 'exit')
  return {
    process: child,
    said: once(createInterface(child.stdout), 'line').then(([line]) => JSON.parse(line)),
    async kill() {
      child.kill('SIGKILL')
      await ended
    },
    async [Symbol.asyncDispose]() {
      child.stdin.end()
      await ended
    },
  }
}

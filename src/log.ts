import pino from 'pino'

/**
 * Lines of JSON on the standard output. Once nobody can read them, because the terminal was closed, they are lost: the
 * service goes on, and can still be told to stop. (The writer that comes with pino tries again for ever when it exits.)
 */
export function openLog(options: pino.LoggerOptions): pino.Logger {
  process.stdout.on('error', () => {})
  return pino(options, process.stdout)
}

import { chmod, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { temporaryFolder } from '../harness/server.ts'

/**
 * PATH with a folder at its end in which a curl lies: used where none is installed. It knows as much of curl as the commands
 * of the guide ask for. The folder is the caller's to remove.
 */
export async function pathWithCurl(): Promise<{ path: string; folder: string }> {
  const folder = await temporaryFolder()
  await writeFile(join(folder, 'curl'), `#!${process.execPath}\n${standIn}`)
  await chmod(join(folder, 'curl'), 0o755)
  return { path: `${process.env.PATH}:${folder}`, folder }
}

const standIn = `
const { readFileSync, writeFileSync } = require('node:fs')
const args = process.argv.slice(2)
let [url, method, body, out, told, shown] = ['', undefined, undefined, undefined, '', false]
const headers = {}
while (args.length > 0) {
  const arg = args.shift()
  const from = (text) => (text.startsWith('@') ? readFileSync(text === '@-' ? 0 : text.slice(1)) : text)
  if (arg === '-s' || arg === '-si') shown = arg === '-si'
  else if (arg === '-X') method = args.shift()
  else if (arg === '-d' || arg === '--data-binary') body = from(args.shift())
  else if (arg === '-o') out = args.shift()
  else if (arg === '-w') told = args.shift()
  else if (arg === '-H') {
    const [, name, value] = /^([^:]+): *(.*)$/s.exec(args.shift())
    headers[name] = value
  } else if (arg.startsWith('-')) throw new Error('no such option here: ' + arg)
  else url = arg
}
fetch(url, { headers, method: method ?? (body === undefined ? 'GET' : 'POST'), body }).then(async (answer) => {
  const bytes = Buffer.from(await answer.arrayBuffer())
  const head = ['HTTP/1.1 ' + answer.status + ' ' + answer.statusText, ...[...answer.headers].map((pair) => pair.join(': '))]
  if (shown) process.stdout.write(head.join('\\r\\n') + '\\r\\n\\r\\n')
  if (out === undefined) process.stdout.write(bytes)
  else writeFileSync(out, bytes)
  process.stdout.write(told.replace('%{http_code}', answer.status).replaceAll('\\\\n', '\\n'))
})
`

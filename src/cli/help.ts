import { StartError } from '../kernel/start-error.ts'
import { version } from '../version.ts'
import type { Command } from './command.ts'
import { print } from './print.ts'

/** Everything, a group such as `users`, or one command. Throws StartError for a word that names none of them. */
export function printHelp(commands: Command[], words: string[]): void {
  const about = words.join(' ')
  const [exact] = commands.filter(({ name }) => name === about)
  const group = about === '' ? commands : commands.filter(({ name }) => name.startsWith(`${about} `))
  if (!exact && group.length === 0) throw new StartError(`unknown command "${about}"; see: turnpike help`)
  print(exact ? aboutOne(exact) : aboutMany(group))
}

function aboutOne({ name, takes, summary, details }: Command): string {
  const text = `turnpike ${[name, takes].filter(Boolean).join(' ')}\n\n  ${summary}`
  return details === undefined ? text : `${text}\n\n${details.trim().replaceAll(/^(?=.)/gm, '  ')}`
}

function aboutMany(commands: Command[]): string {
  const width = Math.max(...commands.map(({ name }) => name.length)) + 2
  const lines = commands.map(({ name, summary }) => `  ${name.padEnd(width)}${summary}`)
  return `turnpike ${version}

${lines.join('\n')}

More about one: turnpike help <command>. In a clone: npx turnpike <command>.
Settings are environment variables, the same as for the service; README.md lists them. Commands that read or change data use the
database of DATABASE_URL, or the one in DATA_DIR, whether the service runs or not.`
}

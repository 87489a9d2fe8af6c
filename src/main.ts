#!/usr/bin/env node
import { findCommand, readInput } from './cli/command.ts'
import { commands } from './cli/commands.ts'
import { ignoreClosedOutput } from './cli/print.ts'
import { StartError } from './kernel/start-error.ts'

/** `--help` anywhere asks about the command it stands in. */
const given = process.argv.slice(2)
const asksForHelp = given.includes('--help') || given.includes('-h')
const words = given.filter((word) => !word.startsWith('-'))
const args = asksForHelp || given.length === 0 ? ['help', ...words] : given[0] === '--version' ? ['version'] : given

ignoreClosedOutput(process.stdout)

/** A reason not to start is one line; anything else is a bug and thrown. */
try {
  const { command, rest } = findCommand(commands, args)
  await command.run(readInput(command, rest))
} catch (error) {
  if (!(error instanceof StartError)) throw error
  process.exitCode = 1
  process.stderr.write(`turnpike: ${error.message}\n`)
}

import { type ParseArgsOptionsConfig, parseArgs } from 'node:util'
import { StartError } from '../kernel/start-error.ts'

/** One thing that an operator can ask for. */
export interface Command {
  /** The words that name it: `users create`. */
  name: string
  /** What follows them, for readers: `<email> [--name NAME]`. */
  takes?: string
  /** One line. */
  summary: string
  /** What else is to know, for `help`. */
  details?: string
  /** How many words may follow; none unless said. */
  words?: { min: number; max: number }
  options?: ParseArgsOptionsConfig
  run: (input: Input) => Promise<void>
}

export interface Input {
  words: string[]
  options: Record<string, string | boolean | undefined>
}

/** The command that `args` begin with, the longest name first. Throws StartError. */
export function findCommand(commands: Command[], args: string[]): { command: Command; rest: string[] } {
  for (let length = Math.min(3, args.length); length > 0; length--) {
    const name = args.slice(0, length).join(' ')
    const command = commands.find((each) => each.name === name)
    if (command) return { command, rest: args.slice(length) }
  }
  const group = commands.filter(({ name }) => name.startsWith(`${args[0]} `)).map(({ name }) => name)
  throw new StartError(
    group.length > 0
      ? `"${args[0]}" needs a word more: ${group.join(', ')}; see: turnpike help ${args[0]}`
      : `unknown command "${args[0]}"; see: turnpike help`,
  )
}

/** Throws StartError for an option or a word that the command does not take. */
export function readInput({ name, takes, options = {}, words = { min: 0, max: 0 } }: Command, args: string[]): Input {
  const usage = `usage: turnpike ${[name, takes].filter(Boolean).join(' ')}`
  let parsed: ReturnType<typeof parseArgs>
  try {
    parsed = parseArgs({ args, options, allowPositionals: true, strict: true })
  } catch (error) {
    const [sentence = ''] = (error as Error).message.split(/\. |\n/) // what parseArgs throws
    throw new StartError(`${sentence}; ${usage}`)
  }
  if (parsed.positionals.length < words.min || parsed.positionals.length > words.max) throw new StartError(usage)
  return { words: parsed.positionals, options: parsed.values as Input['options'] } // no option here may be repeated
}

/** An option with a value; undefined when it was not given. */
export function textOf({ options }: Input, name: string): string | undefined {
  const value = options[name]
  return typeof value === 'string' ? value : undefined
}

/** An option that takes one of some words. Throws StartError. */
export function oneOf<T extends string>(text: string | undefined, name: string, accepted: readonly T[]): T | undefined {
  const found = accepted.find((word) => word === text)
  if (text !== undefined && found === undefined) throw new StartError(`${name} accepts ${accepted.join(', ')}`)
  return found
}

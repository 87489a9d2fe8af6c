import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Command, findCommand, oneOf, readInput, textOf } from './command.ts'

const run = async () => {}
const commands: Command[] = [
  { name: 'backup', summary: '', words: { min: 0, max: 1 }, run },
  { name: 'backup check', summary: '', words: { min: 1, max: 1 }, run },
  { name: 'users list', summary: '', options: { json: { type: 'boolean' }, name: { type: 'string' } }, run },
]

test('the longest name wins, and the rest are its words', () => {
  const found = (...args: string[]) => {
    const { command, rest } = findCommand(commands, args)
    return [command.name, ...rest]
  }
  assert.deepEqual(found('backup'), ['backup'])
  assert.deepEqual(found('backup', 'file'), ['backup', 'file'])
  assert.deepEqual(found('backup', 'check', 'file'), ['backup check', 'file'])
  assert.deepEqual(found('users', 'list', '--json'), ['users list', '--json'])
  assert.throws(() => findCommand(commands, ['users']), /"users" needs a word more: users list/)
  assert.throws(() => findCommand(commands, ['nothing']), /unknown command "nothing"/)
})

test('an option or a word that the command does not take is told with its usage', () => {
  const [, check, list] = commands as [Command, Command, Command] // the three above
  assert.throws(() => readInput(check, []), /^StartError: usage: turnpike backup check/)
  assert.throws(() => readInput(check, ['a', 'b']), /usage/)
  assert.throws(() => readInput(list, ['--jsn']), /Unknown option '--jsn'; usage: turnpike users list/)
  assert.throws(() => readInput(list, ['--name']), /usage/)
  const input = readInput(list, ['--name', 'Ada'])
  assert.equal(textOf(input, 'name'), 'Ada')
  assert.equal(textOf(input, 'json'), undefined)
})

test('a word of a choice is one of them', () => {
  assert.equal(oneOf('test', '--environment', ['test', 'live']), 'test')
  assert.equal(oneOf(undefined, '--environment', ['test', 'live']), undefined)
  assert.throws(() => oneOf('moon', '--environment', ['test', 'live']), /--environment accepts test, live/)
})

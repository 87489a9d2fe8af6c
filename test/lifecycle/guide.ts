import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'

/** Commands of the guide that are pasted at once, and the lines that it says they print. */
export interface Step {
  commands: string
  prints: string[]
}

/** The blocks of a page in their order: those in `sh` are pasted, the others are what the one before prints. */
export function stepsOf(page: string): Step[] {
  const steps: Step[] = []
  for (const [, language, text = ''] of page.matchAll(/^```(\w*)\n(.*?)^```$/gms)) {
    if (language === 'sh') steps.push({ commands: text, prints: [] })
    else steps.at(-1)?.prints.push(...text.split('\n').filter((line) => line !== ''))
  }
  return steps
}

/** The part of a page under a heading. */
export function sectionOf(page: string, heading: string): string {
  const [, part] = new RegExp(`^## ${heading}$(.*?)(?=^## )`, 'ms').exec(page) ?? []
  assert.ok(part, `there is a section ${heading}`)
  return part
}

/** A shell that keeps its variables and functions from one paste to the next. */
export interface Terminal extends AsyncDisposable {
  /** What the commands print; fails when they end with an error, or say anything on the way. */
  paste: (commands: string) => Promise<string>
}

export function openTerminal({ folder, path }: { folder: string; path: string }): Terminal {
  const bash = spawn('bash', ['--norc', '--noprofile', '-s'], {
    ...{ cwd: folder, env: { PATH: path }, stdio: ['pipe', 'pipe', 'pipe'] },
  })
  let [out, err, pasted] = ['', '', 0]
  bash.stdout.setEncoding('utf8').on('data', (text: string) => {
    out += text
  })
  bash.stderr.setEncoding('utf8').on('data', (text: string) => {
    err += text
  })
  const closed = once(bash, 'close')
  return {
    async paste(commands) {
      const mark = `== ${++pasted} ends with`
      const from = out.length
      // What the commands read of their own accord is nothing, not the next command.
      bash.stdin.write(`{ :\n${commands}\n} < /dev/null\necho "${mark} $?"\n`)
      while (!out.includes(mark, from))
        await Promise.race([once(bash.stdout, 'data'), closed.then(() => assert.fail(err))])
      const printed = out.slice(from, out.indexOf(mark, from))
      assert.match(out.slice(from + printed.length), /ends with 0/, `${commands}\n${printed}`)
      assert.equal(err, '', commands)
      return printed
    },
    async [Symbol.asyncDispose]() {
      bash.stdin.end()
      await closed
    },
  }
}

/** Fails unless each line of the guide was printed, ids and times being those of another day. `…` is anything. */
export function assertPrinted(printed: string, lines: string[]): void {
  const told = printed.split(/\r?\n/)
  for (const line of lines) {
    const pattern = new RegExp(`^${patternOf(line)}$`)
    assert.ok(
      told.some((one) => pattern.test(one)),
      `the guide says\n  ${line}\nand what is printed is\n  ${told.join('\n  ')}`,
    )
  }
}

/** What is drawn, counted or measured anew for everybody who reads the guide, as it stands in an escaped line. */
const drawn: [what: RegExp, pattern: string][] = [
  [/\b(cus|proj|app|req|grant|entry|exp|ver)_[0-9a-z_-]+/g, '$1_[0-9a-z_-]+'],
  [/20\d\d-\d\d-\d\dT[\d:]+\\\.\d{3}Z/g, '…'],
  [/\b1\d{12}\b/g, '1\\d{12}'],
  [/"[\w-]{43}"/g, '"[\\w-]{43}"'],
  [/(content-length: )\d+/g, '$1\\d+'],
  [/("next_cursor":)"\w+"/g, '$1"\\w+"'],
  [/"[0-9a-f]{6}…/g, '"[0-9a-f]{6}…'],
  [/…/g, '.*'],
]

function patternOf(line: string): string {
  const escaped = line.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&')
  return drawn.reduce((pattern, [what, instead]) => pattern.replace(what, instead), escaped)
}

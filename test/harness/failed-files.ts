import type { TestEvent } from 'node:test/reporters'

/** A reporter of Node's test runner: the file of each test that failed, one a line. */
export default async function* failedFiles(events: AsyncIterable<TestEvent>): AsyncIterable<string> {
  for await (const { type, data } of events) {
    if (type === 'test:fail' && data.file !== undefined) yield `${data.file}\n`
  }
}

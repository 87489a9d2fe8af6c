import assert from 'node:assert/strict'
import { test } from 'node:test'
import { releaseFor, type Stamp } from './stamp.ts'

function stampWith(defaultLocale: string, locales: string[]): Stamp {
  const legs = new Map(locales.map((locale) => [locale, { sha256: locale, size: 1 }]))
  return {
    ...{ experienceRowId: 1, experienceId: 'exp', appId: 'app', seq: 1, versionId: 'ver', versionNumber: 1 },
    ...{ buildId: 'bld', priority: 0, defaultLocale, legs: new Map([['leg', legs]]), segments: new Set<string>() },
  }
}

test('a release is that of the exact tag, else of its language, else of the default locale', () => {
  const stamp = stampWith('en', ['en', 'de', 'pt-BR', 'zh-Hant', 'zh'])
  const chosen = (locale: string | null) => releaseFor(stamp, 'leg', locale)?.sha256
  const table: [string | null, string][] = [
    ['de', 'de'],
    ['de-AT', 'de'],
    ['DE_ch', 'de'],
    ['pt-BR', 'pt-BR'],
    ['pt_br', 'pt-BR'],
    ['zh-Hant', 'zh-Hant'],
    ['zh-Hant-TW', 'zh'],
    // No Portuguese for all: another country's is not taken.
    ['pt', 'en'],
    ['pt-PT', 'en'],
    ['fr', 'en'],
    ['', 'en'],
    ['-', 'en'],
    [null, 'en'],
  ]
  for (const [locale, expected] of table) assert.equal(chosen(locale), expected, String(locale))
})

test('a leg that the version does not have has no release', () => {
  assert.equal(releaseFor(stampWith('en', ['en']), 'other', 'en'), undefined)
})

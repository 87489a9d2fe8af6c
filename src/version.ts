import { readFileSync } from 'node:fs'

const manifest = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as { version: string } // ours

/** Of this release, as package.json has it. */
export const { version } = manifest

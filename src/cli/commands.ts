import { version } from '../version.ts'
import { accountCommands } from './account-commands.ts'
import type { Command } from './command.ts'
import { printHelp } from './help.ts'
import { print } from './print.ts'

const json = { json: { type: 'boolean' } } as const

/** In the order of the help. Each loads what it needs when it runs: the service in particular is large. */
export const commands: Command[] = [
  {
    name: 'start',
    summary: 'run the service (npm start)',
    run: async () => (await import('./serve.ts')).serve(),
  },
  {
    name: 'migrate',
    summary: 'bring the database of DATABASE_URL to this version’s schema, and end',
    details: 'Every start does it too, under a lock; this is for doing it as a step of its own.',
    run: async () => (await import('./migrate.ts')).runMigrations(),
  },
  {
    name: 'doctor',
    takes: '[--json]',
    summary: 'look at settings, data folder, disk, database, clock, migrations, keys and mail, and say what to mend',
    details: `
Changes nothing, and works beside the service. Exit code 1 when there is a problem; warnings leave it at 0.
An embedded database that does not run is started for the look and stopped after it.`,
    options: json,
    run: async (input) => (await import('./doctor.ts')).doctor(input),
  },
  {
    name: 'backup',
    takes: '[file]',
    summary: 'write everything in the database to one file, beside the running service',
    details: `
The state at one instant, as gzipped SQL text with checksums. Without a file its name is the time, in this folder; "-" is
standard output. The master key and your settings are not in it: keep the key, and in another place.`,
    words: { min: 0, max: 1 },
    run: async (input) => (await import('./backup.ts')).backup(input),
  },
  {
    name: 'backup check',
    takes: '<file>',
    summary: 'read a backup to its end and say whether it is whole',
    words: { min: 1, max: 1 },
    run: async (input) => (await import('./restore.ts')).checkBackupFile(input),
  },
  {
    name: 'restore',
    takes: '<file> [--tombstones FILE]',
    summary: 'load a backup into an empty database, whole or not at all',
    details: `
The database of DATABASE_URL, or a new one in DATA_DIR; never one that holds anything. Stop the service first, and put the master
key of the backup's time to DATA_DIR/master.key or into MASTER_KEY. A backup of an older version is brought up to date, one of
a newer version is refused. "-" reads standard input. With --tombstones whoever is in that list is deleted again before anybody is served.`,
    words: { min: 1, max: 1 },
    options: { tombstones: { type: 'string' } },
    run: async (input) => (await import('./restore.ts')).restore(input),
  },
  {
    name: 'tombstones export',
    takes: '<file>',
    summary: 'write the list of deleted distinct ids, as keyed hashes, to keep beside backups',
    details: `
A backup from before a deletion brings the person back; this list takes them out again. Write it more often than backups: it is small
and names nobody. "-" is standard output.`,
    words: { min: 1, max: 1 },
    run: async (input) => (await import('./tombstones.ts')).exportTombstones(input),
  },
  {
    name: 'tombstones apply',
    takes: '<file>',
    summary: 'delete again whoever is in such a list: after restoring a database by other means, before serving',
    words: { min: 1, max: 1 },
    run: async (input) => (await import('./tombstones.ts')).applyTombstones(input),
  },
  {
    name: 'export',
    takes: '[--project ID] [--environment test|live]',
    summary: 'write the catalogue of a project as one readable file',
    details: `
Features, Products and Segments of one environment (live unless said), as JSON on standard output, without ids: to keep under version
control, to compare, or to import elsewhere. --project may be left out where there is only one.

  turnpike export --environment test > catalogue.json`,
    options: { project: { type: 'string' }, environment: { type: 'string' } },
    run: async (input) => (await import('./catalogue.ts')).exportCatalogue(input),
  },
  {
    name: 'import',
    takes: '<file> [--project ID] [--environment test|live] [--dry-run]',
    summary: 'make a project’s catalogue like an exported file, and say what changes',
    details: `
Matches by key: creates what is missing, changes what differs, leaves what the file does not name. All in one transaction; a second
time it changes nothing. --dry-run only says what it would do. "-" reads standard input.

  turnpike export --environment test | turnpike import - --environment live --dry-run`,
    words: { min: 1, max: 1 },
    options: { project: { type: 'string' }, environment: { type: 'string' }, 'dry-run': { type: 'boolean' } },
    run: async (input) => (await import('./catalogue.ts')).importCatalogue(input),
  },
  ...accountCommands,
  {
    name: 'master-key rotate',
    takes: '[--to FILE]',
    summary: 'seal the stored secrets under a new master key, beside the service or without it',
    details: `
With the embedded database the key in DATA_DIR/master.key is replaced. With MASTER_KEY the new one is written to FILE before anything
changes; processes that run go on, and need it for their next start. Whatever is killed when: the old or the new key opens the database, and both are on
disk. Older backups need the old key.`,
    options: { to: { type: 'string' } },
    run: async (input) => (await import('./master-key.ts')).rotateMasterKey(input),
  },
  {
    name: 'ledger verify',
    summary: 'recompute every balance from the ledger’s entries; 0 only when all agree (npm run ledger:verify)',
    run: async () => (await import('./verify-ledger.ts')).verifyCommand(),
  },
  {
    name: 'segments audit',
    summary: 'count 500 random customers of each lane again and put memberships right; 0 only when all were',
    run: async () => (await import('./audit-segments.ts')).auditCommand(),
  },
  {
    name: 'events rebuild',
    takes: '[--project ID] [--environment test|live] [--check]',
    summary: 'make the customers of a project again from its stored events and compare; mend what differs',
    details: `
Repeats the stored events and commands in tables beside the live ones, and compares customers, distinct ids and merges, while the
service runs. What differs becomes what the history says; --check only tells. 0 when all are equal in the end. What the history cannot tell
stays as it is: docs/watch-the-lanes.md.`,
    options: { project: { type: 'string' }, environment: { type: 'string' }, check: { type: 'boolean' } },
    run: async (input) => (await import('./rebuild.ts')).rebuild(input),
  },
  {
    name: 'version',
    summary: 'print the version',
    run: async () => print(version),
  },
  {
    name: 'help',
    takes: '[command]',
    summary: 'print this, or more about one command',
    words: { min: 0, max: 3 },
    run: async ({ words }) => printHelp(commands, words),
  },
]

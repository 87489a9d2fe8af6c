import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { removeFolder, temporaryFolder } from '../harness/server.ts'
import { startService } from '../harness/service.ts'
import { turnpike } from './command.ts'

const folder = await temporaryFolder()
after(() => removeFolder(folder))
const service = await startService({ DEMO: '1' })
after(() => service[Symbol.asyncDispose]())
const settings = { DATABASE_URL: service.databaseUrl, MASTER_KEY: Buffer.alloc(32, 7).toString('base64') }
const run = (args: string[], stdin = '') => turnpike(args, settings, stdin)
const exported = async (environment: string) => (await run(['export', '--environment', environment])).out

test('what is exported from test makes live the same, once', async () => {
  await service.workspace('PATCH', '/features/exports', { body: { name: 'Exports of recipes' } })
  await service.workspace('POST', '/features', { body: { key: 'seats', name: 'Seats', type: 'metered' } })
  await service.workspace('POST', '/features', {
    body: { key: 'soon', name: 'Soon', type: 'boolean', published: false },
  })
  await service.workspace('PATCH', '/features/ai_credits', {
    body: {
      credit_costs: [
        { feature: 'chat', cost: 2 },
        { feature: 'seats', cost: '3' },
      ],
    },
  })
  await service.workspace('POST', '/products', {
    body: {
      key: 'team',
      name: 'Team',
      type: 'one_time',
      grants: [{ feature: 'seats', allowance: 5 }],
      stores: [{ store: 'appstore', product_id: 'com.example.team' }],
      preview: { price: '49.00' },
    },
  })
  await service.workspace('POST', '/products/pro_monthly/archive', {})
  await service.workspace('POST', '/features/pro/archive', {})
  const before = await exported('live')
  const file = await exported('test')

  const dry = await run(['import', '-', '--environment', 'live', '--dry-run'], file)
  assert.deepEqual([dry.code, dry.err], [0, ''])
  assert.equal(await exported('live'), before, 'a dry run changes nothing')
  for (const line of [
    /^create Feature seats$/m,
    /^create Feature soon$/m,
    /^update Feature exports: name "Exports" → "Exports of recipes"$/m,
    /^update Feature ai_credits: credit_costs\.1 null → \{"feature":"seats","cost":3\}$/m,
    /^create Product team$/m,
    /^archive Product pro_monthly\narchive Feature pro$/m,
    /^7 changes to proj_\w+ live, none made \(--dry-run\)$/m,
  ]) {
    assert.match(dry.out, line)
  }
  const real = await run(['import', '-', '--environment', 'live'], file)
  assert.deepEqual([real.code, real.out.split('\n').slice(0, -2)], [0, dry.out.split('\n').slice(0, -2)])
  assert.equal(await exported('live'), file)
  assert.match(file, /"price": "49\.00"/)
  const again = await run(['import', '-', '--environment', 'live'], file)
  assert.match(again.out, /^nothing to change in proj_\w+ live\n$/)
  const audit = await service.pool.query(
    `select 1 from audit_log where actor_type = 'operator' and after_digest is not null`,
  )
  assert.equal(audit.length, 7)
})

test('Segments come along, and ask for Features by key and for one another by name', async () => {
  const create = async (name: string, where: object) =>
    (await service.workspace('POST', '/segments', { body: { name, definition: { version: 1, where } } })).body.id
  const asked = await create('Z asked', { feature: { id: 'exports', is: 'active' } })
  const all = [{ not: { segment: { id: asked, is: true } } }, { performed: { event: 'opened' } }]
  await create('Asks', { all })
  const file = await exported('test')
  assert.ok(!file.includes(String(asked)), 'no id of this environment')
  const real = await run(['import', '-', '--environment', 'live'], file)
  assert.match(real.out, /^create Segment Z asked\ncreate Segment Asks$/m)
  assert.equal(await exported('live'), file)
  assert.match((await run(['import', '-', '--environment', 'live'], file)).out, /^nothing to change/)

  const changed = JSON.parse(file)
  changed.segments.find(({ name }: { name: string }) => name === 'Asks').definition.where.all[0] = {
    segment: { name: 'Nobody', is: true },
  }
  const refused = await run(['import', '-', '--environment', 'live'], JSON.stringify(changed))
  assert.deepEqual([refused.code, refused.out], [1, ''])
  assert.match(refused.err, /Segment Asks asks for Segment Nobody, which there is not/)
  const updated = await run(['import', '-', '--environment', 'live'], file.replace('"opened"', '"closed"'))
  assert.match(updated.out, /^update Segment Asks: definition\.where\.all\.1\.performed\.event "opened" → "closed"$/m)

  await create('Asks', { performed: { event: 'e' } })
  const twice = await run(['export', '--environment', 'test'])
  assert.match(twice.err, /the test environment names Asks twice/)
  const { data } = (await service.workspace('GET', '/segments')).body as { data: { id: string; name: string }[] }
  const [newest] = data
  await service.workspace('DELETE', `/segments/${newest?.id}`)
})

test('what the file does not name is left alone, and told', async () => {
  const file = join(folder, 'small.json')
  await writeFile(
    file,
    JSON.stringify({
      turnpike_catalogue: 1,
      features: [{ key: 'lone', name: 'Lone', type: 'boolean', status: 'archived' }],
      products: [],
    }),
  )
  const said = await run(['import', file, '--environment', 'test'])
  assert.match(said.out, /^create Feature lone\narchive Feature lone\n/)
  assert.match(said.out, /^left alone, not in the file: Feature exports$/m)
  assert.equal((await service.workspace('GET', '/features/exports')).body.status, 'published')
})

test('what cannot be is refused whole, in one line', async () => {
  const before = await exported('test')
  const feature = { key: 'x', name: 'X', type: 'metered', status: 'published' }
  const catalogue = (features: object[], products: object[] = []) =>
    JSON.stringify({ turnpike_catalogue: 1, features, products })
  const refusals: [string, RegExp][] = [
    ['{', /this is no JSON/],
    ['[]', /no exported catalogue/],
    [catalogue([{ ...feature, status: 'gone' }]), /\/features\/0\/status/],
    [catalogue([{ ...feature, extra: 1 }]), /additional properties/],
    [catalogue([feature, feature]), /features names x twice/],
    [
      catalogue([feature, { ...feature, key: 'exports', type: 'boolean' }]),
      /Feature exports is metered: its type cannot become boolean/,
    ],
    [
      catalogue([{ ...feature, key: 'exports', status: 'draft' }]),
      /exports is published: it cannot become a draft again/,
    ],
    [
      catalogue(
        [feature],
        [{ key: 'p', name: 'P', type: 'one_time', grants: [{ feature: 'nowhere', allowance: 1 }], status: 'active' }],
      ),
      /no published Feature nowhere/,
    ],
  ]
  for (const [text, words] of refusals) {
    const said = await run(['import', '-', '--environment', 'test'], text)
    assert.deepEqual([said.code, said.out], [1, ''], text)
    assert.match(said.err, words)
  }
  assert.equal(await exported('test'), before)
})

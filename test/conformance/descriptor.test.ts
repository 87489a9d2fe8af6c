import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Mode, Problem } from './check.ts'
import { descriptor } from './descriptor.ts'
import { offer } from './samples/offer.ts'
import { descriptorBytes, type Sample, sha256 } from './samples/publish.ts'
import { welcome } from './samples/welcome.ts'

const problemsOf = (value: Sample, mode: Mode = 'clients'): Problem[] => {
  const found: Problem[] = []
  descriptor(value, { path: '$', found, namespace: 'service', mode })
  return found
}
const accepts = (value: Sample) => assert.deepEqual(problemsOf(value), [])

test('the example of a leg has the bytes, the digest and the id that clients were built with', () => {
  const bytes = descriptorBytes(welcome())
  assert.deepEqual(
    [bytes.length, sha256(bytes)],
    [1892, 'd1cab233c69380079b5e1e0e05397eb1b3934e0244d8ad23e6cced7defe9c523'],
  )
  assert.equal(sha256('service.leg.v1\n{"experienceId":"exp_welcome","sectionKey":"pick"}'), welcome().leg.id)
})

test('a descriptor with every part in it is accepted, and so is the plainest', () => {
  accepts(offer())
  accepts(welcome())
})

describe('every object of a descriptor', () => {
  const whole = offer()
  const places = placesOf(whole, '')
  const isTaken = ({ holder, key }: Place, to: Sample): boolean => {
    const before = Object.entries(holder)
    if (to === undefined) delete holder[key]
    else holder[key] = to
    const taken = problemsOf(whole).length === 0
    for (const each of Object.keys(holder)) delete holder[each]
    Object.assign(holder, Object.fromEntries(before))
    return taken
  }

  test('refuses a key more, unless its keys are data of the author', () => {
    const objects = places.filter(({ value }) => isObject(value))
    const open = objects.filter(({ value, path }) => isTaken({ path, value, holder: value, key: 'one more' }, 7))
    assert.ok(objects.length > 100)
    assert.deepEqual(pathsOf(open), [])
  })

  test('refuses a key less, unless it may be absent', () => {
    const needed = places.filter(({ holder, path }) => isObject(holder) && !optional.some((each) => each.test(path)))
    assert.ok(needed.length > 300)
    assert.deepEqual(pathsOf(needed.filter((place) => isTaken(place, undefined))), [])
  })

  test('refuses null and what a value is easily mistaken for, unless any or none will do', () => {
    const typed = places.filter(({ path }) => !free.some((each) => each.test(path)))
    const spared = typed.filter((place) => {
      const others = [null, mistaken[kindOf(place.value)]]
      return others.some((each) => kindOf(each) !== kindOf(place.value) && isTaken(place, each))
    })
    assert.ok(typed.length > 400)
    assert.deepEqual(pathsOf(spared), [])
  })
})

/** Paths end in a dot. Keys that may be absent, and entries of objects whose keys are data. */
const optional = [
  /^metadata\.(?:experienceType|description)\.$/,
  /^viewModelValues\.0\.instance(?:Id|Name)\.$/,
  /\.(?:condition|eligibility)\.(?:engine_min|compiled_at)\.$/,
  /\.condition\.$/,
  /^leg\.policy\.entry\.trigger\.identityField\.$/,
  /\.(?:outlets\.next|steps|transition|payload|payloadSchema|reason|viewModelName|isRelative|form)\.$/,
  /^leg\.screens\.0\.default(?:ViewModelName|InstanceId)\.$/,
  /\.(?:min|max|enum)\.$/,
  /\.payload\.[a-z]+\.$/,
  /\.fields\.[a-z]+\.$/,
  /^leg\.completionOutputs\.done\.$/,
  /^leg\.policy\.entry\.eligibility\..*\.(?:value|within|where|since|until|overallWithin|perStepWithin)\.$/,
  /^leg\.steps\.13\.action\.attributes\.plan\.$/,
  /^placements\.[01]\.(?:appStore|googlePlay)\.$/,
  /^products\.1\.store\.purchaseOptionId\.$/,
  /^render\.(?:screens\.0\.exit|transitions\.0\.reverse(?:\.durationMs|\.incomingOnTop)?|videoElements)\.$/,
  /^state\.[a-z]+\.$/,
  /^state\.rows\.items\.label\.$/,
  /\.multiple\.$/,
]

/** Values that may be of several types. */
const free = [
  /^viewModelValues\.0\.value\./,
  /\.payload\.a\.value\.$/,
  /\.entitlements\.0\.(?:featureId|featureExternalId|allowanceType|allowance|interval)\.$/,
  /\.assets\.2\.(?:audioCodec|captionTracks\.0\.(?:language|title))\.$/,
  /\.action\.placementId\.$/,
]

/** What a careless reader takes for a value of that type. */
const mistaken: Record<string, Sample> = {
  string: 7.25,
  number: true,
  boolean: 1,
  array: { 0: 7.25, length: 1 },
  object: [7.25],
  null: 7.25,
}

interface Place {
  path: string
  value: Sample
  holder: Sample
  key: string
}

/** One place of each kind: members of an array that have the same tag are alike. */
function placesOf(root: Sample, path: string, seen = new Set<string>()): Place[] {
  if (typeof root !== 'object' || root === null) return []
  const tag = root.type ?? root.kind ?? root.platform ?? ''
  return Object.entries(root).flatMap(([key, value]) => {
    const here = `${path}${key}.`
    const kind = `${here.replaceAll(/\.\d+\./g, '.*.')} ${tag} ${kindOf(value)}`
    const place = seen.has(kind) ? [] : [{ path: here, value, holder: root, key }]
    seen.add(kind)
    return [...place, ...placesOf(value, here, seen)]
  })
}

const pathsOf = (places: Place[]) => places.map(({ path }) => path)

function isObject(value: Sample): boolean {
  return kindOf(value) === 'object'
}

function kindOf(value: Sample): string {
  if (Array.isArray(value)) return 'array'
  return value === null ? 'null' : typeof value
}

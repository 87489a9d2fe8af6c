import assert from 'node:assert/strict'
import test from 'node:test'
import { checkRatio, compareSamples, normalCdf, upperGamma } from './statistics.ts'

function near(actual: number | null | undefined, expected: number, tolerance = 1e-9): void {
  assert.ok(
    typeof actual === 'number' && Math.abs(actual - expected) <= tolerance * Math.max(1, Math.abs(expected)),
    `${actual} is not ${expected}`,
  )
}

test('the normal distribution: its values in every table', () => {
  near(normalCdf(0), 0.5)
  near(normalCdf(1), 0.8413447460685429)
  near(normalCdf(1.959963984540054), 0.975)
  near(normalCdf(-1.959963984540054), 0.025)
  near(normalCdf(-8), 6.220960574271785e-16, 1e-20)
  near(normalCdf(40), 1)
})

test('chi-squared: its values in every table, and its closed forms', () => {
  // The 5 %, 1 % and 0.1 % points.
  near(upperGamma(1, 3.841458820694124 / 2), 0.05)
  near(upperGamma(1, 10.827566170662733 / 2), 0.001)
  near(upperGamma(2, 5.991464547107979 / 2), 0.05)
  near(upperGamma(3, 11.344866730144373 / 2), 0.01)
  near(upperGamma(10, 18.307038053275146 / 2), 0.05)
  // With 2 degrees exp(-x/2), with 4 exp(-x/2) (1 + x/2).
  for (const x of [0.1, 1, 3, 6, 20, 100]) {
    near(upperGamma(2, x / 2), Math.exp(-x / 2))
    near(upperGamma(4, x / 2), Math.exp(-x / 2) * (1 + x / 2))
  }
  assert.equal(upperGamma(5, 0), 1)
})

/*
 * 100 of 1,000 against 130 of 1,000. Rates 0.1 and 0.13, difference 0.03;
 * se = sqrt(0.1 * 0.9 / 1000 + 0.13 * 0.87 / 1000) = sqrt(0.0002031) = 0.0142513...;
 * z = 0.03 / 0.0142513 = 2.10507; two-sided p = 2 (1 - Phi(2.10507)) = 0.0352853; chance to win Phi(2.10507) = 0.9823573.
 * Interval 0.03 -+ 1.96 * 0.0142513 = 0.0020674 .. 0.0579326.
 * Sequential: -2 ln 0.05 = 5.9914645, ln(1 + 5.9914645) = 1.9446905, r^2 = 7.9361550 / 5000 = 0.00158723, N r^2 = 3.174462;
 * half = se * sqrt(2000) * sqrt(2 * 4.174462 / (2000 * 3.174462) * ln(sqrt(4.174462) / 0.05))
 *      = 0.0142513 * 44.721360 * sqrt(0.001315007 * 3.710153) = 0.0445180.
 */
test('a variant against the control: every figure of one worked example', () => {
  const got = compareSamples({ units: 1000, conversions: 100 }, { units: 1000, conversions: 130 })
  near(got.diff, 0.03)
  near(got.se, Math.sqrt(0.0002031))
  near(got.z, 2.1050687930179994)
  near(got.p, 0.0352853202504928)
  near(got.chanceToWin, 0.9823573398747536)
  near(got.interval?.[0], 0.0020674211716855614)
  near(got.interval?.[1], 0.057932578828314436)
  near(got.sequentialInterval?.[0], -0.014517962102267794)
  near(got.sequentialInterval?.[1], 0.0745179621022678)
})

test('the same the other way round has the opposite sign', () => {
  const [a, b] = [
    { units: 1000, conversions: 100 },
    { units: 1000, conversions: 130 },
  ]
  const [there, back] = [compareSamples(a, b), compareSamples(b, a)]
  near(back.diff, -(there.diff ?? 0))
  near(back.p, there.p ?? 0)
  near((back.chanceToWin ?? 0) + (there.chanceToWin ?? 0), 1)
})

test('where there is too little to say it nothing is said', () => {
  const empty = { units: 0, conversions: 0 }
  const some = { units: 10, conversions: 0 }
  assert.deepEqual(compareSamples(empty, some).diff, null)
  assert.deepEqual(compareSamples(some, some), {
    ...{ diff: 0, se: null, z: null, p: null, interval: null, sequentialInterval: null, chanceToWin: null },
  })
})

test('a sample ratio that is published as mismatched fails: 821,588 users against 815,482', () => {
  // Expected 818,535 each; chi-squared = 6,106^2 / 1,637,070 = 22.77, and p = 1.8e-6 as printed.
  const ratio = checkRatio([{ units: [821_588, 815_482], weights: [0.5, 0.5] }])
  near(ratio.chi2, 6106 ** 2 / 1_637_070)
  near(ratio.p, 1.821792872619186e-6, 1e-14)
  assert.deepEqual([ratio.df, ratio.status], [1, 'failed'])
})

test('the ratio follows the weights', () => {
  assert.equal(checkRatio([{ units: [100, 900], weights: [0.1, 0.9] }]).chi2, 0)
  assert.equal(checkRatio([{ units: [100, 900], weights: [0.1, 0.9] }]).status, 'passed')
  assert.equal(checkRatio([{ units: [100, 900], weights: [0.5, 0.5] }]).status, 'failed')
})

test('weights that changed are judged each by its own time, and added up', () => {
  // 60 and 40 of 100 at half each: (10^2 + 10^2) / 50 = 4. 30 and 70 at 0.2 and 0.8: 100 / 20 + 100 / 80 = 6.25.
  const ratio = checkRatio([
    { units: [60, 40], weights: [0.5, 0.5] },
    { units: [30, 70], weights: [0.2, 0.8] },
  ])
  near(ratio.chi2, 10.25)
  assert.equal(ratio.df, 2)
  near(ratio.p, Math.exp(-10.25 / 2))
})

test('a weight of nothing and a time without units count for no degree of freedom', () => {
  const ratio = checkRatio([
    { units: [50, 50, 0], weights: [0.5, 0.5, 0] },
    { units: [0, 0, 0], weights: [0.2, 0.3, 0.5] },
  ])
  assert.deepEqual([ratio.df, ratio.chi2], [1, 0])
})

test('eight units in each variant are enough to judge the ratio, seven are not', () => {
  const even = [0.5, 0.5]
  assert.equal(checkRatio([{ units: [8, 8], weights: even }]).status, 'passed')
  assert.equal(checkRatio([{ units: [1000, 8], weights: even }]).status, 'failed')
  assert.equal(checkRatio([{ units: [1000, 7], weights: even }]).status, 'too_few')
  assert.equal(checkRatio([]).status, 'too_few')
})

/** Conversions of one variant. */
export interface Sample {
  units: number
  conversions: number
}

/** Of a variant against the control; null where there is too little to say it. */
export interface Comparison {
  diff: number | null
  se: number | null
  z: number | null
  /** Two-sided. */
  p: number | null
  /** 95 %, for one look at a time fixed beforehand. */
  interval: [number, number] | null
  /** 95 %, however often one looks. */
  sequentialInterval: [number, number] | null
  chanceToWin: number | null
}

export function rateOf({ units, conversions }: Sample): number | null {
  return units === 0 ? null : conversions / units
}

export function compareSamples(control: Sample, variant: Sample): Comparison {
  const [a, b] = [rateOf(control), rateOf(variant)]
  if (a === null || b === null) return nothing(null)
  const diff = b - a
  const se = Math.sqrt((a * (1 - a)) / control.units + (b * (1 - b)) / variant.units)
  if (se === 0) return nothing(diff)
  const z = diff / se
  const half = se * sequentialFactor(control.units + variant.units)
  return {
    ...{ diff, se, z, p: upperGamma(1, (z * z) / 2) },
    interval: [diff - 1.96 * se, diff + 1.96 * se],
    sequentialInterval: [diff - half, diff + half],
    chanceToWin: normalCdf(z),
  }
}

function nothing(diff: number | null): Comparison {
  return { diff, se: null, z: null, p: null, interval: null, sequentialInterval: null, chanceToWin: null }
}

const alpha = 0.05
/** The number of units at which the interval is narrowest. */
const tunedFor = 5000
const r2 = (-2 * Math.log(alpha) + Math.log(1 - 2 * Math.log(alpha))) / tunedFor

/** How many standard errors an interval reaches that holds at every look at once (asymptotic confidence sequence). */
function sequentialFactor(units: number): number {
  const nr2 = units * r2
  return Math.sqrt(units) * Math.sqrt(((2 * (nr2 + 1)) / (units * nr2)) * Math.log(Math.sqrt(nr2 + 1) / alpha))
}

export interface RatioCheck {
  /** `too_few`: below 8 units in a variant. */
  status: 'passed' | 'failed' | 'too_few'
  chi2: number
  df: number
  p: number
}

const unitsMin = 8
const ratioPMin = 0.001

/** Whether variants have as many units as their weights say: one sum for each time that the weights held, added up. */
export function checkRatio(periods: readonly { units: number[]; weights: number[] }[]): RatioCheck {
  let [chi2, df] = [0, 0]
  const totals: number[] = []
  for (const { units, weights } of periods) {
    const sum = units.reduce((all, each) => all + each, 0)
    const weighted = weights.reduce((all, each) => all + each, 0)
    for (const [i, observed] of units.entries()) totals[i] = (totals[i] ?? 0) + observed
    if (sum === 0) continue
    const expecting = weights.flatMap((weight, i) => (weight > 0 ? [{ of: (sum * weight) / weighted, i }] : []))
    for (const { of, i } of expecting) chi2 += ((units[i] ?? 0) - of) ** 2 / of
    df += expecting.length - 1
  }
  const p = df === 0 ? 1 : upperGamma(df, chi2 / 2)
  if (totals.length === 0 || totals.some((each) => each < unitsMin)) return { status: 'too_few', chi2, df, p }
  return { status: p < ratioPMin ? 'failed' : 'passed', chi2, df, p }
}

export function normalCdf(z: number): number {
  const tail = upperGamma(1, (z * z) / 2) / 2
  return z > 0 ? 1 - tail : tail
}

/**
 * The regularised upper incomplete gamma function Q(df / 2, x): the chance that chi-squared with `df` degrees of freedom is
 * above 2x, and with one degree that a normal variable is further from 0 than the root of 2x. By its series below a + 1, by
 * its continued fraction (Lentz) above.
 */
export function upperGamma(df: number, x: number): number {
  if (x <= 0) return 1
  const a = df / 2
  const scale = Math.exp(a * Math.log(x) - x - logGamma(df))
  if (x < a + 1) {
    let [term, sum] = [1 / a, 1 / a]
    for (let n = 1; n < termsMax && term > sum * epsilon; n++) {
      term *= x / (a + n)
      sum += term
    }
    return Math.max(1 - scale * sum, 0)
  }
  let b = x + 1 - a
  let c = 1 / tiny
  let d = 1 / b
  let h = d
  for (let n = 1; n < termsMax; n++) {
    const an = -n * (n - a)
    b += 2
    d = 1 / nonZero(an * d + b)
    c = nonZero(b + an / c)
    h *= d * c
    if (Math.abs(d * c - 1) < epsilon) break
  }
  return scale * h
}

const termsMax = 10_000
const epsilon = 1e-15
const tiny = 1e-300

function nonZero(value: number): number {
  return Math.abs(value) < tiny ? tiny : value
}

/** Of half a whole number: from Γ(1/2) = √π or Γ(1) = 1 upwards. */
function logGamma(df: number): number {
  let log = df % 2 === 1 ? Math.log(Math.PI) / 2 : 0
  for (let a = df % 2 === 1 ? 0.5 : 1; a < df / 2; a++) log += Math.log(a)
  return log
}

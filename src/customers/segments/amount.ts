/** A whole number of any size, JSON: text beyond what a number holds exactly. Equal amounts are written equally. */
export type Amount = number | string

export function plus(a: Amount, b: Amount): Amount {
  if (typeof a === 'number' && typeof b === 'number') {
    const sum = a + b
    if (Number.isSafeInteger(sum)) return sum
  }
  return amountOf(BigInt(a) + BigInt(b))
}

function amountOf(whole: bigint): Amount {
  const number = Number(whole)
  return Number.isSafeInteger(number) ? number : `${whole}`
}

/** The nearest amount to a finite number. */
export function rounded(value: number): Amount {
  // Adding 0 makes 0 of -0, which is written like it and is not the same.
  const whole = Math.round(value) + 0
  return Number.isSafeInteger(whole) ? whole : `${BigInt(whole)}`
}

export interface Compare {
  op: 'eq' | 'gt' | 'gte' | 'lt' | 'lte'
  value: Amount
}

export function compares({ op, value }: Compare, actual: Amount): boolean {
  return typeof value === 'number' && typeof actual === 'number'
    ? ordered(op, actual, value)
    : ordered(op, BigInt(actual), BigInt(value))
}

function ordered<Value extends number | bigint>(op: Compare['op'], a: Value, b: Value): boolean {
  switch (op) {
    case 'eq':
      return a === b
    case 'gt':
      return a > b
    case 'gte':
      return a >= b
    case 'lt':
      return a < b
    case 'lte':
      return a <= b
  }
}

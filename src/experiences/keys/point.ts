/** Arithmetic on edwards25519 (RFC 8032), for judging public keys: plain bigints, not constant in time, no secrets. */
const p = 2n ** 255n - 19n
const order = 2n ** 252n + 27742317777372353535851937790883648493n
const d = mod(-121665n * inverse(121666n))
const rootOfMinusOne = power(2n, (p - 1n) / 4n)

/** Extended coordinates: x = X/Z, y = Y/Z, xy = T/Z. */
interface Point {
  X: bigint
  Y: bigint
  Z: bigint
  T: bigint
}

const identity: Point = { X: 0n, Y: 1n, Z: 1n, T: 0n }

/** Why a public key must not be trusted; undefined for a sound one. A weak one makes signatures of any message. */
export function weaknessOf(publicKey: Buffer): string | undefined {
  if (publicKey.length !== 32) return 'a public key has 32 bytes'
  const point = decode(publicKey)
  if (typeof point === 'string') return point
  if (isIdentity(multiply(point, 8n)))
    return 'the point has a small order: signatures of any message can be made for it'
  if (!isIdentity(multiply(point, order))) return 'the point lies outside of the group of prime order'
  return undefined
}

function decode(bytes: Buffer): Point | string {
  const word = BigInt(`0x${Buffer.from(bytes).reverse().toString('hex')}`)
  const y = word & (2n ** 255n - 1n)
  const isOdd = word >> 255n
  if (y >= p) return 'the y coordinate is not the canonical one'
  const u = mod(y * y - 1n)
  const v = mod(d * y * y + 1n)
  let x = mod(u * power(v, 3n) * power(u * power(v, 7n), (p - 5n) / 8n))
  if (mod(v * x * x) === mod(-u)) x = mod(x * rootOfMinusOne)
  if (mod(v * x * x) !== u) return 'the bytes are no point of the curve'
  if (x === 0n && isOdd === 1n) return 'the bytes are no point of the curve'
  if ((x & 1n) !== isOdd) x = mod(-x)
  return { X: x, Y: y, Z: 1n, T: mod(x * y) }
}

function add(a: Point, b: Point): Point {
  const A = mod((a.Y - a.X) * (b.Y - b.X))
  const B = mod((a.Y + a.X) * (b.Y + b.X))
  const C = mod(2n * d * a.T * b.T)
  const D = mod(2n * a.Z * b.Z)
  const [E, F, G, H] = [B - A, D - C, D + C, B + A]
  return { X: mod(E * F), Y: mod(G * H), T: mod(E * H), Z: mod(F * G) }
}

function multiply(point: Point, times: bigint): Point {
  let sum = identity
  let doubled = point
  for (let rest = times; rest > 0n; rest >>= 1n) {
    if (rest & 1n) sum = add(sum, doubled)
    doubled = add(doubled, doubled)
  }
  return sum
}

function isIdentity({ X, Y, Z }: Point): boolean {
  return X === 0n && Y === Z
}

function mod(value: bigint): bigint {
  const rest = value % p
  return rest < 0n ? rest + p : rest
}

function power(base: bigint, exponent: bigint): bigint {
  let result = 1n
  let square = mod(base)
  for (let rest = exponent; rest > 0n; rest >>= 1n) {
    if (rest & 1n) result = mod(result * square)
    square = mod(square * square)
  }
  return result
}

function inverse(value: bigint): bigint {
  return power(value, p - 2n)
}

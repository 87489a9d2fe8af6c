import { crc32, type InputType, inflateRaw, type ZlibOptions } from 'node:zlib'
import { assert } from '../kernel/assert.ts'
import { refuse } from '../kernel/errors.ts'
import { inflatedInFlightBytesMax } from '../kernel/limits.ts'
import { retryAfterS } from '../kernel/retry-after.ts'

/** Bytes that bodies now being inflated may take, in the whole process. */
let inFlightBytes = 0

/**
 * The content of exactly one gzip member. It is never inflated beyond what its trailer claims, and not at all when that is
 * more than deflate can do, 400, or more than `bytesMax`, 413. Cut, damaged, joined and trailing bytes: 400 `unsupported_encoding`. 503 when
 * the bodies of the process would take more memory than is set aside for them.
 */
export async function inflateWhole(body: Buffer, bytesMax: number): Promise<Buffer> {
  const start = headerLength(body)
  if (start === null || body.length < start + trailerBytes) throw damaged()
  const claimed = body.readUInt32LE(body.length - 4)
  // Deflate cannot do better than this: such a claim is the wrong bytes read, of a member that was cut.
  if (claimed > body.length * deflateRatioMax) throw damaged()
  if (claimed > bytesMax) throw refuse('payload_too_large')
  if (inFlightBytes + claimed > inflatedInFlightBytesMax) {
    throw refuse('service_unavailable', {
      retryAfterS: retryAfterS(),
      message: 'Too many bodies are being received. Retry.',
    })
  }
  inFlightBytes += claimed
  try {
    const { content, consumed } = await inflate(body.subarray(start), claimed)
    const whole = consumed === body.length - start - trailerBytes && content.length === claimed
    if (!whole || crc32(content) !== body.readUInt32LE(body.length - trailerBytes)) throw damaged()
    return content
  } finally {
    inFlightBytes -= claimed
    assert(inFlightBytes >= 0, 'no more is given back than was taken')
  }
}

/** CRC-32 and length, each four bytes (RFC 1952). */
const trailerBytes = 8
const deflateRatioMax = 1032

function damaged() {
  return refuse('unsupported_encoding', { message: 'The body is not one whole gzip member.' })
}

/** Inflates in one step on zlib's threads; more than `claimed` bytes are an error. */
function inflate(stream: Buffer, claimed: number): Promise<{ content: Buffer; consumed: number }> {
  // One output buffer of the whole size: smaller ones return to the event loop for each 16 KiB.
  const options = { info: true, maxOutputLength: Math.max(claimed, 1), chunkSize: Math.max(claimed + 1, 64) }
  return new Promise((resolve, reject) => {
    withInfo(stream, options, (error, result) => {
      if (error)
        reject(refuse('unsupported_encoding', { message: 'The body is not one whole gzip member.', cause: error }))
      else resolve({ content: result.buffer, consumed: result.engine.bytesWritten })
    })
  })
}

interface Inflated {
  buffer: Buffer
  engine: { bytesWritten: number }
}
/** With `info` the callback gets the engine as well, which knows how much of its input belonged to the stream; Node's types lack it. */
const withInfo = inflateRaw as unknown as (
  stream: InputType,
  options: ZlibOptions,
  done: (error: Error | null, result: Inflated) => void,
) => void

const flag = { headerCrc: 2, extra: 4, name: 8, comment: 16 } as const

/** Where the deflate stream begins, or null when this is no gzip header. */
function headerLength(body: Buffer): number | null {
  if (body.length < 10 || body[0] !== 0x1f || body[1] !== 0x8b || body[2] !== 8) return null
  const flags = body.readUInt8(3)
  if (flags > 31) return null
  let at = 10
  if (flags & flag.extra) at += body.length < at + 2 ? body.length : 2 + body.readUInt16LE(at)
  for (const text of [flag.name, flag.comment]) {
    if (!(flags & text)) continue
    const end = body.indexOf(0, at)
    if (end === -1) return null
    at = end + 1
  }
  return flags & flag.headerCrc ? at + 2 : at
}

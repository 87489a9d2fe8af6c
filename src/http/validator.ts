import { Ajv, type ValidateFunction } from 'ajv'
import addFormats from 'ajv-formats'
import type { FastifySchemaCompiler, FastifySchemaValidationError } from 'fastify'
import type { TSchema } from 'typebox'
import { type Issue, type Refusal, refuse } from '../kernel/errors.ts'
import { isBlank, isReservedDistinctId, isStorable, isTrimmed } from '../kernel/text.ts'

/** A keyword over strings: `"x-trimmed": true`. The prefix keeps the published documents valid JSON Schema. */
function textKeyword<T>(keyword: string, message: string, holds: (parameter: T, text: string) => boolean) {
  return { keyword, type: 'string' as const, validate: holds, error: { message } }
}

const keywords = [
  textKeyword<boolean>('x-not-blank', 'must not be blank', (_, text) => !isBlank(text)),
  textKeyword<boolean>('x-trimmed', 'must not begin or end with white space', (_, text) => isTrimmed(text)),
  textKeyword<boolean>('x-storable', 'must be well-formed text without NUL', (_, text) => isStorable(text)),
  textKeyword<boolean>('x-not-reserved', 'must not be a placeholder', (_, text) => !isReservedDistinctId(text)),
  textKeyword<number>('x-bytes-max', 'has too many bytes', (max, text) => Buffer.byteLength(text) <= max),
]

/**
 * Validates without coercion, removal or defaults: what the caller sent is what is judged, and all of it. A schema is
 * compiled when it is first used: all of them at the start cost half a second and 25 MB.
 */
export function validatorCompiler(): FastifySchemaCompiler<TSchema> {
  const ajv = new Ajv({ allErrors: true, allowUnionTypes: true, discriminator: true, keywords })
  addFormats.default(ajv)
  return ({ schema }) => {
    let compiled: ValidateFunction | undefined
    const validate: ReturnType<FastifySchemaCompiler<TSchema>> & { errors?: ValidateFunction['errors'] } = (
      data: unknown,
    ) => {
      compiled ??= ajv.compile(schema)
      const valid = compiled(data)
      validate.errors = compiled.errors ?? null
      return valid
    }
    return validate
  }
}

/** The refusal for a body, query or path that does not fit its schema: `unknown_field` when that is all that is wrong. */
export function invalid(errors: FastifySchemaValidationError[]): Refusal {
  const issues: Issue[] = errors
    .filter((error) => error.keyword !== 'anyOf')
    .slice(0, 100)
    .map((error) => ({ path: pathOf(error), message: messageOf(error) }))
  const first = issues[0]
  const onlyUnknown = errors.every((error) => error.keyword === 'additionalProperties')
  return refuse(onlyUnknown ? 'unknown_field' : 'invalid_request', {
    issues,
    ...(first === undefined ? {} : { param: first.path, message: `${first.path} ${first.message}`.trim() }),
  })
}

/** Of several kinds of bodies it says which property tells them apart, in words of its own. */
function messageOf({ keyword, message }: FastifySchemaValidationError): string {
  if (keyword === 'discriminator') return 'must be one of the documented values'
  return message ?? 'is not valid'
}

/** `/grants/0/feature` and the named property of the keyword become `grants.0.feature`. */
function pathOf(error: FastifySchemaValidationError): string {
  const parts = error.instancePath.split('/').slice(1).map(unescapePointer)
  const named = error.params.additionalProperty ?? error.params.missingProperty ?? error.params.tag
  if (typeof named === 'string') parts.push(named)
  return parts.join('.').slice(0, 300)
}

function unescapePointer(part: string): string {
  return part.replaceAll('~1', '/').replaceAll('~0', '~')
}

import Type, { type TSchema } from 'typebox'

const error = {
  code: Type.String({ description: 'Stable word for programs.' }),
  message: Type.String({ description: 'A sentence for people.' }),
  request_id: Type.String(),
  detail: Type.Optional(Type.String({ description: 'Of a purchase that cannot be attached: why.' })),
  details: Type.Optional(Type.Record(Type.String(), Type.Unknown())),
  issues: Type.Optional(Type.Array(Type.Object({ path: Type.String(), message: Type.String() }))),
}

const words: Record<number, string> = {
  400: 'The body, an identifier or the command is not valid.',
  401: 'The key is missing, invalid, revoked or of the wrong kind.',
  403: 'The request names another app or environment than its key.',
  404: 'Not found.',
  409: 'The operation id was used before with other input.',
  410: 'The customer was deleted.',
  413: 'The body is too large.',
  429: 'Too often; retry after `Retry-After` seconds.',
  503: 'Not possible at the moment; retry after `Retry-After` seconds.',
}

/** The documented error answers of an App API operation. */
export function appErrors(...statuses: number[]): Record<number, TSchema> {
  return Object.fromEntries(
    statuses.map((status) => [status, Type.Object(error, { title: 'Error', description: words[status] ?? '' })]),
  )
}

import Type, { type TSchema } from 'typebox'

const WorkspaceError = Type.Object(
  {
    error: Type.Object({
      code: Type.String({ description: 'Stable word for programs.' }),
      message: Type.String({ description: 'A sentence for people.' }),
      param: Type.Optional(Type.String({ description: 'The field, query parameter or header that is wrong.' })),
      issues: Type.Optional(
        Type.Array(Type.Object({ path: Type.String(), message: Type.String(), code: Type.Optional(Type.String()) })),
      ),
      details: Type.Optional(Type.Record(Type.String(), Type.Unknown())),
      request_id: Type.String(),
    }),
  },
  { title: 'Error' },
)

const words: Record<number, string> = {
  400: 'The body, a parameter or a header is not valid.',
  401: 'The key is missing, invalid, revoked, expired or of the wrong kind.',
  402: 'The plan or its billing does not allow this: `api_access_required` or `billing_payment_required`.',
  403: 'Not allowed: `workspace_access_denied`, `workspace_admin_required` or `email_verification_required`.',
  404: 'Not found, or not in this workspace, project and environment.',
  409: 'Conflicts with what is stored, or the Idempotency-Key was used with another body.',
  410: 'The customer was deleted.',
  413: 'The body is too large.',
  429: 'Too many attempts; retry after `Retry-After` seconds.',
  500: 'Something went wrong on our side, and nothing was changed.',
  503: 'Not possible at the moment; retry after `Retry-After` seconds.',
}

/** The documented error answers of a Workspace API operation. */
export function workspaceErrors(...statuses: number[]): Record<number, TSchema> {
  return Object.fromEntries(
    statuses.map((status) => [
      status,
      Type.Object(WorkspaceError.properties, { description: words[status] ?? '', title: 'Error' }),
    ]),
  )
}

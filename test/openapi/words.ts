import type { FastifyDynamicSwaggerOptions } from '@fastify/swagger'

type OpenApi = NonNullable<FastifyDynamicSwaggerOptions['openapi']>

/** What a document says that no single route knows. */
export interface Api {
  info: { title: string; description: string }
  servers: NonNullable<OpenApi['servers']>
  tags: { name: string; description: string }[]
  securitySchemes: NonNullable<NonNullable<OpenApi['components']>['securitySchemes']>
}

const keywords = `
Keywords that begin with \`x-\` are rules JSON Schema has no word for: \`x-not-blank\` (not only white space), \`x-trimmed\`
(no white space at either end), \`x-storable\` (no NUL, no lone surrogates), \`x-not-reserved\` (no placeholder such as
\`anonymous\`), \`x-bytes-max\` (length in UTF-8 bytes).

Header names are shown with the word \`Service\`, the default of the setting \`NAMESPACE\`.`

export const appApi: Api = {
  info: {
    title: 'Turnpike App API',
    description: `What apps call: events, profiles, Feature access and usage.

**Key.** Every POST carries a publishable key as \`apiKey\` in its JSON body; GETs carry it in the query. \`pk_test_…\` works on
test data, \`pk_live_…\` on live data. The key names the app, its platform and the environment.

**Order of checks.** Size (413), JSON and content type (400), key (401), scope (403), fields (400), customer (410), then the
operation itself.

**Errors** have the shape of \`Error\`; \`code\` is for programs. Repeat 429 and 503 after \`Retry-After\` seconds, with the same
event UUID or operation id. Every answer carries \`X-Request-Id\`.
${keywords}`,
  },
  servers: [{ url: '/', description: 'This service' }],
  tags: [
    { name: 'Profile', description: 'What an app shows and runs for one customer.' },
    { name: 'Events', description: 'What customers did. Stored before the answer, processed within moments.' },
    { name: 'Features', description: 'May the customer use it, and units spent, each operation once.' },
    { name: 'Purchases', description: 'What was bought in a store becomes access, once.' },
    { name: 'Files', description: 'What screens are made of. Without a key, and the same for ever.' },
    { name: 'Service', description: 'Whether the service lives, and whom a key belongs to.' },
  ],
  securitySchemes: {
    publishableKey: {
      type: 'apiKey',
      in: 'query',
      name: 'apiKey',
      description: 'Publishable key of an app, for GET. POST carries it in the body.',
    },
  },
}

export const workspaceApi: Api = {
  info: {
    title: 'Turnpike Workspace API',
    description: `What your backend calls: people and keys, projects and apps, Features, Products, customers and grants, Segments, events and
questions about them, Experiences, experiments, their journeys, signing keys and webhook endpoints.

**Key.** \`Authorization: Bearer sk_…\`, a workspace's API key. People use the token of their session instead (\`POST /tokens\`) and name
the workspace in \`Service-Workspace-Id\`. A member reads and edits catalogue, customers, Segments, Experiences and experiments; an admin or owner also
projects, apps, keys, signing keys, webhook endpoints and members, and deletes. Keys and members are managed with a session only. The header \`X-Service-Env\` selects \`test\` or \`live\` (the default).

**Lists** take \`limit\` and \`cursor\`, newest first; pass \`next_cursor\` on until it is null. Lists by position, of
events and of customer changes, are oldest first and never end. **PATCH** changes the named fields
only. Unknown fields are refused. Where the workspace has exactly one project, \`project_id\` may be left out.

**Repeating.** Every POST takes an \`Idempotency-Key\`: the same key and body get the first answer again, with
\`Idempotent-Replayed: true\`; another body is a 409. Only those that need no key or session keep no answer.

**Errors** have the shape of \`Error\`. What belongs to another workspace, project or environment is not found. Every answer
carries \`X-Request-Id\`.
${keywords}`,
  },
  servers: [{ url: '/v1', description: 'This service' }],
  tags: [
    { name: 'Users', description: 'Signing up, verifying an address, a new password. Without a key, and limited.' },
    { name: 'Sessions', description: 'Signing in and out.' },
    { name: 'Workspaces', description: 'The tenant: its people, its keys, its projects.' },
    { name: 'API keys', description: 'What your backend calls this API with.' },
    { name: 'Members', description: 'The people of a workspace, and those invited.' },
    { name: 'Projects', description: 'One product of yours, on all its platforms.' },
    { name: 'Apps', description: 'One platform of a project.' },
    { name: 'Publishable keys', description: 'What an app calls the App API with.' },
    { name: 'Features', description: 'What is gated: switched on, counted, or paid for in credits.' },
    { name: 'Products', description: 'What grants Features, and which store products lead to it.' },
    { name: 'Customers', description: 'Whom the apps tell of: identities, properties, balances and ledger.' },
    {
      name: 'Segments',
      description: 'Groups of customers by what they did and what is known of them, kept up to date.',
    },
    { name: 'Operations', description: 'What apps spent: the saved decisions, who paid, and giving it back.' },
    { name: 'Use and changes', description: 'How much is used, and who changed what.' },
    { name: 'Grants', description: 'Allocations made by hand, or by attaching a Product.' },
    {
      name: 'Stores',
      description: 'How an app talks to the App Store and Google Play, and what it accepts from them.',
    },
    { name: 'Purchases', description: 'What customers bought in the stores: verified, whose it is, what it gave.' },
    { name: 'Entities', description: 'Seats, teams or devices of a customer, with units of their own.' },
    { name: 'Experiences', description: 'What devices and the service run for a customer, as authored.' },
    { name: 'Publishing', description: 'Versions of Experiences, where they are live, and the signed releases.' },
    { name: 'Experiments', description: 'Which variant customers are shown, who has seen it, and what came of it.' },
    { name: 'Journeys', description: 'What becomes of an Experience for one customer, and starting one.' },
    { name: 'Signing keys', description: 'What signs releases, so that apps can tell whose they are.' },
    { name: 'Webhook endpoints', description: 'Where journeys send webhooks.' },
    { name: 'Events', description: 'What customers did, and what became of it.' },
  ],
  securitySchemes: {
    secretKey: { type: 'http', scheme: 'bearer', description: 'A secret key of the workspace, `sk_…`.' },
    userSession: { type: 'http', scheme: 'bearer', description: 'The token of a session, from `POST /tokens`.' },
  },
}

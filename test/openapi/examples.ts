const apiKey = 'pk_test_…'
const event = {
  event: 'recipe_saved',
  distinct_id: 'ada',
  uuid: '5f0c2f43-8a55-4d3e-8d3e-3a2f6f1f5a01',
  timestamp: '2026-11-20T08:15:00Z',
  properties: { recipe: 'onion soup', $set: { plan: 'trial' }, $increment: { recipes: 1 } },
}
const email = 'ada@example.com'
const project_id = 'proj_v9dl6oaofrs6m8k6k3zo78w4'

const cooksOnTrial = {
  version: 1,
  where: {
    all: [
      { property: { key: 'plan', op: 'eq', value: 'trial' } },
      {
        performed: {
          event: 'recipe_saved',
          filters: [{ property: 'recipe', op: 'contains', value: 'soup' }],
          count: { op: 'gte', value: 3 },
          within: { value: 48, unit: 'hour' },
        },
      },
    ],
  },
}

const welcomeDraft = {
  draftVersion: 1,
  platforms: ['ios', 'android'],
  locales: { default: 'en' },
  metadata: { name: 'Welcome', appDefaultTimezone: 'Europe/Berlin' },
  policy: {
    entry: { trigger: { type: 'event', eventName: 'signup_completed' }, frequency: { type: 'one_time' } },
    exitWhenAny: [],
  },
  graph: {
    entry: 'tell',
    steps: [
      {
        id: 'tell',
        plane: 'device',
        action: { type: 'send_event', eventName: 'welcomed' },
        outlets: { next: 'later' },
      },
      { id: 'later', plane: 'server', action: { type: 'delay', durationMs: 86_400_000 }, outlets: { next: null } },
    ],
  },
  presentation: { style: 'full_screen', orientation: 'portrait', backgroundColor: '#FFFFFFFF' },
}

/** One body for each operation that takes one, by operation id. The tests hold each against its schema. */
export const examples: Record<string, object> = {
  getProfile: { apiKey, distinct_id: 'ada' },
  recordEvent: { apiKey, ...event },
  recordBatch: { apiKey, batch: [event] },
  checkAccess: { apiKey, customerId: 'ada', featureId: 'exports', requiredBalance: 3 },
  consumeFeature: { apiKey, customerId: 'ada', featureId: 'exports', operationId: 'export-0001', quantity: 3 },
  synchronizePurchase: {
    apiKey,
    type: 'appstore',
    distinct_id: 'ada',
    transaction_jwt: 'eyJhbGciOiJFUzI1NiIsIng1YyI6…',
  },
  putStoreCredentials: {
    ...{
      kind: 'appstore',
      app_apple_id: 1234567890,
      issuer_id: '57246542-96fe-1a63-e053-0824d011072a',
      key_id: '2X9R4HXF34',
    },
    private_key: '-----BEGIN PRIVATE KEY-----\n…\n-----END PRIVATE KEY-----',
  },
  updateStoreSettings: { unbound_purchases: 'first_claim', review_open_until: '2026-12-01T00:00:00.000Z' },
  createCheckoutBinding: { app_id: 'app_k3zo78w4v9dl6oaofrs6m8k6', value: '9b1e5a52-3c1f-4f0e-9a51-6d6a4f8f2f10' },
  transferPurchase: { customer_id: 'cus_2c5ea4c0-4067-5b8e-9a3c-2f6c8d0b3e97', reason: 'Support case 4711' },
  reverifyPurchase: {},
  checkStoreCredentials: {},
  createUser: { email, password: 'correct horse battery staple', name: 'Ada' },
  verifyEmail: { token: 'eyJhbGciOiJIUzI1NiJ9…' },
  requestPasswordReset: { email },
  confirmPasswordReset: { token: 'ixVOY8pWJ0…', password: 'a new one, as long' },
  createToken: { email, password: 'correct horse battery staple' },
  createWorkspace: { name: 'Kitchen Ltd' },
  updateWorkspace: { logo: 'https://example.com/logo.png' },
  createApiKey: { name: 'Backend', expiresInDays: 365 },
  updateMember: { role: 'admin' },
  createInvitation: { email: 'grace@example.com', role: 'member' },
  createProject: { name: 'Kitchen' },
  updateProject: {
    name: 'Kitchen and garden',
    deliver_always: null,
    client_runtime: {
      minimum_sdk_version: '2.1.0',
      runtime_revision: 'r4',
      luau: { revision: 'l1', bytecode_versions: [5, 6] },
      scene_format: { major: 1, minor: 2 },
      timezone_data: { format: 'iana-tzdb', revision: '2026a', sha256: '9'.repeat(64) },
      capabilities: ['ser', 'system-fonts'],
    },
  },
  setTestClock: { offset_ms: 31 * 24 * 3600_000 },
  createApp: { project_id, platform: 'ios', name: 'Kitchen for iOS', bundle_id: 'com.example.kitchen' },
  updateApp: { name: 'Kitchen' },
  createFeature: {
    key: 'ai_credits',
    name: 'AI credits',
    type: 'creditSystem',
    credit_costs: [{ feature: 'chat', cost: 2 }],
  },
  updateFeature: { platforms: ['ios', 'android'] },
  createProduct: {
    key: 'pro_monthly',
    name: 'Pro, monthly',
    type: 'subscription',
    grants: [{ feature: 'pro' }, { feature: 'exports', allowance: 100, interval: 'month' }],
    stores: [
      { store: 'appstore', product_id: 'com.example.kitchen.pro_monthly' },
      { store: 'playstore', product_id: 'pro_monthly', base_plan_id: 'monthly' },
    ],
    preview: { name: 'Kitchen Pro', price: '9.99', period: 'month', period_label: 'a month', period_count: 1 },
  },
  updateProduct: {
    grants: [{ feature: 'exports', allowance: 200, interval: 'month', rollover: { max: 200, periods: 1 } }],
  },
  resolveCustomer: { distinct_id: 'ada', properties: { plan: 'trial' } },
  mergeCustomers: { source_distinct_id: 'tablet-7f3a' },
  updateCustomer: { properties: { set: { plan: 'pro' }, unset: ['trial_ends'], increment: { logins: 1 } } },
  createExperience: { key: 'welcome', name: 'Welcome' },
  updateExperience: { name: 'Welcome, second edition' },
  copyExperience: { to_environment: 'live' },
  uploadArtifact: {
    scene: { sha256: '1'.repeat(64), sizeBytes: 48_213 },
    screens: [{ id: 'offer', artboardId: 'a1', artboardName: 'Offer', width: 390, height: 844 }],
    transitions: [],
    assets: [],
  },
  saveDraft: welcomeDraft,
  validateDraft: { draft: welcomeDraft },
  publishExperience: { note: 'Greets after a day' },
  activateVersion: { app_ids: ['app_k3zo78w4v9dl6oaofrs6m8k6'] },
  pauseExperience: {},
  resumeExperience: {},
  unpublishExperience: { app_ids: ['app_k3zo78w4v9dl6oaofrs6m8k6'] },
  archiveExperience: {},
  createExperiment: {
    key: 'greeting',
    name: 'Which greeting brings cooks back',
    variants: [
      { id: 'plain', weight: 0.5, is_holdout: false },
      { id: 'warm', weight: 0.5, is_holdout: false },
    ],
    metrics: [{ event_name: 'recipe_saved', window_ms: 604_800_000 }],
  },
  updateExperiment: { coverage: 0.5 },
  startExperiment: {},
  pauseExperiment: {},
  resumeExperiment: {},
  archiveExperiment: {},
  beginExperimentPhase: { coverage: 1 },
  concludeExperiment: { winner_variant_id: 'warm' },
  createSigningKey: { key_id: 'kitchen-2027' },
  importSigningKey: {
    key_id: 'kitchen-2026',
    public_key: '11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=',
  },
  activateSigningKey: { app_ids: ['app_k3zo78w4v9dl6oaofrs6m8k6'] },
  createWebhookEndpoint: { name: 'Shop', url: 'https://shop.example.com/turnpike' },
  updateWebhookEndpoint: { url: 'https://shop.example.com/turnpike/2' },
  createSegment: { name: 'Cooks on trial', definition: cooksOnTrial },
  updateSegment: { name: 'Cooks' },
  previewSegment: { definition: cooksOnTrial },
  createGrant: {
    feature: 'exports',
    allowance: 5,
    expires_at: '2027-01-01T00:00:00.000Z',
    note: 'sorry for the outage',
  },
  attachProduct: { product: 'pro_monthly' },
  revokeGrant: { reason: 'given by mistake' },
  reverseOperation: { customer_id: 'cus_8baa728c-348e-5d6c-af13-1250401ef5de', reason: 'the export failed' },
  recordEvents: { events: [{ ...event, event: 'invoice_paid', properties: { amount: 4900, currency: 'NOK' } }] },
  queryEvents: {
    type: 'trend',
    time_range: { start: '2026-11-01T00:00:00+01:00', end: '2026-12-01T00:00:00+01:00', timezone: 'Europe/Oslo' },
    interval: 'day',
    series: [{ event: 'recipe_saved', measure: { type: 'unique_customers' } }],
    filters: [{ scope: 'customer', property: 'plan', op: 'eq', value: 'pro' }],
    group_by: [{ scope: 'event', property: 'source', limit: 10 }],
  },
  createEventExport: {
    format: 'jsonl.gz',
    time_range: { start: '2026-11-01T00:00:00Z', end: '2026-12-01T00:00:00Z' },
    events: ['recipe_saved'],
  },
  registerEntity: { feature: 'exports', entity_id: 'seat-7' },
}

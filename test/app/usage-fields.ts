/** What the identifiers and numbers of `/entitled` and `/feature/consume` may be, and what not. */

const notText = [7, 0, true, false, null, [], ['ada'], {}, { length: 3 }]
const notTrimmed = [' ', '\u0085', ' ada', 'ada ', '\tada', 'ada\n', '\u00a0ada', 'ada\u2003', '\u0085ada', '\ufeffada']
const notStorable = ['\0', 'a\0b', '\ud800', 'a\udc00b']
const notIdentifiers = [...notText, '', ...notTrimmed, ...notStorable]
const inside = ['a b', '\u200ba', 'a\u0085b', '__proto__', 'é', 'A', "';--", '%00', '../x']

/** `undefined` is a field that is not sent. */
export const identifiers = {
  customerId: {
    refused: [
      ...[undefined, ...notIdentifiers, 'x'.repeat(257), '😀'.repeat(257)],
      ...['anonymous', 'guest', 'undefined', 'null', 'Anonymous', 'GUEST', 'UnDefined', 'NULL'],
    ],
    taken: [...inside, 'x'.repeat(256), '😀'.repeat(256), 'nullable', 'guest1'],
  },
  featureId: {
    refused: [undefined, ...notIdentifiers, 'x'.repeat(257), '😀'.repeat(257)],
    taken: [...inside, 'x'.repeat(256), '😀'.repeat(256), 'null'],
  },
  operationId: {
    refused: [undefined, ...notIdentifiers, 'x'.repeat(257), '😀'.repeat(257)],
    taken: [...inside, 'x'.repeat(256), '😀'.repeat(256), 'null'],
  },
  entityId: {
    // Measured in bytes.
    refused: [...notIdentifiers, 'x'.repeat(257), 'é'.repeat(129), '😀'.repeat(65)],
    taken: [undefined, ...inside, 'x'.repeat(256), 'é'.repeat(128), '😀'.repeat(64), 'null'],
  },
}

/** Numbers as they may be written in JSON. */
export const units = {
  refused: [
    ...['0', '-1', '-0', '0.0', '1.5', '0.1', '1e-1', '9007199254740992', '1e16', '1e400', '-1e400'],
    ...['"1"', '""', '"one"', 'true', 'false', 'null', '[]', '[1]', '{}'],
  ],
  taken: { '1': 1, '1.0': 1, '1e0': 1, '10e-1': 1, '1e3': 1000, '1E+3': 1000, '9007199254740991': 2 ** 53 - 1 },
}

/** The body with a number written that way. */
export function withNumber(body: Record<string, unknown>, field: string, text: string): string {
  return JSON.stringify({ ...body, [field]: '@number@' }).replace('"@number@"', text)
}

/** Fields that neither operation knows, each with a value that a client might send. */
export const unknownFields = {
  productId: 'pro_monthly',
  sendEvent: true,
  eventData: {},
  idempotencyKey: 'key',
  customer_id: 'ada',
  distinct_id: 'ada',
  groups: {},
  '': 1,
}

import type { Scope } from '../../tenancy/index.ts'
import type { Processed } from './process.ts'

export interface SegmentLog {
  warn: (fields: object, message: string) => void
  error: (fields: object, message: string) => void
}

/** Customers that were set aside are counted in `/metrics` too; failed definitions say so themselves. */
export function tellProblems(
  log: SegmentLog,
  { scopeId }: Scope,
  { aside, failed }: Pick<Processed, 'aside' | 'failed'>,
) {
  for (const { customerId, error } of aside) {
    log.error({ err: error, scopeId, customerId }, 'segments of a customer cannot be computed; it was set aside')
  }
  if (failed.length > 0) log.error({ scopeId, versions: failed }, 'definitions of segments cannot be computed')
}

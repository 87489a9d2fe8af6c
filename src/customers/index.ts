export { type CustomerChange, listChanges } from './changes.ts'
export { parseCustomerId, wireCustomerId } from './customer-id.ts'
export { deleteBuried, deleteCustomer } from './delete.ts'
export type { PropertyEdit } from './directives.ts'
export { patchProperties } from './edit.ts'
export { createFindCustomer, type FindCustomer } from './find.ts'
export { createCustomerIdHint } from './hint.ts'
export { type IdentityServices, mergeCustomers } from './merge.ts'
export { createProjection } from './projection.ts'
export { byDistinctId, getCustomer, listCustomers, listMerges, recordsOf, survivorsOf } from './read.ts'
export { rebuildCustomers } from './rebuild/rebuild.ts'
export { resolveOrCreate } from './resolve.ts'
export { raiseRevs } from './rev-store.ts'
export { countAside } from './segments/aside-store.ts'
export { auditSegments } from './segments/audit.ts'
export { auditAllSegments } from './segments/audit-all.ts'
export { selectAudits } from './segments/audit-store.ts'
export { segmentEraser } from './segments/eraser.ts'
export { explainMembership } from './segments/explain.ts'
export { createSegmentConsumer, type MembershipConsumer } from './segments/lane.ts'
export {
  createSegment,
  deleteSegment,
  getSegment,
  listSegments,
  type UsedSegment,
  updateSegment,
} from './segments/manage.ts'
export { segmentParticipant } from './segments/participant.ts'
export { previewSegment } from './segments/preview.ts'
export { listMembers, membershipsOf } from './segments/read.ts'
export { type Membership, type ServingSegment, selectServing as servingSegments } from './segments/read-store.ts'
export { runSegments } from './segments/run.ts'
export { settleChanges } from './settle.ts'
export { selectBacklog } from './settle-store.ts'
export { splitMerge } from './split.ts'
export { listTombstones } from './tombstones.ts'
export { insertBuried, type Tombstone } from './tombstones-store.ts'
export type { Customer, Eraser, Merge, MergeParticipant } from './types.ts'

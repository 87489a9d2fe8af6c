/** Every bound of the service that is not a setting, with its reason. Sizes in bytes, times in milliseconds, unless named. */
const MiB = 1024 * 1024

/** Single-event bodies: 1 MiB for the event and 64 KiB for the envelope around it. */
export const eventBodyBytesMax = MiB + 64 * 1024
/** Normalised JSON of one event, alone or in a batch. */
export const eventBytesMax = MiB
/** `/batch` as sent. */
export const batchBodyBytesMax = 16 * MiB
/** `/batch` decompressed; enforced while inflating. */
export const batchInflatedBytesMax = 128 * MiB
/** Inflated bodies in flight in one process; beyond it 503. */
export const inflatedInFlightBytesMax = 512 * MiB
export const batchItemsMax = 1000
/** `/purchase` and `/feature/consume` carry store evidence. */
export const evidenceBodyBytesMax = 2.25 * MiB
/** Every other JSON body. */
export const bodyBytesMax = MiB
/** A body that takes longer loses its connection. */
export const bodyReceiveMsMax = 30_000
/** Arrays and objects inside one another in any request body, counting the root. */
export const jsonDepthMax = 64

/** Unicode code points of a customer identifier. */
export const customerIdCharsMax = 256
export const featureIdCharsMax = 256
export const operationIdCharsMax = 256
export const entityIdBytesMax = 256
/** 2^53 − 1: the largest whole number JSON readers agree on. */
export const unitsMax = Number.MAX_SAFE_INTEGER

export const eventNameCharsMax = 200
export const propertyDepthMax = 32
export const propertyKeysMax = 2000
export const journeyOriginBytesMax = 2048
/** A timestamp further ahead of receipt than this is clamped to receipt. */
export const futureSkewMsMax = 23 * 3600_000

export const customerPropertiesBytesMax = 512 * 1024
export const customerPropertiesKeysMax = 1000
export const propertyKeyCharsMax = 200
/** Distinct ids of one customer. */
export const distinctIdsMax = 1000
/** Usage counters for entities of one account. */
export const entityCountersMax = 10_000

/** The embedded database: recovery reads at most `max_wal_size` (2 GB) of log before the first answer, on a slow disk minutes. */
export const databaseStartMsMax = 10 * 60_000
/** Its last checkpoint; beyond it the database is stopped at once and recovers at the next start. Within the 10 s of a clean stop. */
export const databaseStopMsMax = 7000
/** Its log, cut at the next start. */
export const serverLogBytesMax = 4 * MiB

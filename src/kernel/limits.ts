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
/** Values in any request body, for the memory of what is parsed: about half a second. One event of 1 MiB never has that many, so a batch that is refused gets through in parts. */
export const jsonValuesMax = 1_000_000

/** Unicode code points of a customer identifier. */
export const customerIdCharsMax = 256
export const featureIdCharsMax = 256
export const operationIdCharsMax = 256
export const entityIdBytesMax = 256
/** The same on events, where it names nothing that is stored by it. */
export const entityIdCharsMax = 256
/** 2^53 − 1: the largest whole number JSON readers agree on. */
export const unitsMax = Number.MAX_SAFE_INTEGER

export const eventNameCharsMax = 200
export const propertyDepthMax = 32
export const propertyKeysMax = 2000
export const journeyOriginBytesMax = 2048
/** A timestamp further ahead of receipt than this is clamped to receipt. */
export const futureSkewMsMax = 23 * 3600_000

/** Events or bytes that wait for a writer of the log in one process; a quarter for single events, the rest for batches. */
export const appendWaitingEventsMax = 20_000
export const appendWaitingBytesMax = 64 * MiB
/** One group of single events: larger ones cost latency and bring nothing. */
export const appendGroupEventsMax = 256
export const appendGroupBytesMax = 4 * MiB
/** Time in the queue of the log; the database is then slower than the callers. */
export const appendWaitMsMax = 1000
/** Of the log, not applied yet: beyond it, or with less of the disk free, 503 until there is room again. */
export const unprocessedBytesMax = 20 * 1024 * MiB
export const freeDiskShareMin = 0.05
/** Between looks at these two: 10 s of the fastest intake are half a gigabyte. */
export const intakeLookMs = 10_000
/** An insert that takes longer is given up: 503, and the retry is harmless. */
export const appendStatementMsMax = 15_000
/** Wake-ups of lanes, for each process: one notification says all lanes of the time between. */
export const laneWakeMs = 10
/**
 * A lane takes slices of fewer events than this no more often than this: each costs about a millisecond whatever is in it,
 * and under load that is a third of the lane's work. Accepted to processed stays within 30 ms.
 */
export const smallSliceEvents = 500
export const smallSliceEveryMs = 20

/** One lane transaction: what is lost by a rollback and what others wait for. */
export const sliceEventsMax = 2000
export const sliceBytesMax = 16 * MiB
/** Properties of customers that one slice may hold in memory, as text; parsed they take a few times that. */
export const slicePropertiesBytesMax = 32 * MiB
/** Tries of an event that fails alone, before it is set aside. */
export const deadTriesMax = 3
/** Before its second try, and twice that before its third. */
export const deadTryPauseMs = 20
/** Dead events that stop a lane: in a row, or of the last so many. That is a bad deploy, not bad data. */
export const deadInRowMax = 20
export const deadWindowRows = 1000
export const deadOfLastMax = 50
/** A stopped lane is tried again after this, or when a worker starts. */
export const laneStoppedMs = 10 * 60_000
/** Characters of what is kept of an error, and of a warning's detail. */
export const deadErrorCharsMax = 1000
export const warningDetailCharsMax = 300
/** Newest events kept for each code of warnings. */
export const warningSamplesMax = 100
/** Lanes one worker works on at once: one waits for the database while another decides. */
export const lanesAtOnce = 2
/** Turns a lane takes at once when what it decided on keeps changing; then it backs off. */
export const staleTurnsMax = 10
/** A lane's lease, renewed by every slice: how long a dead worker's lane stands still. */
export const laneLeaseMs = 2000
/** Between looks for lanes whose wake-up was lost. */
export const laneSweepMs = 500
/** Between looks behind the time that lanes read from, for the day a database's clock was set back. */
export const laneRevealMs = 3600_000
/** Between tries of a lane whose slice failed, and of one whose rows are not safe to take yet. */
export const laneBackoffMsMax = 5000
export const laneUnsafeWaitMsMax = 50
/** Database clocks may be set back, and a transaction writes rows after its start: how far the lane reads behind its cursor's time. */
export const logClockSlackMs = 24 * 3600_000
/** What has had its time, in days: the log after all lanes passed it, seen keys at least, dead events, warnings. */
export const logPassedDays = 7
export const seenDaysMin = 400
export const deadEventDays = 30
export const warningDays = 90
/** Rows deleted in one transaction: some ten milliseconds, for which it holds the lanes back. */
export const forgetRowsAtOnce = 5000
/** Partitions made ahead: missing a week of maintenance hurts nobody. */
export const logDaysAhead = 14
export const eventMonthsAhead = 3

export const customerPropertiesBytesMax = 512 * 1024
export const customerPropertiesKeysMax = 1000
export const propertyKeyCharsMax = 200
/** Conditions of segments, triggers and queries: filters of one step, values of one list, characters of one value. Each is asked for every event. */
export const conditionFiltersMax = 20
export const conditionValuesMax = 200
export const conditionTextCharsMax = 1000
/** Leaves and levels of one definition, and definitions of one lane: each touched one is asked for every event. */
export const segmentLeavesMax = 50
export const segmentDepthMax = 8
export const segmentsMax = 200
export const segmentIssuesMax = 20
/** As EVENT_RETENTION_DAYS, which bounds what an instance takes: counting further back asks for events that are no longer kept. */
export const segmentWindowDaysMax = 36_500
export const segmentCountMax = 1_000_000
/** Values beyond it do not count into a sum: their sixth decimal is lost anyway. */
export const segmentSumMax = 1e15
/** Customers that one step between two slices looks at, and how long nobody looks for steps to take. */
export const segmentStepCustomers = 256
/** Customers of a slice that are looked at together, while others are read and written. */
export const segmentPartCustomers = 250
export const segmentSweepMs = 500
/** When a customer that cannot be looked at is tried again: after a second, and after twice as long each time, up to an hour. */
export const segmentAsideMsMin = 1000
export const segmentAsideMsMax = 3600_000
export const segmentAsideErrorChars = 1000
/** Stored events read at once when everything is counted again, and what one transaction of the lane counts: 0.2 s of it. */
export const segmentScratchEvents = 1000
export const segmentCountEventsMax = 10_000
export const segmentCountMsMax = 300
/** A preview stops here and says how many customers it has seen. */
export const segmentPreviewMsMax = 3000
export const segmentPreviewSamples = 20
/** Definitions of lanes that a process keeps compiled. */
export const segmentSetsKept = 500
/** Membership changes are kept this long after consumers had them. */
export const membershipChangeDays = 90
/** Customers that the nightly audit counts again, in each lane. */
export const segmentAuditCustomers = 500
/** Distinct ids of one customer. */
export const distinctIdsMax = 1000
/** Times one distinct id may give birth to a customer: once more after each split that took it away. */
export const customerGenerationsMax = 1000
/** How long a merge, split or deletion waits for a customer or an account that somebody holds: it holds the lane meanwhile. */
export const commandLockMsMax = 500
/** Behind merges, splits and deletions: rows of one slice, time after which a slice takes no further change, and pauses. */
export const settleRowsMax = 1000
export const settleSliceMsMax = 200
export const settleEveryMs = 500
/** Rows of the log that one slice of a deletion looks at. */
export const eraseLogRowsMax = 5000
/** Customers deleted again after a restore, found at once. */
export const tombstonesPerSlice = 1000
/** Merges from a merged customer to its survivor. Each hop is one forced merge of two identified customers. */
export const mergeChainMax = 1000
/** Customer ids remembered for the answers of /event, about 200 bytes each, and for how long. They are hints. */
export const customerHintsMax = 50_000
export const customerHintTtlMs = 60_000
/** Distinct ids looked up together, and waiting to be. */
export const customerHintBatchMax = 256
export const customerHintWaitingMax = 10_000
/** A look-up that takes longer is answered without it. */
export const customerHintMsMax = 100
/** Customers read together, those that may wait for it in a process, and how long. */
export const customerFindBatchMax = 256
export const customerFindWaitingMax = 10_000
export const customerFindMsMax = 2000
export const idempotencyKeyCharsMax = 255
/** Names that people give to things, in code points. */
export const nameCharsMax = 200
export const noteCharsMax = 1000
/** Identifiers of app stores: bundle ids, package names, products, plans, offers. */
export const storeIdCharsMax = 255
/** Features that one credit system pays for: every decision on one of them looks at it. */
export const creditMembersMax = 100
/** Grants that one Product makes, and store links that lead to it: attaching writes them in one transaction. */
export const grantTemplatesMax = 100
export const storeLinksMax = 100
/** Periods that rolled-over units live: a settlement walks over them. Ten years of months, five days of hours. */
export const rolloverPeriodsMax = 120
/** How long a spend waits for an account that somebody holds, and how many customers may be waited for at once. */
export const accountWaitMsMax = 1000
export const accountWaitsAtOnce = 4
/** Grants stay in sight of decisions for so long after their end: clocks are set back, and people look at what was. */
export const grantSettledAfterMs = 30 * 24 * 3600_000
/** Grants that one step of the sweeper looks at; their accounts are locked for well under a second. */
export const sweptGrantsPerPage = 2000
/** Usage counters for entities of one account. */
export const entityCountersMax = 10_000

/** Of an e-mail address (RFC 5321), and of a password: hashing takes the same time whatever its length. */
export const emailCharsMax = 254
export const passwordCharsMin = 8
export const passwordCharsMax = 256
/** Tries at one thing, such as signing in, by one address and for one e-mail; a person never needs so many. */
export const attemptsMax = 10
export const attemptsWindowMs = 15 * 60_000
/** Passwords hashed at once in one process: 32 MiB and a core for some 50 ms each. Others wait, and beyond that 503. */
export const passwordsAtOnce = 2
export const passwordsWaitingMax = 64
/** Password resets that are prepared after their answer, one at a time. */
export const resetsWaitingMax = 100
/** How long a session lasts, and how long the links in mails work. */
export const sessionDays = 30
export const emailLinkHours = 24
export const resetLinkHours = 1
export const invitationDays = 7
/** `GET /workspaces` gives all of them at once. */
export const workspacesPerUserMax = 100
export const membersMax = 1000
/** Every process holds the keys of all workspaces in memory. */
export const secretKeysMax = 200
export const keyNameCharsMax = 100
export const keyDaysMax = 365
export const keyDaysDefault = 90
export const slugCharsMax = 63
export const logoCharsMax = 2048
/**
 * Mails under way at once in one process, how long each of connecting, greeting and sending may take and how long nobody else
 * tries meanwhile, and how it is tried again: for about two days.
 */
export const mailsAtOnce = 5
export const mailSendMsMax = 30_000
export const mailLeaseMs = 120_000
export const mailSweepMs = 1000
export const mailWaitMsMax = 3600_000
export const mailTriesMax = 60

/** The embedded database: recovery reads at most `max_wal_size` (2 GB) of log before the first answer, on a slow disk minutes. */
export const databaseStartMsMax = 10 * 60_000
/**
 * A clean stop takes at most 10 s. Requests under way get the first part of it; all that stands on the database has ended
 * soon after, or the database ends it; then its last checkpoint, or else it is stopped at once and recovers at the next start.
 */
export const requestsFinishMsMax = 4500
export const aboveDatabaseStopMsMax = 5500
export const databaseStopMsMax = 3000
/** It writes nothing any more; its processes only have to go. */
export const databaseQuitMsMax = 500
export const stopMsMax = 9500
/** Its log, cut at the next start. */
export const serverLogBytesMax = 4 * MiB

/** Tags of profiles a process remembers, about 300 bytes each. */
export const profileTagsMax = 50_000

/** Arms and bytes of one profile: a quarter and a third of what clients take. Whole arms are left out beyond. */
export const profileArmsMax = 256
export const profileBytesMax = 8 * MiB
/** Lists of releases that profiles of one scope arm, kept for each with what is the same in all of them: some KiB. */
export const commonPartsMax = 1000
/** Of all scopes together: arms and releases as one piece, to be sent to everybody who gets the same. */
export const commonRestsBytesMax = 64 * MiB
/** What clients take. */
export const clientArmsMax = 1024
export const clientReleasesMax = 1024
export const clientProfileBytesMax = 24 * MiB
/** Open journeys of one customer that are looked at: many times the arms that fit. */
export const openJourneysMax = 5000
/** Assignments of one customer, over experiments and phases, that are looked at. */
export const customerAssignmentsMax = 5000
/** Questions about profiles travel together up to this many, and so many wait. */
export const profileBatchMax = 48
export const profileWaitingMax = 20_000
export const profileWaitMsMax = 2000
/** Times that one profile is assembled anew because something was found to be missing or has moved meanwhile. */
export const profileTriesMax = 12
/** Releases that a process keeps ready to send, and older versions of one scope that journeys are pinned to. */
export const deliveredReleaseBytesMax = 256 * MiB
/** Their names in memory, for each scope: about 200 bytes. */
export const releaseKeysMax = 10_000
export const pinnedStampsMax = 1000

/** Rows of a backup go to the compressor in pieces of this size, and a line that describes tables is never longer than the other. */
export const backupPieceBytes = 64 * 1024
export const backupLineBytesMax = 16 * MiB
/** Free space below which `doctor` warns: the database stops when it can't write. */
export const freeDiskBytesMin = 1024 * MiB
/** How far the clocks of the service and the database may differ before `doctor` says so. Expiry and resets follow the database's. */
export const clockSkewMsMax = 2000
/** How long `doctor` waits for a mail server to greet. */
export const mailGreetingMsMax = 5000
/** Users, keys or workspaces that a command lists. */
export const commandRowsMax = 1000

/** Questions about events. The longest range; a year and its comparison with the one before. */
export const queryRangeMsMax = 400 * 24 * 3600_000
export const querySeriesMax = 10
export const queryStepsMax = 20
export const queryPeriodsMax = 24
export const queryFiltersMax = 20
/** Properties to group by, and groups shown; the others are answered together. */
export const queryGroupByMax = 3
export const queryGroupsMax = 1000
/** Hours of the longest range, and what one answer may have of them over all groups: about 10 MB. */
export const queryBucketsMax = 10_000
export const queryPointsMax = 200_000
/** From asking one to its answer, waiting for its turn included; the second of one whose caller comes back for the answer. */
export const queryMsMax = 10_000
export const queryLaterMsMax = 60_000
/** For each workspace in one process, the second in a minute. */
export const queriesAtOnceMax = 5
export const queriesPerMinuteMax = 240
/**
 * Questions that one process works on at once, however large its machine, and that wait for their turn; as many again of
 * those that are answered later. On two cores it is one: five at once made the p99 of intake six times as long, and gave no
 * more answers.
 */
export const questionsAtOnceMax = 4
export const questionsWaitingMax = 200
/** Processes of PostgreSQL that help with one question. */
export const parallelWorkersMax = 2
/** How often the system is asked to let a server process give way, and how far apart: it takes one such wish in 100 ms. */
export const giveWayTriesMax = 10
export const giveWayPauseMs = 150
/** Connections that a process of each role opens at most, all its pools and listeners together: PostgreSQL must have that many. */
export const connectionsOfProcessMax = { all: 69, api: 48, worker: 37 } as const
/** Connections of one process that list events, and look up what is counted already. */
export const listConnections = 4
/** Answers that are fetched later are kept so long. */
export const queryAnswerKeptMs = 24 * 3600_000
/** Events of one page of a list, and positions that one page by position looks at. */
export const eventPageMax = 1000
export const eventPositionsScanMax = 20_000
/** What their properties may have: a page may end before its limit. */
export const eventPageBytesMax = 8 * MiB
/** Names of a project, properties of a name: further ones are stored with their events and not listed. */
export const eventNamesMax = 2000
export const eventPropertiesMax = 500
/** A name or property seen again is noted this often. */
export const eventSeenEveryMs = 3600_000
/** Names and properties a lane worker remembers, about 100 bytes each. */
export const eventNamesRemembered = 50_000
/** The newest events of a name whose values are offered, and how many of these. */
export const eventValuesLookedAt = 10_000
export const eventValuesMax = 100
/** One file of an export: its events and its bytes, compressed; it is a row of the database. */
export const exportFileRowsMax = 100_000
export const exportFileBytesMax = 16 * MiB
/** Events read at once for it: a few milliseconds of a thread that has requests to answer too. */
export const exportPageRowsMax = 500
export const exportKeptMs = 7 * 24 * 3600_000
/** Exports of a project that wait or run. */
export const exportsAtOnceMax = 10
/** A worker's claim on an export, renewed by each file; tries before one is given up; looks for new ones. */
export const exportLeaseMs = 120_000
export const exportTriesMax = 5
export const exportLookMs = 2000
/** Features, and Products, of one exported catalogue: it is read and written at once. */
export const catalogueObjectsMax = 5000
/** Between additions to the usage figures: what a killed process loses. */
export const usageFlushMs = 5000
/** Requests of one key or user to the Workspace API, unless WORKSPACE_RATE_LIMIT says otherwise: far above any backend, below a loop gone wild. */
export const workspaceRequestsPerMinute = 60_000
/** Signing keys of one environment, ever: they are published whole, revoked ones keep their names. */
export const signingKeysMax = 50
/** What clients take as the name of a key. */
export const signingKeyIdCharsMax = 256
/** Apps that one call names. */
export const targetAppsMax = 100
/** The public keys are read from the database this often at most, however many ask. */
export const releaseKeysKeptMs = 2000
export const dayMs = 24 * 3600_000
/** A draft as sent. */
export const draftBytesMax = 4 * MiB
/** Of one draft: more is no list that somebody works through. */
export const draftIssuesMax = 200
/** What an author can still look at, and a compiler goes through in a moment. */
export const draftStepsMax = 500
export const draftSectionsMax = 64
export const draftLocalesMax = 20
/** As clients read expressions. */
export const irDepthMax = 64
/** Experiments of one environment, ever: they are read as a list. */
export const experimentsMax = 1000
/** As many as a step of an Experience can lead to. */
export const experimentVariantsMax = 64
export const experimentMetricsMax = 20
/** How long after an exposure an event may still be a conversion. */
export const experimentWindowDaysMax = 90
/** Versions of which the lane remembers what they ask first: a few bytes each. */
export const versionsRememberedMax = 10_000
/** Exposures looked at by one statement: a few milliseconds. */
export const experimentPageUnits = 5000
/** Compiled patterns of conditions kept in memory. */
export const irPatternsKeptMax = 500
/** A journey ends by then, and no step of the server waits longer. */
export const journeyDaysMax = 90
export const serverWaitDaysMax = 90
/** What clients take as the longest delay. */
export const deviceDelayDaysMax = 366
export const webhookMsMax = 15_000
export const webhookTriesMax = 8
/** How long after its basis an event may still convert. */
export const goalWindowDaysMax = 90

/** What clients take of the files that a release names: each scene, each script, any other, and all of one release. */
export const sceneBytesMax = 64 * MiB
export const scriptBytesMax = 4 * MiB
export const assetBytesMax = 32 * MiB
export const releaseScriptsBytesMax = 16 * MiB
export const releaseArtefactsBytesMax = 128 * MiB
/** Parsed whole whenever a draft that names it is judged: 256 screens with their transitions and assets. */
export const manifestBytesMax = 2 * MiB
/** One row of an uploaded file: what a request that sends or fetches it holds in memory. */
export const artefactPieceBytes = 256 * 1024
/** Uploads under way in one process: each takes a connection now and then. */
export const uploadsAtOnceMax = 8
/** Pieces that no artefact names are an upload that broke off; none takes that long. */
export const brokenUploadMs = 3600_000
/** Screens, placements and what else clients count in a descriptor. */
export const draftScreensMax = 256
export const draftPlacementsMax = 256
/** Values of view models, and controls of one screen: more is no page that somebody made. */
export const viewModelValuesMax = 4096
export const screenControlsMax = 1024
/** Rules of all forms, groups and members together, and the bytes of each, as clients count them. */
export const formRulesMax = 4096
export const formRuleBytesMax = 8 * MiB
/** Legs of a version in all locales: they are made, hashed, signed and checked at once, in a few seconds. */
export const buildBytesMax = 32 * MiB
/** Descriptors that one statement stores; one alone may be as large as a descriptor gets. */
export const releaseInsertBytesMax = 4 * MiB

/** A rebuild of customers holds the lane for one page of them at a time: tens of milliseconds. */
export const rebuildPageCustomers = 200
/** Positions that a rebuild may still have to repeat while it holds the lane. */
export const rebuildTailMax = 300
/** Times that a rebuild compares again after it mended something, since events go on meanwhile. */
export const rebuildPasses = 4
/** Records that are mended at one position because distinct ids join them. Damage that joins more needs a person. */
export const rebuildFamilyMax = 1000
/** Of each customer in the report of a rebuild, and the characters of a value there. */
export const findingsPerCustomer = 40
export const findingCharsMax = 200
/** What clients take as one descriptor, and as the steps of one leg. */
export const descriptorBytesMax = 4 * MiB
export const legStepsMax = 10_000

/** Journeys: how long a leg is offered unless its author says otherwise, and what a device gets beyond the waits of a leg. */
export const armDays = 7
export const runSlackDays = 7
/** How long a journey may last unless its author says otherwise. */
export const lifetimeDays = 30
/** Server steps that one transaction runs of a journey; then it pauses. Transitions of one journey, ever. */
export const immediateStepsMax = 64
export const immediateParkMs = 1000
export const journeyTransitionsMax = 1000
/** Times of enrolments kept for each customer and Experience, the newest: a window that holds more refuses anyway. */
export const enrolmentTimesMax = 100
/** Plans of builds that a process remembers, some kilobytes each. */
export const plansKept = 1000
/** Goals are watched for so long after a journey's end, beyond their own window. */
export const watchSlackDays = 30
/** Timers, and rows of the inbox, that one transaction takes. */
export const timersAtOnce = 500
/** Between looks for due timers, drawn anew each time: workers don't look at once. */
export const timerPollMsMin = 50
export const timerPollMsMax = 250
/** Tries of a timer or an input that fails alone, before it is set aside; the pause doubles from the first. */
export const journeyTriesMax = 8
export const journeyRetryMsMin = 1000
export const journeyRetryMsMax = 600_000
/** Customers whose properties one statement of journeys writes: of up to half a megabyte each. */
export const editsAtOnce = 50
/** A timeout that events still come before is looked at again so soon. */
export const timeoutRecheckMs = 100
/** And a timer whose journey somebody holds at the moment. */
export const heldRecheckMs = 25
/** How often an open journey is looked at whose eligibility time alone may take away. */
export const eligibilityLookMs = 5 * 60_000
/** Webhook endpoints of a project in one environment. */
export const webhookEndpointsMax = 100
export const webhookUrlCharsMax = 2048
/** Webhooks that one process sends at once, what it reads of an answer, and the pause after a first failed try. */
export const webhooksAtOnce = 50
export const webhookAnswerBytesMax = 64 * 1024
export const webhookRetryMsMin = 1000
/** Changes of Experiences that endpoints are told of: how long one may take to answer, and tries, half a day of them. */
export const announcementMs = 10_000
export const announcementTriesMax = 24
export const announcePollMs = 1000
/** How long an answer may send us away by `Retry-After`. */
export const webhookRetryAfterMsMax = 3600_000
/** Beyond its timeout, before another process sends one whose sender may have died. */
export const webhookLeaseMs = 10_000

/** How long devices are taken to show what was published before. */
export const offerKeptDays = 7
/** Tokens for introductory offers, for one customer. */
export const introTokensPerMinute = 10
/** Of each field that asks for one. */
export const introFieldBytesMax = 255

/** Store evidence: a signed transaction in bytes, a token in characters. */
export const signedTransactionBytesMax = 2 * MiB
export const purchaseTokenCharsMax = 16_384
/** A call to a store, and all that one verdict may take before there is none. */
export const storeCallMsMax = 3000
export const storeVerdictMsMax = 10_000
/** Failed calls in a row after which those of a credential to a host rest, and for how long: twice as long after each try that fails. */
export const circuitFailuresMax = 5
export const circuitRestMs = 5000
export const circuitRestMsMax = 60_000
/** How the use of a credential went is written down this often, unless it goes otherwise than before. */
export const credentialNoteMs = 60_000
/** What a store may answer, and how long it may send us away. */
export const storeAnswerBytesMax = 8 * MiB
export const storeRetryAfterSMax = 3600
/** Bearers of stores and sets of trusted certificates that a process keeps: one for each app that buys. */
export const bearersKeptMax = 1000
export const trustSetsKeptMax = 200
/** Tries with one piece of evidence: at once, then one a minute; and how long a refused one rests. */
export const evidenceBurst = 30
export const evidenceEveryMs = 60_000
export const evidenceRestMs = 5 * 60_000
/** Purchases that one customer may bring in a minute. */
export const customerPurchasesPerMinute = 60
/** Pieces of evidence and customers that a process counts. */
export const purchaseGuardsMax = 100_000
/** Claims to purchases that may still come true. */
export const claimDays = 90
/** How long the review of an app may be open at once. */
export const reviewDaysMax = 30
export const reviewCustomersMax = 100
export const tokenNamespacesMax = 50
export const pollLeaseHoursMax = 7 * 24
/** Certificates that a test app may trust beside Apple's. */
export const testCertificatesMax = 10
export const pemCharsMax = 16_384
/** How long attaching waits for a lineage that somebody else attaches. */
export const lineageWaitMsMax = 2000
/** One transfer of a purchase in this time. */
export const transferEveryMs = 24 * 3600_000
/** Between looks at what is known of the App Store's certificates. */
export const leavesReadMs = 60_000
/** Claims to products that have a link by now: how many are brought at once, when one is brought again, and between looks. */
export const mappedClaimsAtOnce = 20
export const mappedClaimWaitMs = 10 * 60_000
export const mappedClaimLookMs = 1000
/** Distinct ids whose account tokens a lane worker remembers to have written, and for how long; and the apps that sell. */
export const indexedIdsKept = 200_000
export const indexedIdsKeptMs = 3600_000
export const indexedScopesKept = 1000
export const storeAppsKeptMs = 2000
/** Ids whose tokens are written down in one transaction, and how often apps are looked at for new ones. */
export const tokenBackfillSlice = 500
export const tokenBackfillLookMs = 1000

/** What Google lets one service account ask in a minute, in all processes together. */
export const playCallsPerMinute = 3000
/** Calls that a process takes from such a bucket at once: few callers wait for the database, and little is lost with a process. */
export const storeCallsAtOnce = 10
/** Seconds to wait when the bucket is empty and the store said nothing itself. */
export const playRetryAfterS = 5
/** Of one process, for purchases and what follows from them: none is held while a store is asked. */
export const purchaseConnections = 6
/** What still gives something is read again after this, though nobody says anything. */
export const storeUnreadMsMax = 7 * 24 * 3600_000
/** A purchase that was read so lately is not read again. */
export const storeReadAgainMs = 60_000
/** Line items of one purchase; stores sell far fewer at once. */
export const storeLinesMax = 100
/** Plan changes from a token back to where its chain began. */
export const storeLinksWalkedMax = 10
/** Tokens that the store did not know, about 200 bytes each. */
export const badTokensKeptMax = 50_000
/** Sets of keys that sign pushes: Google's, and those of test apps. */
export const pushKeySetsMax = 100
/** Notifications, things to tell a store and purchases to read again that a process works on at once. */
export const storeInboxAtOnce = 16
export const storeOutboxAtOnce = 16
export const storePollsAtOnce = 8
/** How long nobody else tries meanwhile: longer than a store may take. */
export const storeInboxLeaseMs = 60_000
export const storeOutboxLeaseMs = 60_000
export const storePollLeaseMs = 120_000
/** Looks for them when there was nothing. */
export const storeInboxSweepMs = 250
export const storeOutboxSweepMs = 500
export const storeLookMs = 1000
/** Longest pause between tries, and tries of one notification: about three days. */
export const storeInboxWaitMsMax = 4 * 3600_000
export const storeInboxTriesMax = 30
export const storeOutboxWaitMsMax = 900_000
/** The list of what Google Play voided is read this often, in so many pages of a thousand at most. */
export const voidedListEveryMs = 24 * 3600_000
export const voidedLookMs = 5000
export const voidedPagesMax = 100
/** Apple's history of notifications is read this often. Whoever did not for longer than the second was away, and reads everything. */
export const historyEveryMs = 15 * 60_000
export const historyAwayMs = 30 * 60_000
/** What was under way at the end of a span is read with the next one. */
export const historyOverlapMs = 3600_000
/** Histories read at once, and pages of twenty of each before others have their turn. */
export const historiesAtOnce = 4
export const historyPagesAtOnce = 50
/** A page takes less; each one begins the lease anew. */
export const historyLeaseMs = 60_000
export const historyLookMs = 2000
export const historyRetryMs = 5 * 60_000
/** A store that was not told for so long is an alert: testers' purchases are taken back after three minutes, buyers' after three days. */
export const storeLateMsTester = 60_000
export const storeLateMsBuyer = 24 * 3600_000
export const hourMs = 3600_000
/** A test clock runs ahead by no more than this: months of the ledger are made for it. */
export const testClockMsMax = 2 * 366 * 24 * 3600_000
/** Asking whether a certificate was revoked: how long, how much is read, when it is tried again, and silence that is worth a word. */
export const ocspMsMax = 30_000
export const ocspAnswerBytesMax = 64 * 1024
export const ocspAgainMs = 10 * 60_000
export const ocspSilentMsMax = 24 * 3600_000
/** Builds and lanes whose journeys' interests a worker remembers: names only. */
export const watchedBuildsKept = 20_000
export const watchedScopesKept = 5000
/** Rows of one customer that one transaction takes: others of the lane come in between. */
export const inboxRoundsMax = 20
/** Ids in reports, as clients send them. */
export const reportIdCharsMax = 256
/** Beyond it what a device says it began is telemetry: nobody enters that much. */
export const deviceEnrolmentsPerDay = 200
/** An event older than this when it was taken starts nothing and ends no wait: what it would begin is out of date. */
export const triggerAgeMsMax = 24 * 3600_000
/** The same of conversions: clients keep to it too. */
export const conversionAgeMsMax = 30 * dayMs
/** Starts by the API that share a transaction, and that may wait for one. */
export const startsAtOnce = 64
export const startsWaitingMax = 5000
export const startWaitMsMax = 10_000
export const startTriesMax = 5
/** Of a start, as JSON. */
export const startContextBytesMax = 64 * 1024
/** How long a key of a start stays taken. */
export const occurrenceKeptDays = 400
/** Journeys that one transaction tells of a command about their Experience. */
export const sweepJourneysAtOnce = 200
/** Why somebody cancels a journey. */
export const reasonCharsMax = 256
/** Products on one payment page: Stripe takes 20 recurring ones. */
export const checkoutProductsMax = 20
/** Addresses that payment pages of an app may send people back to. */
export const checkoutReturnUrlsMax = 20
export const returnUrlCharsMax = 2048
/** How long a subscription may go on whose card failed: Stripe itself gives up within a month or two. */
export const cardGraceHoursMax = 60 * 24
/** How far the time of a signed event may be from now. */
export const cardSignatureAgeSMax = 300
/** Stripe charges a renewal about an hour after the period's end. */
export const cardRenewalMs = 2 * 3600_000
/** Paid invoices of a subscription that are looked at: most often the newest few, else pages of what Stripe gives at once. */
export const cardInvoicesFirst = 24
export const stripePageMax = 100
export const cardInvoicePagesMax = 10
/** A page that nobody heard of is asked for again with the same idempotency key: Stripe remembers it for a day. */
export const checkoutOpeningMsMax = 20 * 3600_000

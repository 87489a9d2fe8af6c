import type { Config } from './config.ts'
import { countAside, selectAudits, selectBacklog } from './customers/index.ts'
import type { Pool } from './db/pool.ts'
import { type LaneStats, type LogStats, laneLag, logGauges } from './events/index.ts'
import type { Metric, MetricsOptions, Sample } from './http/app/metrics.ts'
import { selectEngineGauges, selectIntakeGauges } from './journeys/index.ts'
import type { HistogramCounts } from './kernel/histogram.ts'
import { storeLateMsBuyer, storeLateMsTester } from './kernel/limits.ts'
import { type OpenCircuits, selectHistoryLag, selectInboxFigures, selectOutboxFigures } from './purchases/index.ts'

export interface Figures {
  pool: Pool
  /** Of this process's log, where it takes events. */
  log?: (() => LogStats) | undefined
  /** Of this process's lane worker, where it runs one; undefined while it has told nothing yet. */
  lanes?: (() => LaneStats | undefined) | undefined
  /** Of this process's calls to stores. */
  circuits?: (() => OpenCircuits[]) | undefined
}

/** What `GET /metrics` tells beside requests and the process itself. */
export function metricsOf({ metricsToken }: Config, { pool, log, lanes, circuits }: Figures): MetricsOptions {
  return {
    token: metricsToken,
    metrics: [
      ...databaseMetrics(pool),
      ...(log ? logMetrics(log) : []),
      ...(lanes ? laneMetrics(lanes) : []),
      ...(circuits ? [circuitMetric(circuits)] : []),
    ],
  }
}

/** The same whichever process is asked. */
function databaseMetrics(pool: Pool): Metric[] {
  const gauge = (name: string, help: string, read: () => Promise<Sample[]>): Metric => ({
    name: `turnpike_${name}`,
    ...{ help, type: 'gauge', read },
  })
  const lag = once(() => laneLag(pool))
  const gauges = once(() => logGauges(pool))
  const backlog = once(() => selectBacklog(pool))
  const audits = once(() => selectAudits(pool))
  const outbox = once(() => selectOutboxFigures(pool, { tester: storeLateMsTester, buyer: storeLateMsBuyer }))
  const inbox = once(() => selectInboxFigures(pool))
  const engine = once(() => selectEngineGauges(pool))
  const intake = once(() => selectIntakeGauges(pool))
  return [
    gauge('lane_lag_seconds', 'Age of the oldest acknowledged event that is not applied yet', async () => [
      { value: (await lag()).lagMs / 1000 },
    ]),
    gauge('lane_waiting_events', 'Acknowledged events that are not applied yet', async () => [
      { value: (await lag()).rows },
    ]),
    gauge('historical_lag_seconds', 'Age of the oldest imported event that is not applied yet', async () => [
      { value: (await lag()).historical.lagMs / 1000 },
    ]),
    gauge('historical_waiting_events', 'Imported events that are not applied yet', async () => [
      { value: (await lag()).historical.rows },
    ]),
    gauge('lanes_stopped', 'Lanes stopped because too many of their events could not be applied', async () => [
      { value: (await gauges()).stopped.length },
    ]),
    gauge('dead_events', 'Events that could not be applied and were not replayed', async () => [
      { value: (await gauges()).deadEvents },
    ]),
    gauge(
      'xmin_hold_seconds',
      'Age of the oldest open transaction that has written: it holds every lane back',
      async () => {
        const { xminHold } = await gauges()
        return xminHold
          ? [{ labels: { holder: xminHold.holder }, value: xminHold.seconds }]
          : [{ labels: { holder: '' }, value: 0 }]
      },
    ),
    gauge(
      'customer_changes_waiting',
      'Merges, splits and deletions whose stored events are not moved or erased yet',
      async () => [{ value: (await backlog()).changes }],
    ),
    gauge('erasures_waiting', 'Deleted customers of whom something is still stored', async () => [
      { value: (await backlog()).deletions },
    ]),
    gauge('erasure_wait_seconds', 'Time since the oldest of these was deleted', async () => [
      { value: (await backlog()).oldestDeletionSeconds },
    ]),
    gauge('segment_audited_customers', 'Customers whose memberships were counted again by an audit', async () => [
      { value: (await audits()).audited },
    ]),
    gauge(
      'segment_repaired_customers',
      'Customers among these whose memberships were wrong and were put right',
      async () => [{ value: (await audits()).repaired }],
    ),
    gauge(
      'segment_customers_aside',
      'Customers whose segments cannot be computed; they are tried again, up to once an hour',
      async () => [{ value: await countAside(pool) }],
    ),
    gauge('store_outbox_waiting', 'Acknowledgements and the like that a store was not told yet', async () => [
      { value: (await outbox()).waiting },
    ]),
    gauge(
      'store_outbox_late',
      'Those among them that wait too long: the store takes back what nobody acknowledges',
      async () => [{ value: (await outbox()).late }],
    ),
    gauge('store_outbox_dead', 'Things that a store could not be told at all', async () => [
      { value: (await outbox()).dead },
    ]),
    gauge('store_inbox_waiting', 'Notifications of stores that are not processed yet', async () => [
      { value: (await inbox()).waiting },
    ]),
    gauge('store_inbox_lag_seconds', 'Age of the oldest of these', async () => [
      { value: (await inbox()).oldestSeconds },
    ]),
    gauge('store_inbox_dead', 'Notifications of stores that were given up', async () => [
      { value: (await inbox()).dead },
    ]),
    gauge(
      'appstore_history_lag_seconds',
      "Time since Apple's history of notifications was last read to its end, of the live app that is furthest behind",
      async () => [{ value: await selectHistoryLag(pool) }],
    ),
    gauge(
      'journey_timer_lag_seconds',
      'Time since the oldest timer of a journey was due that has not fired',
      async () => [{ value: (await engine()).timerLagMs / 1000 }],
    ),
    gauge('journey_inbox_rows', 'What journeys are to be told and were not yet, up to 100,000', async () => [
      { value: (await intake()).rows },
    ]),
    gauge('journey_inbox_lag_seconds', 'Time since the oldest of these was received', async () => [
      { value: (await intake()).lagMs / 1000 },
    ]),
    gauge('journey_outbox_lag_seconds', 'Time since the oldest webhook was due that was not sent', async () => [
      { value: (await engine()).outboxLagMs / 1000 },
    ]),
    gauge('journey_outbox_rows', 'Webhooks that wait or are being sent, up to 100,000', async () => [
      { value: (await engine()).outboxRows },
    ]),
    gauge('journey_quarantined', 'Timers, inputs and webhooks of journeys set aside, up to 100,000', async () => [
      { value: (await engine()).quarantined },
    ]),
    gauge('journey_dispositions', 'Inputs of journeys that changed nothing, by why', async () =>
      (await engine()).dispositions.map(({ disposition, count }) => ({ labels: { disposition }, value: count })),
    ),
    gauge('partition_bytes', 'Size of the partitioned tables of events, with their indexes', async () =>
      (await gauges()).partitionBytes.map(({ table, bytes }) => ({ labels: { table }, value: bytes })),
    ),
  ]
}

function logMetrics(read: () => LogStats): Metric[] {
  return [
    histogram('turnpike_append_seconds', 'Time from taking events to the commit that stores them', () => read().ack),
    histogram('turnpike_append_group_events', 'Single events that share a transaction', () => read().groupEvents),
    counter('turnpike_events_accepted_total', 'Events stored', () => read().accepted),
    counter('turnpike_events_refused_total', 'Events refused with 503', () => read().refused),
    {
      ...{ name: 'turnpike_append_waiting_events', help: 'Events in the queue of the log', type: 'gauge' },
      read: () => [{ value: read().waitingEvents }],
    },
  ]
}

function laneMetrics(read: () => LaneStats | undefined): Metric[] {
  const of = (help: string, name: Exclude<keyof LaneStats, 'acceptedToProcessed' | 'sliceSeconds'>) =>
    counter(`turnpike_lane_${snake(name)}_total`, help, () => read()?.[name])
  return [
    of('Transactions of lanes', 'slices'),
    of('Rows taken from the log', 'rows'),
    of('Events applied', 'applied'),
    of('Events left out because their uuid was applied before', 'duplicates'),
    of('Events left out because their customer was deleted', 'dropped'),
    of('Events set aside because they could not be applied', 'dead'),
    of('Merges of customers refused', 'refusedMerges'),
    histogram('turnpike_lane_slice_seconds', 'Time of one transaction, reading included', () => read()?.sliceSeconds),
    histogram(
      'turnpike_accepted_to_processed_seconds',
      'Time from receiving a live event to the commit of its effects',
      () => read()?.acceptedToProcessed,
    ),
  ]
}

function circuitMetric(read: () => OpenCircuits[]): Metric {
  return {
    name: 'turnpike_store_circuits_open',
    help: 'Credentials of this process whose calls to a host of a store rest, because it did not answer',
    type: 'gauge',
    read: () => read().map(({ store, host, count }) => ({ labels: { store, host }, value: count })),
  }
}

function counter(name: string, help: string, read: () => number | undefined): Metric {
  return { ...{ name, help, type: 'counter' }, read: () => [{ value: read() ?? 0 }] }
}

function histogram(name: string, help: string, read: () => HistogramCounts | undefined): Metric {
  return { ...{ name, help, type: 'histogram' }, read: () => samplesOf(read()) }
}

/** Buckets are cumulative. */
function samplesOf(counted: HistogramCounts | undefined): Sample[] {
  if (counted === undefined) return []
  let count = 0
  const buckets = counted.counts.map((inBucket, i) => {
    count += inBucket
    return { suffix: '_bucket', labels: { le: String(counted.bounds[i] ?? '+Inf') }, value: count }
  })
  return [...buckets, { suffix: '_sum', value: counted.sum }, { suffix: '_count', value: count }]
}

function snake(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
}

/** All metrics of one scrape are read at once: they share one look at the database. */
function once<T>(look: () => Promise<T>): () => Promise<T> {
  let looking: Promise<T> | undefined
  return () => {
    looking ??= look().finally(() => {
      looking = undefined
    })
    return looking
  }
}

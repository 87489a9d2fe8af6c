import Type, { type Static } from 'typebox'
import type { Pool } from '../../db/pool.ts'
import { refuse } from '../../kernel/errors.ts'
import { listDeadNotifications, replayDeadNotification, type StoredNotification } from '../../purchases/index.ts'
import { closed, instant, nullableString, oneOf } from '../schema.ts'
import { instantOf } from './amount.ts'
import type { Endpoints } from './endpoint.ts'
import { listAnswer, listOf, listQuery, pageOf } from './list.ts'
import { byId, projectId } from './parts.ts'

const DeadNotificationObject = Type.Object(
  {
    object: Type.Literal('dead_notification'),
    id: Type.String(),
    app_id: Type.String(),
    store: oneOf('appstore', 'playstore', 'stripe'),
    notification_id: Type.String({ description: "The store's own id: notificationUUID, message id, event id." }),
    kind: Type.String({ description: 'In the words of the store, such as `DID_RENEW BILLING_RECOVERY`.' }),
    status: oneOf('waiting', 'done', 'ignored', 'dead'),
    attempts: Type.Integer(),
    error: nullableString,
    received_at: instant,
  },
  { title: 'DeadNotification' },
)

const tag = 'Stores'

export function deadNotifications({ get, post }: Endpoints, { pool }: { pool: Pool }): void {
  get(
    {
      path: '/dead_notifications',
      operationId: 'listDeadNotifications',
      tag,
      summary: 'List notifications of stores that were given up',
      description:
        'Newest first. They were taken, and following them failed for three days. What they say is sealed and never shown; of deleted customers it is removed, and their notifications are not listed.',
      query: closed({ ...listQuery, project_id: projectId }),
      answers: { 200: listOf(DeadNotificationObject) },
      errors: [404],
    },
    async (look, { query }) => {
      const page = pageOf(query, /^[0-9]{1,18}$/)
      const found = await listDeadNotifications(pool, look.scope(query.project_id), page)
      return listAnswer(found, page, { show, positionOf: ({ id }) => String(id) })
    },
  )

  post(
    {
      path: '/dead_notifications/:id/replay',
      operationId: 'replayDeadNotification',
      tag,
      summary: 'Follow a dead notification after all',
      description:
        'As if it had just come: the purchase is read again, and what holds now is applied. When that fails for three days again, it is dead again. One that is not dead any more is left as it is.',
      role: 'admin',
      params: byId,
      answers: { 200: DeadNotificationObject },
      errors: [404],
    },
    async (change, { params }) => {
      const id = /^note_([0-9]{1,18})$/.exec(params.id)?.[1]
      if (id === undefined) throw refuse('not_found')
      const { notification, again } = await replayDeadNotification(change.tx, change.scopes(), BigInt(id))
      const after = show(notification)
      if (!again) await change.audit('replay', 'dead_notification', after.id, { after })
      return { status: 200, body: after }
    },
  )
}

function show(notification: StoredNotification): Static<typeof DeadNotificationObject> {
  return {
    ...{ object: 'dead_notification', id: `note_${notification.id}`, app_id: notification.appId },
    ...{ store: notification.store, notification_id: notification.notificationId, kind: notification.kind },
    ...{ status: notification.status, attempts: notification.attempts, error: notification.error },
    received_at: instantOf(notification.receivedAt),
  }
}

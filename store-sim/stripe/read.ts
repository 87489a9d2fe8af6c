import { type Account, all, get, type Thing } from './account.ts'
import { invoicesOf } from './happen.ts'

type Answer = Record<string, unknown>

const list = (data: unknown[], max = 10) => ({ object: 'list', data: data.slice(0, max), has_more: data.length > max })

/** `GET` of a path behind `/v1`. Undefined: there is no such thing. */
export function read(account: Account, path: string, query: URLSearchParams): Answer | undefined {
  const [resource = '', id = '', part = ''] = path.replace('/checkout/sessions', '/sessions').split('/').slice(1)
  const limit = Number(query.get('limit') ?? 10)
  if (id === '') return readAll(account, resource, query, limit)
  const one = account.held.objects[id]
  if (one === undefined || kinds[resource] !== one.object) return undefined
  if (part === 'line_items' || part === 'lines') return list(one.lines ?? [], limit)
  if (part !== '') return undefined
  if (resource === 'sessions') return sessionOf(account, one, query)
  if (resource === 'subscriptions') return { ...one, items: list(one.items?.data ?? []) }
  return one
}

const kinds: Record<string, string> = {
  ...{ sessions: 'checkout.session', subscriptions: 'subscription', invoices: 'invoice' },
  ...{ charges: 'charge', disputes: 'dispute' },
}

function readAll(account: Account, resource: string, query: URLSearchParams, limit: number): Answer | undefined {
  const by = (name: string) => query.get(name)
  switch (resource) {
    case 'sessions': {
      const intent = by('payment_intent')
      const found = all(account, 'checkout.session').filter((one) => intent === null || one.payment_intent === intent)
      return list(
        found.map((one) => sessionOf(account, one, new URLSearchParams())),
        limit,
      )
    }
    case 'subscription_items':
      return list(get(account, by('subscription') ?? '').items?.data ?? [], limit)
    case 'disputes':
      return list(
        all(account, 'dispute').filter((one) => one.charge === by('charge')),
        limit,
      )
    case 'invoices': {
      const until = Number(by('created[lte]') ?? Number.POSITIVE_INFINITY)
      const own = invoicesOf(account, by('subscription') ?? '').filter(
        ({ status, created }) => status === by('status') && Number(created) <= until,
      )
      const after = own.findIndex(({ id }) => id === by('starting_after'))
      const shown = own.slice(after + 1).map((one) => ({
        ...one,
        charge: typeof one.charge === 'string' ? get(account, one.charge) : null,
        lines: list(one.lines ?? []),
      }))
      return list(shown, limit)
    }
    default:
      return undefined
  }
}

/** Its lines, and what others will carry of it, are asked for by themselves. */
function sessionOf(account: Account, session: Thing, query: URLSearchParams): Answer {
  const { lines: _lines, carried: _carried, ...shown } = session
  const isExpanded = query.get('expand[]') === 'payment_intent.latest_charge'
  if (!isExpanded || session.payment_intent === null) return shown
  const charge = all(account, 'charge').find((one) => one.payment_intent === session.payment_intent)
  return { ...shown, payment_intent: { id: session.payment_intent, latest_charge: charge } }
}

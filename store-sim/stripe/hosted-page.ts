import type { Reply, Request, Routes } from '../http/router.ts'
import { refuse } from '../refusal.ts'
import type { Sim } from '../world.ts'
import { all, get, type Thing } from './account.ts'
import { accountOf } from './cards.ts'
import { verbs, verbsFor } from './verbs.ts'

/** The page that a customer pays on, and, once it is paid, what may become of it. Plain forms. */
export const hostedPages: Routes = {
  'GET /stripe/': (sim) => html('Payment pages', listOf(all(accountOf(sim), 'checkout.session'))),
  'GET /stripe/pay/{id}': (sim, request) => pageOf(sim, sessionIn(sim, request)),
  'POST /stripe/pay/{id}/{verb}': (sim, request) => {
    const { id } = sessionIn(sim, request)
    return sim.turn(async () => {
      const { verb = '' } = request.params
      const happen = verbs[verb]
      if (!happen || !verbsFor(get(accountOf(sim), id)).includes(verb)) {
        throw refuse('no_such_verb', `${verb} can't happen to it now`, 409)
      }
      const location = await happen(sim, id)
      sim.changed()
      return { status: 303, headers: { location: location ?? `/stripe/pay/${id}` }, body: '' }
    })
  },
}

function sessionIn(sim: Sim, { params: { id = '' } }: Request): Thing {
  const session = accountOf(sim).held.objects[id]
  if (session?.object !== 'checkout.session') throw refuse('page_not_found', `there is no page ${id}`, 404)
  return session
}

function pageOf(sim: Sim, session: Thing): Reply {
  const lines = (session.lines ?? []).map(({ price }) => `<li>${escaped(price.id)}</li>`)
  const subscription = typeof session.subscription === 'string' ? get(accountOf(sim), session.subscription) : null
  const states = [session.payment_status, ...(subscription === null ? [] : [subscription.status])]
  const buttons = verbsFor(session).map(
    (verb) => `<form method="post" action="/stripe/pay/${session.id}/${verb}"><button>${verb}</button></form>`,
  )
  return html(
    'Pay',
    `<ul>${lines.join('')}</ul><p>${escaped(states.join(', '))}</p>${buttons.join('')}<p><a href="/stripe/">all pages</a></p>`,
  )
}

function listOf(sessions: Thing[]): string {
  const rows = sessions
    .toReversed()
    .map(
      ({ id, payment_status: status }) => `<li><a href="/stripe/pay/${id}">${id}</a> ${escaped(String(status))}</li>`,
    )
  return rows.length === 0 ? '<p>Nobody has opened a page yet.</p>' : `<ul>${rows.join('')}</ul>`
}

function html(title: string, body: string): Reply {
  const head = `<meta charset="utf-8"><title>${title}</title><link rel="stylesheet" href="/page.css">`
  const text = `<!doctype html><html lang="en"><head>${head}</head><body><main><section><h2>${title}</h2>${body}</section></main></body></html>`
  return { headers: { 'content-type': 'text/html; charset=utf-8', 'cache-control': 'no-store' }, body: text }
}

function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`)
}

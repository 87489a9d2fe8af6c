import { distinctIdOf } from './ids.ts'
import type { FirstRun } from './service.ts'

/** The demo's metered Feature. */
export const featureId = 'exports'
/** More than any run can spend. */
export const plentyUnits = 1_000_000_000_000
/** A customer of its own, who has fewer units than are asked for. */
export const contestedCustomer = 99_999_999
export const contestedUnits = 1000

/** Enough to keep both sides busy, few enough not to be refused. */
const callers = 32

/** Makes customers 0 to `customers − 1` and the contested one, each with one grant, through the Workspace API. */
export async function seedCustomers(firstRun: FirstRun, customers: number): Promise<void> {
  let next = 0
  const caller = async () => {
    while (next < customers) await seedCustomer(firstRun, next++, plentyUnits)
  }
  await Promise.all(Array.from({ length: callers }, caller))
  await seedCustomer(firstRun, contestedCustomer, contestedUnits)
}

async function seedCustomer(firstRun: FirstRun, customer: number, allowance: number): Promise<void> {
  const { id } = await post(firstRun, '/customers', { distinct_id: distinctIdOf(customer) })
  await post(firstRun, `/customers/${id}/grants`, { feature: featureId, allowance })
}

export function post(firstRun: FirstRun, path: string, body: object): Promise<{ id: string }> {
  // Every object of the Workspace API has an id.
  return ask(firstRun, path, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
}

/** The caller knows what is answered there. */
export async function ask<Answer>(
  { workspace_base_url, secret_key }: FirstRun,
  path: string,
  request: Omit<RequestInit, 'headers'> & { headers?: Record<string, string> } = {},
): Promise<Answer> {
  const headers = { ...request.headers, authorization: `Bearer ${secret_key}`, 'x-service-env': 'test' }
  const response = await fetch(`${workspace_base_url}${path}`, { ...request, headers })
  const text = await response.text()
  if (!response.ok) throw new Error(`${request.method ?? 'GET'} ${path} answered ${response.status}: ${text}`)
  return JSON.parse(text)
}

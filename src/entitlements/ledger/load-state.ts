import type pg from 'pg'
import { pipeline, type RawRow } from '../../db/raw.ts'
import { must } from '../../kernel/assert.ts'
import type { Scope } from '../../tenancy/index.ts'
import type { Catalogue } from '../catalogue/catalogue.ts'
import type { Account, Feature } from '../types.ts'
import { grantOf } from './grant-row.ts'
import { addOffer } from './offer-row.ts'
import { type AccountQuestion, selectDeleted, selectOffers, selectState } from './state-store.ts'

/** Who asks about which Feature; `feature` is absent when no published one has the key. */
export interface Inquiry {
  scope: Scope
  distinctId: string
  entityId: string | null
  catalogue: Catalogue
  feature: Feature | undefined
}

/** A distinct id and what it may draw on. */
export interface Holder {
  /** Undefined when no record exists for the id. */
  customerId: string | undefined
  deleted: boolean
  /** The customer's accounts by Feature, as far as somebody asked. Shared by all ids of the customer. */
  accounts: Map<number, Account>
}

/** The state of every inquiry, each account once however many ask about it. Reads one snapshot, locks nothing. */
export async function loadState(
  client: pg.ClientBase,
  inquiries: readonly Inquiry[],
  tombstoneKey: Buffer,
): Promise<{ holders: Holder[]; accounts: Map<bigint, Account> }> {
  const { questions, holders, byQuestion } = ask(inquiries)
  const accounts = new Map<bigint, Account>()
  // Of one moment or not: an account's version guards what is decided from both.
  const [rows, offers] = await pipeline(client, () => [
    selectState(client, questions),
    questions.some(({ entityId }) => entityId !== null) ? selectOffers(client, questions) : [],
  ])
  for (const row of rows) {
    const n = Number(row[0])
    readRow(row, must(questions[n], 'rows name questions'), must(byQuestion[n], 'rows name questions').holder, accounts)
  }
  for (const row of offers) {
    const n = Number(row[0])
    const account = accounts.get(BigInt(row[1] ?? 0))
    const { feature } = must(byQuestion[n], 'rows name questions')
    const { entityId } = must(questions[n], 'rows name questions')
    if (account && feature && entityId !== null) addOffer(account, row, feature, entityId)
  }
  await markDeleted(client, questions, byQuestion, tombstoneKey)
  return { holders, accounts }
}

/** Each (id, Feature, entity) is asked about once; inquiries of one id share its holder. */
function ask(inquiries: readonly Inquiry[]): { questions: AccountQuestion[]; holders: Holder[]; byQuestion: Asked[] } {
  const questions: AccountQuestion[] = []
  const byQuestion: Asked[] = []
  const byId = new Map<string, Holder>()
  const asked = new Set<string>()
  const holders = inquiries.map(({ scope: { scopeId }, distinctId, entityId, catalogue, feature }) => {
    const id = `${scopeId} ${distinctId}`
    const holder: Holder = byId.get(id) ?? { customerId: undefined, deleted: false, accounts: new Map() }
    byId.set(id, holder)
    for (const each of featuresOf(catalogue, feature)) {
      const featureId = each?.id ?? noFeature
      const question = `${featureId}\0${entityId ?? ''}\0${id}`
      if (asked.has(question)) continue
      asked.add(question)
      questions.push({ scopeId, distinctId, featureId, entityId })
      byQuestion.push({ holder, feature: each })
    }
    return holder
  })
  return { questions, holders, byQuestion }
}

/** Who asked, and about which Feature. */
interface Asked {
  holder: Holder
  feature: Feature | undefined
}

/** No Feature has this number: asks about the customer alone. */
const noFeature = 0

/** The Feature and every credit system that contains it. */
function featuresOf(catalogue: Catalogue, feature: Feature | undefined): (Feature | undefined)[] {
  const pools = feature && catalogue.poolsOf.get(feature.id)
  return pools ? [feature, ...pools.map((pool) => pool.feature)] : [feature]
}

function readRow(row: RawRow, question: AccountQuestion, holder: Holder, accounts: Map<bigint, Account>): void {
  if (row[1]) holder.customerId = row[1]
  if (!row[2]) return
  const account = accountOf(row, question, accounts)
  holder.accounts.set(question.featureId, account)
  if (row[6] && question.entityId !== null) {
    account.entities.set(question.entityId, { used: BigInt(row[6]), registered: row[7] === 't' })
  }
  if (!row[8]) return
  const grantId = BigInt(row[8])
  if (!account.grants.some((grant) => grant.id === grantId)) account.grants.push(grantOf(row, 8))
}

function accountOf(row: RawRow, { featureId }: AccountQuestion, accounts: Map<bigint, Account>): Account {
  const id = BigInt(row[2] ?? 0)
  const found = accounts.get(id)
  if (found) return found
  const account: Account = {
    id,
    featureId,
    used: BigInt(row[3] ?? 0),
    entities: new Map(),
    grants: [],
    lastAt: Number(row[4]),
    version: BigInt(row[5] ?? 0),
  }
  accounts.set(id, account)
  return account
}

async function markDeleted(
  client: pg.ClientBase,
  questions: AccountQuestion[],
  byQuestion: Asked[],
  tombstoneKey: Buffer,
): Promise<void> {
  const unknown = questions.filter((_, n) => byQuestion[n]?.holder.customerId === undefined)
  if (unknown.length === 0) return
  const holders = byQuestion.flatMap(({ holder }) => (holder.customerId === undefined ? [holder] : []))
  for (const n of await selectDeleted(client, unknown, tombstoneKey))
    must(holders[n], 'one of those asked').deleted = true
}

import type { Plan } from '../experiences/index.ts'

/** The plan of one build: what a journey is pinned to. Never changes. */
export interface PinnedPlan extends Plan {
  experienceId: number
  /** As on the wire. */
  experiencePublicId: string
  versionNumber: number
  versionPublicId: string
  buildId: string
}

export { bytesOf } from './body.ts'
export { selectPinned } from './pinned-store.ts'
export { createProfiles, type Explained, type Profiles } from './profiles.ts'
export { createTryProfiles } from './trial.ts'

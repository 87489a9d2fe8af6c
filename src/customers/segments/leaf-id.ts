/** A leaf's id is its version's and its place in the definition: unique in the lane, for ever. */
const leavesPerVersion = 64

export function leafIdOf(versionId: number, place: number): number {
  return versionId * leavesPerVersion + place
}

export function versionOfLeaf(leafId: number): number {
  return Math.floor(leafId / leavesPerVersion)
}

/** Every interface word that is built from the NAMESPACE setting. No other file spells it. */
export interface WireNames {
  profileSchema: string
  /** Also what signatures of releases are bound to. */
  releaseSchema: string
  legSchema: string
  journeyMediaType: string
  /** Of the renderer, its scenes' key in a release and their files' ending. */
  native: string
  sceneMediaType: string
  appIdHeader: string
  appEnvironmentHeader: string
  environmentHeader: string
  workspaceIdHeader: string
}

export function wireNames(namespace: string): WireNames {
  const title = namespace.charAt(0).toUpperCase() + namespace.slice(1)
  return {
    profileSchema: `${namespace}.journey-plane-profile.v2`,
    releaseSchema: `${namespace}.journey-release.v3`,
    legSchema: `${namespace}.experience-planes.v1`,
    journeyMediaType: `application/vnd.${namespace}.journey+json`,
    native: namespace.slice(0, 3),
    sceneMediaType: `application/vnd.${namespace}.scene`,
    appIdHeader: `${title}-App-Id`,
    appEnvironmentHeader: `${title}-App-Environment`,
    environmentHeader: `X-${title}-Env`,
    workspaceIdHeader: `${title}-Workspace-Id`,
  }
}

/** Every interface word that is built from the NAMESPACE setting. No other file spells it. */
export interface WireNames {
  profileSchema: string
  appIdHeader: string
  appEnvironmentHeader: string
  environmentHeader: string
  workspaceIdHeader: string
}

export function wireNames(namespace: string): WireNames {
  const title = namespace.charAt(0).toUpperCase() + namespace.slice(1)
  return {
    profileSchema: `${namespace}.journey-plane-profile.v2`,
    appIdHeader: `${title}-App-Id`,
    appEnvironmentHeader: `${title}-App-Environment`,
    environmentHeader: `X-${title}-Env`,
    workspaceIdHeader: `${title}-Workspace-Id`,
  }
}

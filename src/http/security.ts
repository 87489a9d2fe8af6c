/**
 * On every answer of the Workspace API: they hold customers' data or secrets, and none is a page. Browsers and proxies keep
 * nothing of them, take them for nothing but JSON, and show them in no frame.
 */
export const workspaceHeaders = {
  'cache-control': 'no-store',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
} as const

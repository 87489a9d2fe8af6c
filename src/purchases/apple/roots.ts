import { X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'

/** Apple Root CA – G3. Roots alone are pinned: leaves and intermediates change. A new one is a release of ours. */
export const appleRoot = new X509Certificate(readFileSync(new URL('./AppleRootCA-G3.cer', import.meta.url)))

export { type PublishedKey, type SigningKey, selectKeys as listKeys, selectPublishedKeys } from './keys/key-store.ts'
export { activateKey, createKey, getKey, importKey, type KeyEdit, withdrawKey } from './keys/keys.ts'

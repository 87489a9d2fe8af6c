import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import type { Config } from './config.ts'
import { StartError } from './kernel/start-error.ts'

type Place = Pick<Config, 'host' | 'port'>

/**
 * The port that will be listened on: the one asked for if it is free, any free one for 0. Asked before anything is set up: a
 * first run shows its keys once, and must not show them only to find the port taken.
 */
export async function findPort({ host, port }: Place): Promise<number> {
  const probe = createServer()
  try {
    probe.listen({ host, port })
    await once(probe, 'listening')
    return (probe.address() as AddressInfo).port // a TCP address after listen
  } catch (error) {
    throw inWords(error, { host, port })
  } finally {
    probe.close()
  }
}

/** Starts listening, and gives the address in the form callers use. */
export async function listen(
  server: { listen: (to: Place) => Promise<string>; server: { address: () => unknown } },
  { host, port }: Place,
): Promise<string> {
  try {
    await server.listen({ host, port })
  } catch (error) {
    throw inWords(error, { host, port })
  }
  const bound = server.server.address() as AddressInfo // a TCP address after listen
  return `http://${host.includes(':') ? `[${host}]` : host}:${bound.port}`
}

/** The settings with the port that `PORT=0` has become. An address of port 0 can only be one that was derived from it. */
export function withPort(config: Config, port: number): Config {
  const named = (address: string) => {
    const url = new URL(address)
    if (url.port !== '0') return address
    url.port = String(port)
    return address.endsWith('/') ? url.href : url.href.replace(/\/$/, '')
  }
  const { publicUrl, renderBaseUrl, assetBaseUrl } = config
  return Object.freeze({
    ...config,
    port,
    publicUrl: named(publicUrl),
    renderBaseUrl: named(renderBaseUrl),
    assetBaseUrl: named(assetBaseUrl),
  })
}

function inWords(error: unknown, { host, port }: Place): unknown {
  const { code } = error as NodeJS.ErrnoException // what listening rejects with
  if (code === 'EADDRINUSE') return new StartError(`PORT ${port} on ${host} is in use by another program`)
  if (code === 'EACCES') return new StartError(`PORT ${port} on ${host} may not be opened by this user`)
  if (code === 'EADDRNOTAVAIL' || code === 'ENOTFOUND')
    return new StartError(`HOST ${host} is no address of this machine`)
  return error
}

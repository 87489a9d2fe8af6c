import { BlockList, isIP } from 'node:net'

const closed = new BlockList()
const v4 = [
  ...['0.0.0.0/8', '10.0.0.0/8', '100.64.0.0/10', '127.0.0.0/8', '169.254.0.0/16', '172.16.0.0/12', '192.0.0.0/24'],
  ...['192.0.2.0/24', '192.88.99.0/24', '192.168.0.0/16', '198.18.0.0/15', '198.51.100.0/24', '203.0.113.0/24'],
  ...['224.0.0.0/4', '240.0.0.0/4'],
]
// Mapped IPv4 addresses are judged as such; others that carry one are closed whole: nobody sends webhooks there.
const v6 = [
  ...['::/96', '64:ff9b::/96', '64:ff9b:1::/48', '100::/64', '2001::/23', '2001:db8::/32', '2002::/16'],
  ...['fc00::/7', 'fe80::/10', 'fec0::/10', 'ff00::/8'],
]
for (const [nets, family] of [
  [v4, 'ipv4'],
  [v6, 'ipv6'],
] as const) {
  for (const net of nets) {
    const [address = '', bits = ''] = net.split('/')
    closed.addSubnet(address, Number(bits), family)
  }
}

/** Whether an address belongs to this host, its network, or to nobody: what must not be reached from outside. */
export function isPrivateAddress(address: string): boolean {
  const family = isIP(address)
  if (family === 0) return true
  return closed.check(address, family === 4 ? 'ipv4' : 'ipv6')
}

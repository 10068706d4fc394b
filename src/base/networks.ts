// Addresses and networks of a configuration as a test for a peer's address. Used by auth/ and by the doors of
// transport/. Pure; resolves no names. Sources: RFC 4632 (prefix notation), RFC 4291 2.5.5.2 (IPv4 mapped into IPv6).
import { BlockList, isIP } from 'node:net';

export type AddressTest = (address: string) => boolean;

/**
 * Tests whether an address is one of these or in one of these networks ("10.0.0.0/8"); null when one of them is
 * neither. IPv4 addresses that come mapped into IPv6 are the IPv4 ones; the zone of a link-local address does not
 * count. What is no address is in none.
 */
export function networkTest(networks: readonly string[]): AddressTest | null {
  const list = new BlockList();
  for (const text of networks) {
    const [address, bits, more] = text.split('/');
    const version = isIP(address);
    const longest = version === 6 ? 128 : 32;
    const prefix = bits === undefined ? longest : /^\d{1,3}$/.test(bits) ? Number(bits) : -1;
    if (version === 0 || address.includes('%') || more !== undefined || prefix < 0 || prefix > longest) return null;
    list.addSubnet(address, prefix, version === 6 ? 'ipv6' : 'ipv4');
  }
  return (peer) => {
    const zone = peer.indexOf('%');
    const address = zone === -1 ? peer : peer.slice(0, zone);
    const version = isIP(address);
    return version !== 0 && list.check(address, version === 6 ? 'ipv6' : 'ipv4');
  };
}

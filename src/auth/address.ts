// Addresses and networks of a configuration as a test for a client's address. Used by rules.ts and limits.ts.
// IPv4 addresses that come mapped into IPv6 are the IPv4 ones.
import { BlockList, isIP } from 'node:net';
import { GatewayError } from '../base/errors.ts';

/** Tests whether an address is one of these or in one of these networks ("10.0.0.0/8"); throws AUTH-SOURCE for what is neither. */
export function addressTest(addresses: readonly string[], where: string): (address: string) => boolean {
  const list = new BlockList();
  for (const text of addresses) {
    const [address, bits, more] = text.split('/');
    const version = isIP(address);
    const longest = version === 6 ? 128 : 32;
    const prefix = bits === undefined ? longest : /^\d{1,3}$/.test(bits) ? Number(bits) : -1;
    if (version === 0 || more !== undefined || prefix < 0 || prefix > longest) {
      throw new GatewayError('AUTH-SOURCE', `${where}: not an address or network`);
    }
    list.addSubnet(address, prefix, version === 6 ? 'ipv6' : 'ipv4');
  }
  return (address) => {
    const version = isIP(address);
    return version !== 0 && list.check(address, version === 6 ? 'ipv6' : 'ipv4');
  };
}

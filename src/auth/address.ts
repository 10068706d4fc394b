// Addresses and networks of the authentication settings as a test for a client's address. Used by rules.ts and
// limits.ts. What is no address is an error here, not an address that nobody has: a list that is wrong must not let
// anybody through.
import { GatewayError } from '../base/errors.ts';
import { type AddressTest, networkTest } from '../base/networks.ts';

/**
 * Tests whether an address is one of these or in one of these networks ("10.0.0.0/8"); throws AUTH-SOURCE for what is
 * neither.
 */
export function addressTest(addresses: readonly string[], where: string): AddressTest {
  const test = networkTest(addresses);
  if (test === null) throw new GatewayError('AUTH-SOURCE', `${where}: not an address or network`);
  return test;
}

import { describe, expect, it } from 'vitest';
import { networkTest } from '../../src/base/networks.ts';

describe('a list of networks', () => {
  it.each([
    ['10.0.0.0/8', '10.255.0.1', true],
    ['10.0.0.0/8', '11.0.0.1', false],
    ['10.1.2.3', '10.1.2.3', true],
    ['10.1.2.3', '10.1.2.4', false],
    ['10.0.0.0/8', '::ffff:10.1.1.1', true],
    ['2001:db8::/32', '2001:db8::5', true],
    ['2001:db8::/32', '2001:db9::5', false],
    ['0.0.0.0/0', '203.0.113.9', true],
    ['0.0.0.0/0', '2001:db8::5', false],
    ['fe80::/10', 'fe80::1%eth0', true],
    ['0.0.0.0/0', '', false],
    ['0.0.0.0/0', 'host', false],
  ])('%s has %s: %j', (network, address, has) => {
    expect(networkTest([network])?.(address)).toBe(has);
  });

  it('that is empty has nobody', () => {
    expect(networkTest([])?.('127.0.0.1')).toBe(false);
  });

  it.each(['', 'host', '10.0.0.0/33', '10.0.0.0/-1', '10.0.0.0/', '10.0.0.0/8/8', '::/129', 'fe80::1%lo/64'])(
    'cannot hold %j',
    (text) => {
      expect(networkTest(['127.0.0.1', text])).toBeNull();
    },
  );
});

// What such a bridge keeps for its remote, as bytes.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { decodeSpooled, encodeSpooled } from '../../../src/bridge/mqtt/spool.ts';

test('a spooled message comes back as it was', () => {
  const message = {
    topic: 'a/b',
    payload: Buffer.from('payload'),
    qos: 2,
    retain: true,
    properties: { contentType: 'text/plain', userProperties: [['k', 'v']] as [string, string][] },
    expiresAt: 1_700_000_000_123,
    rule: 3,
  } as const;
  expect(decodeSpooled(encodeSpooled(message))).toEqual(message);
});

test('bytes that are no spooled message give null and never throw', () => {
  const whole = encodeSpooled({
    topic: 'a',
    payload: Buffer.from('x'),
    qos: 1,
    retain: false,
    properties: null,
    expiresAt: 0,
    rule: 0,
  });
  for (let cut = 0; cut < whole.length - 1; cut++) expect(decodeSpooled(whole.subarray(0, cut))).toBeNull();
  fc.assert(fc.property(fc.uint8Array({ maxLength: 60 }), (bytes) => decodeSpooled(bytes) !== undefined));
});

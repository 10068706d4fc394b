// What is left of the file descriptors, and a start that refuses to call itself ready without any for clients.
import { expect, test } from 'vitest';
import { checkDescriptors } from '../../src/gateway/transports.ts';
import { ACCEPT_RESERVE, Descriptors } from '../../src/transport/descriptors.ts';

/** As if so many were left. */
function withFree(count: number): Descriptors {
  const now = new Descriptors(1 << 20).free;
  if (now === null) throw new Error('a limit was given');
  return new Descriptors((1 << 20) - now + count);
}

test('the start fails where every connection would be refused, and says how many are free', () => {
  for (const free of [0, 32, ACCEPT_RESERVE])
    expect(() => checkDescriptors(1, withFree(free))).toThrow(
      expect.objectContaining({ code: 'GW-DESCRIPTORS', message: expect.stringContaining(`${free} of `) }),
    );
});

test('the start goes on with more, and where nothing listens', () => {
  checkDescriptors(1, withFree(ACCEPT_RESERVE + 10));
  checkDescriptors(0, withFree(5));
});

test('a system that tells no limit is not asked', () => {
  expect(new Descriptors(null).free).toBeNull();
});

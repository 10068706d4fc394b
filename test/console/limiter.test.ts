// Failed logins by address: the lock, its end, the bound of the table.
import { expect, test } from 'vitest';
import { LoginLimiter, ownerOf } from '../../src/console/limiter.ts';
import { FakeClock } from '../harness/clock.ts';

function failTimes(limiter: LoginLimiter, address: string, times: number): boolean[] {
  return Array.from({ length: times }, () => limiter.failed(address));
}

test('the tenth failure locks the address for thirty seconds', () => {
  const clock = new FakeClock();
  const limiter = new LoginLimiter(clock);
  expect(failTimes(limiter, '192.0.2.1', 10)).toEqual([...new Array(9).fill(false), true]);
  expect(limiter.waitSeconds('192.0.2.1')).toBe(30);
  expect(limiter.waitSeconds('192.0.2.2')).toBe(0);
  clock.advance(30_000);
  expect(limiter.waitSeconds('192.0.2.1')).toBe(0);
});

test('failures while locked do not lengthen the lock', () => {
  const clock = new FakeClock();
  const limiter = new LoginLimiter(clock);
  failTimes(limiter, 'a', 10);
  clock.advance(20_000);
  failTimes(limiter, 'a', 100);
  expect(limiter.waitSeconds('a')).toBe(10);
});

test('failures of more than a minute ago are forgotten', () => {
  const clock = new FakeClock();
  const limiter = new LoginLimiter(clock);
  failTimes(limiter, 'a', 9);
  clock.advance(60_001);
  failTimes(limiter, 'a', 9);
  expect(limiter.waitSeconds('a')).toBe(0);
});

test('a success forgets the failures before it', () => {
  const limiter = new LoginLimiter(new FakeClock());
  failTimes(limiter, 'a', 9);
  limiter.succeeded('a');
  expect(failTimes(limiter, 'a', 9)).toEqual(new Array(9).fill(false));
});

test('five thousand addresses push the oldest out of the table and no newer one', () => {
  const limiter = new LoginLimiter(new FakeClock());
  failTimes(limiter, 'first', 10);
  for (let i = 0; i < 4096; i++) limiter.failed(`10.0.${i >> 8}.${i & 255}`);
  failTimes(limiter, 'last', 10);
  expect([limiter.waitSeconds('first'), limiter.waitSeconds('last') > 0]).toEqual([0, true]);
});

test.each([
  ['192.0.2.1', '192.0.2.1'],
  ['::ffff:192.0.2.1', '192.0.2.1'],
  ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
  ['2001:db8::1', '2001:db8:0:0::/64'],
  ['::1', '0:0:0:0::/64'],
])('the owner of %s is %s', (address, owner) => {
  expect(ownerOf(address)).toBe(owner);
});

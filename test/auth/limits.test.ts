// Limits against guessing passwords, on a clock of the test.
import { describe, expect, it } from 'vitest';
import { FailureLimits, type LimitOptions, REMEMBERED } from '../../src/auth/limits.ts';
import { nullLog } from '../../src/base/log.ts';
import { FakeClock } from '../harness/clock.ts';

const OPTIONS: LimitOptions = {
  perAddress: 3,
  perUser: 5,
  perUserAndAddress: 0,
  windowMs: 60_000,
  lockMs: 1000,
  maxLockMs: 8000,
  exempt: ['127.0.0.0/8'],
};

function limits(more: Partial<LimitOptions> = {}): { limits: FailureLimits; clock: FakeClock } {
  const clock = new FakeClock();
  const made = new FailureLimits(clock, nullLog);
  made.configure({ ...OPTIONS, ...more });
  return { limits: made, clock };
}

function fail(set: FailureLimits, times: number, address: string, username = 'u'): void {
  for (let i = 0; i < times; i++) set.failed(address, username);
}

describe('failure limits', () => {
  it('lock an address after its failures and let it go after a while', () => {
    const { limits: set, clock } = limits();
    fail(set, 2, '10.0.0.1');
    expect(set.locked('10.0.0.1', 'x')).toBe(false);
    fail(set, 1, '10.0.0.1');
    expect(set.locked('10.0.0.1', 'x')).toBe(true);
    expect(set.locked('10.0.0.2', 'x')).toBe(false);
    clock.advance(1001);
    expect(set.locked('10.0.0.1', 'x')).toBe(false);
  });

  it('double the lock each time up to the longest', () => {
    const { limits: set, clock } = limits({ perUser: 0 });
    for (const lockMs of [1000, 2000, 4000, 8000, 8000]) {
      fail(set, 3, '10.0.0.1');
      clock.advance(lockMs - 1);
      expect(set.locked('10.0.0.1', null)).toBe(true);
      clock.advance(2);
      expect(set.locked('10.0.0.1', null)).toBe(false);
    }
  });

  it('forget failures that are old', () => {
    const { limits: set, clock } = limits();
    fail(set, 2, '10.0.0.1');
    clock.advance(60_001);
    fail(set, 2, '10.0.0.1');
    expect(set.locked('10.0.0.1', null)).toBe(false);
  });

  it('forget failures of an address after a success', () => {
    const { limits: set } = limits();
    fail(set, 2, '10.0.0.1');
    set.passed('10.0.0.1', 'u');
    fail(set, 2, '10.0.0.1', 'v');
    expect(set.locked('10.0.0.1', null)).toBe(false);
  });

  it('never lock an exempt address', () => {
    const { limits: set } = limits({ perUser: 0 });
    fail(set, 50, '127.0.0.1');
    expect(set.locked('127.0.0.1', 'u')).toBe(false);
  });

  it('hold no longer when they are taken away', () => {
    const { limits: set } = limits();
    fail(set, 3, '10.0.0.1');
    set.configure(null);
    expect(set.locked('10.0.0.1', null)).toBe(false);
  });

  it('lock a user for strangers, not for where it has logged in before', () => {
    const { limits: set } = limits();
    set.passed('10.0.0.9', 'u');
    for (let i = 0; i < 5; i++) set.failed(`10.1.0.${i}`, 'u');
    expect(set.locked('10.2.0.1', 'u')).toBe(true);
    expect(set.locked('10.0.0.9', 'u')).toBe(false);
    expect(set.locked('10.2.0.1', 'v')).toBe(false);
  });

  it('lock one user at one address and leave others there alone', () => {
    const { limits: set } = limits({ perAddress: 0, perUser: 0, perUserAndAddress: 3 });
    fail(set, 3, '10.0.0.1');
    expect(set.locked('10.0.0.1', 'u')).toBe(true);
    expect(set.locked('10.0.0.1', 'v')).toBe(false);
    expect(set.locked('10.0.0.2', 'u')).toBe(false);
  });

  it('lock a name that nobody has like any other', () => {
    const { limits: set } = limits();
    for (let i = 0; i < 5; i++) set.failed(`10.1.0.${i}`, 'nobody');
    expect(set.locked('10.2.0.1', 'nobody')).toBe(true);
  });

  it('remember a bounded number of addresses and users', () => {
    const { limits: set } = limits();
    fail(set, 3, '10.0.0.1');
    for (let i = 0; i < 2 * REMEMBERED; i++) set.failed(`10.9.${i >> 8}.${i & 255}`, `u${i}`);
    expect(set.locked('10.0.0.1', null)).toBe(false);
    expect(
      Object.values(set)
        .filter((value) => value instanceof Map)
        .every((map) => map.size <= REMEMBERED),
    ).toBe(true);
  });

  it('remember a long name by its hash, and still lock it', () => {
    const { limits: set } = limits({ perUserAndAddress: 3 });
    const long = 'n'.repeat(65_000);
    for (let i = 0; i < 5; i++) set.failed(`10.1.0.${i}`, long);
    expect(set.locked('10.2.0.1', long)).toBe(true);
    expect(set.locked('10.2.0.1', `${long.slice(1)}m`)).toBe(false);
    set.passed('10.0.0.9', long);
    expect(set.locked('10.0.0.9', long)).toBe(false);
    const keys = Object.values(set).flatMap((value) => (value instanceof Map ? [...value.keys()] : []));
    expect(Math.max(...keys.map((key) => key.length))).toBeLessThan(128);
  });
});

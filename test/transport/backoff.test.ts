// Waits between attempts, on a fake clock and with fixed dice.
import { describe, expect, it } from 'vitest';
import { Backoff } from '../../src/transport/backoff.ts';
import { FakeClock } from '../harness/clock.ts';

function backoff(random: number, maxMs: number, clock = new FakeClock()): Backoff {
  return new Backoff({ clock, random: () => random, maxMs });
}

describe('Backoff', () => {
  it('doubles from 100 ms to its limit and stays there', () => {
    const waits = backoff(0, 1000);
    expect([1, 2, 3, 4, 5, 6].map(() => waits.next())).toEqual([100, 200, 400, 800, 1000, 1000]);
  });

  it('draws at most half of a wait', () => {
    const waits = backoff(0.999999, 1000);
    const first = waits.next();
    expect(first).toBeGreaterThanOrEqual(50);
    expect(first).toBeLessThan(51);
  });

  it('begins anew after reset', () => {
    const waits = backoff(0, 1000);
    waits.next();
    waits.next();
    waits.reset();
    expect(waits.next()).toBe(100);
  });

  it('never waits longer than a limit below its first wait', () => {
    const waits = backoff(0, 30);
    expect([waits.next(), waits.next()]).toEqual([30, 30]);
  });

  it('calls again after the wait, once', () => {
    const clock = new FakeClock();
    const waits = backoff(0, 1000, clock);
    let calls = 0;
    waits.schedule(() => calls++);
    clock.advance(99);
    expect(calls).toBe(0);
    clock.advance(1);
    clock.advance(10_000);
    expect(calls).toBe(1);
  });

  it('forgets a wait that is cancelled or scheduled anew', () => {
    const clock = new FakeClock();
    const waits = backoff(0, 1000, clock);
    const calls: string[] = [];
    waits.schedule(() => calls.push('first'));
    waits.schedule(() => calls.push('second'));
    clock.advance(10_000);
    waits.schedule(() => calls.push('third'));
    waits.cancel();
    clock.advance(10_000);
    expect(calls).toEqual(['second']);
  });
});

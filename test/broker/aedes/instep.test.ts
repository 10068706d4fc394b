// When a gateway of a shared broker may acknowledge again after it has lost Redis.
import { expect, test } from 'vitest';
import { IN_STEP, InStep } from '../../../src/broker/aedes/instep.ts';
import { FakeClock } from '../../harness/clock.ts';

class Place {
  readonly clock = new FakeClock();
  up = true;
  returned = 0;
  readonly told: [string, string][] = [];
  readonly inStep = new InStep({
    clock: this.clock,
    log: () => {},
    ready: () => this.up,
    clients: async () => ['kept'],
    subscriptions: async () => [{ topic: 't', qos: 1 }],
    tell: async (topic, payload) => {
      this.told.push([topic, payload]);
    },
    onReturn: () => this.returned++,
  });

  /** What it has told last comes back. */
  echo(): void {
    this.inStep.heard(this.told[this.told.length - 1][1]);
  }
}

test('it is in step when what Redis has was told to all, and has come back', async () => {
  const place = new Place();
  const { inStep, told } = place;
  place.up = false;
  inStep.lost();
  await inStep.catchUp();
  expect([inStep.now, told]).toEqual([false, []]);
  place.up = true;
  await inStep.catchUp();
  expect(told.map(([topic]) => topic)).toEqual(['$SYS/sub/add', IN_STEP]);
  expect(JSON.parse(told[0][1])).toEqual({ clientId: 'kept', subs: [{ topic: 't', qos: 1 }] });
  expect([inStep.now, place.returned]).toEqual([false, 0]);
  place.echo();
  expect([inStep.now, place.returned]).toEqual([true, 1]);
});

test('an echo that does not come is asked for again, and one of before counts for nothing', async () => {
  const place = new Place();
  const { inStep, told, clock } = place;
  inStep.lost();
  await inStep.catchUp();
  const [, before] = told[told.length - 1];
  await clock.advanceAsync(1000);
  inStep.heard(before);
  expect(inStep.now).toBe(false);
  place.echo();
  expect(inStep.now).toBe(true);
  expect(clock.waiting).toBe(0);
});

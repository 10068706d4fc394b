// The ledger against V8: for each kind of thing that a client can make the gateway keep, in its worst shape, what is counted is what the
// heap and its buffers have grown by, within a quarter; and it is counted back to nothing.
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, test } from 'vitest';
import { Ledger } from '../../src/base/ledger.ts';
import type { Target } from '../../src/delivery/delivery.ts';
import { newDeliveryStats } from '../../src/delivery/delivery.ts';
import { Outbox } from '../../src/delivery/outbox.ts';
import { type Origin, Publication } from '../../src/mqtt/message.ts';
import type { Properties } from '../../src/mqtt/property.ts';
import { Routes } from '../../src/router/routes.ts';
import { memoryJournal } from '../../src/store/memory.ts';
import { FakeClock } from '../harness/clock.ts';

setFlagsFromString('--expose-gc');
const gc = runInNewContext('gc') as () => void;
const clock = new FakeClock();
const ORIGIN: Origin = { kind: 'client', clientId: 'c', username: null, bridge: null };
const stats = newDeliveryStats();

/** Heap and buffers in use. */
function usedBytes(): number {
  gc();
  gc();
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return heapUsed + arrayBuffers;
}

/** A string of its own, as a decoder makes it. */
function own(text: string): string {
  return Buffer.from(text).toString();
}

function outbox(clientId: string): Outbox {
  const limits = {
    inflight: 100,
    queueLength: 0,
    queueBytes: 0,
    queueQos0: false,
    writeBuffer: 1 << 20,
    topicAliases: 0,
  };
  const nothing = (): void => {};
  return new Outbox(
    {
      clientId,
      clock,
      journal: memoryJournal(),
      limits,
      stats,
      mayReceive: () => true,
      redeliver: () => false,
      onTrouble: nothing,
      later: (go) => go(),
    },
    true,
  );
}

function targetOf(receiver: Outbox): Target {
  const target = { receiver, qos: 1, retainAsPublished: false, subscriptionIdentifiers: null, share: null, order: 0 };
  return { ...target, own: null } as Target;
}

function router(): { routes: Routes; ledger: Ledger } {
  const ledger = new Ledger();
  return { routes: new Routes(memoryJournal(), clock, ledger), ledger };
}

function publication(topic: string, bytes: number, properties: Properties | null = null): Publication {
  const made = new Publication(ORIGIN);
  made.topic = own(topic);
  made.qos = 1;
  made.buffer = Buffer.alloc(bytes);
  made.payloadEnd = bytes;
  made.properties = properties;
  return made;
}

/** Counted over measured growth while `fill` runs; what it returns is kept until then. */
function ratio(ledger: Ledger, fill: () => unknown): number {
  const counted = (): number => ledger.total + stats.queuedBytes;
  const beforeCounted = counted();
  const beforeUsed = usedBytes();
  const kept = fill();
  const grown = usedBytes() - beforeUsed;
  expect(kept).toBeDefined();
  return (counted() - beforeCounted) / grown;
}

const DEEP = (i: number): string => `${i}/${'a/'.repeat(126)}b`;
const LONG = (i: number): string => `${i}/${'x'.repeat(60_000)}`;
const WIDE_LEVELS = (i: number): string =>
  Array.from({ length: 60 }, (_, k) => `${i}-${k}-${'y'.repeat(30)}`).join('/');
/** Of what grew; Maps of many short filters are smaller from Node.js 22 on, so there more is counted than is used. */
const MOST = Number(process.versions.node.split('.')[0]) < 22 ? 1.25 : 1.45;
const FILTERS: readonly (readonly [string, number, (i: number) => string])[] = [
  ['short filters', 10_000, (i) => `dev/${i}/t`],
  ['filters of 128 levels', 300, DEEP],
  ['filters of 64 KB', 300, LONG],
  ['filters of long levels', 300, WIDE_LEVELS],
  ['filters of wildcards', 500, (i) => `${i}/${'+/'.repeat(100)}b`],
];

test.each(FILTERS)('subscriptions: %s are counted, and counted back', (_, count, filterOf) => {
  const { routes, ledger } = router();
  const receiver = outbox('c');
  const stored = new Map<string, unknown>();
  const found = ratio(ledger, () => {
    for (let i = 0; i < count; i++) {
      const topicFilter = own(filterOf(i));
      const row = { topicFilter, qos: 1, noLocal: false, retainAsPublished: false, retainHandling: 0 } as const;
      routes.subscribe({ ...row, subscriptionIdentifier: 0, receiver, filter: topicFilter, shareName: null });
      stored.set(topicFilter, { ...row, subscriptionIdentifier: i });
    }
    return stored;
  });
  expect(found).toBeGreaterThan(0.75);
  expect(found).toBeLessThan(MOST);
  for (const topicFilter of stored.keys()) routes.unsubscribe(receiver, topicFilter);
  expect(ledger.of('subscriptions')).toBe(0);
});

const PAIRS = (): Properties => ({
  userProperties: Array.from({ length: 1000 }, (_, k) => [own(`a${k % 10}`), own('b')]),
});
const RETAINED: readonly (readonly [string, number, (i: number) => string, number, () => Properties | null])[] = [
  ['on short topics', 10_000, (i) => `dev/${i}/t`, 10, () => null],
  ['on topics of 128 levels', 300, DEEP, 10, () => null],
  ['on topics of 64 KB', 300, LONG, 10, () => null],
  ['on wide topics', 300, (i) => `${i}/${'\u0436'.repeat(30_000)}`, 10, () => null],
  ['with payloads', 1000, (i) => `d/${i}`, 10_000, () => null],
  ['with a thousand user properties', 200, (i) => `d/${i}`, 10, PAIRS],
];

test.each(RETAINED)('retained messages %s are counted, and counted back', (_, count, topicOf, bytes, propertiesOf) => {
  const { routes, ledger } = router();
  const found = ratio(ledger, () => {
    for (let i = 0; i < count; i++) {
      const made = publication(topicOf(i), bytes, propertiesOf());
      made.retain = true;
      routes.publish(made, { topic: '', version: 0, targets: [], groups: [], count: { messages: 0, bytes: 0 } });
    }
    return routes;
  });
  expect(found).toBeGreaterThan(0.75);
  expect(found).toBeLessThan(1.25);
  for (let i = 0; i < count; i++) routes.forget(topicOf(i));
  expect(ledger.of('retained')).toBe(0);
});

test('queued messages are counted, and counted back', () => {
  const receiver = outbox('q');
  const target = targetOf(receiver);
  const found = ratio(new Ledger(), () => {
    for (let i = 0; i < 20_000; i++) receiver.deliver(publication(`dev/${i % 50}/t`, 10), target);
    return receiver;
  });
  expect(found).toBeGreaterThan(0.75);
  expect(found).toBeLessThan(1.25);
  receiver.end();
  expect(stats.queuedBytes).toBe(0);
});

test('a message that many sessions wait for counts once', () => {
  const targets = Array.from({ length: 100 }, (_, i) => targetOf(outbox(`q${i}`)));
  const found = ratio(new Ledger(), () => {
    for (let i = 0; i < 300; i++) {
      const made = publication(`dev/${i % 50}/t`, 2000);
      for (const target of targets) target.receiver.deliver(made, target);
    }
    return targets;
  });
  expect(found).toBeGreaterThan(0.75);
  expect(found).toBeLessThan(1.25);
  for (const { receiver } of targets) (receiver as Outbox).end();
  expect(stats.queuedBytes).toBe(0);
});

test('routes with many targets are counted and bounded', () => {
  const { routes, ledger } = router();
  for (let i = 0; i < 300; i++) {
    const row = { topicFilter: '#', qos: 1, noLocal: false, retainAsPublished: false, retainHandling: 0 } as const;
    routes.subscribe({ ...row, subscriptionIdentifier: 0, receiver: outbox(`x${i}`), filter: '#', shareName: null });
  }
  const found = ratio(ledger, () => {
    for (let i = 0; i < 200; i++) routes.route(own(`t/${i}`));
    return routes;
  });
  expect(found).toBeGreaterThan(0.75);
  expect(found).toBeLessThan(1.25);
  for (let i = 0; i < 3000; i++) routes.route(own(`t/${i}`));
  expect(ledger.of('caches')).toBeLessThan(24 << 20);
});

test('a level that a long filter has brought does not keep that filter in memory', () => {
  const { routes, ledger } = router();
  const receiver = outbox('c');
  const row = {
    qos: 1,
    noLocal: false,
    retainAsPublished: false,
    retainHandling: 0,
    subscriptionIdentifier: 0,
  } as const;
  const before = usedBytes();
  for (let i = 0; i < 500; i++) {
    const prefix = `a-level-of-some-length-${i}`;
    const long = own(`${prefix}/${'x'.repeat(60_000)}`);
    const short = own(`${prefix}/b`);
    routes.subscribe({ ...row, topicFilter: long, receiver, filter: long, shareName: null });
    routes.subscribe({ ...row, topicFilter: short, receiver, filter: short, shareName: null });
    routes.unsubscribe(receiver, long);
  }
  expect(ledger.of('subscriptions')).toBeGreaterThan(0);
  expect(usedBytes() - before).toBeLessThan(3 << 20);
});

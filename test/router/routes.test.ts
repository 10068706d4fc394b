// Routes: found once and kept, never stale, never without bound.
import { describe, expect, it } from 'vitest';
import type { Receiver } from '../../src/delivery/delivery.ts';
import { Publication } from '../../src/mqtt/message.ts';
import { Routes } from '../../src/router/routes.ts';
import { memoryJournal } from '../../src/store/memory.ts';
import { FakeClock } from '../harness/clock.ts';

class Ear implements Receiver {
  readonly clientId: string;
  readonly online = true;
  readonly stores = false;
  ready = true;
  readonly heard: string[] = [];
  readonly hears: (topic: string) => boolean;

  constructor(clientId: string, hears: (topic: string) => boolean = () => true) {
    this.clientId = clientId;
    this.hears = hears;
  }

  mayReceive(topic: string): boolean {
    return this.hears(topic);
  }

  deliver(publication: Publication): void {
    this.heard.push(publication.topic);
  }

  deliverRun(): void {}
}

function place() {
  const routes = new Routes(memoryJournal(), new FakeClock());
  const subscribe = (receiver: Receiver, topicFilter: string): boolean =>
    routes.subscribe({
      receiver,
      topicFilter,
      filter: topicFilter.replace('$share/g/', ''),
      shareName: topicFilter.startsWith('$share/') ? 'g' : null,
      qos: 0,
      noLocal: false,
      retainAsPublished: false,
      retainHandling: 0,
      subscriptionIdentifier: 0,
    });
  const publish = (topic: string, retain = false): number => {
    const publication = new Publication({ kind: 'client', clientId: 'p', username: null, bridge: null });
    publication.topic = topic;
    publication.retain = retain;
    publication.buffer = Buffer.from('x');
    publication.payloadEnd = 1;
    return routes.publish(publication, routes.route(topic));
  };
  return { routes, subscribe, publish };
}

describe('a route', () => {
  it('is found once while nothing changes, and anew after every change', () => {
    const { routes, subscribe } = place();
    const ear = new Ear('a');
    subscribe(ear, 'a/+');
    const first = routes.route('a/b');
    expect(routes.route('a/b')).toBe(first);
    subscribe(ear, 'other');
    expect(routes.route('a/b')).not.toBe(first);
    routes.unsubscribe(ear, 'a/+');
    expect(routes.route('a/b').targets).toEqual([]);
  });

  it('of a long topic is not kept: it works all the same', () => {
    const { routes, subscribe, publish } = place();
    const ear = new Ear('a');
    subscribe(ear, '#');
    const topic = 'x'.repeat(60_000);
    expect(routes.route(topic)).not.toBe(routes.route(topic));
    publish(topic);
    expect(ear.heard).toEqual([topic]);
  });

  it.each(['t', 'long/'.repeat(100)])(
    'leads to nobody any more, for whoever kept it, once it is out of date (%#)',
    (topic) => {
      const { routes, subscribe } = place();
      const ear = new Ear('gone');
      subscribe(ear, '#');
      subscribe(ear, '$share/g/#');
      const kept = routes.route(topic);
      expect([kept.targets.length, kept.groups.length]).toEqual([1, 1]);
      routes.sweep();
      expect(kept.targets.length).toBe(1);
      for (const filter of ['#', '$share/g/#']) routes.unsubscribe(ear, filter);
      routes.sweep();
      expect([kept.targets, kept.groups]).toEqual([[], []]);
    },
  );

  it('that another has taken the place of leads to nobody', () => {
    const { routes, subscribe } = place();
    subscribe(new Ear('a'), 't');
    const kept = routes.route('t');
    subscribe(new Ear('b'), 't');
    expect(routes.route('t').targets.length).toBe(2);
    expect(kept.targets).toEqual([]);
  });

  it('leaves out who may not read the topic, as rights are now', () => {
    const { routes, subscribe, publish } = place();
    let secret = true;
    const ear = new Ear('a', (topic) => secret || topic !== 't');
    subscribe(ear, '#');
    expect(publish('t')).toBe(1);
    secret = false;
    routes.invalidate();
    expect(publish('t')).toBe(0);
    expect(publish('u')).toBe(1);
  });

  it('serves receivers in the order of their subscriptions; one that subscribes again keeps its place', () => {
    const { subscribe, routes } = place();
    const ears = ['a', 'b', 'c'].map((name) => new Ear(name));
    for (const ear of ears) subscribe(ear, 't');
    expect(subscribe(ears[0], 't')).toBe(true);
    expect(routes.route('t').targets.map((target) => target.receiver.clientId)).toEqual(['a', 'b', 'c']);
    expect(routes.subscriptionCount).toBe(3);
  });
});

describe('retained messages', () => {
  it('are found as live ones are, though the store changes while they are read', () => {
    const { routes, publish } = place();
    for (let n = 0; n < 100; n++) publish(`t/${n}`, true);
    const found = routes.retained('t/#');
    const topics = new Set<string>();
    for (let n = 0; n < 50; n++) topics.add(found.next().value?.topic ?? '');
    for (let n = 0; n < 100; n++) routes.forget(`t/${n}`);
    publish('t/new', true);
    for (let step = found.next(); step.done !== true; step = found.next()) topics.add(step.value?.topic ?? '');
    expect(topics.size).toBeGreaterThanOrEqual(50);
    expect(routes.retainedCount).toBe(1);
  });
});

it('a search for retained messages that finds nothing pauses now and then', () => {
  const { routes, publish } = place();
  for (let n = 0; n < 20_000; n++) publish(`t/${n}/x`, true);
  const found = routes.retainedInPieces('t/+/y');
  const pauses: unknown[] = [];
  for (let step = found.next(); step.done !== true; step = found.next()) pauses.push(step.value);
  expect(pauses.length).toBeGreaterThan(10);
  expect(new Set(pauses)).toEqual(new Set([null]));
  expect(routes.retained('t/+/y').next().done).toBe(true);
});

// Counts of topics: they belong to the topic whatever happens to routes, are bounded, and nothing is lost between them.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Receiver } from '../../src/delivery/delivery.ts';
import { Publication } from '../../src/mqtt/message.ts';
import { Routes } from '../../src/router/routes.ts';
import { COUNTED_TOPICS, TopicCounts, WINDOW_MS } from '../../src/router/topics.ts';
import { memoryJournal } from '../../src/store/memory.ts';
import { FakeClock } from '../harness/clock.ts';

const ear: Receiver = {
  clientId: 'ear',
  online: true,
  stores: false,
  ready: true,
  mayReceive: () => true,
  deliver: () => {},
  deliverRun: () => {},
};

function place() {
  const clock = new FakeClock();
  const routes = new Routes(memoryJournal(), clock);
  const subscribe = (topicFilter: string): boolean =>
    routes.subscribe({
      receiver: ear,
      topicFilter,
      filter: topicFilter,
      shareName: null,
      qos: 0,
      noLocal: false,
      retainAsPublished: false,
      retainHandling: 0,
      subscriptionIdentifier: 0,
    });
  const publication = new Publication({ kind: 'client', clientId: 'p', username: null, bridge: null });
  const publish = (topic: string, bytes = 1): void => {
    publication.reset();
    publication.topic = topic;
    publication.buffer = Buffer.alloc(bytes);
    publication.payloadStart = 0;
    publication.payloadEnd = bytes;
    routes.publish(publication, routes.route(topic));
  };
  const turn = (): void => {
    clock.advance(WINDOW_MS);
    routes.turnTopics();
  };
  const of = (topic: string) => [...routes.topics.list()].find((view) => view.topic === topic);
  return { clock, routes, subscribe, publish, publication, turn, of };
}

describe('a count', () => {
  it('goes on when routes are found anew', () => {
    const { publish, subscribe, of } = place();
    publish('t', 3);
    subscribe('t');
    publish('t', 4);
    expect(of('t')).toMatchObject({ messages: 2, bytes: 7 });
  });

  it('goes on for whoever has kept a route while all routes were forgotten', () => {
    const { routes, publish, publication, of } = place();
    publish('kept', 1);
    const route = routes.route('kept');
    for (let n = 0; n < 20_000; n++) routes.route(`other/${n}`);
    expect(routes.route('kept')).not.toBe(route);
    publication.topic = 'kept';
    publication.buffer = Buffer.alloc(1);
    publication.payloadEnd = 1;
    routes.publish(publication, route);
    publish('kept', 1);
    expect(of('kept')).toMatchObject({ messages: 3 });
  });
});

describe('rates', () => {
  it('are over the last one to two windows', () => {
    const { clock, publish, turn, routes, of } = place();
    turn();
    turn();
    for (let n = 0; n < 100; n++) publish('t', 10);
    clock.advance(5000);
    expect(routes.topics.windowMs).toBe(2 * WINDOW_MS);
    expect(of('t')).toMatchObject({ messageRate: 10, byteRate: 100 });
    routes.turnTopics();
    expect(of('t')).toMatchObject({ messageRate: 20 });
    turn();
    expect(of('t')).toMatchObject({ messages: 100, messageRate: 0, byteRate: 0 });
  });

  it('are none before any time has passed', () => {
    const { publish, of } = place();
    publish('t');
    expect(of('t')).toMatchObject({ messages: 1, messageRate: 0 });
  });
});

describe('more topics than are counted one by one', () => {
  it('are counted together, and so are very long ones', () => {
    const { publish, routes } = place();
    const long = 'x'.repeat(300);
    publish(long, 5);
    for (let n = 0; n < COUNTED_TOPICS + 10; n++) publish(`t/${n}`, 2);
    expect([...routes.topics.list()]).toHaveLength(COUNTED_TOPICS);
    expect(routes.topics.others()).toMatchObject({ topic: '', messages: 11, bytes: 25 });
    expect([...routes.topics.list()].some(({ topic }) => topic === long)).toBe(false);
  });

  it('take the place of silent ones, whose counts go to the others without a jump in their rate', () => {
    const { publish, turn, routes, of } = place();
    for (let n = 0; n < COUNTED_TOPICS; n++) publish(`old/${n}`);
    turn();
    publish('old/7');
    publish('new');
    expect(of('new')).toBeUndefined();
    turn();
    expect(routes.topics.others()).toMatchObject({ messages: COUNTED_TOPICS, messageRate: 0.2 });
    publish('new');
    expect(of('new')).toMatchObject({ messages: 1 });
    expect(of('old/7')).toMatchObject({ messages: 2 });
    expect(of('old/8')).toBeUndefined();
  });

  it('leave silent ones where they are while there is room', () => {
    const { publish, turn, of } = place();
    publish('t');
    for (let n = 0; n < 100; n++) turn();
    expect(of('t')).toMatchObject({ messages: 1 });
  });

  it('push out those that have long been silent before those that just were', () => {
    const { publish, turn, of } = place();
    for (let n = 0; n < COUNTED_TOPICS / 2; n++) publish(`old/${n}`);
    for (let n = 0; n < 12; n++) turn();
    for (let n = 0; n < COUNTED_TOPICS / 2; n++) publish(`young/${n}`);
    turn();
    turn();
    publish('new');
    turn();
    expect(of('old/0')).toBeUndefined();
    expect(of('young/0')).toMatchObject({ messages: 1 });
  });
});

it('topics and others together have every message, whatever comes and goes', () => {
  const act = fc.oneof(
    fc.record({ topics: fc.integer({ min: 1, max: COUNTED_TOPICS }), from: fc.nat(60_000) }),
    fc.constant('turn' as const),
  );
  fc.assert(
    fc.property(fc.array(act, { maxLength: 6 }), (acts) => {
      const { publish, turn, routes } = place();
      for (const one of acts) {
        if (one === 'turn') turn();
        else for (let n = 0; n < one.topics; n++) publish(`t/${one.from + n}`, 2);
      }
      let messages = routes.topics.others().messages;
      let bytes = routes.topics.others().bytes;
      for (const view of routes.topics.list()) {
        messages += view.messages;
        bytes += view.bytes;
      }
      expect([messages, bytes]).toEqual([routes.stats.received, routes.stats.received * 2]);
    }),
    { numRuns: 15 },
  );
}, 30_000);

it('a count that had to make room is not raised any more by routes that are looked up', () => {
  const counts = new TopicCounts(new FakeClock());
  const first = counts.of('first');
  for (let n = 1; n <= COUNTED_TOPICS; n++) counts.of(`t/${n}`).messages++;
  expect(counts.turn()).toBe(true);
  expect(counts.of('first')).not.toBe(first);
});

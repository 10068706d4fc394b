// Subscription trie and retained store against a plain matcher on random filters and topics.
import { describe, expect, it } from 'vitest';
import type { Receiver } from '../../src/delivery/delivery.ts';
import { Message } from '../../src/mqtt/message.ts';
import { matches } from '../../src/mqtt/topic.ts';
import { RetainedStore } from '../../src/router/retained.ts';
import { SubscriptionTrie } from '../../src/router/trie.ts';
import { Random } from '../harness/random.ts';

const LEVELS = ['', 'a', 'b', 'ab', '$x', 'ä'];
const ORIGIN = { kind: 'client', clientId: 'c', username: null, bridge: null } as const;

function someTopic(random: () => number): string {
  const levels = Array.from(
    { length: 1 + Math.floor(random() * 4) },
    () => LEVELS[Math.floor(random() * LEVELS.length)],
  );
  const topic = levels.join('/');
  return topic === '' ? '/' : topic;
}

function someFilter(random: () => number): string {
  const levels = someTopic(random).split('/');
  const filter = levels.map((level) => (random() < 0.35 ? '+' : level));
  if (random() < 0.3) filter[filter.length - 1] = '#';
  const text = filter.join('/');
  return text === '' ? '+' : text;
}

function subscription(filter: string, receiver: Receiver) {
  return {
    topicFilter: filter,
    filter,
    shareName: null,
    receiver,
    qos: 0 as const,
    noLocal: false,
    retainAsPublished: false,
    retainHandling: 0 as const,
    subscriptionIdentifier: 0,
    order: 0,
  };
}

const receiver = (clientId: string): Receiver => ({
  clientId,
  online: true,
  ready: true,
  stores: false,
  mayReceive: () => true,
  deliver: () => {},
  deliverRun: () => {},
});

function seeded(seed: number): () => number {
  const random = new Random(seed);
  return () => random.next() / 2 ** 32;
}

describe('subscription trie', () => {
  it('finds what a plain matcher finds, for 100,000 pairs of random filters and topics [MQTT-4.7.1-1] [MQTT-4.7.2-1]', () => {
    const random = seeded(4711);
    const trie = new SubscriptionTrie();
    const filters = new Set<string>();
    while (filters.size < 500) filters.add(someFilter(random));
    for (const filter of filters) trie.add(subscription(filter, receiver(filter)));
    for (let i = 0; i < 200; i++) {
      const topic = someTopic(random);
      const found = trie.match(topic).subscriptions.map((s) => s.filter);
      expect(found.length, topic).toBe(new Set(found).size);
      expect(new Set(found), topic).toEqual(new Set([...filters].filter((filter) => matches(filter, topic))));
    }
  });

  it('finds nothing of what was removed and keeps the rest', () => {
    const random = seeded(99);
    const trie = new SubscriptionTrie();
    const who = receiver('one');
    const filters = [...new Set(Array.from({ length: 300 }, () => someFilter(random)))];
    for (const filter of filters) trie.add(subscription(filter, who));
    // One receiver has one subscription for each filter, so adding again replaces.
    expect(trie.add(subscription(filters[0], who))?.filter).toBe(filters[0]);
    const kept = filters.filter((_, i) => i % 2 === 0);
    for (const filter of filters) if (!kept.includes(filter)) expect(trie.remove(who, filter)?.filter).toBe(filter);
    expect(trie.remove(who, 'never/there')).toBeUndefined();
    for (let i = 0; i < 100; i++) {
      const topic = someTopic(random);
      const found = trie.match(topic).subscriptions.map((s) => s.filter);
      expect(new Set(found), topic).toEqual(new Set(kept.filter((filter) => matches(filter, topic))));
    }
  });
});

describe('retained store', () => {
  it('finds for every filter the topics that live matching finds [MQTT-3.3.1-9]', () => {
    const random = seeded(7);
    const store = new RetainedStore();
    const topics = new Set<string>();
    while (topics.size < 300) topics.add(someTopic(random));
    for (const topic of topics) store.set(new Message(topic, Buffer.from('x'), 0, true, null, 0, ORIGIN));
    expect(store.count).toBe(topics.size);
    for (let i = 0; i < 400; i++) {
      const filter = someFilter(random);
      const found: string[] = [];
      const messages = store.match(filter);
      for (let step = messages.next(); step.done !== true; step = messages.next())
        if (step.value !== null) found.push(step.value.topic);
      expect(found.length, filter).toBe(new Set(found).size);
      expect(new Set(found), filter).toEqual(new Set([...topics].filter((topic) => matches(filter, topic))));
    }
  });

  it('forgets expired messages and counts what is left', () => {
    const store = new RetainedStore();
    store.set(new Message('a/1', Buffer.from('x'), 0, true, null, 100, ORIGIN));
    store.set(new Message('a/2', Buffer.from('x'), 0, true, null, 200, ORIGIN));
    store.set(new Message('a/3', Buffer.from('x'), 0, true, null, 0, ORIGIN));
    const gone: string[] = [];
    store.sweep(150, (topic) => gone.push(topic));
    expect(gone).toEqual(['a/1']);
    expect(store.count).toBe(2);
    expect(store.get('a/1')).toBeNull();
    store.delete('a/2');
    store.delete('a/3');
    expect([store.count, store.bytes]).toEqual([0, 0]);
  });
});

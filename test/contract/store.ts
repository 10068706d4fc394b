// What every durable Journal owes its users, run for each of them: after barrier() has released a hold with 0, a new instance that opens the
// files as they are gives back what the barrier covers. `make` gives an unopened journal; `reopen` one on the files as a crash left them.
import { afterEach, describe, expect, test } from 'vitest';
import type { Origin } from '../../src/mqtt/message.ts';
import type { Journal, Restored, RestoredSession } from '../../src/store/store.ts';
import { message, ORIGIN, queued, session, settled, subscription } from '../harness/journal.ts';

export interface StoreUnderTest {
  make(): Journal;
  /** A new journal on what the first one has written by now. */
  reopen(): Journal;
}

export function storeContract(name: string, make: () => StoreUnderTest): void {
  describe(name, () => {
    const open: Journal[] = [];
    afterEach(async () => {
      await Promise.all(open.splice(0).map((journal) => journal.close()));
    });

    async function started(): Promise<{ journal: Journal; afterCrash: () => Promise<Restored> }> {
      const store = make();
      const journal = store.make();
      open.push(journal);
      await journal.load();
      const afterCrash = async (): Promise<Restored> => {
        expect(await settled(journal)).toBe(0);
        const second = store.reopen();
        open.push(second);
        return second.load();
      };
      return { journal, afterCrash };
    }

    function one(restored: Restored, clientId: string): RestoredSession {
      const found = restored.sessions.filter((s) => s.session.clientId === clientId);
      expect(found).toHaveLength(1);
      return found[0];
    }

    const payloads = (s: RestoredSession): string[] => s.queue.map((m) => Buffer.from(m.message.payload).toString());

    test('a new store is empty and accepts messages', async () => {
      const { journal, afterCrash } = await started();
      expect(journal.durable).toBe(true);
      expect(journal.accepting).toBe(true);
      expect(await afterCrash()).toEqual({ sessions: [], retained: [], spools: new Map() });
    });

    test('a session survives with its user, expiry and version', async () => {
      const { journal, afterCrash } = await started();
      const wanted = session('c', { username: 'u', expiresAt: 1234567890123, expiryInterval: 0xffffffff, version: 4 });
      journal.sessionPut(session('c'));
      journal.sessionPut(wanted);
      expect(one(await afterCrash(), 'c').session).toEqual(wanted);
    });

    test('a session survives with how its client came, and when what vouched for it ends', async () => {
      const { journal, afterCrash } = await started();
      const claims = new Map<string, unknown>([
        ['acl', { pub: ['a/#'] }],
        ['superuser', true],
      ]);
      const arrival = {
        listener: 'tcp.a',
        remoteAddress: '10.0.0.7',
        realm: 'password_file /x',
        via: 'token',
        claims,
      } as const;
      const wanted = session('c', { username: 'u', arrival, validUntil: 1234567890123 });
      journal.sessionPut(session('c'));
      journal.sessionPut(wanted);
      expect(one(await afterCrash(), 'c').session).toEqual(wanted);
    });

    test('a retained message survives with how its publisher came, also where another one had published before', async () => {
      const { journal, afterCrash } = await started();
      const by = (listener: string, more = {}): Origin => ({
        ...ORIGIN,
        arrival: { listener, remoteAddress: '::1', realm: '', via: 'users', claims: null, ...more },
      });
      const [a, b] = [by('tcp.a'), by('tcp.b', { claims: new Map([['acl', { all: ['r/#'] }]]) })];
      journal.retainedPut(message('r/1', 'x', { retain: true, origin: a }));
      journal.retainedPut(message('r/2', 'x', { retain: true, origin: a }));
      expect(await settled(journal)).toBe(0);
      journal.retainedPut(message('r/1', 'y', { retain: true, origin: b }));
      journal.retainedPut(message('r/3', 'x', { retain: true }));
      const { retained } = await afterCrash();
      const found = new Map(retained.map((m) => [m.topic, m.origin.arrival ?? null]));
      expect(found.get('r/1')).toEqual(b.arrival);
      expect(found.get('r/2')).toEqual(a.arrival);
      expect(found.get('r/3')).toBeNull();
    });

    test('a session that never expires survives as such', async () => {
      const { journal, afterCrash } = await started();
      journal.sessionPut(session('c', { expiresAt: Infinity }));
      expect(one(await afterCrash(), 'c').session.expiresAt).toBe(Infinity);
    });

    test('names that look like SQL survive as they are', async () => {
      const { journal, afterCrash } = await started();
      const names = [
        "x'); DROP TABLE session;--",
        "x' UNION SELECT zeroblob(1),4 -- ",
        'a"b',
        '100%_',
        '\u{1F6AA}',
        'a\\b',
        '?1',
        ' ',
        '',
      ];
      for (const name of names) {
        journal.sessionPut(session(name, { username: name }));
        journal.subscriptionPut(name, subscription(`f/${name}`));
        journal.messageQueued(
          name,
          queued(1, message(`f/${name}`, name, { properties: { userProperties: [[name, name]] } })),
        );
        journal.retainedPut(message(`r/${name}`, name));
      }
      const restored = await afterCrash();
      for (const name of names) {
        const found = one(restored, name);
        expect(found.session.username).toBe(name);
        expect(found.subscriptions[0].topicFilter).toBe(`f/${name}`);
        expect(found.queue[0].message.topic).toBe(`f/${name}`);
        expect(found.queue[0].message.properties?.userProperties).toEqual([[name, name]]);
      }
      expect(restored.retained.map((m) => m.topic).sort()).toEqual(names.map((n) => `r/${n}`).sort());
    });

    test('a deleted session takes everything of it along', async () => {
      const { journal, afterCrash } = await started();
      for (const id of ['gone', 'kept']) {
        journal.sessionPut(session(id));
        journal.subscriptionPut(id, subscription('t'));
        journal.messageQueued(id, queued(1, message('t')));
        journal.inboundPut(id, 7);
        journal.willPut(id, { message: message('w'), dueAt: 5 });
      }
      expect(await settled(journal)).toBe(0);
      journal.messageQueued('gone', queued(2, message('t')));
      journal.sessionDelete('gone');
      const restored = await afterCrash();
      expect(restored.sessions.map((s) => s.session.clientId)).toEqual(['kept']);
    });

    test('a session that begins again has nothing of the one before', async () => {
      const { journal, afterCrash } = await started();
      journal.sessionPut(session('c'));
      journal.subscriptionPut('c', subscription('old'));
      journal.messageQueued('c', queued(1, message('old')));
      journal.sessionDelete('c');
      journal.sessionPut(session('c'));
      journal.subscriptionPut('c', subscription('new'));
      journal.messageQueued('c', queued(1, message('new')));
      const found = one(await afterCrash(), 'c');
      expect(found.subscriptions.map((s) => s.topicFilter)).toEqual(['new']);
      expect(found.queue.map((m) => m.message.topic)).toEqual(['new']);
    });

    test('subscriptions survive with their options; removed ones stay removed', async () => {
      const { journal, afterCrash } = await started();
      journal.sessionPut(session('c'));
      const all = [
        subscription('a/+', { qos: 0 }),
        subscription('b/#', { qos: 2, noLocal: true, retainHandling: 2, subscriptionIdentifier: 268_435_455 }),
        subscription('$share/g/c', { retainAsPublished: true, retainHandling: 1 }),
      ];
      for (const s of all) journal.subscriptionPut('c', s);
      journal.subscriptionPut('c', subscription('gone'));
      journal.subscriptionDelete('c', 'gone');
      const found = one(await afterCrash(), 'c').subscriptions;
      expect([...found].sort((a, b) => (a.topicFilter < b.topicFilter ? -1 : 1))).toEqual(
        [...all].sort((a, b) => (a.topicFilter < b.topicFilter ? -1 : 1)),
      );
    });

    test('a queued message survives with everything it carries', async () => {
      const { journal, afterCrash } = await started();
      journal.sessionPut(session('c'));
      const body = message('t/\u{1F6AA}', Buffer.from([0, 39, 34, 255, 0]), {
        qos: 2,
        retain: true,
        expiresAt: Date.now() + 1_000_000,
        origin: { kind: 'bridge', clientId: 'b', username: null, bridge: 'nng:x' },
        properties: {
          payloadFormatIndicator: 1,
          messageExpiryInterval: 4_000_000_000,
          contentType: 't',
          responseTopic: 'r',
          correlationData: new Uint8Array([1, 0, 2]),
          userProperties: [
            ['a', ''],
            ['a', '1'],
          ],
        },
      });
      const entry = queued(9_007_199_254_740_000, body, 'queued', {
        qos: 2,
        retain: true,
        subscriptionIdentifiers: [1, 268_435_455],
      });
      journal.messageQueued('c', entry);
      const [found] = one(await afterCrash(), 'c').queue;
      expect(found).toEqual({
        ...entry,
        message: { ...body, payload: found.message.payload, properties: found.message.properties },
      });
      expect(Buffer.from(found.message.payload)).toEqual(Buffer.from(body.payload));
      expect(found.message.properties).toEqual(body.properties);
    });

    test('states and packet ids survive', async () => {
      const { journal, afterCrash } = await started();
      journal.sessionPut(session('c'));
      for (let n = 1; n <= 5; n++)
        journal.messageQueued('c', queued(n, message('t'), n === 5 ? 'sent' : 'queued', { qos: 2 }));
      journal.messageState('c', 1, 'sent', 11);
      expect(await settled(journal)).toBe(0);
      journal.messageState('c', 2, 'sent', 12);
      journal.messageState('c', 3, 'sent', 13);
      journal.messageState('c', 3, 'received', 13);
      journal.messageState('c', 1, 'received', 11);
      const found = one(await afterCrash(), 'c').queue;
      expect(found.map((m) => [m.sequence, m.state, m.packetId])).toEqual([
        [1, 'received', 11],
        [2, 'sent', 12],
        [3, 'received', 13],
        [4, 'queued', 0],
        [5, 'sent', 5],
      ]);
    });

    test('the queue keeps its order whatever was committed when', async () => {
      const { journal, afterCrash } = await started();
      journal.sessionPut(session('c'));
      for (let n = 1; n <= 60; n++) {
        journal.messageQueued('c', queued(n, message('t', `${n}`), n % 3 === 0 ? 'queued' : 'sent'));
        if (n % 20 === 0) expect(await settled(journal)).toBe(0);
      }
      expect(payloads(one(await afterCrash(), 'c'))).toEqual(Array.from({ length: 60 }, (_, n) => `${n + 1}`));
    });

    test('done messages are gone, at once and after their commit', async () => {
      const { journal, afterCrash } = await started();
      journal.sessionPut(session('c'));
      for (let n = 1; n <= 10; n++) journal.messageQueued('c', queued(n, message('t', `${n}`)));
      for (const n of [1, 2, 5]) journal.messageDone('c', n);
      expect(await settled(journal)).toBe(0);
      for (const n of [3, 4, 9]) journal.messageDone('c', n);
      // messageDone is not waited for: what is told next is committed with it.
      journal.sessionPut(session('other'));
      expect(payloads(one(await afterCrash(), 'c'))).toEqual(['6', '7', '8', '10']);
    });

    test('a message shared by sessions lives until the last one is done', async () => {
      const { journal, afterCrash } = await started();
      const body = message('t', 'shared');
      for (const id of ['a', 'b', 'c']) journal.sessionPut(session(id));
      for (const id of ['a', 'b', 'c']) journal.messageQueued(id, queued(1, body));
      expect(await settled(journal)).toBe(0);
      journal.messageDone('a', 1);
      journal.sessionDelete('b');
      journal.sessionPut(session('d'));
      const restored = await afterCrash();
      expect(one(restored, 'a').queue).toEqual([]);
      expect(payloads(one(restored, 'c'))).toEqual(['shared']);
    });

    test('inbound packet ids survive until they are released', async () => {
      const { journal, afterCrash } = await started();
      journal.sessionPut(session('c'));
      for (const id of [1, 65535, 300]) journal.inboundPut('c', id);
      journal.inboundPut('c', 300);
      expect(await settled(journal)).toBe(0);
      journal.inboundDelete('c', 1);
      expect([...one(await afterCrash(), 'c').inbound]).toEqual([300, 65535]);
    });

    test('retained messages survive: the last value, and none after a deletion', async () => {
      const { journal, afterCrash } = await started();
      const last = message('r/a', 'last', { qos: 2, retain: true, properties: { contentType: 'x' } });
      journal.retainedPut(message('r/a', 'first', { retain: true }));
      journal.retainedPut(message('r/gone', 'x', { retain: true }));
      expect(await settled(journal)).toBe(0);
      journal.retainedPut(message('r/a', 'second', { retain: true }));
      journal.retainedPut(last);
      journal.retainedDelete('r/gone');
      journal.retainedPut(message('r/b', '', { retain: true }));
      journal.retainedDelete('r/b');
      const { retained } = await afterCrash();
      expect(retained.map((m) => [m.topic, Buffer.from(m.payload).toString(), m.qos, m.retain, m.properties])).toEqual([
        ['r/a', 'last', 2, true, { contentType: 'x' }],
      ]);
    });

    test('a will survives until it is deleted', async () => {
      const { journal, afterCrash } = await started();
      for (const id of ['a', 'b']) {
        journal.sessionPut(session(id));
        journal.willPut(id, { message: message('w', 'first'), dueAt: 0 });
      }
      journal.willPut('a', { message: message('w', 'second', { retain: true }), dueAt: 1234567890123 });
      journal.willDelete('b');
      const restored = await afterCrash();
      const will = one(restored, 'a').will;
      expect(will?.dueAt).toBe(1234567890123);
      expect(will?.message.retain).toBe(true);
      expect(Buffer.from(will?.message.payload ?? []).toString()).toBe('second');
      expect(one(restored, 'b').will).toBeNull();
    });

    test('a spool survives in order, from where it was deleted', async () => {
      const { journal, afterCrash } = await started();
      for (let n = 1; n <= 6; n++) {
        journal.spoolPut('mqtt:up', n, Buffer.from(`${n}`));
        if (n === 4) expect(await settled(journal)).toBe(0);
      }
      journal.spoolPut('mqtt:other', 1, Buffer.from('o'));
      journal.spoolDelete('mqtt:up', 2);
      journal.spoolDelete('mqtt:other', Infinity);
      expect(await settled(journal)).toBe(0);
      journal.spoolPut('mqtt:other', 1, Buffer.from('again'));
      const { spools } = await afterCrash();
      const texts = (name: string): unknown =>
        spools.get(name)?.map((e) => [e.sequence, Buffer.from(e.bytes).toString()]);
      expect(texts('mqtt:up')).toEqual([
        [3, '3'],
        [4, '4'],
        [5, '5'],
        [6, '6'],
      ]);
      expect(texts('mqtt:other')).toEqual([[1, 'again']]);
    });

    test('what expired meanwhile is not restored, what was sent already is', async () => {
      const { journal, afterCrash } = await started();
      journal.sessionPut(session('c'));
      const past = Date.now() - 1000;
      journal.messageQueued('c', queued(1, message('t', 'old', { expiresAt: past })));
      journal.messageQueued('c', queued(2, message('t', 'sent', { expiresAt: past }), 'sent'));
      journal.messageQueued('c', queued(3, message('t', 'new', { expiresAt: Date.now() + 100_000 })));
      journal.retainedPut(message('r/old', 'x', { expiresAt: past }));
      const restored = await afterCrash();
      expect(payloads(one(restored, 'c'))).toEqual(['sent', 'new']);
      expect(restored.retained).toEqual([]);
    });

    test('close() writes what is open', async () => {
      const store = make();
      const journal = store.make();
      open.push(journal);
      await journal.load();
      journal.sessionPut(session('c'));
      for (let n = 1; n <= 5000; n++) journal.messageQueued('c', queued(n, message('t', `${n}`), 'sent'));
      await journal.close();
      const second = store.reopen();
      open.push(second);
      expect(one(await second.load(), 'c').queue).toHaveLength(5000);
    });

    test('a restored session goes on under its old number', async () => {
      const store = make();
      const first = store.make();
      open.push(first);
      await first.load();
      first.sessionPut(session('c'));
      for (let n = 1; n <= 4; n++) first.messageQueued('c', queued(n, message('t', `${n}`)));
      await first.close();
      const second = store.reopen();
      open.push(second);
      await second.load();
      second.messageDone('c', 1);
      second.messageState('c', 2, 'sent', 9);
      second.messageQueued('c', queued(5, message('t', '5')));
      await second.close();
      const third = store.reopen();
      open.push(third);
      const found = one(await third.load(), 'c').queue;
      expect(found.map((m) => [m.sequence, m.state])).toEqual([
        [2, 'sent'],
        [3, 'queued'],
        [4, 'queued'],
        [5, 'queued'],
      ]);
    });
  });
}

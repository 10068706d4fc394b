// What peers may do to a broker and must not: memory, floods, readers that stop, topics of the server. And what operators need to see.
// The tags B0nn and B1nn are rows of the casebook. Sizes are those of the reports where a test can hold them.
import { afterEach, describe, expect, it } from 'vitest';
import { newFrame } from '../../src/codec/codec.ts';
import { decodeConnack } from '../../src/codec/connect.ts';
import { readFrame } from '../../src/codec/frame.ts';
import { DISCONNECT, PINGREQ, PINGRESP, PUBACK, PUBLISH, PUBREC } from '../../src/mqtt/packet.ts';
import { testGateway } from '../harness/gateway.ts';
import { openRoom, type Room, type RoomOptions, settled } from './room.ts';

const stops: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0)) await stop();
});

async function begin(options: RoomOptions = {}): Promise<Room> {
  const room = await openRoom(options);
  stops.push(() => room.stop());
  return room;
}

const KEEP = { cleanStart: false, expiry: 3600 } as const;
const willTo = (topicName: string) =>
  ({ topicName, payload: Buffer.from('x'), qos: 0, retain: false, properties: null, delayInterval: 0 }) as const;

describe('before CONNECT', () => {
  it('a peer that announces a huge packet is closed at its header, one that does not begin with CONNECT at byte 1 [B120]', async () => {
    const room = await begin();
    const before = room.pool.usedBytes;
    const peers = Array.from({ length: 1000 }, (_, n) => {
      const peer = room.open();
      peer.raw(n % 2 === 0 ? '10 ff ff ff 7f' : '30');
      return peer;
    });
    await settled();
    for (const peer of peers) expect(await peer.untilClosed()).toEqual([]);
    expect(room.pool.usedBytes).toBe(before);
    expect(room.metric('connections_refused_total')).toBe(1000);
  });

  it('a CONNECT of more than 64 KB is refused from its header, whatever a packet may have later [B120]', async () => {
    const room = await begin({ limits: { maxPacketSize: 10 << 20 } });
    const peer = room.open();
    peer.raw('10 81 80 04');
    expect(await peer.untilClosed()).toEqual([]);
  });

  it('a peer that trickles is closed when its time is over [B120]', async () => {
    const room = await begin();
    const peer = room.open();
    for (const byte of ['10', '0e', '00', '04', '4d', '51']) {
      peer.raw(byte);
      await room.advance(2000);
    }
    expect(await peer.untilClosed()).toEqual([]);
  });

  it('the limit of a packet counts the will: a CONNECT above it is answered 0x95 [B124]', async () => {
    const room = await begin({ limits: { maxConnectSize: 1024 } });
    const peer = room.open();
    peer.connect('c', { will: { ...willTo('w'), payload: Buffer.alloc(60_000) } });
    const packets = await peer.untilClosed();
    expect(packets.every((p) => p.type === 2 && 'reasonCode' in p && p.reasonCode === 0x95)).toBe(true);
    expect(room.broker.client('c')).toBeUndefined();
  });

  it('only so many peers may wait to be let in, and only so many come a second; those who are in stay', async () => {
    const room = await begin({ limits: { maxPendingConnections: 5, maxConnectRate: 50 } });
    const good = await room.client('good');
    const peers = Array.from({ length: 10 }, () => room.open());
    await settled();
    expect(peers.filter((peer) => peer.closed).length).toBe(5);
    expect(await good.messages()).toEqual([]);
    for (const peer of peers) await peer.drop();
    const flood = Array.from({ length: 100 }, () => room.open());
    await settled();
    expect(flood.filter((peer) => !peer.closed).length).toBe(5);
    for (const peer of flood) await peer.drop();
    await room.advance(1500);
    await room.client('next');
    expect(await good.messages()).toEqual([]);
  });

  it('packets behind a CONNECT wait for its answer, and after DISCONNECT no client is left [B115]', async () => {
    const room = await begin({
      authenticator: {
        authenticate: async ({ clientId, username, remoteAddress, listener }) => {
          await settled(2);
          return {
            accepted: true,
            identity: { clientId, username, remoteAddress, listener, claims: null, internal: false },
          };
        },
      },
    });
    const peer = room.open();
    peer.connect('c');
    peer.publish('t', 'x', 1);
    peer.disconnect();
    expect((await peer.untilClosed()).map((p) => p.type)).toEqual([2, PUBACK]);
    expect([...room.broker.clients()]).toEqual([]);
  });
});

describe('a reader that stops', () => {
  it('costs no more than its buffer: QoS 0 is dropped, QoS 1 queued to its bound, and then it is closed [B123]', async () => {
    const room = await begin({
      limits: { sendTimeoutMs: 30_000, outbox: { writeBuffer: 1 << 18, queueLength: 100, inflight: 1000 } },
    });
    const frozen = await room.client('frozen', KEEP);
    await frozen.subscribe('#', 1);
    frozen.connection.pause();
    const healthy = await room.client('healthy');
    await healthy.subscribe('#', 0);
    const publisher = await room.client('p');
    const body = 'x'.repeat(10_000);
    for (let n = 0; n < 2500; n += 10) {
      for (let i = 0; i < 10; i++) publisher.publish('t', body, n < 2000 ? 0 : 1, n < 2000 ? {} : { packetId: n + i });
      expect(await healthy.messagesCount(10)).toBe(10);
    }
    expect(room.pool.usedBytes).toBeLessThan(4 << 20);
    expect(room.broker.client('frozen')).toMatchObject({ queued: 100 });
    expect(room.metric('publish_dropped_total', { reason: 'slow_reader' })).toBeGreaterThan(1000);
    expect(room.metric('publish_dropped_total', { reason: 'queue_full' })).toBeGreaterThan(0);
    await room.advance(40_000);
    expect(room.broker.client('frozen')).toMatchObject({ connected: false, queued: 100 });
  });

  it('of its own answers is not read any further, and goes on when it reads', async () => {
    const room = await begin({ limits: { outbox: { writeBuffer: 1 << 16 } } });
    const c = await room.client('c');
    c.connection.pause();
    const pings = 400_000;
    for (let n = 0; n < pings; n += 4000) c.raw(Buffer.alloc(8000, Buffer.from([PINGREQ << 4, 0])));
    await settled(200);
    expect(room.pool.usedBytes).toBeLessThan(1 << 20);
    c.connection.resume();
    for (let n = 0; n < pings; n++) expect((await c.next())?.type).toBe(PINGRESP);
  });
});

describe('topics of the server', () => {
  it('are not written by clients, not as a will either, and # does not show them [B030] [B121] [MQTT-4.7.2-1]', async () => {
    const gateway = await testGateway();
    stops.push(() => gateway.stop());
    const { connectAsync } = await import('mqtt');
    const url = `mqtt://127.0.0.1:${gateway.port}`;
    const seen: string[] = [];
    const watcher = await connectAsync(url, { protocolVersion: 5 });
    watcher.on('message', (topic, payload) => seen.push(`${topic} ${payload}`));
    await watcher.subscribeAsync(['#', '+/#', '+/broker/uptime', '$SYS/x/#', '$CONTROL/#', 'end']);
    const evil = await connectAsync(url, {
      protocolVersion: 5,
      reconnectPeriod: 0,
      will: { topic: '$SYS/x/will', payload: Buffer.from('x'), qos: 0, retain: true },
    }).catch((error: Error) => error);
    const publisher = await connectAsync(url, { protocolVersion: 5 });
    for (const topic of ['$SYS/x/new/clients', '$SYS/broker/uptime', '$CONTROL/x']) {
      const code = await publisher.publishAsync(topic, 'evil', { qos: 1, retain: true }).then(
        () => 0,
        (error: Error & { code?: number }) => error.code,
      );
      expect([0x87, 0x90]).toContain(code);
    }
    if (!(evil instanceof Error)) evil.stream.destroy();
    await publisher.publishAsync('end', 'x', { qos: 1 });
    while (!seen.includes('end x')) await settled(1);
    expect(seen.filter((line) => line !== 'end x')).toEqual([]);
    for (const client of [watcher, publisher]) await client.endAsync(true);
    if (!(evil instanceof Error)) await evil.endAsync(true);
  });

  it('reach who subscribes to them, and no wildcard at the first level [B030]', async () => {
    const room = await begin({ sysIntervalMs: 10_000 });
    const all = await room.client('all');
    await all.subscribe('#');
    await all.subscribe('+/broker/#');
    const sys = await room.client('sys');
    await sys.subscribe('$SYS/#');
    await room.advance(20_000);
    expect(await all.messages()).toEqual([]);
    expect((await sys.messages()).map((m) => m.topic)).toContain('$SYS/broker/uptime');
  });

  it('a will that its client may not write is dropped and counted [B122]', async () => {
    const room = await begin({ authorizer: { publish: (_, topic) => topic.startsWith('ok/') } });
    const watcher = await room.client('watcher');
    await watcher.subscribe('#');
    const c = await room.client('c', { will: willTo('no/x') });
    await c.drop();
    const d = await room.client('d', { will: willTo('ok/x') });
    await d.drop();
    expect((await watcher.messages()).map((m) => m.topic)).toEqual(['ok/x']);
    expect(room.metric('denied_total', { action: 'will' })).toBe(1);
  });
});

describe('memory', () => {
  it('is what it was after many reconnects with QoS 2 exchanges left half done [B125]', async () => {
    const room = await begin();
    const publisher = await room.client('p');
    for (let n = 0; n < 300; n++) {
      const durable = n % 2 === 0;
      const c = await room.client(durable ? 'kept' : `c${n}`, durable ? KEEP : {});
      if (!c.present) await c.subscribe('t', 2);
      await publisher.published('t', 'x', 2);
      const message = await c.next();
      if (message?.type === PUBLISH && n % 3 === 0) c.ack(PUBREC, message.packetId);
      c.publish('other', 'x', 2);
      await c.drop();
    }
    const end = await room.client('kept');
    await end.drop();
    await publisher.drop();
    expect([...room.broker.clients()]).toEqual([]);
    expect(room.metric('queued_messages')).toBe(0);
    expect(room.metric('queued_bytes')).toBe(0);
    expect(room.metric('subscriptions')).toBe(0);
    expect(room.metric('topics')).toBe(0);
    expect(room.metric('clients_connected')).toBe(0);
    expect(room.pool.usedBytes).toBe(0);
  });

  it('above the budget slows publishers down and shuts nobody out', async () => {
    const room = await begin({ limits: { memoryBudget: 1 << 20, outbox: { queueLength: 0, writeBuffer: 0 } } });
    const keeper = await room.client('keeper', KEEP);
    await keeper.subscribe('t', 1);
    await keeper.drop();
    const publisher = await room.client('p', { version: 4 });
    const one = publisher.publishBytes('t', 'x'.repeat(1000), 1, { packetId: 1 });
    for (let n = 0; n < 5000; n++) publisher.raw(one);
    await settled(50);
    const slowed = room.broker.client('keeper')?.queued ?? 0;
    expect(slowed).toBeLessThan(1500);
    const other = await room.client('other');
    expect(await other.messages()).toEqual([]);
    for (let n = 0; n < 20; n++) await room.advance(20);
    expect(room.broker.client('keeper')?.queued).toBeGreaterThan(slowed);
  });

  it('of all queues together ends at its bound, however many sessions are away; what is not taken is counted', async () => {
    const room = await begin({ limits: { outbox: { queueLength: 0, totalBytes: 1 << 20 } } });
    // A message that many sessions wait for counts once, its place in each queue by itself.
    for (let n = 0; n < 100; n++) {
      const keeper = await room.client(`keeper${n}`, KEEP);
      await keeper.subscribe('t', 1);
      await keeper.drop();
    }
    const publisher = await room.client('p');
    for (let n = 0; n < 95; n++) await publisher.published('t', 'x'.repeat(1000), 1);
    const queued = room.metric('queued_messages');
    expect(room.metric('queued_bytes')).toBeLessThan((1 << 20) + 2000);
    expect(queued).toBeGreaterThan(500);
    expect(room.metric('publish_dropped_total', { reason: 'queue_full' })).toBe(100 * 95 - queued);
    expect(queued).toBeLessThan(100 * 95);
    const back = await room.client('keeper0', KEEP);
    expect((await back.messages()).length).toBeGreaterThan(20);
    await publisher.published('t', 'x', 1);
    expect((await back.messages()).at(-1)?.payload).toBe('x');
  });

  it('an abundance of routes keeps every one of them right [B128]', async () => {
    const room = await begin();
    const c = await room.client('c');
    await c.subscribe('a/+/b', 0);
    await c.subscribe('a/b', 0);
    const publisher = await room.client('p');
    for (let n = 0; n < 45_000; n += 1000) {
      const many = Array.from({ length: 1000 }, (_, i) => publisher.publishBytes(`a/${n + i}/b`, '', 0));
      publisher.raw(Buffer.concat(many));
      publisher.publish('a/b/c', 'no');
      publisher.publish('a/bc', 'no');
      const got = await c.messagesCount(1000);
      expect(got).toBe(1000);
    }
    expect(await c.messages()).toEqual([]);
  });
});

describe('retained messages', () => {
  it('by the hundred thousand reach a subscriber of # in slices: others are served between [B040]', async () => {
    const room = await begin({ limits: { outbox: { writeBuffer: 1 << 26 } } });
    const publisher = await room.client('p');
    for (let n = 0; n < 100_000; n += 1000) {
      const many = Array.from({ length: 1000 }, (_, i) =>
        publisher.publishBytes(`r/${n + i}`, 'x', 0, { retain: true }),
      );
      publisher.raw(Buffer.concat(many));
    }
    await publisher.messages();
    const c = await room.client('c');
    const granted = c.subscribe('#');
    const other = await room.client('other');
    await other.messages();
    await granted;
    const between = await c.arrived();
    expect(between).toBeLessThan(50_000);
    expect(await c.messagesCount(100_000)).toBe(100_000);
  });
});

describe('what operators see', () => {
  it('two programs with one client id are named once, with both addresses, and counted [B129]', async () => {
    const room = await begin();
    for (let n = 0; n < 20; n++) await room.client('shared');
    const told = room.log.filter((line) => line.id === 'SES-CONTEST');
    expect(told.map((line) => line.fields?.clientId)).toEqual(['shared']);
    expect(Object.keys(told[0].fields ?? {})).toEqual(expect.arrayContaining(['remote', 'previous', 'takeovers']));
    expect(room.metric('takeovers_total')).toBe(19);
    await room.advance(120_000);
    for (let n = 0; n < 5; n++) await room.client('shared');
    expect(room.log.filter((line) => line.id === 'SES-CONTEST').length).toBe(2);
  });

  it('many clients that come at once while logins are slow are all let in, none twice [B130]', async () => {
    let running = 0;
    const room = await begin({
      authenticator: {
        authenticate: async ({ clientId, username, remoteAddress, listener }) => {
          running++;
          await settled(3);
          running--;
          return {
            accepted: true,
            identity: { clientId, username, remoteAddress, listener, claims: null, internal: false },
          };
        },
      },
    });
    await Promise.all(Array.from({ length: 500 }, (_, n) => room.client(`c${n}`)));
    expect(running).toBe(0);
    expect(room.metric('clients_connected')).toBe(500);
  });

  it('a stop tells 5.0 clients 0x8B and sends no will of a session that is kept for the next start [B131]', async () => {
    const room = await openRoom();
    const five = await room.client('five');
    const four = await room.client('four', { version: 4 });
    const stopped = room.stop();
    const last = await five.untilClosed();
    expect(last.at(-1)).toMatchObject({ type: DISCONNECT, reasonCode: 0x8b });
    expect(await four.untilClosed()).toEqual([]);
    await stopped;
  });

  it('connected clients are counted right through refusals, takeovers and resets [B105]', async () => {
    const room = await begin({ limits: { retainAvailable: false } });
    for (let n = 0; n < 200; n++) {
      const c = await room.client(`c${n % 7}`);
      if (n % 3 === 0) await c.drop();
      else if (n % 3 === 1) c.disconnect();
      const refused = room.open();
      refused.connect('r', { will: { ...willTo('w'), retain: true } });
      await refused.untilClosed();
    }
    for (let n = 0; n < 7; n++) room.broker.kick(`c${n}`, true);
    await settled();
    expect(room.metric('clients_connected')).toBe(0);
    expect(room.metric('sessions')).toBe(0);
  });
});

describe('as a client of other brokers', () => {
  it('every property that a CONNACK may carry is taken [B054]', () => {
    const bytes = Buffer.from('20180000151100 00003c2700100000250 12a0129012 2ffff2801'.replaceAll(' ', ''), 'hex');
    const frame = newFrame();
    expect(readFrame(bytes, 0, bytes.length, frame, 1000)).toBe(1);
    expect(decodeConnack(bytes, frame, 5)).toMatchObject({
      reasonCode: 0,
      properties: { sessionExpiryInterval: 60, maximumPacketSize: 1 << 20, topicAliasMaximum: 65_535 },
    });
  });
});

// A bridge to a remote broker against a scripted remote: connecting, both directions, store and forward, loops, malice.
import fc from 'fast-check';
import { afterEach, describe, expect, test } from 'vitest';
import { GatewayError } from '../../../src/base/errors.ts';
import type { MqttBridgeOptions } from '../../../src/bridge/mqtt/options.ts';
import { encodeSpooled } from '../../../src/bridge/mqtt/spool.ts';
import { encodePublish } from '../../../src/codec/publish.ts';
import type { Hold } from '../../../src/mqtt/message.ts';
import { DISCONNECT, PINGREQ, PUBREL, SUBSCRIBE, UNSUBSCRIBE } from '../../../src/mqtt/packet.ts';
import type { StoredSession } from '../../../src/store/store.ts';
import {
  MqttBench,
  message,
  mqttForward,
  mqttOptions,
  mqttSubscription,
  PUBACK,
  PUBCOMP,
  PUBREC,
} from '../../harness/mqttremote.ts';

let benches: MqttBench[] = [];
afterEach(async () => {
  for (const bench of benches) {
    const stopping = bench.bridge.stop(0, false);
    await bench.clock.advanceAsync(10);
    await stopping;
  }
  benches = [];
});

function bench(...args: ConstructorParameters<typeof MqttBench>): MqttBench {
  const made = new MqttBench(...args);
  benches.push(made);
  made.bridge.take();
  void made.bridge.start();
  return made;
}

const FORWARD: Partial<MqttBridgeOptions> = { forwards: [mqttForward('up/#')] };

describe('connecting', () => {
  test('CONNECT carries the bridge bit, credentials and the will', async () => {
    const b = bench({
      username: 'u',
      password: 'p',
      cleanStart: false,
      will: {
        topic: 'gw/gone',
        payload: 'bye',
        qos: 1,
        retain: true,
        payloadFormatIndicator: 0,
        messageExpiryIntervalSeconds: 0,
        willDelayIntervalSeconds: 0,
        contentType: null,
        responseTopic: null,
        correlationData: null,
        userProperty: [],
      },
    });
    const { connect } = await b.call();
    expect(connect).toMatchObject({ version: 4, bridge: true, clientId: 'gw', cleanStart: false, keepAlive: 60 });
    expect([connect.username, Buffer.from(connect.password ?? []).toString()]).toEqual(['u', 'p']);
    expect(connect.will).toMatchObject({ topicName: 'gw/gone', qos: 1, retain: true });
  });

  test('no_local_v4 = false leaves the bridge bit out', async () => {
    expect((await bench({ noLocalV4: false }).call()).connect.bridge).toBe(false);
  });

  test('a 5.0 CONNECT carries the properties of the configuration', async () => {
    const connProperties = {
      ...mqttOptions().connProperties,
      sessionExpiryIntervalSeconds: 60,
      receiveMaximum: 10,
      topicAliasMaximum: 5,
      userProperty: [['site', 'north']] as const,
    };
    const { connect } = await bench({ protoVer: 5, connProperties }).call();
    expect(connect.properties).toEqual({
      sessionExpiryInterval: 60,
      receiveMaximum: 10,
      topicAliasMaximum: 5,
      maximumPacketSize: 1 << 20,
      userProperties: [['site', 'north']],
    });
  });

  test('a bridge without clientid has one of 23 characters at most', async () => {
    const { connect } = await bench({ clientId: null }).call();
    expect(connect.clientId).toMatch(/^tidegate-[0-9a-f]{8}$/);
  });

  test('attempts go on for ever, after backoff_max at most', async () => {
    const b = bench({ backoffMaxMs: 400 });
    for (let i = 0; i < 20; i++) b.refusals.push(new Error('nobody there'));
    await b.state('retrying');
    for (let i = 0; i < 20; i++) await b.clock.advanceAsync(400);
    const call = await b.call();
    call.accept();
    await b.state('connected');
    expect(b.targets.length).toBe(21);
    expect(b.bridge.status().lastError).toBeNull();
  });

  test('hybrid_servers are tried in turn', async () => {
    const b = bench({ hybridServers: ['mqtt-tcp://two.test', 'tls+mqtt-tcp://three.test:9000'] });
    for (let i = 0; i < 3; i++) b.refusals.push(new Error('nobody there'));
    while (b.targets.length < 4) await b.clock.advanceAsync(100);
    expect(b.targets.map((t) => ('host' in t ? `${t.kind} ${t.host}:${t.port}` : t.kind))).toEqual([
      'tcp remote.test:1883',
      'tcp two.test:1883',
      'tls three.test:9000',
      'tcp remote.test:1883',
    ]);
  });

  test('a remote that is not trusted is an error that says so, and is tried again', async () => {
    const b = bench();
    b.refusals.push(new GatewayError('TRANSPORT-TLS', 'ca.pem: holds no certificate'));
    await b.state('error');
    expect(b.bridge.status().lastError).toMatch(/^tls_verify_failed: /);
    await b.clock.advanceAsync(5000);
    await b.connected();
  });

  test('a refusal by CONNACK is an error that is tried again', async () => {
    const b = bench();
    (await b.call()).accept(null, false, 5);
    await b.state('error');
    expect(b.bridge.status().lastError).toContain('not authorised');
    await b.clock.advanceAsync(5000);
    await b.connected();
  });

  test('a remote that never answers CONNECT is given up in time', async () => {
    const b = bench({ cancelTimeoutMs: 1000 });
    await b.call();
    await b.clock.advanceAsync(1500);
    await b.state('retrying');
  });

  test('packets before CONNACK end the connection', async () => {
    const b = bench(FORWARD);
    (await b.call()).message('x', 'y');
    await b.state('error');
  });

  test('PINGREQ is sent before the keep alive has passed, and silence ends the connection', async () => {
    const b = bench({ keepaliveMs: 10_000, cancelTimeoutMs: 2000 });
    const call = await b.connected();
    await b.clock.advanceAsync(9000);
    await call.packet(PINGREQ);
    await b.clock.advanceAsync(3000);
    await b.state('retrying');
  });

  test('a missing acknowledgement has the connection probed', async () => {
    const b = bench({ ...FORWARD, resendIntervalMs: 1000 });
    const call = await b.connected();
    b.publish('up/x', '1', 1);
    await call.publish();
    await b.clock.advanceAsync(2000);
    await call.packet(PINGREQ);
  });

  test('Server Keep Alive of the remote counts [MQTT-3.2.2-21]', async () => {
    const b = bench({ protoVer: 5, keepaliveMs: 600_000 });
    const call = await b.connected({ serverKeepAlive: 4 });
    await b.clock.advanceAsync(4000);
    await call.packet(PINGREQ);
  });
});

describe('local to remote', () => {
  test('messages go out under the mapped topic with QoS and RETAIN of the rule', async () => {
    const b = bench({ forwards: [mqttForward('up/#', 'cloud/#', { qos: 1, retain: true, prefix: 's/' })] });
    const call = await b.connected();
    b.publish('up/a/b', 'x', 0);
    expect(await call.publish()).toMatchObject({ topic: 's/cloud/a/b', payload: 'x', qos: 1, retain: true });
  });

  test('without qos and retain in the rule they stay as published', async () => {
    const b = bench(FORWARD);
    const call = await b.connected();
    b.publish('up/a', '0', 0);
    b.publish('up/a', '2', 2, true);
    expect(await call.publish()).toMatchObject({ qos: 0, retain: false });
    expect(await call.publish()).toMatchObject({ qos: 2, retain: true });
  });

  test('what came from this bridge does not go back', async () => {
    const b = bench(FORWARD);
    const call = await b.connected();
    b.broker.publish('up/a', 'loop', 1, false, { kind: 'bridge', clientId: 'gw', username: null, bridge: 'mqtt:up' });
    b.publish('up/a', 'own', 1);
    expect((await call.publish()).payload).toBe('own');
    expect(b.dropped('loop')).toBe(1);
  });

  test('QoS 0 is dropped while the remote is away, and counted', async () => {
    const b = bench(FORWARD);
    b.publish('up/a', 'lost', 0);
    expect(b.dropped('away')).toBe(1);
  });

  test('retry_qos_0 keeps QoS 0 while the remote is away', async () => {
    const b = bench({ ...FORWARD, retryQos0: true });
    b.publish('up/a', 'kept', 0);
    const call = await b.connected();
    expect((await call.publish()).payload).toBe('kept');
  });

  test('QoS 1 and 2 wait for the remote in order, up to max_send_queue_len', async () => {
    const b = bench({ ...FORWARD, maxSendQueueLen: 3 });
    b.refusals.push(...Array.from({ length: 3 }, () => new Error('away')));
    await b.clock.advanceAsync(5000);
    for (let i = 0; i < 5; i++) b.publish('up/a', String(i), i % 2 === 0 ? 1 : 2);
    b.refusals.length = 0;
    await b.clock.advanceAsync(5000);
    const call = await b.connected();
    expect(await call.texts(3)).toEqual(['0', '1', '2']);
    expect(b.dropped('queue-full')).toBe(2);
  });

  test('no more are in flight than the remote wants [MQTT-3.3.4-7]', async () => {
    const b = bench({ ...FORWARD, protoVer: 5 });
    const call = await b.connected({ receiveMaximum: 2 });
    for (let i = 0; i < 4; i++) b.publish('up/a', String(i), 1);
    const first = await call.publish();
    await call.publish();
    await b.clock.advanceAsync(10);
    expect(call.unread).toBe(0);
    call.ack(PUBACK, first.packetId);
    expect((await call.publish()).payload).toBe('2');
  });

  test('before 5.0 fewer than 20 messages of QoS 1 and 2 are open, and half of them after the remote has closed the connection', async () => {
    const b = bench({ ...FORWARD, cleanStart: false });
    const call = await b.connected();
    for (let i = 0; i < 30; i++) b.publish('up/a', String(i), i % 2 === 0 ? 2 : 1);
    for (let i = 0; i < 19; i++) await call.publish();
    await b.clock.advanceAsync(10);
    expect(call.unread).toBe(0);
    call.drop();
    await b.state('retrying');
    await b.clock.advanceAsync(5000);
    const again = await b.connected(null, true);
    const first = await again.publish();
    for (let i = 1; i < 9; i++) await again.publish();
    await b.clock.advanceAsync(10);
    expect(again.unread).toBe(0);
    again.ack(PUBREC, first.packetId);
    await again.packet(PUBREL);
    again.ack(PUBCOMP, first.packetId);
    expect((await again.publish()).payload).toBe('9');
  });

  test('max_inflight bounds what is open, whatever the remote bears', async () => {
    const b = bench({ ...FORWARD, protoVer: 5, maxInflight: 3 });
    const call = await b.connected({ receiveMaximum: 100 });
    for (let i = 0; i < 10; i++) b.publish('up/a', String(i), 1);
    expect(await call.texts(3)).toEqual(['0', '1', '2']);
    await b.clock.advanceAsync(10);
    expect(call.unread).toBe(0);
  });

  test('what a pre-5.0 remote acknowledged just before it cut open exchanges is sent again at QoS 1, and only there', async () => {
    const b = bench({ ...FORWARD, cleanStart: false });
    const call = await b.connected();
    b.publish('up/a', 'early', 1);
    call.ack(PUBACK, (await call.publish()).packetId);
    await b.clock.advanceAsync(1);
    b.publish('up/a', 'twice', 2);
    b.publish('up/a', 'once', 2);
    b.publish('up/a', 'copy', 1);
    const twice = await call.publish();
    const once = await call.publish();
    call.ack(PUBACK, (await call.publish()).packetId);
    call.ack(PUBREC, once.packetId);
    await call.packet(PUBREL);
    call.ack(PUBCOMP, once.packetId);
    await b.clock.advanceAsync(1);
    call.drop();
    await b.state('retrying');
    await b.clock.advanceAsync(5000);
    const again = await b.connected(null, true);
    expect(await again.publish()).toMatchObject({ payload: 'twice', packetId: twice.packetId, dup: true });
    again.ack(PUBREC, twice.packetId);
    await again.packet(PUBREL);
    again.ack(PUBCOMP, twice.packetId);
    const copy = await again.publish();
    expect(copy).toMatchObject({ payload: 'copy', qos: 1 });
    again.ack(PUBACK, copy.packetId);
    await b.clock.advanceAsync(2000);
    expect([b.outbox.length, again.unread]).toEqual([0, 0]);
  });

  test('a pre-5.0 remote may count an exchange that is over: what it acknowledged just after one is in doubt as well', async () => {
    const b = bench({ ...FORWARD, cleanStart: false });
    const call = await b.connected();
    b.publish('up/a', 'two', 2);
    const two = await call.publish();
    call.ack(PUBREC, two.packetId);
    await call.packet(PUBREL);
    call.ack(PUBCOMP, two.packetId);
    await b.clock.advanceAsync(100);
    b.publish('up/a', 'one', 1);
    call.ack(PUBACK, (await call.publish()).packetId);
    await b.clock.advanceAsync(100);
    call.drop();
    await b.state('retrying');
    await b.clock.advanceAsync(5000);
    const again = await b.connected(null, true);
    expect(await again.publish()).toMatchObject({ payload: 'one', qos: 1, dup: true });
  });

  test('a message acknowledged in the middle of exchanges is forgotten when the connection has held for a second', async () => {
    const b = bench({ ...FORWARD, cleanStart: false }, [], true);
    const call = await b.connected();
    b.publish('up/a', 'two', 2);
    const two = await call.publish();
    b.publish('up/a', 'one', 1);
    call.ack(PUBACK, (await call.publish()).packetId);
    call.ack(PUBREC, two.packetId);
    await call.packet(PUBREL);
    call.ack(PUBCOMP, two.packetId);
    await b.clock.advanceAsync(10);
    expect(b.spool.entries.length).toBe(1);
    await b.clock.advanceAsync(1000);
    expect([b.spool.entries.length, b.outbox.bytes]).toEqual([0, 0]);
  });

  test('limits told in CONNACK hold: QoS, RETAIN, size', async () => {
    const b = bench({ ...FORWARD, protoVer: 5 });
    const call = await b.connected({ maximumQos: 1, retainAvailable: false, maximumPacketSize: 100 });
    b.publish('up/a', 'x'.repeat(200), 1);
    b.publish('up/a', 'small', 2, true);
    expect(await call.publish()).toMatchObject({ payload: 'small', qos: 1, retain: false });
    expect(b.dropped('too-large')).toBe(1);
  });

  test('a broken connection repeats what was not acknowledged, nothing else', async () => {
    const b = bench(FORWARD);
    const call = await b.connected();
    for (let i = 0; i < 4; i++) b.publish('up/a', String(i), 1);
    for (let i = 0; i < 4; i++) {
      const { packetId } = await call.publish();
      if (i < 2) call.ack(PUBACK, packetId);
    }
    await b.clock.advanceAsync(1);
    call.drop();
    await b.state('retrying');
    b.publish('up/a', '4', 1);
    await b.clock.advanceAsync(5000);
    const again = await b.connected();
    expect(await again.texts(3)).toEqual(['2', '3', '4']);
  });

  test('a session that the remote has kept goes on under the same packet ids [MQTT-4.4.0-1]', async () => {
    const b = bench({ ...FORWARD, cleanStart: false });
    const call = await b.connected();
    b.publish('up/a', 'one', 1);
    b.publish('up/a', 'two', 2);
    const one = await call.publish();
    const two = await call.publish();
    call.ack(PUBREC, two.packetId);
    await call.packet(PUBREL);
    call.drop();
    await b.state('retrying');
    await b.clock.advanceAsync(5000);
    const again = await b.connected(null, true);
    expect(await again.publish()).toMatchObject({ payload: 'one', dup: true, packetId: one.packetId });
    expect((await again.packet(PUBREL)).packetId).toBe(two.packetId);
    again.ack(PUBCOMP, two.packetId);
    again.ack(PUBACK, one.packetId);
    await b.clock.advanceAsync(1);
    expect(b.outbox.length).toBe(0);
  });

  test('a message the remote refuses is dropped and counted', async () => {
    const b = bench({ ...FORWARD, protoVer: 5 });
    const call = await b.connected();
    b.publish('up/a', 'x', 1);
    const { packetId } = await call.publish();
    call.ack(PUBACK, packetId, 0x97);
    await b.clock.advanceAsync(1);
    expect([b.outbox.length, b.dropped('refused-by-remote')]).toEqual([0, 1]);
  });

  test('a remote that breaks the protocol loses the connection, not the messages', async () => {
    const b = bench({ ...FORWARD, protoVer: 5 });
    const call = await b.connected();
    b.publish('up/a', 'x', 1);
    await call.publish();
    call.send(Buffer.from([0x0f, 0x00]));
    expect((await call.packet(DISCONNECT)).reasonCode).toBe(0x81);
    await b.state('error');
    await b.clock.advanceAsync(5000);
    expect(await (await b.connected()).texts(1)).toEqual(['x']);
  });
});

describe('store and forward', () => {
  test('a message is in the spool until the remote has acknowledged it and all before it', async () => {
    const b = bench({ ...FORWARD, protoVer: 5 }, [], true);
    const call = await b.connected();
    b.publish('up/a', 'one', 1);
    b.publish('up/a', 'two', 2);
    const one = await call.publish();
    const two = await call.publish();
    call.ack(PUBREC, two.packetId);
    await call.packet(PUBREL);
    call.ack(PUBCOMP, two.packetId);
    await b.clock.advanceAsync(1);
    expect(b.spool.entries.length).toBe(2);
    call.ack(PUBACK, one.packetId);
    await b.clock.advanceAsync(1);
    expect(b.spool.entries.length).toBe(0);
  });

  test('what the spool holds is sent after a restart, before anything new', async () => {
    const before = bench(FORWARD, [], true);
    for (let i = 0; i < 3; i++) before.publish('up/a', String(i), 1);
    const after = bench(FORWARD, before.spool.entries, true);
    after.publish('up/a', '3', 1);
    const call = await after.connected();
    expect(await call.texts(4)).toEqual(['0', '1', '2', '3']);
  });

  test('after a restart a kept session gets QoS 2 messages under the packet ids they had', async () => {
    const before = bench({ ...FORWARD, cleanStart: false }, [], true);
    const call = await before.connected();
    before.publish('up/a', 'x', 2);
    const { packetId } = await call.publish();
    const after = bench({ ...FORWARD, cleanStart: false }, before.spool.entries, true);
    const again = await after.connected(null, true);
    expect(await again.publish()).toMatchObject({ payload: 'x', packetId, dup: true, qos: 2 });
  });

  test('after a restart an expired QoS 2 message ends the exchange that the remote may hold open', async () => {
    const options = { ...FORWARD, cleanStart: false };
    const about = { topic: 'up/a', retain: false, properties: null, expiresAt: 1, rule: 0 };
    const entries = ([2, 1] as const).map((qos, i) => {
      const bytes = encodeSpooled({ ...about, qos, payload: Buffer.from(`q${qos}`) });
      return { sequence: 100 + i, bytes };
    });
    const b = bench(options, entries, true);
    const call = await b.connected(null, true);
    const { payload, packetId, dup } = await call.publish();
    expect([payload, packetId, dup]).toEqual(['q2', 101, true]);
    call.ack(PUBREC, packetId);
    expect((await call.packet(PUBREL)).packetId).toBe(packetId);
    call.ack(PUBCOMP, packetId);
    b.publish('up/a', 'next', 1);
    expect(await call.texts(1)).toEqual(['next']);
    expect(b.dropped('expired')).toBe(1);
    // A new session knows of no exchange.
    const anew = bench(options, entries, true);
    await anew.connected(null, false);
    await anew.clock.advanceAsync(1);
    expect(anew.dropped('expired')).toBe(2);
  });

  test('a QoS 2 message leaves when it is stored with its packet id, and what comes behind it with it', async () => {
    const b = bench({ ...FORWARD, cleanStart: false }, [], true);
    b.spool.slow = true;
    const call = await b.connected();
    b.publish('up/a', 'two', 2);
    b.publish('up/a', 'one', 1);
    await b.clock.advanceAsync(10);
    expect([b.spool.entries.length, call.unread]).toEqual([2, 0]);
    b.spool.commit();
    expect(await call.texts(2)).toEqual(['two', 'one']);
  });

  test('a QoS 1 message leaves before it is stored', async () => {
    const b = bench({ ...FORWARD, cleanStart: false }, [], true);
    b.spool.slow = true;
    const call = await b.connected();
    b.publish('up/a', 'one', 1);
    expect(await call.texts(1)).toEqual(['one']);
  });

  test('a step that could not be stored is tried again', async () => {
    const b = bench({ ...FORWARD, cleanStart: false }, [], true);
    b.spool.slow = true;
    const call = await b.connected();
    b.publish('up/a', 'two', 2);
    await b.clock.advanceAsync(10);
    b.spool.commit(0x97);
    await b.clock.advanceAsync(300);
    expect(call.unread).toBe(0);
    b.spool.commit();
    expect(await call.texts(1)).toEqual(['two']);
  });

  test('PUBREL leaves when it is stored that the remote has the message, on a later connection too', async () => {
    const b = bench({ ...FORWARD, cleanStart: false }, [], true);
    const call = await b.connected();
    b.publish('up/a', 'x', 2);
    const { packetId } = await call.publish();
    b.spool.slow = true;
    call.ack(PUBREC, packetId);
    await b.clock.advanceAsync(10);
    expect([b.spool.marks.length, call.unread]).toEqual([1, 0]);
    call.drop();
    await b.state('retrying');
    await b.clock.advanceAsync(5000);
    const again = await b.connected(null, true);
    await b.clock.advanceAsync(10);
    expect(again.unread).toBe(0);
    b.spool.commit();
    expect((await again.packet(PUBREL)).packetId).toBe(packetId);
    again.ack(PUBCOMP, packetId);
    await b.clock.advanceAsync(10);
    expect([b.spool.entries.length, b.spool.marks.length]).toEqual([0, 0]);
  });

  test('after a restart a message that the remote had received is released and not sent again', async () => {
    const before = bench({ ...FORWARD, cleanStart: false }, [], true);
    const call = await before.connected();
    for (const text of ['a', 'b', 'c']) before.publish('up/a', text, 2);
    const [a, b] = [await call.publish(), await call.publish()];
    call.ack(PUBREC, b.packetId);
    await call.packet(PUBREL);
    const after = bench({ ...FORWARD, cleanStart: false }, [...before.spool.entries], true, [...before.spool.marks]);
    const again = await after.connected(null, true);
    expect((await again.packet(PUBREL)).packetId).toBe(b.packetId);
    expect(await again.publish()).toMatchObject({ payload: 'a', packetId: a.packetId, dup: true });
    expect((await again.publish()).payload).toBe('c');
    again.ack(PUBCOMP, b.packetId);
    await after.clock.advanceAsync(10);
    expect(after.outbox.length).toBe(2);
  });

  test('a remote that has lost the session gets everything again, and no mark is left of what it had received', async () => {
    const before = bench({ ...FORWARD, cleanStart: false }, [], true);
    const call = await before.connected();
    before.publish('up/a', 'a', 2);
    call.ack(PUBREC, (await call.publish()).packetId);
    await call.packet(PUBREL);
    const after = bench({ ...FORWARD, cleanStart: false }, [...before.spool.entries], true, [...before.spool.marks]);
    after.spool.slow = true;
    const again = await after.connected(null, false);
    await after.clock.advanceAsync(10);
    expect([after.spool.marks.length, again.unread]).toEqual([0, 0]);
    after.spool.commit();
    expect(await again.publish()).toMatchObject({ payload: 'a', dup: false });
  });

  test('a full queue delays the acknowledgements of publishers while the remote takes messages, and drops while it is away', async () => {
    const b = bench({ ...FORWARD, maxSendQueueLen: 2, maxInflight: 1 });
    const call = await b.connected();
    const done: number[] = [];
    for (let i = 0; i < 4; i++) b.publish('up/a', String(i), 1)?.whenDone(() => done.push(i));
    expect([done, b.dropped('queue-full')]).toEqual([[], 0]);
    call.ack(PUBACK, (await call.publish()).packetId);
    await b.clock.advanceAsync(1);
    expect(done).toEqual([2]);
    call.drop();
    await b.state('retrying');
    expect(done).toEqual([2]);
    b.refusals.push(...Array.from({ length: 100 }, () => new Error('away')));
    await b.clock.advanceAsync(5000);
    expect(done).toEqual([2, 3]);
    b.publish('up/a', '4', 1);
    expect([b.outbox.length, b.dropped('queue-full')]).toEqual([3, 1]);
  });

  test('a store that takes nothing refuses the publisher', async () => {
    const b = bench(FORWARD, [], true);
    b.spool.accepting = false;
    const hold = b.publish('up/a', 'x', 1);
    let code = -1;
    hold?.whenDone((reasonCode) => {
      code = reasonCode;
    });
    expect([code, b.dropped('store-full')]).toEqual([0x97, 1]);
  });
});

describe('remote to local', () => {
  const FETCH: Partial<MqttBridgeOptions> = {
    subscription: [mqttSubscription('down/#', 'here/#'), mqttSubscription('down/a', 'also/a', { qos: 0 })],
  };

  test('PUBREC leaves when message and identifier are stored, PUBCOMP when the identifier is forgotten', async () => {
    const b = bench({ ...FETCH, cleanStart: false }, [], true);
    const call = await b.connected();
    await call.grant();
    await call.grant();
    b.spool.slow = true;
    call.message('down/x', 'once', 2, 7);
    await b.clock.advanceAsync(10);
    expect([[...b.spool.inbound], call.unread]).toEqual([[7], 0]);
    b.spool.commit();
    expect((await call.packet(PUBREC)).packetId).toBe(7);
    call.ack(PUBREL, 7);
    await b.clock.advanceAsync(10);
    expect([[...b.spool.inbound], call.unread]).toEqual([[], 0]);
    b.spool.commit();
    expect((await call.packet(PUBCOMP)).packetId).toBe(7);
  });

  test('a QoS 2 message and its identifier are one group of the journal', async () => {
    const b = bench({ ...FETCH, cleanStart: false }, [], true);
    const call = await b.connected();
    const { together } = b.spool;
    const local = { clientId: 'local', username: null, kind: 'api', bridge: null, trusted: true } as const;
    const receiver = { receive: () => void together.push('message') };
    b.broker.attach(local).subscribe({ topicFilter: 'here/#', qos: 2, receiver, retainHandling: 2 });
    call.message('down/x', 'twice', 2, 7);
    call.message('down/x', 'once', 1, 8);
    await call.packet(PUBREC);
    expect(together).toEqual(['begin', 'message', 'identifier 7', 'end', 'message']);
  });

  test('a QoS 2 message that could not be stored yet is not acknowledged, and not published again when the remote repeats it', async () => {
    const b = bench({ ...FETCH, cleanStart: false }, [], true);
    const call = await b.connected();
    b.spool.slow = true;
    call.message('down/x', 'once', 2, 7);
    await b.clock.advanceAsync(10);
    b.spool.commit(0x97);
    await call.until(() => call.closed);
    await b.clock.advanceAsync(5000);
    const again = await b.connected(null, true);
    again.message('down/x', 'once', 2, 7, null, true);
    await b.clock.advanceAsync(10);
    b.spool.commit();
    expect((await again.packet(PUBREC)).packetId).toBe(7);
    expect(b.broker.published.map(({ payload }) => payload)).toEqual(['once']);
  });

  test('after a restart the remote repeats a QoS 2 message, and it is acknowledged and not published again', async () => {
    const session: StoredSession = {
      clientId: '\u0001mqtt:up',
      username: 'gw mqtt-tcp://remote.test:1883',
      expiresAt: Number.POSITIVE_INFINITY,
      expiryInterval: 0xffff_ffff,
      version: 5,
      arrival: null,
      validUntil: 0,
    };
    const stored = { session, subscriptions: [], queue: [], inbound: [7], will: null };
    const b = bench({ ...FETCH, cleanStart: false }, [], true, [], stored);
    const call = await b.connected(null, true);
    call.message('down/x', 'known', 2, 7, null, true);
    call.message('down/x', 'new', 2, 8);
    expect((await call.packet(PUBREC)).packetId).toBe(7);
    expect((await call.packet(PUBREC)).packetId).toBe(8);
    expect(b.broker.published.map(({ payload }) => payload)).toEqual(['new']);
    // Another broker's session, or a new one: identifiers mean nothing there.
    const other = { ...stored, session: { ...session, username: 'gw mqtt-tcp://elsewhere:1883' } };
    const c = bench({ ...FETCH, cleanStart: false }, [], true, [], other);
    const there = await c.connected(null, true);
    there.message('down/x', 'other', 2, 7);
    await there.packet(PUBREC);
    expect(c.broker.published.map(({ payload }) => payload)).toEqual(['other']);
  });

  test('subscriptions are made as configured, with No Local and identifiers in 5.0', async () => {
    const b = bench({ ...FETCH, protoVer: 5 });
    const call = await b.connected();
    const first = await call.grant();
    expect(first.subscriptions).toEqual([
      { topicFilter: 'down/#', qos: 1, noLocal: true, retainAsPublished: false, retainHandling: 0 },
    ]);
    expect([first.properties, (await call.grant()).properties]).toEqual([
      { subscriptionIdentifiers: [1] },
      { subscriptionIdentifiers: [2] },
    ]);
  });

  test('identifiers say which rules publish', async () => {
    const b = bench({ ...FETCH, protoVer: 5 });
    const call = await b.connected();
    call.message('down/a', 'both', 0, 0, { subscriptionIdentifiers: [1, 2] });
    call.message('down/a', 'second', 0, 0, { subscriptionIdentifiers: [2] });
    await b.broker.until(() => b.broker.published.length === 3);
    expect(b.broker.seen()).toEqual(['here/a both', 'also/a both', 'also/a second']);
  });

  test('before 5.0 the first rule that matches publishes', async () => {
    const b = bench(FETCH);
    const call = await b.connected();
    call.message('down/a', 'x');
    await b.broker.until(() => b.broker.published.length === 1);
    expect(b.broker.seen()).toEqual(['here/a x']);
  });

  test('a message that no rule asked for is not published', async () => {
    const b = bench(FETCH);
    const call = await b.connected();
    call.message('elsewhere', 'x', 1, 7);
    expect((await call.packet(PUBACK)).packetId).toBe(7);
    expect([b.broker.published.length, b.bridge.status().unmatched]).toEqual([0, 1]);
  });

  test('the acknowledgement waits until the message is accepted here', async () => {
    const b = bench(FETCH);
    b.broker.holds = [];
    const call = await b.connected();
    await call.grant();
    await call.grant();
    call.message('down/a', 'x', 1, 7);
    await b.broker.until(() => b.broker.holds?.length === 1);
    await b.clock.advanceAsync(1);
    expect(call.unread).toBe(0);
    b.broker.holds[0].done();
    expect((await call.packet(PUBACK)).packetId).toBe(7);
  });

  test('acknowledgements keep the order of the messages [MQTT-4.6.0-2]', async () => {
    const b = bench(FETCH);
    const holds: Hold[] = [];
    b.broker.holds = holds;
    const call = await b.connected();
    call.message('down/a', 'x', 1, 7);
    call.message('down/a', 'y', 1, 8);
    await b.broker.until(() => holds.length === 2);
    holds[1].done();
    holds[0].done();
    expect([(await call.packet(PUBACK)).packetId, (await call.packet(PUBACK)).packetId]).toEqual([7, 8]);
  });

  test('a message that cannot be kept is not acknowledged: the remote sends it again', async () => {
    const b = bench({ ...FETCH, cleanStart: false });
    const holds: Hold[] = [];
    b.broker.holds = holds;
    const call = await b.connected();
    call.message('down/a', 'x', 2, 7);
    await b.broker.until(() => holds.length === 1);
    holds[0].done(0x97);
    await b.state('retrying');
    b.broker.holds = null;
    await b.clock.advanceAsync(5000);
    const again = await b.connected(null, true);
    again.message('down/a', 'x', 2, 7);
    expect((await again.packet(PUBREC)).packetId).toBe(7);
    expect(b.broker.published.length).toBe(2);
  });

  test('a QoS 2 message that comes twice is published once [MQTT-4.3.3-10]', async () => {
    const b = bench(FETCH);
    const call = await b.connected();
    call.message('down/a', 'x', 2, 9);
    call.message('down/a', 'x', 2, 9);
    await call.packet(PUBREC);
    await call.packet(PUBREC);
    call.ack(PUBREL, 9);
    await call.packet(PUBCOMP);
    expect(b.broker.published.length).toBe(1);
  });

  test('a publish that is not allowed here is refused and counted', async () => {
    const b = bench({ ...FETCH, protoVer: 5 });
    b.broker.denied.add('here/a');
    const call = await b.connected();
    call.message('down/a', 'x', 1, 7);
    expect((await call.packet(PUBACK)).reasonCode).toBe(0x87);
    expect(b.dropped('denied', 'subscription.0')).toBe(1);
  });

  test('topic aliases of the remote are known within the maximum told', async () => {
    const connProperties = { ...mqttOptions().connProperties, topicAliasMaximum: 2 };
    const b = bench({ ...FETCH, protoVer: 5, connProperties });
    const call = await b.connected();
    call.message('down/z', '1', 0, 0, { topicAlias: 2 });
    call.message('', '2', 0, 0, { topicAlias: 2 });
    await b.broker.until(() => b.broker.published.length === 2);
    expect(b.broker.seen()).toEqual(['here/z 1', 'here/z 2']);
    call.message('down/z', '3', 0, 0, { topicAlias: 3 });
    expect((await call.packet(DISCONNECT)).reasonCode).toBe(0x94);
  });

  test('packets in single bytes are the same packets', async () => {
    const b = bench(FETCH);
    const call = await b.connected();
    const packet = Buffer.from('3008000664 6f776e2f61'.replaceAll(' ', ''), 'hex');
    for (const byte of packet) call.send(Buffer.from([byte]));
    await b.broker.until(() => b.broker.published.length === 1);
    expect(b.broker.seen()).toEqual(['here/a ']);
  });

  test('a packet above the limit ends the connection at its header', async () => {
    const b = bench(FETCH);
    const call = await b.connected();
    call.send(Buffer.from([0x30, 0xff, 0xff, 0xff, 0x7f]));
    await b.state('error');
  });

  test('a subscription that the remote refuses is shown', async () => {
    const b = bench(FETCH);
    const call = await b.connected();
    await call.grant(0x80);
    await b.clock.advanceAsync(1);
    expect(b.bridge.status().remote?.fetching[0].refused).not.toBeNull();
  });
});

describe('loops', () => {
  test('a message that goes round and round is noticed', async () => {
    const b = bench(FORWARD);
    await b.connected();
    for (let i = 0; i < 200; i++) b.publish('up/a', 'round', 0);
    expect(b.metrics.value('tidegate_bridge_loops_suspected_total', { bridge: 'up', type: 'mqtt' })).toBe(1);
  });

  test('with 5.0 a message carries the mark of the bridge, and one that has it goes no further', async () => {
    const b = bench({ ...FORWARD, protoVer: 5 });
    const call = await b.connected();
    b.publish('up/a', 'first', 1);
    const { properties } = await call.publish();
    const mark = properties?.userProperties?.[0];
    expect(mark).toEqual(['tidegate-via', expect.stringMatching(/^[\w-]{8}$/)]);
    const nobody = { kind: 'client', clientId: 'x', username: null, bridge: null } as const;
    b.broker.publish('up/a', 'back', 1, false, nobody, { userProperties: [['tidegate-via', `other,${mark?.[1]}`]] });
    b.broker.publish('up/a', 'far', 1, false, nobody, { userProperties: [['tidegate-via', 'x'.repeat(200)]] });
    b.broker.publish('up/a', 'other', 1, false, nobody, {
      userProperties: [
        ['a', 'b'],
        ['tidegate-via', 'other'],
      ],
    });
    const next = await call.publish();
    expect(next.payload).toBe('other');
    expect(next.properties?.userProperties).toEqual([
      ['a', 'b'],
      ['tidegate-via', `other,${mark?.[1]}`],
    ]);
    expect(b.dropped('loop')).toBe(2);
  });

  test('loop_guard = false leaves messages as they are', async () => {
    const b = bench({ ...FORWARD, protoVer: 5, loopGuard: false });
    const call = await b.connected();
    b.publish('up/a', 'x', 1);
    expect((await call.publish()).properties).toBeNull();
  });

  const forwarded = (b: MqttBench): number => b.bridge.status().rules[0].forwarded;

  /** One message until the bridge suspects a loop; the last one is held. */
  async function suspicious(b: MqttBench, qos: 0 | 1): Promise<void> {
    const suspected = (): number | undefined =>
      b.metrics.value('tidegate_bridge_loops_suspected_total', { bridge: 'up', type: 'mqtt' });
    while (suspected() === 0) b.publish('up/a', 'round', qos);
    await b.clock.advanceAsync(1);
  }

  /** Time goes on until one more message has left. */
  async function oneMore(b: MqttBench): Promise<void> {
    for (const before = forwarded(b); forwarded(b) === before; ) await b.clock.advanceAsync(50);
  }

  test('before 5.0 a rule whose messages come back waits, and is tried again a minute later', async () => {
    const b = bench({ ...FORWARD, keepaliveMs: 600_000 });
    const call = await b.connected();
    await suspicious(b, 0);
    for (let i = 0; i < 3; i++) {
      await oneMore(b);
      b.publish('up/a', 'round', 0);
    }
    expect(b.bridge.status()).toMatchObject({ state: 'error', lastError: expect.stringMatching(/^loop: /) });
    b.publish('up/b', 'other', 0);
    expect(b.dropped('loop')).toBe(2);
    await b.clock.advanceAsync(60_000);
    expect(b.bridge.status()).toMatchObject({ state: 'connected', lastError: null });
    b.publish('up/b', 'after', 0);
    for (let payload = ''; payload !== 'after'; ) {
      payload = (await call.publish()).payload;
      expect(payload).not.toBe('other');
    }
  });

  test('a device that repeats itself and stops loses nothing, and its publishers are answered', async () => {
    const b = bench(FORWARD);
    const call = await b.connected();
    await suspicious(b, 0);
    const sent = forwarded(b);
    const hold = b.publish('up/a', 'next', 1);
    expect(hold?.open).toBe(true);
    await b.clock.advanceAsync(3000);
    expect(hold?.open).toBe(false);
    expect(forwarded(b)).toBe(sent + 1);
    for (let i = 0; i <= sent; i++) expect((await call.publish()).payload).toBe('round');
    expect((await call.publish()).payload).toBe('next');
    expect(b.dropped('loop')).toBe(0);
  });

  test('a message that was held to find out is acknowledged when it is stored', async () => {
    const b = bench(FORWARD, [], true);
    await b.connected();
    await suspicious(b, 0);
    b.spool.slow = true;
    const hold = b.publish('up/a', 'next', 1);
    await b.clock.advanceAsync(3000);
    expect([b.spool.entries.length, hold?.open]).toEqual([1, true]);
    b.spool.commit();
    expect(hold?.open).toBe(false);
  });

  test('a device that goes on repeating itself loses nothing either', async () => {
    const b = bench(FORWARD);
    await b.connected();
    await suspicious(b, 0);
    const sent = forwarded(b);
    for (let i = 0; i < 45; i++) {
      await b.clock.advanceAsync(250);
      b.publish('up/a', 'round', 0);
    }
    expect(forwarded(b)).toBe(sent + 46);
    expect(b.dropped('loop')).toBe(0);
    expect(b.bridge.status().state).toBe('connected');
  });

  test('different messages are no loop', async () => {
    const b = bench(FORWARD);
    await b.connected();
    for (let i = 0; i < 2000; i++) b.publish('up/a', String(i), 0);
    expect(b.metrics.value('tidegate_bridge_loops_suspected_total', { bridge: 'up', type: 'mqtt' })).toBe(0);
  });
});

describe('a hostile remote', () => {
  test('random bytes never do more than end the connection', async () => {
    for (const version of [3, 4, 5] as const) {
      await fc.assert(
        fc.asyncProperty(fc.array(fc.uint8Array({ minLength: 1, maxLength: 80 }), { maxLength: 4 }), async (chunks) => {
          const b = bench({ protoVer: version, subscription: [mqttSubscription('#')], cancelTimeoutMs: 500 });
          const call = await b.connected();
          for (const chunk of chunks) call.send(Buffer.from(chunk));
          await b.clock.advanceAsync(1);
          call.drop();
          await b.clock.advanceAsync(300);
          await b.connected();
        }),
        { numRuns: 60 },
      );
    }
  });

  test('packets with single bytes changed never do more than end the connection', async () => {
    const packet = encodePublish(5, {
      topic: 'down/a',
      payload: Buffer.from('payload'),
      qos: 2,
      retain: false,
      dup: false,
      packetId: 7,
      properties: { contentType: 'x', userProperties: [['a', 'b']], subscriptionIdentifiers: [1], topicAlias: 1 },
    });
    for (let at = 0; at < packet.length; at++) {
      const b = bench({ protoVer: 5, subscription: [mqttSubscription('down/#')] });
      const call = await b.connected();
      const changed = Buffer.from(packet);
      changed[at] ^= 0xff;
      call.send(changed);
      await b.clock.advanceAsync(1);
      expect(['connected', 'error', 'retrying']).toContain(b.bridge.status().state);
    }
  });
});

describe('changes', () => {
  test('other rules take effect on the same connection', async () => {
    const b = bench({ ...FORWARD, subscription: [mqttSubscription('a/#')] });
    const call = await b.connected();
    await call.grant();
    const options = mqttOptions({ forwards: [mqttForward('other/#')], subscription: [mqttSubscription('b/#')] });
    expect(b.bridge.change(options)).toBe(true);
    expect((await call.packet(UNSUBSCRIBE)).topicFilters).toEqual(['a/#']);
    expect((await call.packet(SUBSCRIBE)).subscriptions[0].topicFilter).toBe('b/#');
    b.publish('up/a', 'old', 1);
    b.publish('other/a', 'new', 1);
    expect((await call.publish()).payload).toBe('new');
  });

  test('another server needs another worker', () => {
    expect(bench().bridge.change(mqttOptions({ server: 'mqtt-tcp://elsewhere' }))).toBe(false);
  });

  test('a stop says DISCONNECT when everything is acknowledged', async () => {
    const b = bench(FORWARD);
    const call = await b.connected();
    b.publish('up/a', 'x', 1);
    const { packetId } = await call.publish();
    const stopping = b.bridge.stop(1000, false);
    await b.clock.advanceAsync(100);
    expect(call.unread).toBe(0);
    call.ack(PUBACK, packetId);
    await b.clock.advanceAsync(100);
    await stopping;
    expect((await call.packet(DISCONNECT)).reasonCode).toBe(0);
  });
});

describe('as mosquitto has it', () => {
  test('max_qos is a ceiling: lower levels stay, higher ones come down', async () => {
    const b = bench({ forwards: [mqttForward('up/#', '', { maxQos: 1 })] });
    const call = await b.connected();
    for (const qos of [0, 1, 2] as const) b.publish('up/a', `q${qos}`, qos);
    const got = [await call.publish(), await call.publish(), await call.publish()];
    expect(got.map((one) => [one.payload, one.qos])).toEqual([
      ['q0', 0],
      ['q1', 1],
      ['q2', 1],
    ]);
  });

  test('stored sends what is retained each time the bridge connects', async () => {
    const b = bench({ forwards: [mqttForward('up/#', 'there/#', { stored: true }), mqttForward('other')] });
    for (const topic of ['up/a', 'other']) b.broker.retained.set(topic, message(topic, 'kept', { qos: 1 }));
    const call = await b.connected();
    expect(await call.publish()).toMatchObject({ topic: 'there/a', payload: 'kept' });
    call.drop();
    await b.state('retrying');
    await b.clock.advanceAsync(5000);
    expect(await (await b.connected()).publish()).toMatchObject({ topic: 'there/a', payload: 'kept' });
  });

  test('notifications say 1 while connected and 0 after, here and by the will there', async () => {
    const b = bench({ notifications: { topic: null, localOnly: false, remoteRetain: true } });
    const call = await b.connected();
    const topic = '$SYS/broker/connection/gw/state';
    expect(call.connect.will).toMatchObject({ topicName: topic, qos: 1, retain: true });
    expect(Buffer.from(call.connect.will?.payload ?? []).toString()).toBe('0');
    expect(await call.publish()).toMatchObject({ topic, payload: '1', retain: true });
    call.drop();
    await b.state('retrying');
    expect(b.broker.published.map((one) => [one.topic, one.payload, one.retain])).toEqual([
      [topic, '1', true],
      [topic, '0', true],
    ]);
  });

  test('notifications here only leave the remote broker alone', async () => {
    const b = bench({ ...FORWARD, notifications: { topic: 'gw/up', localOnly: true, remoteRetain: true } });
    const call = await b.connected();
    expect(call.connect.will).toBeNull();
    b.publish('up/a', 'first');
    expect((await call.publish()).payload).toBe('first');
    expect(b.broker.published).toMatchObject([{ topic: 'gw/up', payload: '1' }]);
  });

  test('max_packet_size drops and counts what is larger', async () => {
    const b = bench({ ...FORWARD, maxPacketSize: 30 });
    const call = await b.connected();
    b.publish('up/a', 'x'.repeat(40));
    b.publish('up/a', 'small');
    expect((await call.publish()).payload).toBe('small');
    expect(b.dropped('too-large')).toBe(1);
  });
});

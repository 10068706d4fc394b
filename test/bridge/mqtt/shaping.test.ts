// Topics from JSON fields and trace headers in bridges to remote brokers: the same as in NNG bridges.
import { afterEach, describe, expect, test } from 'vitest';
import type { MqttBridgeOptions } from '../../../src/bridge/mqtt/options.ts';
import { Traced, traceHeader } from '../../../src/bridge/trace.ts';
import { encodePublish } from '../../../src/codec/publish.ts';
import type { Properties } from '../../../src/mqtt/property.ts';
import { MqttBench, mqttForward, mqttSubscription, PUBACK, type RemoteCall } from '../../harness/mqttremote.ts';
import { CLIENT } from '../../harness/stubbroker.ts';

let benches: MqttBench[] = [];
afterEach(async () => {
  for (const bench of benches) {
    const stopping = bench.bridge.stop(0, false);
    await bench.clock.advanceAsync(10);
    await stopping;
  }
  benches = [];
});

async function connected(options: Partial<MqttBridgeOptions>): Promise<{ b: MqttBench; call: RemoteCall }> {
  const b = new MqttBench({ loopGuard: false, ...options });
  benches.push(b);
  b.bridge.take();
  void b.bridge.start();
  return { b, call: await b.connected() };
}

const TRACEPARENT = '00-41414141414141414141414141414141-4242424242424242-01';
const TRACED: Properties = { userProperties: [['traceparent', TRACEPARENT]] };
const HEADER = traceHeader(TRACED);

function sent(call: RemoteCall, topic: string, payload: Buffer): void {
  const packet = { topic, payload, qos: 1, retain: false, dup: false, packetId: 7, properties: null } as const;
  call.send(encodePublish(call.version, packet));
}

describe('local to remote', () => {
  test('a topic is made of fields, a missing one goes to the fallback topic or is counted', async () => {
    const forwards = [
      mqttForward('up/+', 'plant/{json:site}/+', { fallbackTopic: 'plant/other' }),
      mqttForward('up/+', 'x/{json:n.m}'),
    ];
    const { b, call } = await connected({ forwards });
    b.publish('up/a', '{"site":"nor/th","n":{"m":7}}');
    b.publish('up/b', 'no json');
    expect([await call.publish(), await call.publish(), await call.publish()].map(({ topic }) => topic)).toEqual([
      'plant/nor_th/a',
      'x/7',
      'plant/other',
    ]);
    expect(b.dropped('missing-field', 'forwards.1')).toBe(1);
  });

  test('strip takes the header off and hands its ids on as a property', async () => {
    const { b, call } = await connected({ protoVer: 5, forwards: [mqttForward('up/#', '', { trace: 'strip' })] });
    b.broker.publish('up/a', `${HEADER.toString('latin1')}{"t":1}`, 0, false, CLIENT, { userProperties: [['a', 'b']] });
    const { payload, properties } = await call.publish();
    expect(payload).toBe('{"t":1}');
    expect(properties?.userProperties).toEqual([
      ['a', 'b'],
      ['traceparent', TRACEPARENT],
    ]);
  });

  test('add puts on a header with the ids of the message, once', async () => {
    const { b, call } = await connected({ forwards: [mqttForward('up/#', '', { trace: 'add' })] });
    b.broker.publish('up/a', '{"t":1}', 0, false, CLIENT, TRACED);
    b.broker.publish('up/a', `${HEADER.toString('latin1')}{"t":1}`);
    const wanted = Buffer.concat([HEADER, Buffer.from('{"t":1}')]).toString();
    expect(await call.texts(2)).toEqual([wanted, wanted]);
  });

  test('the fields of a message with a header are those behind it', async () => {
    const { b, call } = await connected({ forwards: [mqttForward('up/#', 'p/{json:s}')] });
    b.broker.publish('up/a', `${HEADER.toString('latin1')}{"s":"k"}`);
    expect((await call.publish()).topic).toBe('p/k');
  });

  test('the publisher waits for what its message became', async () => {
    const b = new MqttBench({ loopGuard: false, forwards: [mqttForward('up/#', '', { trace: 'strip' })] }, [], true);
    benches.push(b);
    b.bridge.take();
    void b.bridge.start();
    b.outbox.maxLength = 1;
    const call = await b.connected();
    b.broker.publish('up/a', `${HEADER.toString('latin1')}1`, 1);
    const hold = b.broker.publish('up/a', `${HEADER.toString('latin1')}2`, 1);
    expect(hold?.open).toBe(true);
    const first = await call.publish();
    expect(first.payload).toBe('1');
    call.ack(PUBACK, first.packetId);
    const second = await call.publish();
    expect(second.payload).toBe('2');
    call.ack(PUBACK, second.packetId);
    await new Promise<void>((resolve) => hold?.whenDone(() => resolve()));
    expect(hold?.outcome).toBe(0);
  });
});

describe('remote to local', () => {
  test('a topic is made of fields, a missing one is answered as an invalid topic and counted', async () => {
    const subscription = [mqttSubscription('down/+', 'in/{json:site}/+')];
    const { b, call } = await connected({ subscription });
    await call.grant();
    sent(call, 'down/a', Buffer.from('{"site":"n"}'));
    await call.packet(PUBACK);
    sent(call, 'down/a', Buffer.from('{}'));
    await call.packet(PUBACK);
    expect(b.broker.seen()).toEqual(['in/n/a {"site":"n"}']);
    expect(b.dropped('missing-field', 'subscription.0')).toBe(1);
  });

  test('headers are taken off and put on', async () => {
    const subscription = [
      mqttSubscription('a/#', '', { trace: 'strip' }),
      mqttSubscription('b/#', '', { trace: 'add' }),
    ];
    const { b, call } = await connected({ subscription });
    await call.grant();
    await call.grant();
    sent(call, 'a/1', Buffer.concat([HEADER, Buffer.from('1')]));
    await call.packet(PUBACK);
    sent(call, 'b/1', Buffer.concat([HEADER, Buffer.from('2')]));
    await call.packet(PUBACK);
    sent(call, 'b/1', Buffer.from('3'));
    await call.packet(PUBACK);
    const [first, second, third] = b.broker.published.map(({ payload }) => Buffer.from(payload, 'latin1'));
    expect(first.toString()).toBe('1');
    expect(second).toEqual(Buffer.concat([HEADER, Buffer.from('2')]));
    expect([third.length, third[0], third[1], third.toString('latin1', 26)]).toEqual([27, 0x0a, 0xce, '3']);
  });
});

test('a header takes the place of the ids that a message has', () => {
  const traced = new Traced();
  const bytes = Buffer.concat([HEADER, Buffer.from('x')]);
  traced.take('strip', bytes, 0, bytes.length, { userProperties: [['traceparent', 'old']], contentType: 'a/b' });
  expect(traced.properties).toEqual({ userProperties: [['traceparent', TRACEPARENT]], contentType: 'a/b' });
  expect(bytes.toString('latin1', traced.start, traced.end)).toBe('x');
});

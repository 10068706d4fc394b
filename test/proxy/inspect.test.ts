// biome-ignore-all lint/suspicious/noTemplateCurlyInString: templates of the proxy are written like this
// Every packet between a client and its server with `inspect`: prefixes on and off, refusals answered in place, bytes otherwise untouched,
// in chunks of every size.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ProtocolError } from '../../src/base/errors.ts';
import { encodeAck } from '../../src/codec/ack.ts';
import { newFrame } from '../../src/codec/codec.ts';
import { readFrame } from '../../src/codec/frame.ts';
import { encodePublish } from '../../src/codec/publish.ts';
import { encodeSuback, encodeSubscribe, encodeUnsubscribe } from '../../src/codec/subscribe.ts';
import { PUBACK, PUBREC, type Qos, SUBACK, SUBSCRIBE, UNSUBSCRIBE, type Version } from '../../src/mqtt/packet.ts';
import type { Properties } from '../../src/mqtt/property.ts';
import type { Facts } from '../../src/proxy/facts.ts';
import { ClientFilter, compileFilter } from '../../src/proxy/filter.ts';
import { Inspector } from '../../src/proxy/inspect.ts';
import type { FilterOptions } from '../../src/proxy/proxy.ts';
import { connectBytes, facts, OPEN_FILTER as OPEN } from '../harness/proxyparts.ts';

function session(options: Partial<FilterOptions>, version: Version = 4, client: Partial<Facts> = {}) {
  const toServer: Buffer[] = [];
  const toClient: Buffer[] = [];
  const cells = { publishDenied: { value: 0 }, subscribeDenied: { value: 0 }, foreign: { value: 0 } };
  const filter = new ClientFilter(compileFilter({ ...OPEN, ...options }, {}), facts({ version, ...client }));
  const { fromClient, fromServer } = new Inspector(
    filter,
    version,
    cells,
    (bytes) => toServer.push(Buffer.from(bytes)),
    (bytes) => toClient.push(Buffer.from(bytes)),
  );
  return {
    cells,
    fromClient,
    fromServer,
    server: () => Buffer.concat(toServer.splice(0)).toString('hex'),
    client: () => Buffer.concat(toClient.splice(0)).toString('hex'),
  };
}

function publish(
  version: Version,
  topic: string,
  qos: Qos = 0,
  properties: Properties | null = null,
  payload = 'pay',
): Buffer {
  return encodePublish(version, {
    topic,
    payload: Buffer.from(payload),
    qos,
    retain: false,
    dup: false,
    packetId: qos === 0 ? 0 : 7,
    properties,
  });
}
const subscribe = (version: Version, ...topicFilters: string[]): Buffer =>
  encodeSubscribe(version, {
    type: SUBSCRIBE,
    packetId: 9,
    properties: null,
    subscriptions: topicFilters.map((topicFilter) => ({
      topicFilter,
      qos: 1,
      noLocal: false,
      retainAsPublished: false,
      retainHandling: 0,
    })),
  });
const suback = (version: Version, ...reasonCodes: number[]): Buffer =>
  encodeSuback(version, { type: SUBACK, packetId: 9, reasonCodes, properties: null });
const hex = (...buffers: Buffer[]): string => Buffer.concat(buffers).toString('hex');

describe('on the way to the server', () => {
  it.each([3, 4, 5] as const)('topics and filters get the prefix, version %i', (version) => {
    const s = session({ prefix: 't/${username}/' }, version, { username: 'ann' });
    s.fromClient.push(
      Buffer.concat([connectBytes({ version }), publish(version, 'a/b', 1), subscribe(version, 'x/#', '$share/g/y')]),
    );
    expect(s.server()).toBe(
      hex(
        connectBytes({ version }),
        publish(version, 't/ann/a/b', 1),
        subscribe(version, 't/ann/x/#', '$share/g/t/ann/y'),
      ),
    );
    const packet = { type: UNSUBSCRIBE, packetId: 3, properties: null } as const;
    s.fromClient.push(encodeUnsubscribe(version, { ...packet, topicFilters: ['x/#'] }));
    expect(s.server()).toBe(hex(encodeUnsubscribe(version, { ...packet, topicFilters: ['t/ann/x/#'] })));
  });

  it('a Response Topic gets it too, an alias without topic stays', () => {
    const s = session({ prefix: 't/' }, 5);
    s.fromClient.push(publish(5, 'a', 0, { topicAlias: 1, responseTopic: 'r' }));
    expect(s.server()).toBe(hex(publish(5, 't/a', 0, { topicAlias: 1, responseTopic: 't/r' })));
    s.fromClient.push(publish(5, '', 0, { topicAlias: 1 }));
    expect(s.server()).toBe(hex(publish(5, '', 0, { topicAlias: 1 })));
  });

  it('everything else of a 5.0 message stays: expiry, content type, correlation', () => {
    const properties = { messageExpiryInterval: 60, contentType: 'x', correlationData: Buffer.from('c') };
    const s = session({ prefix: 't/' }, 5);
    s.fromClient.push(publish(5, 'a', 1, properties));
    expect(s.server()).toBe(hex(publish(5, 't/a', 1, properties)));
    s.fromServer.push(publish(5, 't/a', 1, properties));
    expect(s.client()).toBe(hex(publish(5, 'a', 1, properties)));
  });

  it('user properties are added behind those of the client', () => {
    const s = session({ userProperties: [['gw', 'edge-${clientid}']] }, 5, { clientId: 'c9' });
    s.fromClient.push(publish(5, 'a', 1, { userProperties: [['x', 'y']] }));
    expect(s.server()).toBe(
      hex(
        publish(5, 'a', 1, {
          userProperties: [
            ['x', 'y'],
            ['gw', 'edge-c9'],
          ],
        }),
      ),
    );
    s.fromClient.push(publish(5, 'a'));
    expect(s.server()).toBe(hex(publish(5, 'a', 0, { userProperties: [['gw', 'edge-c9']] })));
  });

  it.each([
    [4, 1, hex(encodeAck(4, PUBACK, 7))],
    [4, 2, hex(encodeAck(4, PUBREC, 7))],
    [5, 1, hex(encodeAck(5, PUBACK, 7, 0x87))],
    [5, 2, hex(encodeAck(5, PUBREC, 7, 0x87))],
    [5, 0, ''],
  ] as const)(
    'a PUBLISH that is not allowed goes nowhere and is answered, version %i QoS %i',
    (version, qos, answer) => {
      const s = session({ publish: { allow: [], deny: ['no/#'] } }, version);
      s.fromClient.push(Buffer.concat([publish(version, 'no/x', qos), publish(version, 'yes')]));
      expect(s.server()).toBe(hex(publish(version, 'yes')));
      expect(s.client()).toBe(answer);
      expect(s.cells.publishDenied.value).toBe(1);
    },
  );

  it('a topic that is not allowed is not reached through its alias', () => {
    const s = session({ publish: { allow: ['ok/#'], deny: [] } }, 5);
    s.fromClient.push(publish(5, 'no', 0, { topicAlias: 4 }));
    s.fromClient.push(publish(5, '', 0, { topicAlias: 4 }));
    expect(s.server()).toBe('');
    s.fromClient.push(publish(5, 'ok/x', 0, { topicAlias: 4 }));
    s.fromClient.push(publish(5, '', 0, { topicAlias: 4 }));
    expect(s.server()).toBe(hex(publish(5, 'ok/x', 0, { topicAlias: 4 }), publish(5, '', 0, { topicAlias: 4 })));
  });

  it('a topic too long for its prefix is not sent, nor what its alias meant before', () => {
    const s = session({ prefix: 'p/' }, 5);
    const long = 'x'.repeat(65_534);
    s.fromClient.push(publish(5, 'a', 0, { topicAlias: 4 }));
    expect(s.server()).toBe(hex(publish(5, 'p/a', 0, { topicAlias: 4 })));
    s.fromClient.push(publish(5, long, 0, { topicAlias: 4 }));
    s.fromClient.push(publish(5, '', 0, { topicAlias: 4 }));
    expect([s.server(), s.cells.publishDenied.value]).toEqual(['', 2]);
    s.fromClient.push(publish(5, 'b', 0, { topicAlias: 4 }));
    s.fromClient.push(publish(5, '', 0, { topicAlias: 4 }));
    expect(s.server()).toBe(hex(publish(5, 'p/b', 0, { topicAlias: 4 }), publish(5, '', 0, { topicAlias: 4 })));
  });

  it('with denied = disconnect the session has to end', () => {
    const s = session({ publish: { allow: [], deny: ['#'] }, denied: 'disconnect' });
    expect(() => s.fromClient.push(publish(4, 'x'))).toThrow(ProtocolError);
  });

  it('filters that are not allowed are left out, and refused in their places', () => {
    const s = session({ subscribe: { allow: ['ok/#'], deny: [] }, prefix: 't/' }, 5);
    s.fromClient.push(subscribe(5, 'no', 'ok/a', '#', 'ok/b'));
    expect(s.server()).toBe(hex(subscribe(5, 't/ok/a', 't/ok/b')));
    s.fromServer.push(suback(5, 1, 0));
    expect(s.client()).toBe(hex(suback(5, 0x87, 1, 0x87, 0)));
    s.fromServer.push(suback(5, 1, 0));
    expect(s.client()).toBe(hex(suback(5, 1, 0)));
  });

  it.each([
    [4, 0x80],
    [5, 0x87],
  ] as const)('a SUBSCRIBE of which nothing is allowed is answered here, version %i', (version, code) => {
    const s = session({ subscribe: { allow: [], deny: ['no/#'] } }, version);
    s.fromClient.push(subscribe(version, 'no/a', '#'));
    expect([s.server(), s.client()]).toEqual(['', hex(suback(version, code, code))]);
  });

  it('a second CONNECT breaks the session [MQTT-3.1.0-2]', () => {
    const s = session({});
    s.fromClient.push(connectBytes());
    expect(() => s.fromClient.push(connectBytes())).toThrow(ProtocolError);
  });
});

describe('on the way to the client', () => {
  it.each([3, 4, 5] as const)('topics lose the prefix, version %i', (version) => {
    const s = session({ prefix: 't/' }, version);
    s.fromServer.push(publish(version, 't/a/b', 2));
    expect(s.client()).toBe(hex(publish(version, 'a/b', 2)));
  });

  it('what is outside the prefix is dropped and acknowledged', () => {
    const s = session({ prefix: 't/' }, 5);
    s.fromServer.push(Buffer.concat([publish(5, 'other/a', 1), publish(5, 't/', 0), publish(5, 't/x', 1)]));
    expect(s.client()).toBe(hex(publish(5, 'x', 1)));
    expect(s.server()).toBe(hex(encodeAck(5, PUBACK, 7)));
    expect(s.cells.foreign.value).toBe(2);
  });

  it('a foreign topic is not reached through its alias, a Response Topic loses the prefix', () => {
    const s = session({ prefix: 't/' }, 5);
    s.fromServer.push(publish(5, 'other', 0, { topicAlias: 1 }));
    s.fromServer.push(publish(5, '', 0, { topicAlias: 1 }));
    expect(s.client()).toBe('');
    s.fromServer.push(publish(5, 't/a', 0, { topicAlias: 1, responseTopic: 't/r' }));
    s.fromServer.push(publish(5, '', 0, { topicAlias: 1 }));
    expect(s.client()).toBe(
      hex(publish(5, 'a', 0, { topicAlias: 1, responseTopic: 'r' }), publish(5, '', 0, { topicAlias: 1 })),
    );
  });
});

describe('packets in chunks', () => {
  const big = 'x'.repeat(3000);
  const stream = (version: Version, prefix: string): Buffer =>
    Buffer.concat([
      connectBytes({ version }),
      publish(version, `${prefix}a`, 1, version === 5 ? { responseTopic: `${prefix}r` } : null, big),
      subscribe(version, `${prefix}s/#`),
      Buffer.from('c000', 'hex'),
      publish(version, `${prefix}b`, 0, null, ''),
      encodeAck(version, PUBACK, 5),
      publish(version, `${prefix}c`, 2, null, big),
    ]);

  it.each([4, 5] as const)('are the same whatever the chunks, version %i', (version) => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 1, max: 900 }), { minLength: 1, maxLength: 40 }), (sizes) => {
        const s = session({ prefix: 't/' }, version);
        const bytes = stream(version, '');
        for (let at = 0, i = 0; at < bytes.length; i++) {
          const size = sizes[i % sizes.length];
          s.fromClient.push(Buffer.from(bytes.subarray(at, at + size)));
          at += size;
        }
        expect(s.server()).toBe(hex(stream(version, 't/')));
      }),
    );
  });

  it('are the same cut at every byte', () => {
    const bytes = stream(5, '');
    for (let cut = 1; cut < 120; cut++) {
      const s = session({ prefix: 't/' }, 5);
      s.fromClient.push(bytes.subarray(0, cut));
      s.fromClient.push(bytes.subarray(cut));
      expect(s.server()).toBe(hex(stream(5, 't/')));
    }
  });

  it('pass payloads on before they are complete, without holding them', () => {
    const s = session({ prefix: 't/' });
    const bytes = publish(4, 'a', 0, null, 'x'.repeat(1_000_000));
    s.fromClient.push(bytes.subarray(0, 1000));
    expect(s.server().length / 2).toBe(1002);
  });

  it('leave as one piece that is the chunk itself when nothing is changed', () => {
    const out: Buffer[] = [];
    const cells = { publishDenied: { value: 0 }, subscribeDenied: { value: 0 }, foreign: { value: 0 } };
    const filter = new ClientFilter(compileFilter(OPEN, {}), facts());
    const { fromClient } = new Inspector(
      filter,
      4,
      cells,
      (bytes) => out.push(bytes),
      () => {},
    );
    const bytes = stream(4, '');
    fromClient.push(bytes);
    expect(out).toHaveLength(1);
    expect([out[0].buffer, out[0].byteOffset, out[0].length]).toEqual([bytes.buffer, bytes.byteOffset, bytes.length]);
    expect(fromClient.messages).toBe(3);
  });

  it('of any bytes end in a ProtocolError or pass', () => {
    fc.assert(
      fc.property(
        fc.uint8Array({ maxLength: 200 }),
        fc.constantFrom<Version>(4, 5),
        fc.integer({ min: 1, max: 50 }),
        (data, version, size) => {
          const s = session(
            { prefix: 't/', publish: { allow: ['a'], deny: [] }, subscribe: { allow: ['a'], deny: [] } },
            version,
          );
          try {
            for (let at = 0; at < data.length; at += size) s.fromClient.push(Buffer.from(data.subarray(at, at + size)));
            for (let at = 0; at < data.length; at += size) s.fromServer.push(Buffer.from(data.subarray(at, at + size)));
          } catch (error) {
            expect(error).toBeInstanceOf(ProtocolError);
          }
        },
      ),
      { numRuns: 2000 },
    );
  });

  it('keep their frames: what leaves can be read again', () => {
    const s = session({ prefix: 'long/prefix/' }, 5);
    s.fromClient.push(publish(5, 'x'.repeat(116), 0, null, ''));
    const bytes = Buffer.from(s.server(), 'hex');
    const frame = newFrame();
    expect(readFrame(bytes, 0, bytes.length, frame, bytes.length)).toBe(1);
    expect(frame.end).toBe(bytes.length);
  });
});

describe('deliveries of what a client may not subscribe', () => {
  const deny = { subscribe: { allow: [], deny: ['secret/#', '+/x'] } };
  const allow = { subscribe: { allow: ['open/#'], deny: [] } };

  it.each([4, 5] as const)(
    'from an older session are dropped and acknowledged to the server, version %i',
    (version) => {
      for (const [rules, topics] of [
        [deny, ['secret/1', '$app/x']],
        [allow, ['closed', '$app/x']],
      ] as const) {
        const s = session(rules, version);
        for (const topic of topics) s.fromServer.push(publish(version, topic, 1));
        const ack = encodeAck(version, PUBACK, 7, 0);
        expect([s.client(), s.server()]).toEqual(['', hex(ack, ack)]);
        expect(s.cells.foreign.value).toBe(2);
        s.fromServer.push(publish(version, 'open/1', 1));
        expect(s.client()).toBe(hex(publish(version, 'open/1', 1)));
      }
    },
  );

  it('are dropped by their alias too, and below a prefix', () => {
    const s = session({ ...deny, prefix: 't/' }, 5);
    s.fromServer.push(
      Buffer.concat([publish(5, 't/secret/1', 0, { topicAlias: 1 }), publish(5, '', 0, { topicAlias: 1 })]),
    );
    s.fromServer.push(publish(5, 't/open', 0, { topicAlias: 1 }));
    expect(s.client()).toBe(hex(publish(5, 'open', 0, { topicAlias: 1 })));
  });
});

// Random packets for property tests and fuzzing: every packet type, every version, every property where it belongs (fast-check).
// Values are those that a correct peer may send; what is not allowed comes from mutating their bytes.
import fc from 'fast-check';
import * as types from '../../src/mqtt/packet.ts';
import { PROPERTIES, type Properties, type PropertyRow, WILL } from '../../src/mqtt/property.ts';
import { isReasonCode } from '../../src/mqtt/reason.ts';
import { isShared, isTopicName } from '../../src/mqtt/topic.ts';
import type { AnyPacket, PublishPacket } from './packets.ts';

const { version, qos, flag, byte, uint16, uint32 } = {
  version: fc.constantFrom<types.Version>(3, 4, 5),
  qos: fc.constantFrom<types.Qos>(0, 1, 2),
  flag: fc.boolean(),
  byte: fc.integer({ min: 0, max: 1 }),
  uint16: fc.integer({ min: 0, max: 65_535 }),
  uint32: fc.integer({ min: 0, max: 0xffffffff }),
};

export { version };

/** Text without U+0000, short or past the length where decoding changes its ways. */
export const text = fc
  .oneof(
    fc.string({ unit: 'binary', maxLength: 12 }),
    fc.string({ unit: 'grapheme-ascii', minLength: 50, maxLength: 90 }),
  )
  .map((one) => one.replaceAll('\0', '-'));
export const binary = fc.uint8Array({ maxLength: 40 }).map((one) => new Uint8Array(one));
export const packetId = fc.integer({ min: 1, max: 65_535 });

const level = fc.constantFrom('', 'a', 'b2', 'ü', '😀', ' ', '$x', '\t');
export const topicName = fc
  .array(level, { minLength: 1, maxLength: 6 })
  .map((parts) => parts.join('/'))
  .filter(isTopicName);
export const topicFilter = fc
  .tuple(fc.array(fc.oneof(level, fc.constant('+')), { minLength: 1, maxLength: 5 }), fc.boolean(), fc.boolean())
  .map(([parts, open, share]) => `${share ? '$share/g/' : ''}${(open ? [...parts, '#'] : parts).join('/')}`)
  .filter((one) => one !== '');

/** Client ids hold no control characters (codec/connect.ts says why). */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is taken out.
const clientId = text.map((one) => one.replace(/[\u0000-\u001f\u007f-\u009f]/g, '-'));

function anyValue(row: PropertyRow, packet: number): fc.Arbitrary<unknown> {
  const least = row.nonZero === true ? 1 : 0;
  if (row.key === 'responseTopic') return topicName;
  switch (row.type) {
    case 'byte':
      return byte;
    case 'flag':
      return flag;
    case 'uint16':
      return uint16.map((one) => Math.max(least, one));
    case 'uint32':
      return uint32.map((one) => Math.max(least, one));
    case 'varint':
      return fc.array(fc.integer({ min: 1, max: 268_435_455 }), {
        minLength: 1,
        maxLength: packet === types.PUBLISH ? 4 : 1,
      });
    case 'string':
      return text;
    case 'binary':
      return binary;
    case 'pair':
      return fc.array(fc.tuple(text, text), { minLength: 1, maxLength: 4 });
  }
}

/** Any properties that may be in `packet` (a packet type, or WILL), null for none. Keys are in random order. */
export function properties(packet: number, without: readonly string[] = []): fc.Arbitrary<Properties | null> {
  const rows = PROPERTIES.filter((row) => row.packets.includes(packet) && !without.includes(row.key));
  return fc
    .uniqueArray(fc.constantFrom(...rows), { maxLength: 5 })
    .chain((some) => fc.tuple(...some.map((row) => anyValue(row, packet).map((value) => [row.key, value] as const))))
    .map((pairs) => (pairs.length === 0 ? null : (Object.fromEntries(pairs) as Properties)));
}

function reason(type: number): fc.Arbitrary<number> {
  const codes = Array.from({ length: 256 }, (_, code) => code).filter((code) => isReasonCode(5, type, code));
  return fc.constantFrom(...codes);
}

const REASONS = new Map(
  [
    types.CONNACK,
    types.PUBACK,
    types.PUBREC,
    types.PUBREL,
    types.PUBCOMP,
    types.SUBACK,
    types.UNSUBACK,
    types.DISCONNECT,
    types.AUTH,
  ].map((type) => [type, reason(type)]),
);
const reasonOf = (type: number): fc.Arbitrary<number> => REASONS.get(type) as fc.Arbitrary<number>;
const propertiesIn = (
  v: types.Version,
  packet: number,
  without?: readonly string[],
): fc.Arbitrary<Properties | null> => (v === 5 ? properties(packet, without) : fc.constant(null));

function will(v: types.Version): fc.Arbitrary<types.Will> {
  return fc.record({
    topicName,
    payload: binary,
    qos,
    retain: flag,
    properties: propertiesIn(v, WILL, ['willDelayInterval']),
    delayInterval: v === 5 ? uint32 : fc.constant(0),
  });
}

function connect(v: types.Version): fc.Arbitrary<types.ConnectPacket> {
  return fc
    .record({
      type: fc.constant(types.CONNECT),
      version: fc.constant(v),
      bridge: v === 5 ? fc.constant(false) : flag,
      clientId,
      cleanStart: flag,
      keepAlive: uint16,
      username: fc.option(text),
      password: fc.option(binary),
      will: fc.option(will(v)),
      properties: propertiesIn(v, types.CONNECT, ['authenticationData']),
    })
    .map((packet) => (v < 5 && packet.username === null ? { ...packet, password: null } : packet));
}

function connack(v: types.Version): fc.Arbitrary<types.ConnackPacket> {
  return fc
    .record({
      type: fc.constant(types.CONNACK),
      sessionPresent: flag,
      reasonCode: v === 5 ? reasonOf(types.CONNACK) : fc.integer({ min: 0, max: 5 }),
      properties: propertiesIn(v, types.CONNACK),
    })
    .map((packet) => ({ ...packet, sessionPresent: packet.sessionPresent && packet.reasonCode === 0 && v > 3 }));
}

function publish(v: types.Version): fc.Arbitrary<PublishPacket> {
  return fc
    .record({
      type: fc.constant(types.PUBLISH),
      topic: topicName,
      payload: fc.uint8Array({ maxLength: 300 }).map((one) => Buffer.from(one)),
      qos,
      dup: flag,
      retain: flag,
      packetId,
      properties: propertiesIn(v, types.PUBLISH),
    })
    .map((one) => (one.qos === 0 ? { ...one, dup: false, packetId: 0 } : one));
}

function ack(v: types.Version): fc.Arbitrary<types.AckPacket> {
  return fc
    .constantFrom<types.AckPacket['type']>(types.PUBACK, types.PUBREC, types.PUBREL, types.PUBCOMP)
    .chain((type) =>
      fc.record({
        type: fc.constant(type),
        packetId,
        reasonCode: v === 5 ? reasonOf(type) : fc.constant(0),
        properties: propertiesIn(v, type),
      }),
    );
}

function subscribe(v: types.Version): fc.Arbitrary<types.SubscribePacket> {
  const five = v === 5;
  const request = fc
    .record({
      topicFilter,
      qos,
      noLocal: five ? flag : fc.constant(false),
      retainAsPublished: five ? flag : fc.constant(false),
      retainHandling: five ? fc.constantFrom<0 | 1 | 2>(0, 1, 2) : fc.constant<0>(0),
    })
    .map((one) => (isShared(one.topicFilter) ? { ...one, noLocal: false } : one));
  return fc.record({
    type: fc.constant(types.SUBSCRIBE),
    packetId,
    subscriptions: fc.array(request, { minLength: 1, maxLength: 4 }),
    properties: propertiesIn(v, types.SUBSCRIBE),
  });
}

function suback(v: types.Version): fc.Arbitrary<types.SubackPacket> {
  const code = v === 5 ? reasonOf(types.SUBACK) : fc.constantFrom(0, 1, 2, 0x80);
  return fc.record({
    type: fc.constant(types.SUBACK),
    packetId,
    reasonCodes: fc.array(code, { minLength: 1, maxLength: 5 }),
    properties: propertiesIn(v, types.SUBACK),
  });
}

function unsubscribe(v: types.Version): fc.Arbitrary<types.UnsubscribePacket> {
  return fc.record({
    type: fc.constant(types.UNSUBSCRIBE),
    packetId,
    topicFilters: fc.array(topicFilter, { minLength: 1, maxLength: 4 }),
    properties: propertiesIn(v, types.UNSUBSCRIBE),
  });
}

function unsuback(v: types.Version): fc.Arbitrary<types.UnsubackPacket> {
  return fc.record({
    type: fc.constant(types.UNSUBACK),
    packetId,
    reasonCodes:
      v === 5 ? fc.array(reasonOf(types.UNSUBACK), { minLength: 1, maxLength: 5 }) : fc.constant<number[]>([]),
    properties: propertiesIn(v, types.UNSUBACK),
  });
}

function disconnect(v: types.Version, from: 'client' | 'server'): fc.Arbitrary<types.DisconnectPacket> {
  return fc.record({
    type: fc.constant(types.DISCONNECT),
    reasonCode: v === 5 ? reasonOf(types.DISCONNECT) : fc.constant(0),
    properties: propertiesIn(v, types.DISCONNECT, [from === 'client' ? 'serverReference' : 'sessionExpiryInterval']),
  });
}

const auth: fc.Arbitrary<types.AuthPacket> = fc
  .tuple(reasonOf(types.AUTH), text, properties(types.AUTH, ['authenticationMethod']))
  .map(([reasonCode, authenticationMethod, rest]) => ({
    type: types.AUTH,
    reasonCode,
    properties: { ...rest, authenticationMethod },
  }));

/** Any packet that a client of version `v` may send. */
export function clientPacket(v: types.Version): fc.Arbitrary<AnyPacket> {
  const common = [connect(v), publish(v), ack(v), subscribe(v), unsubscribe(v), disconnect(v, 'client')];
  const ping = fc.constant<AnyPacket>({ type: types.PINGREQ });
  return v === 5 ? fc.oneof(...common, ping, auth) : fc.oneof(...common, ping);
}

/** Any packet that a server of version `v` may send. */
export function serverPacket(v: types.Version): fc.Arbitrary<AnyPacket> {
  const common = [connack(v), publish(v), ack(v), suback(v), unsuback(v)];
  const ping = fc.constant<AnyPacket>({ type: types.PINGRESP });
  return v === 5 ? fc.oneof(...common, ping, disconnect(v, 'server'), auth) : fc.oneof(...common, ping);
}

// MQTT 5.0 properties: the table of section 2.2.2.2, decoding with all its limits, encoding.
import { describe, expect, it } from 'vitest';
import {
  decodeProperties,
  encodedPropertiesBytes,
  encodeProperties,
  MAX_REPEATED,
  propertiesBytes,
  writeProperties,
} from '../../src/codec/property.ts';
import * as packets from '../../src/mqtt/packet.ts';
import { PROPERTIES, type Properties, WILL } from '../../src/mqtt/property.ts';
import { bytes } from '../harness/packets.ts';
import { caught } from '../harness/thrown.ts';

const {
  AUTH,
  CONNACK,
  CONNECT,
  DISCONNECT,
  PUBACK,
  PUBCOMP,
  PUBLISH,
  PUBREC,
  PUBREL,
  SUBACK,
  SUBSCRIBE,
  UNSUBACK,
  UNSUBSCRIBE,
} = packets;
const EVERY = [
  CONNECT,
  CONNACK,
  PUBLISH,
  WILL,
  PUBACK,
  PUBREC,
  PUBREL,
  PUBCOMP,
  SUBSCRIBE,
  SUBACK,
  UNSUBSCRIBE,
  UNSUBACK,
  DISCONNECT,
  AUTH,
];
const REASONS = [CONNACK, PUBACK, PUBREC, PUBREL, PUBCOMP, SUBACK, UNSUBACK, DISCONNECT, AUTH];

/** Table 2-4 of MQTT 5.0, written a second time: identifier, an example on the wire, the packets it belongs to. */
const TABLE: [string, string, number[]][] = [
  ['payloadFormatIndicator', '01 01', [PUBLISH, WILL]],
  ['messageExpiryInterval', '02 00 00 00 01', [PUBLISH, WILL]],
  ['contentType', '03 00 01 61', [PUBLISH, WILL]],
  ['responseTopic', '08 00 01 61', [PUBLISH, WILL]],
  ['correlationData', '09 00 01 00', [PUBLISH, WILL]],
  ['subscriptionIdentifiers', '0b 80 01', [PUBLISH, SUBSCRIBE]],
  ['sessionExpiryInterval', '11 ff ff ff ff', [CONNECT, CONNACK, DISCONNECT]],
  ['assignedClientIdentifier', '12 00 01 61', [CONNACK]],
  ['serverKeepAlive', '13 00 00', [CONNACK]],
  ['authenticationMethod', '15 00 01 61', [CONNECT, CONNACK, AUTH]],
  ['authenticationData', '16 00 00', [CONNECT, CONNACK, AUTH]],
  ['requestProblemInformation', '17 00', [CONNECT]],
  ['willDelayInterval', '18 00 00 00 00', [WILL]],
  ['requestResponseInformation', '19 01', [CONNECT]],
  ['responseInformation', '1a 00 01 61', [CONNACK]],
  ['serverReference', '1c 00 01 61', [CONNACK, DISCONNECT]],
  ['reasonString', '1f 00 01 61', REASONS],
  ['receiveMaximum', '21 ff ff', [CONNECT, CONNACK]],
  ['topicAliasMaximum', '22 00 00', [CONNECT, CONNACK]],
  ['topicAlias', '23 00 01', [PUBLISH]],
  ['maximumQos', '24 00', [CONNACK]],
  ['retainAvailable', '25 00', [CONNACK]],
  ['userProperties', '26 00 01 61 00 00', [CONNECT, WILL, PUBLISH, SUBSCRIBE, UNSUBSCRIBE, ...REASONS]],
  ['maximumPacketSize', '27 00 00 00 01', [CONNECT, CONNACK]],
  ['wildcardSubscriptionAvailable', '28 00', [CONNACK]],
  ['subscriptionIdentifiersAvailable', '29 01', [CONNACK]],
  ['sharedSubscriptionAvailable', '2a 00', [CONNACK]],
];

function decode(hex: string, packet: number): Properties | null {
  const block = bytes(hex);
  const buffer = Buffer.concat([Buffer.from([0xee, block.length]), block, Buffer.alloc(8, 0x26)]);
  const { properties, end } = decodeProperties(buffer, 1, 2 + block.length, packet);
  expect(end).toBe(2 + block.length);
  return properties;
}

describe('the table of properties', () => {
  it('has the rows of the specification (table 2-4)', () => {
    expect(PROPERTIES.map((row) => row.key).sort()).toEqual(TABLE.map(([key]) => key).sort());
  });
  for (const [key, hex, homes] of TABLE) {
    it(`${key} is taken in its packets and malformed in all others (section 2.2.2.2)`, () => {
      for (const packet of EVERY) {
        if (homes.includes(packet)) expect(Object.keys(decode(hex, packet) ?? {})).toEqual([key]);
        else expect(caught(() => decode(hex, packet))).toMatchObject({ reasonCode: 0x81 });
      }
    });
    it(`${key} is written in its packets and refused in all others`, () => {
      const value = decode(hex, homes[0]);
      for (const packet of EVERY) {
        if (!homes.includes(packet))
          expect(caught(() => encodeProperties(value, packet))).toMatchObject({ reasonCode: 0x82 });
        else expect(encodeProperties(value, packet).subarray(1).toString('hex')).toBe(bytes(hex).toString('hex'));
      }
    });
    it(`${key} cut short is malformed, at every byte`, () => {
      const block = bytes(hex);
      for (let length = 1; length < block.length; length++) {
        const cut = block.subarray(0, length).toString('hex');
        expect(caught(() => decode(cut, homes[0]))).toMatchObject({ reasonCode: 0x81 });
      }
    });
    if (key !== 'userProperties') {
      it(`${key} twice is a protocol error`, () => {
        const packet = homes.includes(PUBLISH) && key === 'subscriptionIdentifiers' ? SUBSCRIBE : homes[0];
        expect(caught(() => decode(`${hex} ${hex}`, packet))).toMatchObject({ reasonCode: 0x82 });
      });
    }
  }
});

describe('decodeProperties', () => {
  it('gives null for no properties', () => expect(decode('', PUBLISH)).toBeNull());
  it('keeps user properties in order, repeated ones too [MQTT-3.3.2-18]', () => {
    const hex = '26 00 01 7a 00 01 31 26 00 01 61 00 00 26 00 01 7a 00 01 31';
    expect(decode(hex, PUBLISH)?.userProperties).toEqual([
      ['z', '1'],
      ['a', ''],
      ['z', '1'],
    ]);
  });
  it.each([PUBLISH, CONNECT, WILL, SUBSCRIBE])(
    'takes 1,000 user properties and refuses one more as a quota (packet %i)',
    (packet) => {
      const pair = '26 00 00 00 00 ';
      const block = (count: number): Buffer => {
        const body = bytes(pair.repeat(count));
        return Buffer.concat([Buffer.from([(body.length & 127) | 128, body.length >> 7]), body]);
      };
      const most = block(MAX_REPEATED);
      expect(decodeProperties(most, 0, most.length, packet).properties?.userProperties).toHaveLength(MAX_REPEATED);
      const more = block(MAX_REPEATED + 1);
      expect(caught(() => decodeProperties(more, 0, more.length, packet))).toMatchObject({ reasonCode: 0x97 });
    },
  );
  it('refuses more than 1,000 subscription identifiers as a quota', () => {
    const body = bytes('0b 01'.repeat(MAX_REPEATED + 1));
    const more = Buffer.concat([Buffer.from([(body.length & 127) | 128, body.length >> 7]), body]);
    expect(caught(() => decodeProperties(more, 0, more.length, PUBLISH))).toMatchObject({ reasonCode: 0x97 });
  });
  it('copies binary values: the chunk may change afterwards', () => {
    const buffer = bytes('04 09 00 01 41');
    const { properties } = decodeProperties(buffer, 0, buffer.length, PUBLISH);
    buffer.fill(0);
    expect(properties?.correlationData).toEqual(Uint8Array.of(0x41));
  });
  it.each(['__proto__', 'constructor'])('takes a user property named %s for what it is', (name) => {
    const properties: Properties = { userProperties: [[name, 'x']] };
    const block = encodeProperties(properties, PUBLISH);
    expect(decodeProperties(block, 0, block.length, PUBLISH).properties).toEqual(properties);
  });
});

describe('encoding of properties', () => {
  it('leaves out keys that are undefined', () => {
    expect(encodeProperties({ contentType: undefined, topicAlias: 1 }, PUBLISH).toString('hex')).toBe('03230001');
  });
  it('writes null as length 0', () => {
    expect(encodeProperties(null, PUBLISH).toString('hex')).toBe('00');
    expect(propertiesBytes(null, PUBLISH)).toBe(1);
  });
  it('writes a Property Length of two bytes where it is needed', () => {
    const properties: Properties = { contentType: 'x'.repeat(200) };
    const buffer = Buffer.alloc(propertiesBytes(properties, PUBLISH));
    expect(writeProperties(buffer, 0, properties, PUBLISH)).toBe(buffer.length);
    expect(buffer.subarray(0, 2).toString('hex')).toBe('cb01');
    expect(encodedPropertiesBytes(properties, PUBLISH)).toBe(203);
  });
  it('refuses a key that is no property', () => {
    const properties = { surprise: 1 } as unknown as Properties;
    expect(caught(() => encodeProperties(properties, PUBLISH))).toMatchObject({ reasonCode: 0x82 });
  });
});

// Faults that were reported of brokers in the field, each with the smallest input that shows it: what a broker has to do instead.
// The tags B0nn are the rows of the casebook; bytes are those of the reports. Flows of whole sessions are in test/session.
import { afterEach, describe, expect, it } from 'vitest';
import { run } from '../harness/conversation.ts';
import { type TalkLimits, talkPlace } from '../harness/talkplace.ts';

const C4 = 'A > 10 0d 00 04 4d 51 54 54 04 02 00 00 00 01 61';
const OK4 = 'A < 20 02 00 00';
const C5 = 'A > 10 0e 00 04 4d 51 54 54 05 02 00 00 00 00 01 61';
const OK5 = 'A < 20 .. 00 00 ...';
/** A second client with the id "w" that watches. */
const W4 = ['W > 10 0d 00 04 4d 51 54 54 04 02 00 00 00 01 77', 'W < 20 02 00 00'];
const W5 = ['W > 10 0e 00 04 4d 51 54 54 05 02 00 00 00 00 01 77', 'W < 20 .. 00 00 ...'];

let stop: (() => Promise<void>) | null = null;
afterEach(async () => {
  await stop?.();
  stop = null;
});

/** Bytes of a text with its length in front, in hex. */
function text(value: string): string {
  const bytes = Buffer.from(value);
  return Buffer.concat([Buffer.from([bytes.length >> 8, bytes.length & 255]), bytes]).toString('hex');
}

function packet(first: number, ...parts: string[]): string {
  const body = Buffer.from(parts.join('').replaceAll(' ', ''), 'hex');
  const length: number[] = [];
  for (let n = body.length; ; n >>= 7) {
    length.push(n > 127 ? (n & 127) | 128 : n);
    if (n < 128) break;
  }
  return Buffer.concat([Buffer.from([first, ...length]), body]).toString('hex');
}

const subscribe4 = (filter: string, qos = 0): string => packet(0x82, '0001', text(filter), `0${qos}`);
const subscribe5 = (filter: string, options = '00'): string => packet(0x82, '0001', '00', text(filter), options);

function row(name: string, steps: string[], limits: TalkLimits = {}): void {
  it(name, async () => {
    const place = await talkPlace(limits);
    stop = () => place.stop();
    await run({ name, clause: [], version: 5, steps }, place);
    expect(place.errors).toEqual([]);
  });
}

describe('packets and topics', () => {
  row('a SUBSCRIBE that ends right after its filter closes the connection and stores nothing (3.1.1) [B026]', [
    ...W4,
    C4,
    OK4,
    'A > 82 07 00 01 00 03 61 2f 62',
    'A closed',
    C4,
    OK4,
    'W > 30 06 00 03 61 2f 62 78',
    'W quiet',
    'A quiet',
  ]);
  row('a SUBSCRIBE that ends right after its filter is answered with DISCONNECT 0x81 (5.0) [B026]', [
    C5,
    OK5,
    'A > 82 08 00 01 00 00 03 61 2f 62',
    'A < e0 .. 81 ...',
    'A closed',
  ]);
  row('a QoS 1 PUBLISH without packet id closes and delivers nothing [B027]', [
    ...W4,
    `W > ${subscribe4('a')}`,
    'W < 90 03 00 01 00',
    C4,
    OK4,
    'A > 32 03 00 01 61',
    'A closed',
    'W quiet',
  ]);
  row('packet id 0 closes [B027] [MQTT-2.3.1-1]', [C4, OK4, 'A > 32 06 00 01 61 00 00 78', 'A closed']);
  row('a SUBSCRIBE with QoS 3 closes (3.1.1) [B028] [MQTT-3.8.3-4]', [
    C4,
    OK4,
    'A > 82 06 00 01 00 01 61 03',
    'A closed',
  ]);
  row('a SUBSCRIBE with QoS 3 closes with a reason (5.0) [B028]', [
    C5,
    OK5,
    'A > 82 07 00 01 00 00 01 61 03',
    'A < e0 .. 82 ...',
    'A closed',
  ]);
  row('several packets in one write are all handled, in order [B029] [MQTT-6.0.0-2]', [
    ...W4,
    `W > ${subscribe4('#')}`,
    'W < 90 03 00 01 00',
    C4,
    OK4,
    'A > 30 05 00 02 74 31 31 30 05 00 02 74 32 32 30 05 00 02 74 33 33',
    'W < 30 05 00 02 74 31 31',
    'W < 30 05 00 02 74 32 32',
    'W < 30 05 00 02 74 33 33',
  ]);
  row('+ takes an empty level, and a/+ does not take a [B031]', [
    ...W4,
    `W > ${subscribe4('a/+/c')}`,
    'W < 90 03 00 01 00',
    `W > ${subscribe4('a/+')}`,
    'W < 90 03 00 01 00',
    `W > ${subscribe4('/+')}`,
    'W < 90 03 00 01 00',
    C4,
    OK4,
    `A > ${packet(0x30, text('a//c'), '31')} ${packet(0x30, text('a/'), '32')} ${packet(0x30, text('/'), '33')} ${packet(0x30, text('a'), '34')}`,
    `W < ${packet(0x30, text('a//c'), '31').replace(/..(?=.)/g, '$& ')}`,
    `W < ${packet(0x30, text('a/'), '32').replace(/..(?=.)/g, '$& ')}`,
    `W < ${packet(0x30, text('/'), '33').replace(/..(?=.)/g, '$& ')}`,
    'W quiet',
  ]);
  row('overlapping filters give one copy at the highest QoS [B032] [MQTT-3.3.5-1]', [
    ...W4,
    `W > ${subscribe4('dev/+', 0)}`,
    'W < 90 03 00 01 00',
    `W > ${subscribe4('dev/1', 1)}`,
    'W < 90 03 00 01 01',
    C4,
    OK4,
    `A > ${packet(0x32, text('dev/1'), '0009', '78')}`,
    'A < 40 02 00 09',
    'W < 32 0a 00 05 64 65 76 2f 31 [p] 78',
    'W quiet',
  ]);
  row('PUBREL for an unknown packet id gets PUBCOMP, the connection stays (3.1.1) [B033] [MQTT-4.3.3-2]', [
    C4,
    OK4,
    'A > 62 02 00 07',
    'A < 70 02 00 07',
    'A quiet',
  ]);
  row('PUBREL for an unknown packet id gets PUBCOMP 0x92, the connection stays (5.0) [B033]', [
    C5,
    OK5,
    'A > 62 02 00 07',
    'A < 70 .. 00 07 92 ...',
    'A quiet',
  ]);
  row('a QoS 2 PUBLISH that comes again and again is delivered once [B034] [MQTT-4.3.3-10]', [
    ...W4,
    `W > ${subscribe4('q', 0)}`,
    'W < 90 03 00 01 00',
    C4,
    OK4,
    'A > 34 06 00 01 71 00 07 78',
    'A < 50 02 00 07',
    ...Array.from({ length: 50 }, () => ['A > 3c 06 00 01 71 00 07 78', 'A < 50 02 00 07']).flat(),
    'A > 62 02 00 07',
    'A < 70 02 00 07',
    'W < 30 04 00 01 71 78',
    'W quiet',
  ]);
  row('a TLS hello and an HTTP request on the plain port are closed, others go on [B035]', [
    ...W4,
    'A > 16 03 01 01 01 01 00 00 fd 03 03 78*250',
    'A closed',
    `A > ${Buffer.from('GET / HTTP/1.1\r\n\r\n').toString('hex')}`,
    'A closed',
    'W quiet',
  ]);
  row('nothing behind a bad packet in the same segment has an effect [B036] [MQTT-3.8.1-1]', [
    ...W4,
    `W > ${subscribe4('#')}`,
    'W < 90 03 00 01 00',
    'A > 10 0d 00 04 4d 51 54 54 04 02 00 00 00 01 61 80 06 00 01 00 01 61 00 30 04 00 01 74 78',
    'A < 20 02 00 00',
    'A closed',
    'W quiet',
  ]);
  row('a CONNECT with more properties announced than it has is refused [B037]', [
    'A > 10 0e 00 04 4d 51 54 54 05 02 00 3c 7f 00 01 61',
    'A < 20 .. 00 81 ...',
    'A closed',
  ]);
  for (const filter of ['#abc', 'a/#/b', 'a+', '']) {
    row(`the filter '${filter}' closes the connection, also in UNSUBSCRIBE [B038] [MQTT-4.7.1-2]`, [
      C4,
      OK4,
      `A > ${subscribe4(filter)}`,
      'A closed',
      C4,
      OK4,
      `A > ${packet(0xa2, '0002', text(filter))}`,
      'A closed',
      C5.replace('A', 'B').replace(/61$/, '62'),
      'B < 20 .. 00 00 ...',
      `B > ${subscribe5(filter)}`,
      'B < e0 .. 81 ...',
      'B closed',
    ]);
  }
  row('a PUBLISH to a wildcard closes, with 0x90 in 5.0 [B038] [MQTT-3.3.2-2]', [
    C4,
    OK4,
    `A > ${packet(0x30, text('a/+'), '78')}`,
    'A closed',
    C5,
    OK5,
    `A > ${packet(0x30, text('a/+'), '00', '78')}`,
    'A < e0 .. 90 ...',
    'A closed',
  ]);
  row('a/b/# finds the retained message of a/b [B039]', [
    C4,
    OK4,
    `A > ${packet(0x31, text('a/b'), '31')}`,
    'A quiet',
    `A > ${subscribe4('a/b/#')}`,
    'A < 90 03 00 01 00',
    'A < 31 06 00 03 61 2f 62 31',
  ]);
  row('the last of two retained QoS 2 values is kept, from a session that stays [B041]', [
    'A > 10 0d 00 04 4d 51 54 54 04 00 00 00 00 01 61',
    OK4,
    'A > 35 08 00 01 74 00 01 66 6f 6f',
    'A < 50 02 00 01',
    'A > 35 08 00 01 74 00 02 62 61 72',
    'A < 50 02 00 02',
    'A > 62 02 00 01 62 02 00 02',
    'A < 70 02 00 01',
    'A < 70 02 00 02',
    ...W4,
    `W > ${subscribe4('t')}`,
    'W < 90 03 00 01 00',
    'W < 31 06 00 01 74 62 61 72',
    'W quiet',
  ]);
  for (const bytes of ['00 00', 'f0 00', '20 02 00 00', '90 03 00 01 00']) {
    row(`a client that sends ${bytes} is closed at once [B042]`, [
      C4,
      OK4,
      `A > ${bytes}`,
      'A closed',
      C5,
      OK5,
      `A > ${bytes}`,
      'A < e0 ...',
      'A closed',
    ]);
  }
  row(
    'a Remaining Length of four bytes is taken, one of five is not [B043] [MQTT-1.5.5-1]',
    [C4, OK4, `A > ${packet(0x30, text('t'), '78'.repeat(3 << 20))}`, 'A quiet', 'A > 30 ff ff ff ff 01', 'A closed'],
    { maxPacketSize: 4 << 20 },
  );
  row('PUBREC is sent once, however long PUBREL takes [B044] [MQTT-4.4.0-1]', [
    C4,
    OK4,
    'A > 34 06 00 01 71 00 07 78',
    'A < 50 02 00 07',
    'clock 30s',
    'A quiet',
    'A > 62 02 00 07',
    'A < 70 02 00 07',
  ]);
  row('a tab in a topic is taken, U+0000 closes [B045] [MQTT-1.5.3-2]', [
    ...W4,
    `W > ${subscribe4('#')}`,
    'W < 90 03 00 01 00',
    C4,
    OK4,
    'A > 32 08 00 03 6a 09 6b 00 01 78',
    'A < 40 02 00 01',
    'W < 30 06 00 03 6a 09 6b 78',
    'A > 30 06 00 03 61 00 62 78',
    'A closed',
    'W quiet',
  ]);
  row(
    'an empty client id without clean session is refused with 2 in 3.1.1 and given one in 5.0 [B046] [MQTT-3.1.3-8]',
    [
      'A > 10 0c 00 04 4d 51 54 54 04 00 00 3c 00 00',
      'A < 20 02 00 02',
      'A closed',
      'A > 10 0d 00 04 4d 51 54 54 05 02 00 3c 00 00 00',
      'A < 20 .. 00 00 .. ... 12 00 ...',
    ],
  );
  row('a user name and a password of length 0 are credentials like others [B047]', [
    'A > 10 11 00 04 4d 51 54 54 04 c2 00 3c 00 01 61 00 00 00 00',
    'A < 20 02 00 00',
  ]);
  row(
    'a client that only publishes is not silent; after one and a half times the keep alive of silence it is closed [B048] [MQTT-3.1.2-24]',
    [
      'A > 10 0d 00 04 4d 51 54 54 04 02 00 02 00 01 61',
      OK4,
      ...Array.from({ length: 8 }, () => ['A > 30 04 00 01 74 78', 'clock 1s']).flat(),
      'A quiet',
      'clock 4s',
      'A closed',
      'A > 10 0d 00 04 4d 51 54 54 04 02 00 00 00 01 61',
      OK4,
      'clock 10m',
      'A quiet',
    ],
  );
});

describe('MQTT 5.0', () => {
  row("a publisher's alias never reaches a subscriber, an unknown one closes [B049] [MQTT-3.3.2-7]", [
    ...W5,
    `W > ${subscribe5('test')}`,
    'W < 90 .. 00 01 00 00',
    C5,
    OK5,
    'A > 30 0c 00 04 74 65 73 74 03 23 00 01 68 69',
    'A > 30 08 00 00 03 23 00 01 79 6f',
    'W < 30 09 00 04 74 65 73 74 00 68 69',
    'W < 30 09 00 04 74 65 73 74 00 79 6f',
    'A > 30 08 00 00 03 23 00 02 79 6f',
    'A < e0 .. 82 ...',
    'A closed',
  ]);
  row(
    'an alias where none was offered closes with 0x94 [B049]',
    [C5, OK5, 'A > 30 0c 00 04 74 65 73 74 03 23 00 01 68 69', 'A < e0 .. 94 ...', 'A closed'],
    { maxTopicAlias: 0 },
  );
  row('the older of two connections with one client id is told 0x8E and closed [B050] [MQTT-3.1.4-3]', [
    'A > 10 10 00 04 4d 51 54 54 05 02 00 00 00 00 03 64 75 70',
    OK5,
    'B > 10 10 00 04 4d 51 54 54 05 02 00 00 00 00 03 64 75 70',
    'B < 20 .. 00 00 ...',
    'A < e0 .. 8e ...',
    'A closed',
    'B quiet',
  ]);
  const will = (delay: string, expiry: string): string =>
    packet(0x10, text('MQTT'), '05 06 00 00 05 11', expiry, text('x'), '05 18', delay, text('w'), text('gone'));
  row(
    'a will comes when its session ends, if that is before its delay is over, and carries no delay [B051] [MQTT-3.1.2-8]',
    [
      ...W5,
      `W > ${subscribe5('w')}`,
      'W < 90 .. 00 01 00 00',
      `A > ${will('00 00 00 1e', '00 00 00 05')}`,
      OK5,
      'A drops',
      'clock 4s',
      'W quiet',
      'clock 2s',
      'W < 30 08 00 01 77 00 67 6f 6e 65',
      'W quiet',
    ],
  );
  row('a will with a delay comes at once where the session ends with its connection [B051]', [
    ...W5,
    `W > ${subscribe5('w')}`,
    'W < 90 .. 00 01 00 00',
    `A > ${will('00 00 00 1e', '00 00 00 00')}`,
    OK5,
    'A drops',
    'W < 30 08 00 01 77 00 67 6f 6e 65',
  ]);
  row(
    'of two messages that waited the expired one is gone, the other tells the time left [B052] [MQTT-3.3.2-5] [MQTT-3.3.2-6]',
    [
      'A > 10 13 00 04 4d 51 54 54 05 00 00 00 05 11 00 00 0e 10 00 01 61',
      OK5,
      `A > ${subscribe5('t', '01')}`,
      'A < 90 .. 00 01 00 01',
      'A drops',
      ...W5,
      'W > 32 0c 00 01 74 00 01 05 02 00 00 00 02 31',
      'W < 40 .. 00 01 ...',
      'W > 32 0c 00 01 74 00 02 05 02 00 00 00 3c 32',
      'W < 40 .. 00 02 ...',
      'clock 5s',
      'A > 10 13 00 04 4d 51 54 54 05 00 00 00 05 11 00 00 0e 10 00 01 61',
      'A < 20 .. 01 00 ...',
      'A < 32 0c 00 01 74 [p] 05 02 00 00 00 37 32',
      'A quiet',
    ],
  );
  row('CONNACK has no property that only a client may send [B053]', [
    'A > 10 10 00 04 4d 51 54 54 05 02 00 3c 02 17 01 00 01 61',
    // Receive Maximum, Maximum Packet Size, Topic Alias Maximum.
    'A < 20 0e 00 00 0b 21 00 64 27 00 10 00 00 22 00 0a',
  ]);
  row('a client that sends a Subscription Identifier in PUBLISH is told 0x82 [B055] [MQTT-3.3.4-6]', [
    C5,
    OK5,
    'A > 30 07 00 01 74 02 0b 01 78',
    'A < e0 .. 82 ...',
    'A closed',
  ]);
  row('a property that comes twice is a protocol error [B056]', [
    'A > 10 18 00 04 4d 51 54 54 05 02 00 3c 0a 27 00 00 08 34 27 00 00 04 00 00 01 61',
    'A < 20 .. 00 82 ...',
    'A closed',
  ]);
  row('No Local on a shared subscription is a protocol error [B057] [MQTT-3.8.3-4]', [
    C5,
    OK5,
    'A > 82 10 00 01 00 00 0a 24 73 68 61 72 65 2f 67 2f 74 04',
    'A < e0 .. 82 ...',
    'A closed',
  ]);
  row('reserved subscription options close [B058] [MQTT-3.8.3-5]', [
    C5,
    OK5,
    'A > 82 07 00 01 00 00 01 74 c0',
    'A < e0 .. 81 ...',
    'A closed',
    C5,
    OK5,
    'A > 82 07 00 01 00 00 01 74 30',
    'A < e0 .. 82 ...',
    'A closed',
  ]);
  row(
    'a Response Topic with a wildcard is a protocol error; correlation data and user properties pass unchanged [B059] [MQTT-3.3.2-14]',
    [
      ...W5,
      `W > ${subscribe5('t')}`,
      'W < 90 .. 00 01 00 00',
      C5,
      OK5,
      'A > 30 1c 00 01 74 17 08 00 01 72 09 00 02 ff 00 26 00 01 61 00 01 31 26 00 01 61 00 01 30 78',
      'W < 30 1c 00 01 74 17 08 00 01 72 09 00 02 ff 00 26 00 01 61 00 01 31 26 00 01 61 00 01 30 78',
      'A > 30 0b 00 01 74 06 08 00 03 72 2f 23 78',
      'A < e0 .. 82 ...',
      'A closed',
    ],
  );
  row('a property that does not belong to PUBLISH is malformed [B060]', [
    C5,
    OK5,
    'A > 30 0a 00 01 74 05 11 00 00 00 01 78',
    'A < e0 .. 81 ...',
    'A closed',
  ]);
  row(
    'a third QoS 2 publish where two are allowed closes with 0x93 [B061] [MQTT-3.3.4-7]',
    [
      C5,
      'A < 20 .. 00 00 .. ... 21 00 02 ...',
      'A > 34 07 00 01 74 00 01 00 78 34 07 00 01 74 00 02 00 78 34 07 00 01 74 00 03 00 78',
      'A < 50 .. 00 01 ...',
      'A < 50 .. 00 02 ...',
      'A < e0 .. 93 ...',
      'A closed',
    ],
    { maxAwaitingRel: 2 },
  );
  row('PUBREC with an error frees the slot: no PUBREL, the next message comes [B062]', [
    'A > 10 11 00 04 4d 51 54 54 05 02 00 00 03 21 00 01 00 01 61',
    OK5,
    `A > ${subscribe5('t', '02')}`,
    'A < 90 .. 00 01 00 02',
    ...W5,
    'W > 34 07 00 01 74 00 01 00 31',
    'W < 50 .. 00 01 ...',
    'W > 34 07 00 01 74 00 02 00 32',
    'W < 50 .. 00 02 ...',
    'A < 34 07 00 01 74 [p] 00 31',
    'A quiet',
    'A > 50 03 [p] 87',
    'A < 34 07 00 01 74 .. .. 00 32',
    'A quiet',
  ]);
  row(
    'a packet above what the client takes is left out, one above what the broker takes is told 0x95 [B063] [MQTT-3.1.2-25]',
    [
      'A > 10 13 00 04 4d 51 54 54 05 02 00 00 05 27 00 00 00 1e 00 01 61',
      'A < 20 .. 00 00 .. ... 27 00 10 00 00 ...',
      `A > ${subscribe5('t')}`,
      'A < 90 .. 00 01 00 00',
      ...W5,
      `W > ${packet(0x30, text('t'), '00', '78'.repeat(100))}`,
      'W > 30 05 00 01 74 00 78',
      'A < 30 05 00 01 74 00 78',
      'A quiet',
      'W > 30 81 80 80 01 00 01 74 00',
      'W < e0 .. 95 ...',
      'W closed',
    ],
  );
  row('a resumed session gets no retained messages again [B064]', [
    'A > 10 13 00 04 4d 51 54 54 05 00 00 00 05 11 00 00 0e 10 00 01 61',
    OK5,
    `A > ${subscribe5('t', '01')}`,
    'A < 90 .. 00 01 00 01',
    'A > 31 05 00 01 74 00 78',
    'A < 30 05 00 01 74 00 78',
    'A drops',
    'A > 10 13 00 04 4d 51 54 54 05 00 00 00 05 11 00 00 0e 10 00 01 61',
    'A < 20 .. 01 00 ...',
    'A quiet',
  ]);
  row('clean start 0 alone keeps no session in 5.0; an expiry does, and 0xFFFFFFFF for ever [B065]', [
    'A > 10 0e 00 04 4d 51 54 54 05 00 00 00 00 00 01 61',
    OK5,
    'A drops',
    'A > 10 0e 00 04 4d 51 54 54 05 00 00 00 00 00 01 61',
    'A < 20 .. 00 00 ...',
    'A drops',
    'A > 10 13 00 04 4d 51 54 54 05 00 00 00 05 11 ff ff ff ff 00 01 61',
    'A < 20 .. 00 00 ...',
    'A drops',
    'clock 12h',
    'A > 10 13 00 04 4d 51 54 54 05 00 00 00 05 11 ff ff ff ff 00 01 61',
    'A < 20 .. 01 00 ...',
  ]);
});

// biome-ignore-all lint/suspicious/noTemplateCurlyInString: templates of the proxy are written like this
// CONNECT with other fields: the bytes that a server gets, vectors first, then the rules for each version.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { newFrame } from '../../src/codec/codec.ts';
import { decodeConnect, encodeConnect } from '../../src/codec/connect.ts';
import { readFrame } from '../../src/codec/frame.ts';
import type { ConnectPacket, Version } from '../../src/mqtt/packet.ts';
import { takeConnect } from '../../src/proxy/facts.ts';
import { readLayout } from '../../src/proxy/layout.ts';
import type { SetOptions } from '../../src/proxy/proxy.ts';
import { compileSet, rewriteConnect } from '../../src/proxy/rewrite.ts';
import { connectBytes, connectPacket, facts } from '../harness/proxyparts.ts';

const hex = (text: string): Buffer => Buffer.from(text.replaceAll(' ', ''), 'hex');
const KEEP: SetOptions = { clientId: undefined, username: undefined, password: undefined };

function rewrite(
  bytes: Buffer,
  set: Partial<SetOptions>,
  env: Record<string, string> = {},
  identity: string | null = null,
) {
  const layout = readLayout(bytes, bytes.length);
  const known = facts();
  takeConnect(known, layout);
  const compiled = compileSet({ ...KEEP, ...set }, env) ?? {
    clientId: undefined,
    username: undefined,
    password: undefined,
  };
  return rewriteConnect(layout, compiled, known, identity);
}

function rewritten(bytes: Buffer, set: Partial<SetOptions>, env: Record<string, string> = {}): string {
  const made = rewrite(bytes, set, env);
  return typeof made === 'string' ? made : made.bytes.toString('hex');
}

const VECTORS: readonly [string, Partial<SetOptions>, string, string][] = [
  [
    '3.1, user name and password put in',
    { username: 'gw', password: 's3' },
    '10 11 00 06 4d 51 49 73 64 70 03 02 00 3c 00 03 64 65 76',
    '10 19 00 06 4d 51 49 73 64 70 03 c2 00 3c 00 03 64 65 76 00 02 67 77 00 02 73 33',
  ],
  [
    '3.1.1, another id and a password for a user name',
    { clientId: 'ng-dev', password: 's3' },
    '10 12 00 04 4d 51 54 54 04 82 00 3c 00 03 64 65 76 00 01 75',
    '10 19 00 04 4d 51 54 54 04 c2 00 3c 00 06 6e 67 2d 64 65 76 00 01 75 00 02 73 33',
  ],
  [
    '3.1.1, an id for an empty one',
    { clientId: 'edge-1' },
    '10 0c 00 04 4d 51 54 54 04 02 00 3c 00 00',
    '10 12 00 04 4d 51 54 54 04 02 00 3c 00 06 65 64 67 65 2d 31',
  ],
  [
    '5.0 with properties and a will',
    { username: 'gw', password: 's3' },
    '10 26 00 04 4d 51 54 54 05 2e 00 3c 08 11 00 00 00 3c 21 00 14 00 03 64 65 76 05 18 00 00 00 05 00 01 77 00 03 62 79 65',
    '10 2e 00 04 4d 51 54 54 05 ee 00 3c 08 11 00 00 00 3c 21 00 14 00 03 64 65 76 05 18 00 00 00 05 00 01 77 00 03 62 79 65 00 02 67 77 00 02 73 33',
  ],
  [
    '5.0, a user name before a password that was alone',
    { username: 'gw' },
    '10 15 00 04 4d 51 54 54 05 42 00 3c 00 00 03 64 65 76 00 03 74 6f 6b',
    '10 19 00 04 4d 51 54 54 05 c2 00 3c 00 00 03 64 65 76 00 02 67 77 00 03 74 6f 6b',
  ],
  [
    'a length field that grows',
    { clientId: 'd'.repeat(116) },
    connectBytes({ clientId: 'd'.repeat(115) }).toString('hex'),
    connectBytes({ clientId: 'd'.repeat(116) }).toString('hex'),
  ],
  [
    'the bridge bit',
    { username: 'gw' },
    '10 0e 00 04 4d 51 54 54 84 02 00 3c 00 02 62 72',
    '10 12 00 04 4d 51 54 54 84 82 00 3c 00 02 62 72 00 02 67 77',
  ],
];

describe('rewriteConnect', () => {
  it.each(VECTORS)('gives the known bytes: %s', (_, set, before, after) => {
    expect(rewritten(hex(before), set)).toBe(after.replaceAll(' ', ''));
  });

  it('grows the length field at 128, 16384 and shrinks it back', () => {
    for (const bytes of [120, 127, 128, 16_300, 16_383, 16_384, 60_000]) {
      const long = connectBytes({ clientId: 'x'.repeat(bytes) });
      expect(rewritten(connectBytes({ clientId: 'a' }), { clientId: 'x'.repeat(bytes) })).toBe(long.toString('hex'));
      expect(rewritten(long, { clientId: 'a' })).toBe(connectBytes({ clientId: 'a' }).toString('hex'));
    }
  });

  it('writes a length field of four bytes where three would do in its shortest form', () => {
    const plain = connectBytes({ clientId: 'dev' });
    const odd = Buffer.concat([hex('10'), Buffer.from([plain[1] | 0x80, 0x80, 0x80, 0]), plain.subarray(2)]);
    expect(rewritten(odd, { clientId: 'dev' })).toBe(plain.toString('hex'));
  });

  it('fills templates once: what clients send is never a template', () => {
    const bytes = connectBytes({ clientId: '$1 ${username} $&', username: '${clientid}' });
    expect(
      rewritten(bytes, { clientId: '${username}.${clientid}', username: 'u-${clientid}-${env.X}' }, { X: 'ä' }),
    ).toBe(
      connectBytes({
        clientId: '${clientid}.$1 ${username} $&',
        username: 'u-$1 ${username} $&-ä',
      }).toString('hex'),
    );
  });

  it('leaves an empty client id alone when the template is made of it', () => {
    for (const version of [4, 5] as const) {
      const bytes = connectBytes({ version, clientId: '' });
      expect(rewritten(bytes, { clientId: 'ng-${clientid}' })).toBe(bytes.toString('hex'));
    }
  });

  it.each([3, 4] as const)(
    'refuses a password for a client without user name in version %i [MQTT-3.1.2-22]',
    (version) => {
      expect(rewritten(connectBytes({ version }), { password: 's3' })).toBe('password-without-username');
    },
  );

  it('gives a 5.0 client a password alone', () => {
    expect(rewritten(connectBytes({ version: 5 }), { password: 's3' })).toBe(
      connectBytes({ version: 5, password: Buffer.from('s3') }).toString('hex'),
    );
  });

  it.each([3, 4, 5] as const)(
    'removes fields in version %i; before 5.0 the password goes with the user name',
    (version) => {
      const full = connectBytes({ version, username: 'u', password: Buffer.from('p') });
      expect(rewritten(full, { password: null })).toBe(connectBytes({ version, username: 'u' }).toString('hex'));
      expect(rewritten(full, { username: null })).toBe(
        connectBytes({ version, password: version === 5 ? Buffer.from('p') : null }).toString('hex'),
      );
    },
  );

  it('refuses an empty client id where the version does not allow one', () => {
    expect(rewritten(connectBytes({ version: 3 }), { clientId: null })).toBe('empty-clientid');
    expect(rewritten(connectBytes({ version: 4, cleanStart: false }), { clientId: null })).toBe('empty-clientid');
    expect(rewritten(connectBytes({ version: 4 }), { clientId: null })).toBe(
      connectBytes({ clientId: '' }).toString('hex'),
    );
  });

  it('refuses values that no field can hold', () => {
    expect(rewritten(connectBytes(), { username: 'x'.repeat(65_536) })).toBe('bad-value');
    expect(rewritten(connectBytes(), { clientId: 'a${env.X}' }, { X: '\0' })).toBe('bad-value');
  });

  it('writes the name of a certificate over the user name', () => {
    const made = rewrite(connectBytes({ username: 'admin', password: Buffer.from('p') }), {}, {}, 'dev-1');
    expect(typeof made === 'string' ? made : made.bytes.toString('hex')).toBe(
      connectBytes({ username: 'dev-1', password: Buffer.from('p') }).toString('hex'),
    );
  });

  it('changes the wanted fields and nothing else, for any CONNECT', () => {
    const text = fc.string({ unit: 'grapheme', maxLength: 40 }).filter((t) => !/\p{Cc}/u.test(t));
    const will = fc.option(
      fc.record({
        topicName: fc.constantFrom('a', 'a/b'),
        payload: fc.uint8Array({ maxLength: 300 }),
        qos: fc.constantFrom(0, 1, 2),
        retain: fc.boolean(),
        properties: fc.constant(null),
        delayInterval: fc.constant(0),
      }),
    );
    fc.assert(
      fc.property(
        fc.constantFrom<Version>(3, 4, 5),
        text,
        fc.option(text),
        will,
        text,
        (version, id, username, w, newId) => {
          const packet = connectPacket({
            version,
            clientId: `x${id}`,
            username,
            password: username === null ? null : Buffer.from('pw'),
            will: w as ConnectPacket['will'],
            properties: version === 5 ? { sessionExpiryInterval: 7, userProperties: [['a', 'b']] } : null,
          });
          const made = rewrite(encodeConnect(packet), { clientId: `y${newId.replaceAll('$', '')}` });
          if (typeof made === 'string') throw new Error(made);
          const frame = newFrame();
          readFrame(made.bytes, 0, made.bytes.length, frame, made.bytes.length);
          expect(frame.end).toBe(made.bytes.length);
          const wanted = { ...packet, clientId: `y${newId.replaceAll('$', '')}` };
          expect(encodeConnect(decodeConnect(made.bytes, frame)).equals(encodeConnect(wanted))).toBe(true);
        },
      ),
    );
  });
});

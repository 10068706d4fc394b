// The PROXY protocol header, read in any pieces and written in both versions.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { encodeProxyHeader, PROXY_HEADER_LONGEST, parseProxyHeader } from '../../src/transport/proxyline.ts';
import type { TlsInfo } from '../../src/transport/transport.ts';

const SIGNATURE = Buffer.from('0d0a0d0a000d0a515549540a', 'hex');

function v2(command: number, family: number, body: Buffer, length = body.length): Buffer {
  return Buffer.concat([SIGNATURE, Buffer.from([command, family, length >> 8, length & 255]), body]);
}

const V4_BODY = Buffer.from('cb007107c6336402c738075b', 'hex');
const V6_BODY = Buffer.from(`20010db8${'0'.repeat(20)}000720010db8${'0'.repeat(20)}0001c738075b`, 'hex');
const V4 = { host: '203.0.113.7', port: 51000, path: null };
const V4_TO = { host: '198.51.100.2', port: 1883, path: null };
const V6 = { host: '2001:db8::7', port: 51000, path: null };
const V6_TO = { host: '2001:db8::1', port: 1883, path: null };
const TLV = Buffer.from('0100046d717474', 'hex');

const GOOD: [string, Buffer, unknown, unknown][] = [
  ['version 1, TCP4', Buffer.from('PROXY TCP4 203.0.113.7 198.51.100.2 51000 1883\r\n'), V4, V4_TO],
  ['version 1, TCP6', Buffer.from('PROXY TCP6 2001:DB8::7 2001:db8:0:0::1 51000 1883\r\n'), V6, V6_TO],
  ['version 1, UNKNOWN', Buffer.from('PROXY UNKNOWN\r\n'), null, null],
  ['version 1, UNKNOWN with more', Buffer.from('PROXY UNKNOWN ff:ff::1 ::1 65535 65535\r\n'), null, null],
  ['version 2, IPv4', v2(0x21, 0x11, V4_BODY), V4, V4_TO],
  ['version 2, IPv6', v2(0x21, 0x21, V6_BODY), V6, V6_TO],
  ['version 2, IPv4 with TLVs', v2(0x21, 0x11, Buffer.concat([V4_BODY, TLV])), V4, V4_TO],
  ['version 2, LOCAL', v2(0x20, 0, Buffer.alloc(0)), null, null],
  ['version 2, LOCAL with addresses', v2(0x20, 0x11, V4_BODY), null, null],
  ['version 2, Unix', v2(0x21, 0x31, Buffer.alloc(216)), null, null],
  ['version 2, unspecified', v2(0x21, 0, Buffer.alloc(3)), null, null],
  ['version 2, datagrams', v2(0x21, 0x12, V4_BODY), null, null],
  ['version 2, the longest', v2(0x21, 0x11, Buffer.concat([V4_BODY, Buffer.alloc(508)])), V4, V4_TO],
];

const BAD: [string, Buffer][] = [
  ['something else', Buffer.from([0x10])],
  ['TLS', Buffer.from([0x16, 3, 1])],
  ['a wrong word', Buffer.from('PROXZ')],
  ['lower case', Buffer.from('proxy TCP4')],
  ['an unknown family', Buffer.from('PROXY TCP9 1.2.3.4 5.6.7.8 1 2\r\n')],
  ['a wrong IPv4 address', Buffer.from('PROXY TCP4 1.2.3.400 5.6.7.8 1 2\r\n')],
  ['an address with leading zeros', Buffer.from('PROXY TCP4 01.2.3.4 5.6.7.8 1 2\r\n')],
  ['a name for an address', Buffer.from('PROXY TCP4 localhost 5.6.7.8 1 2\r\n')],
  ['an IPv6 address as TCP4', Buffer.from('PROXY TCP4 ::1 ::1 1 2\r\n')],
  ['a zone', Buffer.from('PROXY TCP6 fe80::1%eth0 ::1 1 2\r\n')],
  ['a port too large', Buffer.from('PROXY TCP4 1.2.3.4 5.6.7.8 65536 2\r\n')],
  ['a port with a sign', Buffer.from('PROXY TCP4 1.2.3.4 5.6.7.8 +1 2\r\n')],
  ['a missing port', Buffer.from('PROXY TCP4 1.2.3.4 5.6.7.8 1\r\n')],
  ['two blanks', Buffer.from('PROXY TCP4  1.2.3.4 5.6.7.8 1 2\r\n')],
  ['a trailing blank', Buffer.from('PROXY TCP4 1.2.3.4 5.6.7.8 1 2 \r\n')],
  ['a line feed alone', Buffer.from('PROXY TCP4 1.2.3.4 5.6.7.8 1 2\n')],
  ['a carriage return alone', Buffer.from('PROXY TCP4 1.2.3.4 5.6.7.8 1 2\rx')],
  ['a byte that is no text', Buffer.from('PROXY UNKNOWN \0')],
  ['no end within 107 bytes', Buffer.from(`PROXY UNKNOWN ${'x'.repeat(93)}`)],
  ['no end within 106 bytes and a carriage return', Buffer.from(`PROXY UNKNOWN ${'x'.repeat(92)}\r`)],
  ['a wrong signature', Buffer.concat([SIGNATURE.subarray(0, 11), Buffer.from('x')])],
  ['version 3', v2(0x31, 0x11, V4_BODY)],
  ['an unknown command', v2(0x2f, 0x11, V4_BODY)],
  ['an unknown family of version 2', v2(0x21, 0x41, V4_BODY)],
  ['an unknown transport', v2(0x21, 0x13, V4_BODY)],
  ['too few bytes for IPv4', v2(0x21, 0x11, Buffer.alloc(11))],
  ['too few bytes for IPv6', v2(0x21, 0x21, Buffer.alloc(35))],
  ['too few bytes for Unix', v2(0x21, 0x31, Buffer.alloc(215))],
  ['more than 536 bytes, from the length alone', v2(0x21, 0x11, Buffer.alloc(0), 521)],
  ['the longest length', v2(0x20, 0x00, Buffer.alloc(0), 65535)],
];

describe('parseProxyHeader', () => {
  it.each(GOOD)('reads %s', (_, bytes, source, destination) => {
    expect(parseProxyHeader(bytes)).toEqual({ bytes: bytes.length, source, destination, tls: null });
  });

  it.each(GOOD)('leaves what follows %s', (_, bytes) => {
    const header = parseProxyHeader(Buffer.concat([bytes, Buffer.from('\r\nPROXY')]));
    expect(header).toMatchObject({ bytes: bytes.length });
  });

  it.each(GOOD)('waits at every cut of %s', (_, bytes) => {
    for (let cut = 0; cut < bytes.length; cut++) expect(parseProxyHeader(bytes.subarray(0, cut))).toBe('more');
  });

  it.each(BAD)('refuses %s', (_, bytes) => {
    expect(parseProxyHeader(bytes)).toBe('bad');
  });

  it('has an answer for anything of the longest length', () => {
    const any = fc.uint8Array({ minLength: PROXY_HEADER_LONGEST, maxLength: PROXY_HEADER_LONGEST });
    const starts = fc.constantFrom(Buffer.alloc(0), Buffer.from('PROXY '), Buffer.from('PROXY TCP4 '), SIGNATURE);
    fc.assert(
      fc.property(starts, any, (start, rest) => {
        const bytes = Buffer.concat([start, rest]).subarray(0, PROXY_HEADER_LONGEST);
        expect(parseProxyHeader(bytes)).not.toBe('more');
      }),
    );
  });

  it('shows an IPv4-mapped source as IPv4', () => {
    const header = parseProxyHeader(Buffer.from('PROXY TCP6 ::ffff:10.0.0.9 ::1 1 2\r\n'));
    expect(header).toMatchObject({ source: { host: '10.0.0.9', port: 1 } });
  });
});

describe('encodeProxyHeader', () => {
  const four = { host: '127.0.0.7', port: 4711, path: null };
  const six = { host: 'fe80::1:2', port: 1883, path: null };

  it('writes version 1 for IPv4', () => {
    expect(encodeProxyHeader(1, four, { ...four, port: 1 }).toString()).toBe(
      'PROXY TCP4 127.0.0.7 127.0.0.7 4711 1\r\n',
    );
  });

  it('writes version 2 for IPv4', () => {
    const bytes = encodeProxyHeader(2, four, { ...four, port: 1 });
    expect(bytes.toString('hex')).toBe(`${SIGNATURE.toString('hex')}2111000c7f0000077f00000712670001`);
  });

  it('says in version 2 what TLS has shown, verified only with a certificate, and leaves out what is too long', () => {
    const tls: TlsInfo = { version: 'TLSv1.3', cipher: 'AES', serverName: 'a.b', peer: null };
    const peer = { commonName: 'dev', subject: 'CN=dev', fingerprint: '', pem: '' };
    const values = (info: TlsInfo): string => encodeProxyHeader(2, four, four, info).subarray(28).toString('hex');
    const version = '210007544c5376312e33';
    expect(values(tls)).toBe(`020003612e62${'200015'}0100000001${version}230003414553`);
    expect(values({ ...tls, peer })).toBe(`020003612e62${'20001b'}0700000000${version}220003646576230003414553`);
    const long = { ...tls, serverName: 'x'.repeat(129), peer: { ...peer, commonName: 'ü'.repeat(65) } };
    expect(values(long)).toBe(`${'200015'}0700000000${version}230003414553`);
    const most = {
      ...tls,
      version: 'x'.repeat(128),
      serverName: 'x'.repeat(128),
      alpn: 'x'.repeat(32),
      peer: { ...peer, commonName: 'x'.repeat(128) },
    };
    const header = encodeProxyHeader(2, six, six, most);
    expect(header.length).toBeLessThanOrEqual(PROXY_HEADER_LONGEST);
    expect(parseProxyHeader(header)).toMatchObject({ bytes: header.length, source: six, destination: six });
    const { peer: told, ...rest } = most;
    expect(parseProxyHeader(header)).toMatchObject({ tls: { ...rest, peer: { commonName: told.commonName } } });
    expect(encodeProxyHeader(1, four, four, tls)).toEqual(encodeProxyHeader(1, four, four));
  });

  it.each([
    ['that is no UTF-8', Buffer.from([0xff, 0xfe, 0x61])],
    ['with a NUL', Buffer.from('a\0b')],
  ])('takes a common name %s for none: it would be read in more than one way', (_name, name) => {
    const peer = { commonName: 'abc', subject: '', fingerprint: '', pem: '' };
    const header = encodeProxyHeader(2, four, four, { version: 'v', cipher: 'c', serverName: null, peer });
    name.copy(header, header.indexOf('abc'));
    expect(parseProxyHeader(header)).toMatchObject({ tls: { version: 'v', peer: { commonName: null } } });
  });

  it('writes both families as IPv6', () => {
    expect(encodeProxyHeader(1, four, six).toString()).toBe('PROXY TCP6 ::ffff:127.0.0.7 fe80::1:2 4711 1883\r\n');
    expect(parseProxyHeader(encodeProxyHeader(2, four, six))).toEqual({
      bytes: 52,
      source: four,
      destination: six,
      tls: null,
    });
  });

  it('says that it does not know names and missing addresses', () => {
    for (const source of [null, { host: 'name', port: 1, path: null }]) {
      expect(encodeProxyHeader(1, source, four).toString()).toBe('PROXY UNKNOWN\r\n');
      expect(parseProxyHeader(encodeProxyHeader(2, source, four))).toEqual({
        bytes: 16,
        source: null,
        destination: null,
        tls: null,
      });
    }
  });

  it('is read back as it was, in both versions', () => {
    const host = fc.oneof(fc.ipV4(), fc.ipV6()).filter((text) => !text.includes('%'));
    const end = fc.record({ host, port: fc.integer({ min: 0, max: 65535 }), path: fc.constant(null) });
    fc.assert(
      fc.property(end, end, (source, destination) => {
        const [one, two] = [1, 2].map((version) =>
          parseProxyHeader(encodeProxyHeader(version as 1 | 2, source, destination)),
        );
        if (one === 'bad' || one === 'more' || two === 'bad' || two === 'more') throw new Error(`${one} ${two}`);
        expect([one.source, one.destination]).toEqual([two.source, two.destination]);
        expect(one.source?.port).toBe(source.port);
        if (source.host.includes('.') && !source.host.includes(':')) expect(one.source?.host).toBe(source.host);
      }),
    );
  });
});

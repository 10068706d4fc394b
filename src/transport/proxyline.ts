// The PROXY protocol header, versions 1 and 2: read from incoming connections, written for upstream servers. Called by
// handshake.ts (incoming) and, for proxy/, gateway/transports.ts (outgoing). Pure; bytes are bounded before they are
// looked at. Source: the PROXY protocol, HAProxy, sections 2.1 (version 1), 2.2 (version 2), 2.2.7 (TLVs).
//
//  version 1   "PROXY TCP4 <source> <destination> <source port> <destination port>\r\n", at most 107 bytes
//  version 2   0..11 signature | 12 version, command | 13 family, transport | 14..15 length | addresses, TLVs
import { isUtf8 } from 'node:buffer';
import { isIPv4, isIPv6, SocketAddress } from 'node:net';
import { type HostPort, plainAddress } from './address.ts';
import type { TlsInfo } from './transport.ts';

export interface ProxyHeader {
  /** Bytes of the header; what follows belongs to the connection. */
  readonly bytes: number;
  /** null: the header names no addresses (LOCAL, UNKNOWN, Unix sockets), those of the socket hold. */
  readonly source: HostPort | null;
  readonly destination: HostPort | null;
  /**
   * What the sender says of its client's TLS (section 2.2.7), null without it. `peer` is there for a certificate that
   * was verified; of it the sender tells the common name alone.
   */
  readonly tls: TlsInfo | null;
}

const V1_LONGEST = 107;
const V1_START = Buffer.from('PROXY ');
const V2_START = Buffer.from([0x0d, 0x0a, 0x0d, 0x0a, 0x00, 0x0d, 0x0a, 0x51, 0x55, 0x49, 0x54, 0x0a]);
const V2_FIXED = 16;
/** With TLVs: what fits a minimal TCP segment, which a sender has to stay below to arrive in one piece. */
const V2_LONGEST = 536;
/** No valid header is longer. */
export const PROXY_HEADER_LONGEST = V2_LONGEST;

const CR = 0x0d;
const LF = 0x0a;
const PORT = /^(0|[1-9][0-9]{0,4})$/;

/** Reads the header at the start of `bytes`: 'more' when it is incomplete, 'bad' as soon as it cannot become one. */
export function parseProxyHeader(bytes: Buffer): ProxyHeader | 'more' | 'bad' {
  if (bytes.length === 0) return 'more';
  return bytes[0] === V2_START[0] ? parseV2(bytes) : parseV1(bytes);
}

function startsLike(bytes: Buffer, start: Buffer): boolean {
  const length = Math.min(bytes.length, start.length);
  return bytes.compare(start, 0, length, 0, length) === 0;
}

function parseV1(bytes: Buffer): ProxyHeader | 'more' | 'bad' {
  if (!startsLike(bytes, V1_START)) return 'bad';
  const limit = Math.min(bytes.length, V1_LONGEST);
  let end = 0;
  while (end < limit && bytes[end] !== CR) {
    if (bytes[end] < 0x20 || bytes[end] > 0x7e) return 'bad';
    end++;
  }
  if (end + 2 > limit) return limit === V1_LONGEST ? 'bad' : 'more';
  if (bytes[end + 1] !== LF) return 'bad';
  const line = bytes.toString('latin1', 0, end);
  if (line === 'PROXY UNKNOWN' || line.startsWith('PROXY UNKNOWN '))
    return { bytes: end + 2, source: null, destination: null, tls: null };
  const words = line.split(' ');
  if (words.length !== 6) return 'bad';
  const source = endOf(words[1], words[2], words[4]);
  const destination = endOf(words[1], words[3], words[5]);
  if (source === null || destination === null) return 'bad';
  return { bytes: end + 2, source, destination, tls: null };
}

function endOf(family: string, address: string, portText: string): HostPort | null {
  if (!PORT.test(portText)) return null;
  const port = Number(portText);
  if (port > 65535) return null;
  if (family === 'TCP4') return isIPv4(address) ? { host: address, port, path: null } : null;
  // A zone ("%eth0") means nothing on another machine.
  if (family !== 'TCP6' || !isIPv6(address) || address.includes('%')) return null;
  return { host: usualForm(address), port, path: null };
}

/** RFC 5952: lower case, the longest row of zeros shortened, so that rules and limits see one form. */
function usualForm(address: string): string {
  return plainAddress(new SocketAddress({ address, family: 'ipv6' }).address);
}

function parseV2(bytes: Buffer): ProxyHeader | 'more' | 'bad' {
  if (!startsLike(bytes, V2_START)) return 'bad';
  if (bytes.length >= 13 && (bytes[12] >> 4 !== 2 || (bytes[12] & 15) > 1)) return 'bad';
  if (bytes.length >= 14 && (bytes[13] >> 4 > 3 || (bytes[13] & 15) > 2)) return 'bad';
  if (bytes.length < V2_FIXED) return 'more';
  const length = bytes.readUInt16BE(14);
  const end = V2_FIXED + length;
  if (end > V2_LONGEST) return 'bad';
  const local = (bytes[12] & 15) === 0;
  const family = bytes[13] >> 4;
  if (!local && length < ADDRESS_BYTES[family]) return 'bad';
  if (bytes.length < end) return 'more';
  const stream = (bytes[13] & 15) === 1;
  const tls = local ? null : readTls(bytes.subarray(V2_FIXED + ADDRESS_BYTES[family], end));
  if (local || !stream || family === 0 || family === 3) return { bytes: end, source: null, destination: null, tls };
  return family === 1 ? v4Header(bytes, end, tls) : v6Header(bytes, end, tls);
}

/** Type-length-value triples; null when they do not fill their place. */
function triplesOf(bytes: Buffer): Map<number, Buffer> | null {
  const found = new Map<number, Buffer>();
  let at = 0;
  while (at < bytes.length) {
    if (at + 3 > bytes.length) return null;
    const end = at + 3 + bytes.readUInt16BE(at + 1);
    if (end > bytes.length) return null;
    // Of a type that comes twice the first holds.
    if (!found.has(bytes[at])) found.set(bytes[at], bytes.subarray(at + 3, end));
    at = end;
  }
  return found;
}

/** Null too for what cannot be read: the addresses hold, a certificate is not told of. */
function readTls(bytes: Buffer): TlsInfo | null {
  const triples = triplesOf(bytes);
  const ssl = triples?.get(SSL);
  if (triples === null || ssl === undefined || ssl.length < SSL_FIXED || (ssl[0] & CLIENT_SSL) === 0) return null;
  const inner = triplesOf(ssl.subarray(SSL_FIXED));
  if (inner === null) return null;
  // A name that is no text would be read in more than one way: it is none.
  const text = (value: Buffer | undefined): string =>
    value !== undefined && isUtf8(value) && !value.includes(0) ? value.toString('utf8') : '';
  // Verified is 0, as what OpenSSL gives: sections 2.2.7 and PP2_TYPE_SSL.
  const verified = (ssl[0] & CLIENT_CERTIFICATE) !== 0 && ssl.readUInt32BE(1) === 0;
  const name = text(inner.get(SSL_CN));
  const alpn = text(triples.get(ALPN));
  return {
    version: text(inner.get(SSL_VERSION)),
    cipher: text(inner.get(SSL_CIPHER)),
    serverName: triples.has(AUTHORITY) ? text(triples.get(AUTHORITY)) : null,
    ...(alpn === '' ? {} : { alpn }),
    peer: verified ? { commonName: name === '' ? null : name, subject: '', fingerprint: '', pem: '' } : null,
  };
}

/** By family: unspecified, IPv4, IPv6, Unix. */
const ADDRESS_BYTES = [0, 12, 36, 216] as const;

function v4Header(bytes: Buffer, end: number, tls: TlsInfo | null): ProxyHeader {
  const address = (at: number): string => bytes.subarray(at, at + 4).join('.');
  return {
    bytes: end,
    source: { host: address(16), port: bytes.readUInt16BE(24), path: null },
    destination: { host: address(20), port: bytes.readUInt16BE(26), path: null },
    tls,
  };
}

function v6Header(bytes: Buffer, end: number, tls: TlsInfo | null): ProxyHeader {
  const address = (at: number): string => {
    const groups: string[] = [];
    for (let i = 0; i < 16; i += 2) groups.push(bytes.readUInt16BE(at + i).toString(16));
    return usualForm(groups.join(':'));
  };
  return {
    bytes: end,
    source: { host: address(16), port: bytes.readUInt16BE(48), path: null },
    destination: { host: address(32), port: bytes.readUInt16BE(50), path: null },
    tls,
  };
}

/**
 * The header that tells a server where a connection came from. Ends that are not both TCP addresses (null, names) make
 * one that says so: UNKNOWN, or unspecified in version 2. Ends of two families are both written as IPv6. Version 2 also
 * says what TLS has shown.
 */
export function encodeProxyHeader(
  version: 1 | 2,
  source: HostPort | null,
  destination: HostPort | null,
  tls: TlsInfo | null = null,
): Buffer {
  const known = source !== null && destination !== null && familyOf(source) !== 0 && familyOf(destination) !== 0;
  if (!known) return version === 1 ? Buffer.from('PROXY UNKNOWN\r\n') : v2Bytes(0x00, Buffer.alloc(0));
  const four = familyOf(source) === 4 && familyOf(destination) === 4;
  if (version === 1) {
    const [from, to] = [source, destination].map((end) => (four ? end.host : mapped(end.host)));
    return Buffer.from(`PROXY ${four ? 'TCP4' : 'TCP6'} ${from} ${to} ${source.port} ${destination.port}\r\n`);
  }
  const ports = Buffer.alloc(4);
  ports.writeUInt16BE(source.port, 0);
  ports.writeUInt16BE(destination.port, 2);
  const address = (end: HostPort): Buffer => (four ? v4Bytes(end.host) : v6Bytes(mapped(end.host)));
  return v2Bytes(four ? 0x11 : 0x21, Buffer.concat([address(source), address(destination), ports, tlsValues(tls)]));
}

const ALPN = 0x01;
const AUTHORITY = 0x02;
const SSL = 0x20;
const SSL_VERSION = 0x21;
const SSL_CN = 0x22;
const SSL_CIPHER = 0x23;
/** Client and verify, before what is told of them. */
const SSL_FIXED = 5;
const CLIENT_SSL = 0x01;
/** The certificate came with this connection, and with this session. */
const CLIENT_CERTIFICATE = 0x02 | 0x04;
/** A value that is longer is left out: the whole header has to stay below V2_LONGEST. */
const VALUE_LONGEST = 128;
const ALPN_LONGEST = 32;

/** Server name, verification, version, common name and cipher, as type-length-value. */
function tlsValues(tls: TlsInfo | null): Buffer {
  if (tls === null) return Buffer.alloc(0);
  const { peer } = tls;
  // 0 only for a certificate that came and was verified.
  const head = Buffer.from([CLIENT_SSL | (peer === null ? 0 : CLIENT_CERTIFICATE), 0, 0, 0, peer === null ? 1 : 0]);
  const said = [value(SSL_VERSION, tls.version), value(SSL_CN, peer?.commonName ?? ''), value(SSL_CIPHER, tls.cipher)];
  const { alpn } = tls;
  const protocol = alpn && alpn.length <= ALPN_LONGEST ? value(ALPN, alpn) : Buffer.alloc(0);
  const names = [protocol, value(AUTHORITY, tls.serverName ?? '')];
  return Buffer.concat([...names, value(SSL, Buffer.concat([head, ...said]))]);
}

function value(type: number, text: string | Buffer): Buffer {
  const bytes = typeof text === 'string' ? Buffer.from(text) : text;
  if (bytes.length === 0 || (typeof text === 'string' && bytes.length > VALUE_LONGEST)) return Buffer.alloc(0);
  return Buffer.concat([Buffer.from([type, bytes.length >> 8, bytes.length & 0xff]), bytes]);
}

function familyOf(end: HostPort): 0 | 4 | 6 {
  if (isIPv4(end.host)) return 4;
  return isIPv6(end.host) ? 6 : 0;
}

function mapped(host: string): string {
  if (isIPv4(host)) return `::ffff:${host}`;
  const zone = host.indexOf('%');
  return zone < 0 ? host : host.slice(0, zone);
}

function v2Bytes(family: number, addresses: Buffer): Buffer {
  const head = Buffer.alloc(4);
  head[0] = 0x21;
  head[1] = family;
  head.writeUInt16BE(addresses.length, 2);
  return Buffer.concat([V2_START, head, addresses]);
}

function v4Bytes(host: string): Buffer {
  return Buffer.from(host.split('.').map(Number));
}

/** The 16 bytes of a valid IPv6 address, an IPv4 tail included. */
function v6Bytes(host: string): Buffer {
  const [left, right] = host.split('::').map(groupsOf);
  const bytes = Buffer.alloc(16);
  left.forEach((group, i) => {
    bytes.writeUInt16BE(group, i * 2);
  });
  if (right !== undefined)
    right.forEach((group, i) => {
      bytes.writeUInt16BE(group, 16 - (right.length - i) * 2);
    });
  return bytes;
}

function groupsOf(text: string): number[] {
  if (text === '') return [];
  return text.split(':').flatMap((group) => {
    if (!group.includes('.')) return [Number.parseInt(group, 16)];
    const four = v4Bytes(group);
    return [four.readUInt16BE(0), four.readUInt16BE(2)];
  });
}

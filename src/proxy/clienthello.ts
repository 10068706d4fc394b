// The server name a TLS client asks for, read from its first message without answering it: routing by SNI where TLS is
// passed on. Called by relay.ts with `non_mqtt = pass`. Pure, bounded by MAX_HELLO_BYTES; what cannot be read has no
// name and is passed on all the same. Source: RFC 8446 sections 4.1.2 and 5.1 (ClientHello, records), RFC 6066 section
// 3 (server_name).
//
//   record    22, version, length | fragment        handshake  1, three bytes length | body
//   body      version, random (32), session id <1>, cipher suites <2>, compression <1>, extensions <2>

/** No client sends more; it may take several records. */
export const MAX_HELLO_BYTES = 16 * 1024;

const HANDSHAKE_RECORD = 22;
const CLIENT_HELLO = 1;
const SERVER_NAME = 0;
const HOST_NAME = 0;
const HOST = /^[A-Za-z0-9_*.-]{1,255}$/;

/** The name in lower case; null = there is none or the bytes are no ClientHello; 'more' = more bytes are needed. */
export function helloName(bytes: Buffer): { readonly name: string | null } | 'more' {
  const hello = joined(bytes);
  if (hello === null) return { name: null };
  if (hello.length < 4) return tooLong(bytes);
  if (hello[0] !== CLIENT_HELLO) return { name: null };
  const end = 4 + hello.readUIntBE(1, 3);
  if (end > MAX_HELLO_BYTES) return { name: null };
  if (hello.length < end) return tooLong(bytes);
  return { name: nameIn(hello.subarray(4, end)) };
}

function tooLong(bytes: Buffer): { readonly name: null } | 'more' {
  return bytes.length >= MAX_HELLO_BYTES ? { name: null } : 'more';
}

/** The handshake bytes of the records so far; null when one is no handshake record. */
function joined(bytes: Buffer): Buffer | null {
  const parts: Buffer[] = [];
  for (let at = 0; at < bytes.length; ) {
    if (bytes[at] !== HANDSHAKE_RECORD) return at === 0 ? null : Buffer.concat(parts);
    if (bytes.length < at + 5) break;
    const end = at + 5 + bytes.readUInt16BE(at + 3);
    parts.push(bytes.subarray(at + 5, Math.min(end, bytes.length)));
    at = end;
  }
  return parts.length === 1 ? parts[0] : Buffer.concat(parts);
}

function nameIn(body: Buffer): string | null {
  // version and random
  let at = 34;
  for (const width of [1, 2, 1] as const) {
    if (body.length < at + width) return null;
    at += width + body.readUIntBE(at, width);
  }
  at += 2;
  while (at + 4 <= body.length) {
    const type = body.readUInt16BE(at);
    const end = at + 4 + body.readUInt16BE(at + 2);
    if (end > body.length) return null;
    if (type === SERVER_NAME) return hostIn(body.subarray(at + 4, end));
    at = end;
  }
  return null;
}

/** list length <2> | type, length <2>, name */
function hostIn(extension: Buffer): string | null {
  if (extension.length < 5 || extension[2] !== HOST_NAME) return null;
  const end = 5 + extension.readUInt16BE(3);
  if (end > extension.length) return null;
  const name = extension.toString('latin1', 5, end);
  return HOST.test(name) ? name.toLowerCase() : null;
}

// As much of ASN.1 DER as revocation lists need: elements with one-byte tags and definite lengths. Called by
// revocations.ts. Nothing is read beyond the bytes there are; what does not fit is an Error. Source: X.690 sections 8
// and 10, RFC 5280 section 4.1.2.5.

export interface Der {
  readonly tag: number;
  readonly body: Buffer;
  /** With tag and length. */
  readonly whole: Buffer;
}

const UTC_TIME = 0x17;
const GENERALIZED_TIME = 0x18;
/** Lengths of more bytes are beyond any file that is read here. */
const LONGEST_LENGTH = 4;

/** The element that begins at an offset. Throws an Error when it is not whole. */
export function readDer(bytes: Buffer, at: number): Der {
  let length = bytes[at + 1];
  let start = at + 2;
  if (length !== undefined && length > 0x7f) {
    const count = length & 0x7f;
    if (count === 0 || count > LONGEST_LENGTH || start + count > bytes.length) throw new Error('not DER');
    length = bytes.readUIntBE(start, count);
    start += count;
  }
  if (length === undefined || start + length > bytes.length) throw new Error('cut off');
  const end = start + length;
  return { tag: bytes.readUInt8(at), body: bytes.subarray(start, end), whole: bytes.subarray(at, end) };
}

/** The elements inside an element. */
export function children({ body }: Der): Der[] {
  const found: Der[] = [];
  for (let at = 0; at < body.length; ) {
    const one = readDer(body, at);
    found.push(one);
    at += one.whole.length;
  }
  return found;
}

export function booleanOf(der: Der | undefined): boolean {
  return der?.body.some((byte) => byte !== 0) === true;
}

export function timeTag(tag: number | undefined): boolean {
  return tag === UTC_TIME || tag === GENERALIZED_TIME;
}

/** UTCTime (years 1950 to 2049) or GeneralizedTime, both in UTC with seconds, as Unix milliseconds. */
export function readTime({ tag, body }: Der): number {
  const text = body.toString('latin1');
  const full = tag === UTC_TIME ? `${text < '50' ? '20' : '19'}${text}` : text;
  const parts = timeTag(tag) ? /^(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)Z$/.exec(full) : null;
  if (parts === null) throw new Error('a time cannot be read');
  const [year, month, day, hour, minute, second] = parts.slice(1).map(Number);
  return Date.UTC(year ?? 0, (month ?? 0) - 1, day, hour, minute, second);
}

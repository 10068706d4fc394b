// Payloads and frames as bytes: base64, hex, text, JSON. Pure; used by the message, topic and bridge pages and their
// tests.

export function fromBase64(text: string): Uint8Array {
  const raw = atob(text);
  const bytes = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i);
  return bytes;
}

export function toBase64(bytes: Uint8Array): string {
  let raw = '';
  // In pieces: a call takes only so many arguments.
  for (let i = 0; i < bytes.length; i += 4096) raw += String.fromCharCode(...bytes.subarray(i, i + 4096));
  return btoa(raw);
}

export function encodeText(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}

/** The bytes as text, null when they are not UTF-8. */
export function asText(bytes: Uint8Array): string | null {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    return null;
  }
}

/** Bytes written in hex, white space anywhere between them; null when it is something else. */
export function fromHex(text: string): Uint8Array | null {
  const digits = text.replace(/\s+/g, '');
  if (digits.length % 2 !== 0 || !/^[0-9a-f]*$/i.test(digits)) return null;
  const bytes = new Uint8Array(digits.length / 2);
  for (let i = 0; i < bytes.length; i++) bytes[i] = Number.parseInt(digits.slice(i * 2, i * 2 + 2), 16);
  return bytes;
}

export function hexByte(byte: number): string {
  return byte.toString(16).padStart(2, '0');
}

/** A byte as a character where it has one that can be seen, else a dot. */
export function visible(byte: number): string {
  return byte >= 0x20 && byte < 0x7f ? String.fromCharCode(byte) : '·';
}

/** Offset, sixteen bytes, their characters: one line each. */
export function hexDump(bytes: Uint8Array, limit = 4096): string {
  const lines: string[] = [];
  const end = Math.min(bytes.length, limit);
  for (let at = 0; at < end; at += 16) {
    const row = [...bytes.subarray(at, Math.min(at + 16, end))];
    const hex = row.map(hexByte);
    const left = hex.slice(0, 8).join(' ').padEnd(23);
    const right = hex.slice(8).join(' ').padEnd(23);
    lines.push(`${at.toString(16).padStart(6, '0')}  ${left}  ${right}  ${row.map(visible).join('')}`);
  }
  if (bytes.length > end) lines.push(`… ${bytes.length - end}`);
  return lines.join('\n');
}

/** JSON laid out over lines, null when the text is none. */
export function prettyJson(text: string): string | null {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return null;
  }
}

// Bytes and times as people and scripts read them. Called by the route files; pure.
import type { JsonObject } from './console.ts';

const utf8 = new TextDecoder('utf-8', { fatal: true });

/** The bytes as text, or null when they are not valid UTF-8. */
export function asText(bytes: Uint8Array): string | null {
  try {
    return utf8.decode(bytes);
  } catch {
    return null;
  }
}

/** A payload in an answer: as text under `name` where it is UTF-8, and always in base64 under `<name>_base64`. */
export function payloadFields(bytes: Uint8Array, name: string): JsonObject {
  const base64 = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('base64');
  const text = asText(bytes);
  return text === null ? { [`${name}_base64`]: base64 } : { [name]: text, [`${name}_base64`]: base64 };
}

/** Strict base64 (RFC 4648 section 4, padding needed); null when it is anything else. */
export function fromBase64(text: string): Uint8Array | null {
  if (text.length % 4 !== 0 || !/^[A-Za-z0-9+/]*={0,2}$/.test(text)) return null;
  return Buffer.from(text, 'base64');
}

/** "3 Hours, 2 minutes, 1 seconds", NanoMQ's words. */
export function uptimeText(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1000));
  return `${Math.floor(seconds / 3600)} Hours, ${Math.floor(seconds / 60) % 60} minutes, ${seconds % 60} seconds`;
}

/** "YYYY-MM-DD HH:MM:SS" in local time. */
export function dateText(ms: number): string {
  const d = new Date(ms);
  const two = (n: number): string => String(n).padStart(2, '0');
  const day = `${d.getFullYear()}-${two(d.getMonth() + 1)}-${two(d.getDate())}`;
  return `${day} ${two(d.getHours())}:${two(d.getMinutes())}:${two(d.getSeconds())}`;
}

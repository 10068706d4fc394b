// Request bodies: read up to a limit, parsed as JSON, and the rest of refused ones thrown away in bounded time. Called
// by app.ts. A body that says it is too large is refused before a byte of it is read.
import type { IncomingMessage } from 'node:http';
import type { Clock } from '../base/clock.ts';
import type { HttpSettings, Json } from './console.ts';

/**
 * How long and how much of a refused body is still read, so that the peer sees the answer instead of a reset
 * connection.
 */
const DISCARD_MS = 2000;
const DISCARD_BYTES = 64 * 1024 * 1024;
/** Nesting of JSON that is looked into: no document of the API comes near. */
const MAX_DEPTH = 64;

/** Bytes that a body without a configured limit may have: a JSON text of more is no document of this API. */
const NO_LIMIT_BYTES = 256 * 1024 * 1024;

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: false });

/** Bytes that a request's body may have. */
export function bodyLimit({ maxBodyBytes }: Pick<HttpSettings, 'maxBodyBytes'>): number {
  return maxBodyBytes === 0 ? NO_LIMIT_BYTES : maxBodyBytes;
}

/** Whether the header already says that the body is larger than `limit`. */
export function announcesMore(incoming: IncomingMessage, limit: number): boolean {
  const length = incoming.headers['content-length'];
  return length !== undefined && Number(length) > limit;
}

/** How a body is read that is not there in full: 'slow' = not within its time. */
export type BodyFault = 'too-large' | 'gone' | 'slow' | 'no-memory';

/** Time for the whole body; 0 = the server's limit for requests. */
export interface BodyTime {
  readonly clock: Clock;
  readonly ms: number;
}

/** Asked for each piece of a body; false = there is no memory for it. */
export type BodyRoom = (bytes: number) => boolean;

/**
 * The whole body; 'too-large' past `limit` bytes, 'gone' when the peer leaves before its end, 'slow' past its time,
 * 'no-memory' when `room` says so.
 */
export function readBody(
  incoming: IncomingMessage,
  limit: number,
  time: BodyTime,
  room: BodyRoom = () => true,
): Promise<Buffer | BodyFault> {
  if (announcesMore(incoming, limit)) return Promise.resolve('too-large');
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    let bytes = 0;
    const timer = time.ms > 0 ? time.clock.after(time.ms, () => settle('slow')) : null;
    const settle = (result: Buffer | BodyFault): void => {
      timer?.cancel();
      incoming.off('data', onData).off('end', onEnd).off('close', onClose).off('error', onClose);
      // Whatever comes after this is nobody's error.
      incoming.on('error', () => {});
      resolve(result);
    };
    const onData = (chunk: Buffer): void => {
      bytes += chunk.length;
      if (bytes > limit) settle('too-large');
      else if (!room(chunk.length)) settle('no-memory');
      else chunks.push(chunk);
    };
    const onEnd = (): void => settle(Buffer.concat(chunks, bytes));
    const onClose = (): void => settle('gone');
    incoming.on('data', onData).on('end', onEnd).on('close', onClose).on('error', onClose);
  });
}

/** Throws away what is left of a body; a peer that sends on and on loses its connection. */
export function discardBody(incoming: IncomingMessage, clock: Clock): void {
  if (incoming.complete || incoming.destroyed) return;
  let bytes = 0;
  const timer = clock.after(DISCARD_MS, () => incoming.socket.destroy());
  incoming.on('data', (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes > DISCARD_BYTES) incoming.socket.destroy();
  });
  incoming.on('end', () => timer.cancel());
  incoming.on('close', () => timer.cancel());
  incoming.resume();
}

/** Whether brackets outside strings stand deeper than MAX_DEPTH. O(n). */
function tooDeep(text: string): boolean {
  let depth = 0;
  let inString = false;
  for (let i = 0; i < text.length; i++) {
    const c = text.charCodeAt(i);
    if (inString) {
      if (c === 0x5c) i++;
      else if (c === 0x22) inString = false;
    } else if (c === 0x22) inString = true;
    else if (c === 0x5b || c === 0x7b) {
      if (++depth > MAX_DEPTH) return true;
    } else if (c === 0x5d || c === 0x7d) depth--;
  }
  return false;
}

/** The document in a body, or what is wrong with it. */
export function parseJson(body: Uint8Array): { readonly value: Json } | { readonly problem: string } {
  try {
    const text = utf8.decode(body);
    if (tooDeep(text)) return { problem: 'it is nested too deep' };
    const value: Json = JSON.parse(text);
    return { value };
  } catch (error) {
    return { problem: error instanceof SyntaxError ? error.message : 'it is not UTF-8' };
  }
}

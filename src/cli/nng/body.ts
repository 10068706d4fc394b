// What is typed and printed as a message body: text, hexadecimal digits, or bytes as they are. Pure but for the output.
// Used by nng.ts and request.ts.
import { escapeBytes } from '../../bridge/nng/in.ts';
import { hasTrace, TRACE_BYTES, traceHeader } from '../../bridge/trace.ts';
import type { Io } from '../cli.ts';
import { usage } from '../usage.ts';
import type { NngSubOptions, Trace } from './options.ts';

/** The bytes that `text` stands for. Throws CLI-USAGE for what are no hexadecimal digits. */
export function bodyOf(text: string, hex: boolean): Buffer {
  if (!hex) return Buffer.from(text);
  const digits = text.replaceAll(' ', '');
  if (digits.length % 2 !== 0 || !/^[0-9a-fA-F]*$/.test(digits))
    throw usage('--hex needs an even number of hexadecimal digits');
  return Buffer.from(digits, 'hex');
}

/** The bodies as `trace` says. Each header that is added has ids of its own. */
export async function* traced(bodies: AsyncGenerator<Buffer>, trace: Trace): AsyncGenerator<Buffer> {
  for await (const body of bodies) {
    if (trace === 'keep' || (trace === 'add') === hasTrace(body, 0, body.length)) yield body;
    else yield trace === 'add' ? Buffer.concat([traceHeader(null), body]) : body.subarray(TRACE_BYTES);
  }
}

/**
 * A message without its trace header, which stands behind the first `delimiter`, or at the begin where there is none.
 */
export function withoutTrace(message: Uint8Array, delimiter: Buffer | null): Uint8Array {
  const bytes = Buffer.from(message.buffer, message.byteOffset, message.length);
  const found = delimiter === null || delimiter.length === 0 ? -1 : bytes.indexOf(delimiter);
  for (const at of found < 0 || delimiter === null ? [0] : [0, found + delimiter.length]) {
    if (!hasTrace(bytes, at, bytes.length)) continue;
    return Buffer.concat([bytes.subarray(0, at), bytes.subarray(at + TRACE_BYTES)]);
  }
  return bytes;
}

/** Prints bytes[start, end) as the options say: as it is, in hexadecimal digits, or as a line of text. */
export function printBody(
  bytes: Uint8Array,
  start: number,
  end: number,
  options: Pick<NngSubOptions, 'raw' | 'hex'>,
  io: Io,
): void {
  const body = Buffer.from(bytes.subarray(start, end));
  if (options.raw) io.stdout.write(body);
  else if (options.hex) io.stdout.write(`${body.toString('hex')}\n`);
  else io.stdout.write(`${printable(body)}\n`);
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const CONTROLS = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g;

/** Text as it is, but no control characters that a terminal would obey; what is no UTF-8 is escaped byte by byte. */
function printable(body: Buffer): string {
  const text = body.toString();
  if (!Buffer.from(text).equals(body)) return escapeBytes(body, 0, body.length);
  return text.replaceAll(CONTROLS, (c) => `\\x${c.charCodeAt(0).toString(16).padStart(2, '0')}`);
}

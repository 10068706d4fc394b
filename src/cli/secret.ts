// Asks for a password: twice and without echo at a terminal, one line from a pipe. Called by commands that need one.
// It must never write what was typed and must leave the terminal as it was, also when it is interrupted.
import type { ReadStream } from 'node:tty';
import { GatewayError } from '../base/errors.ts';
import type { Io } from './cli.ts';

/** A password cannot be longer on the wire (MQTT 5.0 section 3.1.3.6). */
const LONGEST_BYTES = 65535;
const LINE_FEED = 10;
const RETURN = 13;
const CONTROL_C = 3;
const CONTROL_D = 4;
const BACKSPACE = 8;
const CONTROL_U = 21;
const DELETE = 127;

function isTerminal(stream: Io['stdin']): stream is ReadStream {
  return 'isTTY' in stream && stream.isTTY === true;
}

/** The bytes of the password; throws CLI-FAILED when there is none, it is too long, or the two differ. */
export async function askPassword(io: Io): Promise<Buffer> {
  if (!isTerminal(io.stdin)) return firstLine(io.stdin);
  const first = await typed(io, io.stdin, 'Password: ');
  const second = await typed(io, io.stdin, 'Again: ');
  if (!first.equals(second)) throw new GatewayError('CLI-FAILED', 'the passwords differ');
  return first;
}

async function firstLine(stdin: Io['stdin']): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of stdin) {
    const piece = Buffer.from(chunk);
    chunks.push(piece);
    bytes += piece.length;
    if (piece.includes(LINE_FEED)) break;
    if (bytes > LONGEST_BYTES + 2) throw new GatewayError('CLI-FAILED', 'the password is too long');
  }
  const all = Buffer.concat(chunks);
  const feed = all.indexOf(LINE_FEED);
  const line = feed < 0 ? all : all.subarray(0, feed);
  return line.at(-1) === RETURN ? line.subarray(0, -1) : line;
}

/** Reads one line from a terminal that does not echo it. */
function typed(io: Io, terminal: ReadStream, prompt: string): Promise<Buffer> {
  io.stderr.write(prompt);
  terminal.setRawMode(true);
  const bytes: number[] = [];
  return new Promise((resolve, reject) => {
    const finish = (error: string | null): void => {
      terminal.off('data', onData);
      terminal.off('end', onEnd);
      terminal.setRawMode(false);
      terminal.pause();
      io.stderr.write('\n');
      if (error === null) resolve(Buffer.from(bytes));
      else reject(new GatewayError('CLI-FAILED', error));
    };
    const onEnd = (): void => finish('no password');
    const onData = (chunk: Buffer | string): void => {
      for (const byte of Buffer.from(chunk)) {
        if (byte === RETURN || byte === LINE_FEED || byte === CONTROL_C || byte === CONTROL_D) {
          finish(byte === RETURN || byte === LINE_FEED ? null : 'interrupted');
          return;
        }
        if (byte === BACKSPACE || byte === DELETE) eraseLast(bytes);
        else if (byte === CONTROL_U) bytes.length = 0;
        else if (bytes.length < LONGEST_BYTES) bytes.push(byte);
      }
    };
    terminal.on('data', onData);
    terminal.on('end', onEnd);
    terminal.resume();
  });
}

/** Takes the last character back: in UTF-8 the bytes that continue it (10xxxxxx) and the one that begins it. */
function eraseLast(bytes: number[]): void {
  while (bytes.length > 0 && (bytes[bytes.length - 1] & 0xc0) === 0x80) bytes.pop();
  bytes.pop();
}

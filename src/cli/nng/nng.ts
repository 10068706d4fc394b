// `tidegate nng pub`, `sub`, `push`, `pull` and `pair`: SP peers for scripts and for looking at a bridge from outside.
// Called through cli/cli.ts. No configuration, no broker: station.ts is the socket, options.ts what may be typed.
// Source: docs/nng-bridges.md (command line), nngcat(1) for what people expect of such a tool.
import type { Readable } from 'node:stream';
import type { Command } from 'commander';
import { escapeBytes } from '../../bridge/nng/in.ts';
import type { Context, Io } from '../cli.ts';
import { usage } from '../usage.ts';
import {
  collect,
  commonOf,
  duration,
  type NngFlags,
  type NngPairOptions,
  type NngPubOptions,
  type NngSubOptions,
  singleTopic,
  wholeNumber,
  withCommon,
  withSending,
} from './options.ts';
import { Station, within } from './station.ts';

const NO_BYTES = new Uint8Array(0);

/**
 * Publishes topic + delimiter + data `count` times, or once for every line of standard input, from when there is a peer.
 * Returns the exit code: 1 when `timeoutMs` ran out first.
 */
export async function nngPub(options: NngPubOptions, io: Io): Promise<number> {
  const head = options.topic === null || options.raw ? NO_BYTES : Buffer.from(options.topic + options.delimiter);
  const single = options.data === null ? null : bodyOf(options.data, options.hex);
  const station = new Station(options, io);
  return within(options, io, station, (over) =>
    sendBodies(station, head, bodies(options, single, io.stdin), options.intervalMs, over),
  );
}

/** Sends each body once there is a first peer; a sender does not wait for every later one: peers come and go. */
async function sendBodies(
  station: Station,
  head: Uint8Array,
  messages: AsyncGenerator<Buffer>,
  intervalMs: number,
  over: () => boolean,
): Promise<void> {
  let first = true;
  for await (const body of messages) {
    if (!first && intervalMs > 0) await new Promise((resolve) => setTimeout(resolve, intervalMs));
    while (!over() && first && station.peers === 0) await station.change();
    while (!over() && !station.socket.send(head, body, 0, body.length)) await station.change();
    first = false;
    if (over()) return;
  }
}

async function* bodies(
  options: Pick<NngPubOptions, 'count' | 'hex'>,
  single: Buffer | null,
  stdin: Readable,
): AsyncGenerator<Buffer> {
  if (single !== null) {
    for (let i = 0; i < options.count; i++) yield single;
    return;
  }
  let rest = Buffer.alloc(0);
  for await (const chunk of stdin) {
    rest = Buffer.concat([rest, Buffer.from(chunk as Uint8Array)]);
    for (let end = rest.indexOf(10); end >= 0; end = rest.indexOf(10)) {
      yield options.hex ? bodyOf(rest.toString('latin1', 0, end), true) : Buffer.from(rest.subarray(0, end));
      rest = rest.subarray(end + 1);
    }
  }
  if (rest.length > 0) yield options.hex ? bodyOf(rest.toString('latin1'), true) : rest;
}

function bodyOf(text: string, hex: boolean): Buffer {
  if (!hex) return Buffer.from(text);
  const digits = text.replaceAll(' ', '');
  if (digits.length % 2 !== 0 || !/^[0-9a-fA-F]*$/.test(digits))
    throw usage('--hex needs an even number of hexadecimal digits');
  return Buffer.from(digits, 'hex');
}

/** Prints what the socket receives; gives a function that tells whether `count` messages have come. */
function printMessages(station: Station, options: Pick<NngSubOptions, 'raw' | 'hex' | 'count'>, io: Io): () => boolean {
  let left = options.count > 0 ? options.count : Number.POSITIVE_INFINITY;
  station.socket.onMessage((bytes, start, end) => {
    if (left <= 0) return;
    left--;
    const body = Buffer.from(bytes.subarray(start, end));
    if (options.raw) io.stdout.write(body);
    else if (options.hex) io.stdout.write(`${body.toString('hex')}\n`);
    else io.stdout.write(`${printable(body)}\n`);
    if (left === 0) station.wake();
  });
  return () => left <= 0;
}

/** Prints messages until there were `count`. Returns the exit code: 1 when `timeoutMs` ran out first. */
export async function nngSub(options: NngSubOptions, io: Io): Promise<number> {
  const station = new Station(options, io);
  const { socket } = station;
  for (const topic of options.topics) socket.subscribe(Buffer.from(topic + (options.delimiter ?? '')));
  if (options.topics.length === 0) socket.subscribe(NO_BYTES);
  const done = printMessages(station, options, io);
  return within(options, io, station, async (over) => {
    while (!done() && !over()) await station.change();
  });
}

/** Sends `data` or each line of standard input, and prints what comes until there were `count`. Returns the exit code. */
export async function nngPair(options: NngPairOptions, io: Io): Promise<number> {
  const head = options.topic === null || options.raw ? NO_BYTES : Buffer.from(options.topic + options.delimiter);
  const single = options.data === null ? null : bodyOf(options.data, options.hex);
  const station = new Station(options, io);
  const done = printMessages(station, options, io);
  return within(options, io, station, async (over) => {
    // Standard input may never end: what ends the command is what has come.
    const ended = (): boolean => over() || done();
    const sending = sendBodies(station, head, bodies({ count: 1, hex: options.hex }, single, io.stdin), 0, ended);
    sending.catch(() => station.wake());
    while (!ended()) await station.change();
  });
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const CONTROLS = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g;

/** Text as it is, but no control characters that a terminal would obey; what is no UTF-8 is escaped byte by byte. */
function printable(body: Buffer): string {
  const text = body.toString();
  if (!Buffer.from(text).equals(body)) return escapeBytes(body, 0, body.length);
  return text.replaceAll(CONTROLS, (c) => `\\x${c.charCodeAt(0).toString(16).padStart(2, '0')}`);
}

function addSender(nng: Command, context: Context, name: 'pub' | 'push', text: string): void {
  withSending(withCommon(nng.command(name), `${name}0`))
    .description(text)
    .option('--hex', 'data is written in hexadecimal digits')
    .option('--raw', 'send the data alone, without topic and delimiter')
    .option('--count <n>', 'how often (default: once)')
    .option('--interval <duration>', 'wait between messages (bare numbers are seconds)')
    .action(async (flags: NngFlags) => {
      const options: NngPubOptions = {
        ...commonOf(flags, ['pub0', 'push0', 'pair0', 'pair1']),
        topic: singleTopic(flags),
        delimiter: flags.delimiter ?? '/',
        data: flags.data ?? null,
        count: wholeNumber(flags.count, '--count', 1),
        intervalMs: duration(flags.interval, '--interval'),
      };
      context.exit(await nngPub(options, context.io));
    });
}

function addReceiver(nng: Command, context: Context, name: 'sub' | 'pull', text: string): void {
  const command = withCommon(nng.command(name), `${name}0`).description(text);
  // Only subscribers have prefixes.
  if (name === 'sub')
    command
      .option('--topic <prefix>', 'only messages that begin with this (may be repeated; default: all)', collect)
      .option('--delimiter <text>', 'only messages where this follows the topic at once');
  command
    .option('--hex', 'print hexadecimal digits')
    .option('--raw', 'print the bytes as they are, nothing added')
    .option('--count <n>', 'end after so many messages (default: never)')
    .action(async (flags: NngFlags) => {
      const options: NngSubOptions = {
        ...commonOf(flags, ['sub0', 'pull0', 'pair0', 'pair1']),
        topics: flags.topic ?? [],
        delimiter: flags.delimiter ?? null,
        count: wholeNumber(flags.count, '--count', 0),
      };
      context.exit(await nngSub(options, context.io));
    });
}

/** Adds the commands below `nng` to the program. */
export function registerNng(program: Command, context: Context): void {
  const nng = program.command('nng').description('talk to SP (NNG, nanomsg) peers');
  addSender(nng, context, 'pub', 'publish: each message is topic + delimiter + data');
  addReceiver(nng, context, 'sub', 'subscribe: prints each message');
  addSender(nng, context, 'push', 'send to one peer: each message is topic + delimiter + data');
  addReceiver(nng, context, 'pull', 'take from a pipeline: prints each message');
  withSending(withCommon(nng.command('pair'), 'pair0'))
    .description('talk to one peer: sends, and prints each message that comes')
    .option('--hex', 'data is written and printed in hexadecimal digits')
    .option('--raw', 'send the data alone, print the bytes as they are')
    .option('--count <n>', 'end after so many messages have come (default: never)')
    .action(async (flags: NngFlags) => {
      const options: NngPairOptions = {
        ...commonOf(flags, ['pair0', 'pair1']),
        topic: singleTopic(flags),
        delimiter: flags.delimiter ?? '/',
        data: flags.data ?? null,
        count: wholeNumber(flags.count, '--count', 0),
      };
      context.exit(await nngPair(options, context.io));
    });
}

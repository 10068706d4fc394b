// `tidegate nng pub`, `sub`, `push`, `pull`, `pair` and `bus`: SP peers for scripts and for looking at a bridge.
// `req`, `rep`, `survey` and `respond` are in request.ts.
// Called through cli/cli.ts. No configuration, no broker: station.ts is the socket, options.ts what may be typed.
// Source: docs/nng-bridges.md (command line), nngcat(1) for what people expect of such a tool.
import type { Readable } from 'node:stream';
import type { Command } from 'commander';
import type { Protocol } from '../../sp/sp.ts';
import type { Context, Io } from '../cli.ts';
import { usage } from '../usage.ts';
import { bodyOf, printBody, traced, withoutTrace } from './body.ts';
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
import { registerRequests } from './request.ts';
import { Station, within } from './station.ts';

const NO_BYTES = new Uint8Array(0);

function headOf({ topic, delimiter, raw, frame }: NngPairOptions | NngPubOptions): Uint8Array {
  return topic === null || raw || frame === 'payload' ? NO_BYTES : Buffer.from(topic + delimiter);
}

/**
 * Publishes topic + delimiter + data `count` times, or once for every line of standard input, from when there is a
 * peer. Returns the exit code: 1 when `timeoutMs` ran out first.
 */
export async function nngPub(options: NngPubOptions, io: Io): Promise<number> {
  const head = headOf(options);
  const single = options.data === null ? null : bodyOf(options.data, options.hex);
  const station = new Station(options, io);
  return within(options, io, station, (over) =>
    sendBodies(station, head, traced(bodies(options, single, io.stdin), options.trace), options.intervalMs, over),
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

type Printing = Pick<NngSubOptions, 'raw' | 'hex' | 'count' | 'frame' | 'trace' | 'delimiter'>;

/** Prints what the socket receives; gives a function that tells whether `count` messages have come. */
function printMessages(station: Station, options: Printing, io: Io): () => boolean {
  const delimiter = options.frame === 'payload' || options.delimiter === null ? null : Buffer.from(options.delimiter);
  let left = options.count > 0 ? options.count : Number.POSITIVE_INFINITY;
  station.socket.onMessage((bytes, start, end) => {
    if (left <= 0) return;
    left--;
    const message = options.trace === 'strip' ? withoutTrace(bytes.subarray(start, end), delimiter) : null;
    if (message === null) printBody(bytes, start, end, options, io);
    else printBody(message, 0, message.length, options, io);
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

/**
 * Sends `data` or each line of standard input, and prints what comes until there were `count`. Returns the exit code.
 */
export async function nngPair(options: NngPairOptions, io: Io): Promise<number> {
  const head = headOf(options);
  const single = options.data === null ? null : bodyOf(options.data, options.hex);
  const station = new Station(options, io);
  const done = printMessages(station, options, io);
  return within(options, io, station, async (over) => {
    // Standard input may never end: what ends the command is what has come.
    const ended = (): boolean => over() || done();
    const messages = traced(bodies({ count: 1, hex: options.hex }, single, io.stdin), options.trace);
    const sending = sendBodies(station, head, messages, 0, ended);
    sending.catch(() => station.wake());
    while (!ended()) await station.change();
  });
}

function addSender(nng: Command, context: Context, name: 'pub' | 'push', text: string): void {
  withSending(withCommon(nng.command(name), `${name}0`))
    .description(text)
    .option('--trace <keep|strip|add>', 'the trace header of the data: as it is, taken off or added (default: keep)')
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
    .option('--frame <topic|payload>', 'topic + delimiter + payload, or the payload alone (default: topic)')
    .option('--trace <keep|strip>', 'leave a trace header in front of a payload or take it off (default: keep)')
    .option('--hex', 'print hexadecimal digits')
    .option('--raw', 'print the bytes as they are, nothing added')
    .option('--count <n>', 'end after so many messages (default: never)')
    .action(async (flags: NngFlags) => {
      if (flags.trace === 'add') throw usage('--trace add is for commands that send');
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
  addTalker(nng, context, 'pair', 'talk to one peer: sends, and prints each message that comes', ['pair0', 'pair1']);
  addTalker(nng, context, 'bus', 'talk to every peer of a bus: sends, and prints each message that comes', ['bus0']);
  registerRequests(nng, context);
}

function addTalker(
  nng: Command,
  context: Context,
  name: 'pair' | 'bus',
  text: string,
  protocols: readonly Protocol[],
): void {
  withSending(withCommon(nng.command(name), `${name}0`))
    .description(text)
    .option('--trace <keep|strip|add>', 'trace headers: keep, take off what comes, add to data (default: keep)')
    .option('--hex', 'data is written and printed in hexadecimal digits')
    .option('--raw', 'send the data alone, print the bytes as they are')
    .option('--count <n>', 'end after so many messages have come (default: never)')
    .action(async (flags: NngFlags) => {
      const options: NngPairOptions = {
        ...commonOf(flags, protocols),
        topic: singleTopic(flags),
        delimiter: flags.delimiter ?? '/',
        data: flags.data ?? null,
        count: wholeNumber(flags.count, '--count', 0),
      };
      context.exit(await nngPair(options, context.io));
    });
}

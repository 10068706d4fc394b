// `tidegate nng pub`, `sub`, `push`, `pull` and `pair`: SP peers for scripts and for looking at a bridge from outside.
// Called through cli.ts. Uses the native driver over the gateway's own transports; no configuration, no broker.
// Source: docs/nng-bridges.md (command line), nngcat(1) for what people expect of such a tool.
import type { Readable } from 'node:stream';
import type { Command } from 'commander';
import { systemClock } from '../base/clock.ts';
import { errorText, GatewayError } from '../base/errors.ts';
import { Turn } from '../base/turn.ts';
import { BlockPool } from '../base/writer.ts';
import { escapeBytes } from '../bridge/nngin.ts';
import { parseDuration } from '../config/values.ts';
import { nativeDriver } from '../sp/native.ts';
import { PROTOCOLS, type Protocol, type SpOptions, type SpSocket } from '../sp/sp.ts';
import { parseSpUrl } from '../sp/url.ts';
import { MemoryNetwork } from '../transport/memory.ts';
import type { TlsClientOptions, TlsServerOptions } from '../transport/transport.ts';
import { spTransports } from '../transports.ts';
import type { Context, Io } from './cli.ts';

export interface NngCommon {
  readonly dial: readonly string[];
  readonly listen: readonly string[];
  readonly protocol: Protocol;
  readonly raw: boolean;
  readonly hex: boolean;
  /** Milliseconds until it gives up, 0 = never. */
  readonly timeoutMs: number;
  readonly tlsClient: TlsClientOptions | null;
  readonly tlsServer: TlsServerOptions | null;
}
export interface NngPubOptions extends NngCommon {
  readonly topic: string | null;
  readonly delimiter: string;
  /** null: every line of standard input is a message. */
  readonly data: string | null;
  readonly count: number;
  readonly intervalMs: number;
}
export interface NngSubOptions extends NngCommon {
  /** Prefixes; none = everything. */
  readonly topics: readonly string[];
  /** null: a topic is a plain prefix; else it has to be followed by this. */
  readonly delimiter: string | null;
  /** 0 = no end. */
  readonly count: number;
}
export interface NngPairOptions extends NngCommon {
  readonly topic: string | null;
  readonly delimiter: string;
  /** null: every line of standard input is a message. */
  readonly data: string | null;
  /** Messages to print before it ends, 0 = no end. */
  readonly count: number;
}

/** What leaves while the command ends. */
const STOP_MS = 2000;
const SEND_BUFFER = 64 << 20;
const RECV_MAX_SIZE = 256 << 20;
const RECONNECT_MAX_MS = 1000;
const NO_BYTES = new Uint8Array(0);

function usage(text: string): GatewayError {
  return new GatewayError('CLI-USAGE', text);
}

/** Lines about failures, until there is a peer. */
const MOST_TOLD = 20;

/** Why a peer was closed, in words (sp.ts has the reasons). */
const REFUSALS: ReadonlyMap<string, string> = new Map([
  ['wrong-protocol', 'the peer is an SP socket of a kind that does not go with this one'],
  ['bad-greeting', 'the peer does not speak SP'],
  ['greeting-timeout', 'the peer has sent no SP greeting'],
  ['too-large', 'the peer has sent a message that is too large'],
  ['bad-frame', 'the peer has sent what is no SP frame'],
]);

/** A socket with its endpoints, told apart from a script's point of view: peers there or not. */
class Station {
  readonly socket: SpSocket;
  peers = 0;
  private changed: (() => void)[] = [];
  private readonly io: Io;
  /** Failures that have been told since there was a peer. */
  private readonly told = new Set<string>();

  constructor(options: NngCommon, io: Io) {
    this.io = io;
    const transports = spTransports(new MemoryNetwork());
    const driver = nativeDriver({ transports, clock: systemClock, turn: new Turn(), pool: new BlockPool() });
    this.socket = driver.open(options.protocol, spOptions(options));
    this.socket.onRoom(() => this.wake());
    this.socket.onEvent((event) => {
      if (event.kind === 'pipe-up') {
        this.peers++;
        this.told.clear();
      }
      if (event.kind === 'pipe-down') this.peers--;
      if (event.kind === 'refused') this.note(`${event.remote}: ${REFUSALS.get(event.reason) ?? event.reason}`);
      if (event.kind === 'endpoint') this.noteEndpoint(event.endpoint.lastError);
      this.wake();
    });
  }

  open(options: NngCommon): void {
    try {
      for (const url of options.listen) this.socket.listen(url);
      for (const url of options.dial) this.socket.dial(url);
    } catch (error) {
      throw usage(errorText(error));
    }
  }

  /** The next time something happens. */
  change(): Promise<void> {
    return new Promise((resolve) => this.changed.push(resolve));
  }

  wake(): void {
    const changed = this.changed;
    this.changed = [];
    for (const resolve of changed) resolve();
  }

  /** A peer that was refused has been told by its own event. */
  private noteEndpoint(error: string | null): void {
    if (error !== null && !REFUSALS.has(error)) this.note(error);
  }

  /** One line on standard error, not again for every try. */
  private note(text: string): void {
    if (this.told.has(text) || this.told.size >= MOST_TOLD) return;
    this.told.add(text);
    this.io.stderr.write(`tidegate: ${text}\n`);
  }
}

function spOptions(options: NngCommon): SpOptions {
  return {
    sendBuffer: SEND_BUFFER,
    overflow: 'block',
    recvMaxSize: RECV_MAX_SIZE,
    reconnectMaxMs: RECONNECT_MAX_MS,
    ipcMode: null,
    ipcGroup: null,
    interface: null,
    tlsServer: options.tlsServer,
    tlsClient: options.tlsClient,
  };
}

/** Runs `work` with a deadline; timers of the gateway do not hold a process, so this one does. Gives the exit code. */
async function within(
  options: NngCommon,
  io: Io,
  station: Station,
  work: (over: () => boolean) => Promise<void>,
): Promise<number> {
  const endMs = options.timeoutMs > 0 ? systemClock.mono() + options.timeoutMs : Number.POSITIVE_INFINITY;
  const over = (): boolean => systemClock.mono() >= endMs;
  const ticks = setInterval(() => {
    if (over()) station.wake();
  }, 100);
  try {
    station.open(options);
    await work(over);
    await station.socket.stop(STOP_MS);
  } finally {
    clearInterval(ticks);
  }
  if (!over()) return 0;
  io.stderr.write('tidegate: timed out\n');
  return 1;
}

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

interface Flags {
  readonly dial?: string[];
  readonly listen?: string[];
  readonly topic?: string[];
  readonly delimiter?: string;
  readonly data?: string;
  readonly raw?: true;
  readonly hex?: true;
  readonly count?: string;
  readonly interval?: string;
  readonly timeout?: string;
  readonly protocol: string;
  readonly cafile?: string;
  readonly cert?: string;
  readonly key?: string;
  readonly insecure?: true;
}

function wholeNumber(text: string | undefined, option: string, otherwise: number): number {
  if (text === undefined) return otherwise;
  if (!/^[0-9]{1,15}$/.test(text)) throw usage(`${option} takes a whole number`);
  return Number(text);
}

function duration(text: string | undefined, option: string): number {
  if (text === undefined) return 0;
  const ms = parseDuration(text, 's');
  if (ms === null) throw usage(`${option} takes a duration such as 200ms, 5s or 1m`);
  return ms;
}

function commonOf(flags: Flags, allowed: readonly Protocol[]): NngCommon {
  const { dial = [], listen = [], raw, hex, cafile, cert, key, insecure } = flags;
  if (dial.length + listen.length === 0) throw usage('--dial URL or --listen URL is missing');
  for (const url of [...dial, ...listen]) {
    try {
      parseSpUrl(url);
    } catch (error) {
      throw usage(errorText(error));
    }
  }
  const protocol = (Object.keys(PROTOCOLS) as Protocol[]).find(
    (name) => name === flags.protocol && allowed.includes(name),
  );
  if (protocol === undefined) throw usage(`--protocol takes ${allowed.join(', ')}`);
  const tlsClient = {
    ca: cafile ?? null,
    cert: cert ?? null,
    key: key ?? null,
    keyPassword: null,
    verify: insecure !== true,
    serverName: null,
  };
  const server = cert === undefined || key === undefined ? null : { certfile: cert, keyfile: key };
  const tlsServer: TlsServerOptions | null =
    server === null
      ? null
      : {
          ...server,
          cacertfile: cafile ?? null,
          crlfile: null,
          keyPassword: null,
          verifyPeer: cafile !== undefined,
          failIfNoPeerCert: false,
          alpn: [],
        };
  return {
    dial,
    listen,
    protocol,
    raw: raw === true,
    hex: hex === true,
    timeoutMs: duration(flags.timeout, '--timeout'),
    tlsClient,
    tlsServer,
  };
}

function collect(value: string, before: string[] | undefined): string[] {
  return [...(before ?? []), value];
}

/** Options that both commands have. */
function withCommon(command: Command, protocol: string): Command {
  return command
    .option('--dial <url>', 'connect to this address, again whenever the link is lost (may be repeated)', collect)
    .option('--listen <url>', 'wait for peers at this address (may be repeated)', collect)
    .option('--protocol <name>', 'SP protocol of the socket', protocol)
    .option('--timeout <duration>', 'give up after this time (bare numbers are seconds; default: never)')
    .option('--cafile <file>', 'TLS: certificates to trust')
    .option('--cert <file>', 'TLS: own certificate')
    .option('--key <file>', 'TLS: its key')
    .option('--insecure', 'TLS: take any certificate');
}

/** Options of what is sent. */
function withSending(command: Command): Command {
  return command
    .option('--topic <text>', 'what the message begins with', collect)
    .option('--delimiter <text>', 'stands between topic and data (default: /)')
    .option('--data <text>', 'the message; without it each line of standard input is one');
}

function singleTopic(flags: Flags): string | null {
  if ((flags.topic ?? []).length > 1) throw usage('--topic may be given once');
  return flags.topic?.[0] ?? null;
}

function addSender(nng: Command, context: Context, name: 'pub' | 'push', text: string): void {
  withSending(withCommon(nng.command(name), `${name}0`))
    .description(text)
    .option('--hex', 'data is written in hexadecimal digits')
    .option('--raw', 'send the data alone, without topic and delimiter')
    .option('--count <n>', 'how often (default: once)')
    .option('--interval <duration>', 'wait between messages (bare numbers are seconds)')
    .action(async (flags: Flags) => {
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
    .action(async (flags: Flags) => {
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
    .action(async (flags: Flags) => {
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

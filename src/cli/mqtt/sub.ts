// `tidegate sub`: subscribes and prints what comes, with the options of mosquitto_sub(1). Called by cli/cli.ts. Ends
// with 0 after -C messages, at SIGTERM and SIGINT; with 1 when refused, and when -W seconds pass before -C messages
// have come. A connection that is lost later is tried again until it is back.
import type { EventEmitter } from 'node:events';
import { type Command, InvalidArgumentError } from 'commander';
import type { IPublishPacket, MqttClient } from 'mqtt';
import { errorText, GatewayError } from '../../base/errors.ts';
import { isTopicFilter, matches } from '../../mqtt/topic.ts';
import type { Context, Io } from '../cli.ts';
import { usage } from '../usage.ts';
import { openClient } from './client.ts';
import { formatter } from './format.ts';
import { type ClientSettings, clientSettings, collect, type MqttFlags, mqttOptions, whole } from './options.ts';
import { quietly } from './pub.ts';

export interface SubFlags extends MqttFlags {
  readonly topic: readonly string[];
  readonly filterOut: readonly string[];
  readonly unsubscribe: readonly string[];
  readonly count?: number;
  readonly format?: string;
  readonly verbose?: boolean;
  readonly pretty?: boolean;
  /** commander's form of -N, --no-end: false when it is given. */
  readonly end: boolean;
  readonly timeout?: number;
  readonly exitAfterSub?: boolean;
  /** -R */
  readonly stale: boolean;
  readonly retainedOnly?: boolean;
  readonly removeRetained?: boolean;
  readonly randomFilter: number;
}

export interface SubParts {
  /** `process`, or a stand-in that emits SIGTERM and SIGINT. */
  readonly signals: EventEmitter;
  readonly tty: boolean;
  readonly now: () => number;
}

/** The exit code when -W has passed. */
const TIMED_OUT = 1;

function percent(text: string): number {
  const value = Number(text);
  if (!/^\d{1,3}(\.\d+)?$/.test(text) || value <= 0 || value > 100)
    throw new InvalidArgumentError('It has to be above 0 and at most 100.');
  return value;
}

function filtersOf(flags: SubFlags, settings: ClientSettings): string[] {
  const filters = [...flags.topic];
  if (settings.urlTopic !== null) filters.push(settings.urlTopic);
  if (filters.length === 0 && flags.unsubscribe.length === 0) throw usage('a topic filter is needed: -t FILTER');
  for (const filter of [...filters, ...flags.unsubscribe, ...flags.filterOut]) {
    if (!isTopicFilter(filter)) throw usage(`${filter}: not a topic filter`);
  }
  return filters;
}

/** Prints messages until it has seen enough; `done` resolves then. */
class Printer {
  readonly done: Promise<void>;
  private finish: () => void = () => {};
  private over = false;
  private seen = 0;
  private readonly flags: SubFlags;
  private readonly client: MqttClient;
  private readonly io: Io;
  private readonly now: () => number;
  private readonly show: (packet: IPublishPacket, timeMs: number) => Buffer;

  constructor(flags: SubFlags, client: MqttClient, io: Io, parts: SubParts) {
    this.flags = flags;
    this.client = client;
    this.io = io;
    this.now = parts.now;
    this.show = formatter({
      format: flags.format ?? null,
      verbose: flags.verbose === true,
      pretty: flags.pretty === true,
      noEnd: !flags.end,
      tty: parts.tty,
    });
    this.done = new Promise((resolve) => {
      this.finish = resolve;
    });
  }

  take(packet: IPublishPacket): void {
    const { flags } = this;
    if (this.over) return;
    if (flags.retainedOnly === true && !packet.retain) {
      this.end();
      return;
    }
    if (packet.retain && !flags.stale) return;
    if (flags.filterOut.some((filter) => matches(filter, packet.topic))) return;
    if (flags.removeRetained === true && packet.retain) this.client.publish(packet.topic, '', { retain: true, qos: 1 });
    if (flags.randomFilter < 100 && Math.random() * 100 >= flags.randomFilter) return;
    this.io.stdout.write(this.show(packet, this.now()));
    this.seen++;
    if (flags.count !== undefined && this.seen >= flags.count) this.end();
  }

  private end(): void {
    this.over = true;
    // The message is acknowledged after this returns; the connection may end only then.
    setImmediate(this.finish);
  }
}

async function subscribe(
  client: MqttClient,
  filters: readonly string[],
  flags: SubFlags,
  settings: ClientSettings,
): Promise<void> {
  const unsubscribed = [...flags.unsubscribe];
  const ofUnsubscribe = settings.properties.get('unsubscribe');
  if (unsubscribed.length > 0)
    await client.unsubscribeAsync(unsubscribed, ofUnsubscribe === undefined ? {} : { properties: ofUnsubscribe });
  if (filters.length === 0) return;
  const rh = flags.stale || settings.protocol < 5 ? 0 : 2;
  let granted: { topic: string; qos: number }[];
  try {
    granted = await client.subscribeAsync([...filters], {
      qos: flags.qos,
      rh,
      properties: settings.properties.get('subscribe'),
    });
  } catch (error) {
    throw new GatewayError('CLI-FAILED', `not subscribed: ${errorText(error)}`, error);
  }
  for (const { topic, qos: code } of granted) {
    if (code > 2)
      throw new GatewayError('CLI-FAILED', `not subscribed to ${topic}: reason code 0x${code.toString(16)}`);
  }
}

/** Resolves at the first signal. */
function untilSignal(signals: EventEmitter): { fired: Promise<number>; off: () => void } {
  let fire = (): void => {};
  const fired = new Promise<number>((resolve) => {
    fire = () => resolve(0);
  });
  signals.once('SIGTERM', fire).once('SIGINT', fire);
  return { fired, off: () => signals.off('SIGTERM', fire).off('SIGINT', fire) };
}

/** Subscribes and prints. Throws CLI-USAGE and CLI-FAILED. */
export async function sub(flags: SubFlags, io: Io, parts: SubParts): Promise<number> {
  const settings = clientSettings(flags, 'tidegate-sub');
  const filters = filtersOf(flags, settings);
  // A wrong format is told before anything is connected.
  formatter({ format: flags.format ?? null, verbose: false, pretty: false, noEnd: false, tty: false });
  const signal = untilSignal(parts.signals);
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<number>((resolve) => {
    if (flags.timeout !== undefined) timer = setTimeout(() => resolve(TIMED_OUT), flags.timeout * 1000);
  });
  try {
    let finished: Promise<unknown> = Promise.resolve();
    const prepare = (client: MqttClient): void => {
      const printer = new Printer(flags, client, io, parts);
      client.on('message', (_topic, _payload, packet) => printer.take(packet));
      if (flags.exitAfterSub !== true) finished = printer.done;
    };
    const { client, lost, close } = await Promise.race([
      openClient(settings, true, io, prepare),
      signal.fired.then(() => Promise.reject(new Stopped())),
    ]);
    try {
      const again = (error: unknown): void => void io.stderr.write(`tidegate: ${errorText(error)}\n`);
      client.on('connect', () => subscribe(client, filters, flags, settings).catch(again));
      await Promise.race([subscribe(client, filters, flags, settings), lost]);
      const code = await Promise.race([finished.then(() => 0), signal.fired, late, lost]);
      if (code === TIMED_OUT && !settings.quiet) io.stderr.write('tidegate: timed out\n');
      await close();
      return code;
    } finally {
      client.end(true);
    }
  } catch (error) {
    if (error instanceof Stopped) return 0;
    throw error;
  } finally {
    clearTimeout(timer);
    signal.off();
  }
}

/** A signal came while connecting. */
class Stopped extends Error {}

export function registerSub(program: Command, context: Context): void {
  mqttOptions(program.command('sub'))
    .description('subscribe and print messages (options of mosquitto_sub)')
    .option('-t, --topic <filter>', 'topic filter; may be repeated', collect, [])
    .option('-T, --filter-out <filter>', 'do not print messages on these topics; may be repeated', collect, [])
    .option('-U, --unsubscribe <filter>', 'unsubscribe first; may be repeated', collect, [])
    .option('-C, --count <messages>', 'end after so many messages', whole(1, 4_294_967_295))
    .option('-W, --timeout <seconds>', 'end after so many seconds', whole(1, 2_000_000))
    .option('-v, --verbose', 'print the topic before the payload')
    .option(
      '-F, --format <format>',
      'output format: %t topic, %p payload, %x hex, %q %r %m %l, %j JSON, %I time, %P user properties ...',
    )
    .option('--pretty', 'JSON on several lines')
    .option('-N, --no-end', 'no line end behind each message')
    .option('-E, --exit-after-sub', 'end when the subscriptions are acknowledged')
    .option('-R, --no-stale', 'do not print retained messages')
    .option('--retained-only', 'print retained messages only, end at the first other one')
    .option('--remove-retained', 'clear the retained messages that come')
    .option('--random-filter <percent>', 'print a part of the messages', percent, 100)
    .action(async (flags: SubFlags) => {
      const parts: SubParts = { signals: process, tty: process.stdout.isTTY === true, now: Date.now };
      context.exit(await quietly(flags, sub(flags, context.io, parts)));
    });
}

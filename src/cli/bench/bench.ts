// `tidegate bench`: a load generator for MQTT brokers and for the SP side of bridges; also what `make bench` runs.
// Called by cli/cli.ts. Turns options into LoadOptions, shows a progress line on a terminal and a table (or JSON) at
// the end. Exit code 1 when messages were lost or came out of order at QoS 1 and 2, or a client was refused.
import { type Command, InvalidArgumentError, Option } from 'commander';
import { GatewayError } from '../../base/errors.ts';
import type { Qos, Version } from '../../mqtt/packet.ts';
import type { Context, Io } from '../cli.ts';
import type { LoadOptions, SpTarget } from './load.ts';
import { MIN_PAYLOAD } from './payload.ts';
import { type LoadResult, LoadRun, type Progress } from './run.ts';

interface BenchOptions {
  readonly host: string;
  readonly port: number;
  readonly unix?: string;
  readonly version: Version;
  readonly username?: string;
  readonly password?: string;
  readonly pubs: number;
  readonly subs: number;
  readonly topics: number;
  readonly topic: string;
  readonly filter?: string;
  readonly size: number;
  readonly qos: Qos;
  readonly subQos?: Qos;
  readonly durable?: boolean;
  readonly count: number;
  readonly seconds: number;
  readonly warmup?: number;
  readonly rate: number;
  readonly window?: number;
  readonly inflight: number;
  readonly pubUrl?: SpTarget;
  readonly subUrl?: SpTarget;
  readonly pair?: boolean;
  readonly prefix: string;
  readonly stall: number;
  readonly check: 'sample' | 'all';
  readonly json?: boolean;
}

const WINDOW_BYTES = 2 * 1024 * 1024;

function whole(min: number, max: number): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (!/^\d+$/.test(text) || value < min || value > max)
      throw new InvalidArgumentError(`It has to be a whole number from ${min} to ${max}.`);
    return value;
  };
}

function positive(text: string): number {
  const value = Number(text);
  if (!/^\d+(\.\d+)?$/.test(text) || value > 1e9)
    throw new InvalidArgumentError('It has to be a number that is not negative.');
  return value;
}

function qos(text: string): Qos {
  if (text === '0') return 0;
  if (text === '1') return 1;
  if (text === '2') return 2;
  throw new InvalidArgumentError('It has to be 0, 1 or 2.');
}

const VERSIONS: Readonly<Record<string, Version>> = Object.assign(Object.create(null), {
  '31': 3,
  mqttv31: 3,
  '3.1': 3,
  '311': 4,
  mqttv311: 4,
  '3.1.1': 4,
  '4': 4,
  '5': 5,
  mqttv5: 5,
});

function protocolVersion(text: string): Version {
  const version = VERSIONS[text];
  if (version === undefined) throw new InvalidArgumentError('It has to be 31, 311 or 5.');
  return version;
}

/** tcp://host:port or ipc:///path. */
function spUrl(text: string): SpTarget {
  const tcp = /^tcp:\/\/(\[[0-9a-fA-F:.]+\]|[^:/[\]]+):(\d{1,5})$/.exec(text);
  if (tcp !== null && Number(tcp[2]) > 0 && Number(tcp[2]) < 65_536) {
    return { address: { host: tcp[1].replace(/[[\]]/g, ''), port: Number(tcp[2]) }, ipc: false };
  }
  if (text.startsWith('ipc://') && text.length > 6) return { address: { path: text.slice(6) }, ipc: true };
  throw new InvalidArgumentError('It has to be tcp://host:port or ipc:///path.');
}

/**
 * What brokers hold for a subscriber before they drop: at QoS 0 some megabytes, at QoS 1 and 2 about a thousand
 * messages.
 */
function defaultWindow({ qos: level, size }: BenchOptions): number {
  return Math.min(level === 0 ? 10_000 : 1000, Math.max(1, Math.floor(WINDOW_BYTES / size)));
}

function loadOptions(options: BenchOptions): LoadOptions {
  const { publishTo, receiveFrom } = { publishTo: options.pubUrl ?? null, receiveFrom: options.subUrl ?? null };
  if (publishTo !== null && options.pubs !== 1) throw new GatewayError('CLI-USAGE', '--pub-url has one publisher');
  if (options.pair === true && publishTo === null && receiveFrom === null)
    throw new GatewayError('CLI-USAGE', '--pair goes with --pub-url or --sub-url');
  if (options.pair === true && receiveFrom !== null && options.subs !== 1)
    throw new GatewayError('CLI-USAGE', 'a pair0 socket has one peer: --subs 1');
  if (options.durable === true && receiveFrom !== null)
    throw new GatewayError('CLI-USAGE', '--durable is for MQTT subscribers: SP knows no sessions');
  if (options.subs === 0 && options.qos === 0 && options.rate === 0) {
    throw new GatewayError('CLI-USAGE', 'without subscribers and acknowledgements a --rate is needed');
  }
  return {
    broker: options.unix === undefined ? { host: options.host, port: options.port } : { path: options.unix },
    version: options.version,
    username: options.username ?? null,
    password: options.password ?? null,
    publishers: options.pubs,
    subscribers: options.subs,
    topics: options.topics,
    topicPrefix: options.topic,
    topicFilter: options.filter ?? `${options.topic.slice(0, options.topic.lastIndexOf('/') + 1)}#`,
    size: options.size,
    qos: options.qos,
    subscriptionQos: options.subQos ?? options.qos,
    durable: options.durable ?? false,
    count: options.count,
    seconds: options.seconds,
    // A run of a fixed count is measured whole, one of a fixed time after everything is warm.
    warmupSeconds: options.warmup ?? (options.count > 0 ? 0 : Math.min(1, options.seconds / 4)),
    rate: options.rate,
    window: options.window ?? defaultWindow(options),
    inflight: options.inflight,
    publishTo,
    receiveFrom,
    pair: options.pair ?? false,
    framePrefix: options.prefix,
    stallMs: options.stall * 1000,
    checkAll: options.check === 'all',
  };
}

function grouped(value: number): string {
  return Math.round(value).toLocaleString('en-US');
}

/** The final table. */
export function resultTable(result: LoadResult, size: number): string {
  const { latencyUs: l } = result;
  const rate = (perSecond: number): string =>
    `${grouped(perSecond).padStart(12)} msg/s ${((perSecond * size) / 1e6).toFixed(1).padStart(9)} MB/s payload`;
  const lines = [
    `sent       ${rate(result.sentPerSecond)}`,
    `received   ${rate(result.receivedPerSecond)}`,
    `latency    p50 ${grouped(l.p50)} us   p99 ${grouped(l.p99)} us   p99.9 ${grouped(l.p999)} us   max ${grouped(l.max)} us`,
    `messages   ${grouped(result.sent)} sent, ${grouped(result.received)} received, ${grouped(result.lost)} lost, ${grouped(result.disorder)} out of order`,
    `time       ${result.seconds.toFixed(2)} s measured, load generator used ${(result.loadCpu * 100).toFixed(0)} % of a core`,
  ];
  if (result.stalled) lines.push('stalled: nothing came any more, the run was ended');
  return `${lines.join('\n')}\n`;
}

function progressLine(io: Io): { show: (progress: Progress) => void; clear: () => void } | null {
  if (!('isTTY' in io.stderr) || io.stderr.isTTY !== true) return null;
  let last: Progress = { seconds: 0, sent: 0, received: 0 };
  return {
    show: (progress) => {
      if (progress.seconds - last.seconds < 0.5) return;
      const rate = (progress.received - last.received) / (progress.seconds - last.seconds);
      io.stderr.write(
        `\r${progress.seconds.toFixed(1).padStart(6)} s  ${grouped(progress.received)} received  ${grouped(rate)} msg/s\u001b[K`,
      );
      last = progress;
    },
    clear: () => io.stderr.write('\r\u001b[K'),
  };
}

/** Runs one load and prints what it measured; gives the exit code. */
export async function bench(options: LoadOptions, json: boolean, io: Io): Promise<number> {
  const line = json ? null : progressLine(io);
  const result = await new LoadRun(options, line === null ? null : line.show).run();
  line?.clear();
  io.stdout.write(json ? `${JSON.stringify(result)}\n` : resultTable(result, options.size));
  const broken = result.lost !== 0 || result.disorder > 0 || result.gaps > 0;
  const promised =
    Math.min(options.qos, options.subscriptionQos) > 0 && options.publishTo === null && options.receiveFrom === null;
  return result.stalled || (promised && broken) ? 1 : 0;
}

export function registerBench(program: Command, context: Context): void {
  program
    .command('bench')
    .helpOption('--help', 'show this help')
    .description('measure a broker or a bridge: throughput, latency, loss, order')
    .option('-h, --host <host>', 'broker', '127.0.0.1')
    .option('-p, --port <port>', 'port of the broker', whole(1, 65_535), 1883)
    .option('--unix <path>', 'Unix socket of the broker instead of host and port')
    .addOption(
      new Option('-V, --version <version>', 'protocol: 31, 311 or 5').argParser(protocolVersion).default(4, '311'),
    )
    .option('-u, --username <name>', 'user name')
    .option('-P, --password <password>', 'password')
    .option('--pubs <count>', 'publishers', whole(1, 10_000), 1)
    .option('--subs <count>', 'subscribers', whole(0, 10_000), 1)
    .option('--topics <count>', 'different topics', whole(1, 1_000_000), 1)
    .option('-t, --topic <prefix>', 'start of every topic', 'bench/t')
    .option('--filter <filter>', 'topic filter of the subscribers (default: all below the prefix)')
    .option('-s, --size <bytes>', 'payload bytes', whole(MIN_PAYLOAD, 200_000_000), 64)
    .option('-q, --qos <qos>', 'QoS of publishers', qos, 0)
    .option('-Q, --sub-qos <qos>', 'QoS of subscriptions (default: the same)', qos)
    .option('--durable', 'subscribers have sessions that are kept, and are stored where the broker stores')
    .option('-n, --count <messages>', 'messages to send; without it the time decides', whole(0, 1e12), 0)
    .option('-d, --seconds <seconds>', 'how long to send', positive, 5)
    .option('--warmup <seconds>', 'time at the start that is not measured', positive)
    .option('-r, --rate <per second>', 'messages a second in all; without it as fast as the window allows', positive, 0)
    .option(
      '-w, --window <messages>',
      'messages sent and not yet received (default: 10000, at QoS 1 and 2 1000, and no more than 2 MB)',
      whole(1, 10_000_000),
    )
    .option('--inflight <messages>', 'unacknowledged messages of one publisher at QoS 1 and 2', whole(1, 65_535), 100)
    .option('--pub-url <url>', 'publish frames to an SP sub0 socket there instead of MQTT', spUrl)
    .option('--sub-url <url>', 'receive frames from an SP pub0 socket there instead of MQTT', spUrl)
    .option('--pair', 'the SP sockets are pair0, here and there')
    .option(
      '--prefix <text>',
      'what stands before the payload of published frames; {topic} is a number below --topics',
      'bench:',
    )
    .option('--stall <seconds>', 'end when nothing has come for so long', positive, 3)
    .addOption(new Option('--check <which>', 'messages to look at').choices(['sample', 'all']).default('sample'))
    .option('--json', 'print the figures as one line of JSON')
    .action(async (options: BenchOptions) => {
      context.exit(await bench(loadOptions(options), options.json === true, context.io));
    });
}

// The loads of `make bench` and `make bench-check`, and how one of them is put on a server. 1,000 topics in turn, unless
// said otherwise: what repeats one topic flatters a broker that remembers it.
import { spawn } from 'node:child_process';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import type { LoadResult } from '../../src/cli/bench/run.ts';
import type { Server } from './server.ts';

export interface Scenario {
  readonly name: string;
  readonly text: string;
  /** Arguments of `tidegate bench` beside port and time. */
  readonly args: (server: Server) => string[];
  /** Only the gateway has SP bridges and rules. */
  readonly bridge?: boolean;
  /** The load is json.ts instead of `tidegate bench`. */
  readonly json?: boolean;
  /** For the second gateway, which has a rule on other topics. */
  readonly ruled?: boolean;
  readonly measure: 'out' | 'p50';
}

const TOPICS = '--topics 1000';

function load(name: string, text: string, args: string): Scenario {
  return { name, text, args: () => args.split(' '), measure: 'out' };
}

function bridge(name: string, text: string, args: Scenario['args']): Scenario {
  return { name, text, args, bridge: true, measure: 'out' };
}

function toNng(more: string): Scenario['args'] {
  return ({ outPort }) => `-t tonng/t --sub-url tcp://127.0.0.1:${outPort} -w 2000 ${more}`.split(' ');
}

/** What the gateway of `make bench` has beside server.ts: pair0 bridges of payloads, and the rule of json.ts. */
export const PAIRS = `bridges.nng.pair {
  pairout { enable = true, pair_url = "tcp://127.0.0.1:{pairOut}", mode = listen, send_buffer = 16MB
            forwards = [ { local_topic = "topair/#", frame = payload } ] }
  pairin { enable = true, pair_url = "tcp://127.0.0.1:{pairIn}", mode = listen
           subscription = [ { local_topic = "frompair/t", frame = payload, qos = 0 } ] }
}
`;
export const RULE = `rules.hot {
  from = ["rules/in/+"]
  where = "payload.temp > 20 && payload.unit == \\"C\\""
  set = { device = "payload.device", temp = "payload.temp", hot = "payload.temp > 50" }
  to = "rules/out/{1}"
}
`;

function pair(args: (server: Server) => string): Scenario['args'] {
  return (server) => `${args(server)} --pair -w 2000`.split(' ');
}

function fromNng(prefix: string, more: string): Scenario['args'] {
  return ({ inPort }) => `--pub-url tcp://127.0.0.1:${inPort} --prefix ${prefix} -w 2000 ${more}`.split(' ');
}

export const SCENARIOS: readonly Scenario[] = [
  load('one', 'QoS 0, 1 to 1, one topic', '-q 0'),
  load('topics', 'QoS 0, 1 to 1', `-q 0 ${TOPICS}`),
  load('qos1', 'QoS 1, 1 to 1', `-q 1 --inflight 500 ${TOPICS}`),
  load('qos2', 'QoS 2, 1 to 1', `-q 2 --inflight 500 ${TOPICS}`),
  load('v5', 'QoS 1, 1 to 1, MQTT 5.0', `-q 1 -V 5 --inflight 500 ${TOPICS}`),
  load('fanin', 'QoS 0, 50 to 1', `-q 0 --pubs 50 ${TOPICS}`),
  load('fanout', 'QoS 0, 1 to 20, copies out', `-q 0 --subs 20 ${TOPICS}`),
  load('many', 'QoS 0, 50 to 50, copies out', `-q 0 --pubs 50 --subs 50 ${TOPICS}`),
  load('crowd', 'QoS 1, 100 to 1, 20 in flight each', `-q 1 --pubs 100 --inflight 20 ${TOPICS}`),
  load('calm', 'QoS 0, 1,000 clients with 10 messages a second each', `-q 0 --pubs 1000 -r 10000 ${TOPICS}`),
  load('1k', 'QoS 0, 1 to 1, 1 KB', `-q 0 -s 1024 ${TOPICS}`),
  load('16k', 'QoS 0, 1 to 1, 16 KB, 10 topics', '-q 0 -s 16384 --topics 10'),
  load('256k', 'QoS 0, 1 to 1, 256 KB, 10 topics, 8 in flight', '-q 0 -s 262144 --topics 10 -w 8'),
  load('single', 'QoS 1, one message at a time', '-q 1 --inflight 1 -w 1'),
  bridge('mqtt2nng', 'MQTT to NNG, 2,000 in flight', toNng(TOPICS)),
  bridge('nng2mqtt', 'NNG to MQTT, 2,000 in flight', fromNng('in:', '-t fromnng/t')),
  bridge(
    'nngtopics',
    'NNG to MQTT, a topic in each frame, 2,000 in flight',
    fromNng('each/{topic}:', `-t each/ ${TOPICS}`),
  ),
  bridge(
    'mqtt2pair',
    'MQTT to NNG, pair0, payload frames, 2,000 in flight',
    pair(({ pairOutPort }) => `-t topair/t --sub-url tcp://127.0.0.1:${pairOutPort} ${TOPICS}`),
  ),
  bridge(
    'pair2mqtt',
    'NNG to MQTT, pair0, payload frames, 2,000 in flight',
    pair(({ pairInPort }) => `-t frompair/t --pub-url tcp://127.0.0.1:${pairInPort} --prefix=`),
  ),
  { ...bridge('rule', 'a rule with `where` and `set`, 64 bytes of JSON, 2,000 in flight', () => []), json: true },
  { ...load('ruleless', 'QoS 0, 1 to 1, a rule on other topics', `-q 0 ${TOPICS}`), bridge: true, ruled: true },
  { ...load('latency', 'p50 latency at 5,000/s, QoS 1', '-q 1 -r 5000 --topics 100'), measure: 'p50' },
];

export interface Sample {
  readonly result: LoadResult;
  /** Processor time that the broker used meanwhile, seconds. */
  readonly brokerSeconds: number;
  /** The same as a share of one core. */
  readonly brokerCpu: number;
}

const tsx = ['--import', import.meta.resolve('tsx')];
const root = path.dirname(path.dirname(path.dirname(fileURLToPath(import.meta.url))));

export async function measure(server: Server, scenario: Scenario, seconds: number): Promise<Sample> {
  const program =
    scenario.json === true ? [...tsx, path.join(root, 'test/bench/json.ts')] : [path.join(root, 'dist/main.js')];
  const own = [String(server.port), String(seconds)];
  const load = ['bench', '-p', String(server.port), '-d', String(seconds), '--json', ...scenario.args(server)];
  const args = [...program, ...(scenario.json === true ? own : load)];
  const cpuBefore = server.cpuSeconds();
  const begin = performance.now();
  const child = spawn(process.execPath, args, {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let out = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    out += text;
  });
  await new Promise((resolve) => child.once('close', resolve));
  if (!out.startsWith('{')) throw new Error(`${scenario.name} on ${server.name} gave no figures`);
  const brokerSeconds = server.cpuSeconds() - cpuBefore;
  const brokerCpu = brokerSeconds / ((performance.now() - begin) / 1000);
  return { result: JSON.parse(out) as LoadResult, brokerSeconds, brokerCpu };
}

/** Processor time of the broker for one message received, microseconds; warm-up is in it, which makes it a little more. */
export function perMessageUs({ brokerSeconds, result }: Sample): number {
  return (brokerSeconds * 1e6) / Math.max(1, result.received);
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

export function value(scenario: Scenario, { result }: Sample): number {
  return scenario.measure === 'p50' ? result.latencyUs.p50 : result.receivedPerSecond;
}

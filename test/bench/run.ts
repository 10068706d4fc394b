// `make bench`: the built gateway, the bare loop (bare.ts) and mosquitto side by side on this machine, the same load for
// all, interleaved, several rounds, medians.
//   npx tsx test/bench/run.ts [--only NAME[,NAME]] [--rounds N] [--seconds N] [--gateway-only] [--node "ARGS"] [--write]
// --node passes options to the gateway's node (--cpu-prof); --write puts the tables into docs/benchmarks.md.
// The load generator is `tidegate bench` in a process of its own; its own use of the processor is shown, because it must not be the limit.
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { restLines } from './rest.ts';
import {
  measure,
  median,
  PAIRS,
  perMessageUs,
  RULE,
  type Sample,
  SCENARIOS,
  type Scenario,
  value,
} from './scenarios.ts';
import { Server } from './server.ts';

const root = path.dirname(path.dirname(path.dirname(fileURLToPath(import.meta.url))));

function amount(scenario: Scenario, x: number): string {
  if (scenario.measure === 'p50') return `${Math.round(x)} us`;
  return x >= 1e6 ? `${(x / 1e6).toFixed(2)} M/s` : `${Math.round(x / 1000)} k/s`;
}

function share(samples: readonly Sample[], of: (sample: Sample) => number): string {
  return `${Math.round(median(samples.map(of)) * 100)} %`;
}

/**
 * One line of the table: the gateway, its processor time, the bare loop of the same runtime and the share of it that the
 * gateway reaches, mosquitto and how many times faster the gateway is, and what was lost.
 */
function row(scenario: Scenario, ours: readonly Sample[], bare: readonly Sample[], theirs: readonly Sample[]): string {
  if (ours.length === 0) return `| ${scenario.text} | no figures | | | | | | | |`;
  const mine = median(ours.map((s) => value(scenario, s)));
  const lost = ours.reduce((sum, s) => sum + s.result.lost + s.result.disorder, 0);
  const cells = [scenario.text, amount(scenario, mine), median(ours.map(perMessageUs)).toFixed(3)];
  for (const samples of [bare, theirs]) {
    if (samples.length === 0) {
      cells.push('-', '-');
      continue;
    }
    const other = median(samples.map((s) => value(scenario, s)));
    const ratio = scenario.measure === 'p50' ? other / mine : mine / other;
    cells.push(amount(scenario, other), samples === bare ? ratio.toFixed(2) : `${ratio.toFixed(1)} x`);
  }
  cells.push(
    String(lost),
    share(ours, (s) => s.brokerCpu),
    share(ours, (s) => s.result.loadCpu),
  );
  return `| ${cells.join(' | ')} |`;
}

/** What ran where, and how busy the machine was before: on a busy one figures are low and ratios rough. */
function machine(load: number): string {
  const cpu = os.cpus()[0]?.model.trim() ?? 'unknown processor';
  return `${os.cpus().length} cores (${cpu}), ${Math.round(os.totalmem() / 2 ** 30)} GB, Linux ${os.release().split('-')[0]}, Node.js ${process.version}, load average ${load.toFixed(1)} before`;
}

const HEAD = [
  '| load | tidegate | us a message | bare loop | of it | mosquitto | ratio | lost or out of order | gateway core | load core |',
  '|---|---|---|---|---|---|---|---|---|---|',
];

const PAGE = path.join(root, 'docs/benchmarks.md');
const BEGIN = '<!-- figures: written by make bench -->';
const END = '<!-- end of figures -->';

function writePage(lines: readonly string[]): void {
  const page = readFileSync(PAGE, 'utf8');
  const [from, to] = [page.indexOf(BEGIN), page.indexOf(END)];
  if (from < 0 || to < from) throw new Error('docs/benchmarks.md has no place for figures');
  writeFileSync(PAGE, `${page.slice(0, from)}${BEGIN}\n${lines.join('\n')}\n${page.slice(to)}`);
}

function needsRule(scenario: Scenario): boolean {
  return scenario.json === true || scenario.ruled === true;
}

function named(name: string): Scenario {
  const found = SCENARIOS.find((scenario) => scenario.name === name);
  if (found === undefined) throw new Error(`no scenario ${name}`);
  return found;
}

/** What a rule costs topics that it does not take from: the same load on two gateways. */
function unchanged(without: readonly Sample[], withRule: readonly Sample[]): string[] {
  if (without.length === 0 || withRule.length === 0) return [];
  const rate = (samples: readonly Sample[]): number => median(samples.map(({ result }) => result.receivedPerSecond));
  const cost = (samples: readonly Sample[]): number => median(samples.map(perMessageUs));
  const [speed, time] = [rate(withRule) / rate(without), cost(without) / cost(withRule)];
  return [
    `Topics that no rule takes from, with a rule and without one: throughput ${speed.toFixed(2)}, processor time ${time.toFixed(2)} (1 = the same).`,
  ];
}

function mosquittoProgram(): string | null {
  const places = [
    '/usr/sbin/mosquitto',
    '/usr/local/sbin/mosquitto',
    ...(process.env.PATH ?? '').split(':').map((p) => `${p}/mosquitto`),
  ];
  return places.find((file) => existsSync(file)) ?? null;
}

/** The name of the rows of start and rest for --only. */
const REST = 'rest';

async function main(): Promise<void> {
  const [load] = os.loadavg();
  const { values } = parseArgs({
    options: {
      only: { type: 'string' },
      rounds: { type: 'string', default: '5' },
      seconds: { type: 'string', default: '3' },
      'gateway-only': { type: 'boolean', default: false },
      node: { type: 'string', default: '' },
      write: { type: 'boolean', default: false },
    },
  });
  const wanted = values.only?.split(',');
  const unknown = wanted?.filter((name) => name !== REST && !SCENARIOS.some((s) => s.name === name)) ?? [];
  if (unknown.length > 0)
    throw new Error(
      `no such scenario: ${unknown.join(', ')}; there are ${[...SCENARIOS.map((s) => s.name), REST].join(', ')}`,
    );
  const scenarios = SCENARIOS.filter((s) => wanted?.includes(s.name) ?? true);
  const program = values['gateway-only'] ? null : mosquittoProgram();
  if (program === null && !values['gateway-only'])
    console.error('mosquitto is not installed: only the gateway is measured');

  const nodeArgs = values.node.split(' ').filter((arg) => arg !== '');
  const gateway = await Server.gateway(root, nodeArgs, PAIRS);
  const ruled = scenarios.some(needsRule) ? await Server.gateway(root, nodeArgs, PAIRS + RULE) : null;
  const bare = values['gateway-only'] ? null : await Server.bare(root);
  const mosquitto = program === null ? null : await Server.mosquitto(program);
  const servers = [gateway, ruled, bare, mosquitto].filter((server) => server !== null);
  const samples = new Map<string, Sample[]>();
  const key = (server: Server, scenario: Scenario): string => `${servers.indexOf(server)} ${scenario.name}`;
  const of = (server: Server | null, scenario: Scenario): Sample[] =>
    (server === null ? undefined : samples.get(key(server, scenario))) ?? [];
  const measures = (server: Server, scenario: Scenario): boolean =>
    needsRule(scenario) ? server === ruled : server === gateway || (server !== ruled && scenario.bridge !== true);
  try {
    for (const server of servers) await server.start();
    const rest = servers
      .filter((s) => s !== ruled && s !== gateway)
      .map((s) => `${s.name} listens after ${Math.round(s.startMs)} ms and rests at ${s.rssMb().toFixed(0)} MB`);
    for (let round = 1; round <= Number(values.rounds); round++) {
      for (const scenario of scenarios) {
        for (const server of servers) {
          if (!measures(server, scenario)) continue;
          const sample = await measure(server, scenario, Number(values.seconds)).catch((error: Error) => error);
          if (sample instanceof Error) {
            console.error(`round ${round}  ${sample.message}`);
            process.exitCode = 1;
            continue;
          }
          samples.set(key(server, scenario), [...of(server, scenario), sample]);
          const { result } = sample;
          console.error(
            `round ${round}  ${scenario.name.padEnd(9)} ${server.name.padEnd(9)} ${amount(scenario, value(scenario, sample)).padStart(10)}` +
              `  lost ${result.lost}  order ${result.disorder}  broker ${Math.round(sample.brokerCpu * 100)} %  load ${Math.round(result.loadCpu * 100)} %`,
          );
        }
      }
    }
    const lines = [
      ...HEAD,
      ...scenarios.map((scenario) =>
        row(scenario, of(needsRule(scenario) ? ruled : gateway, scenario), of(bare, scenario), of(mosquitto, scenario)),
      ),
      '',
      `Medians of ${values.rounds} interleaved rounds of ${values.seconds} s, 64-byte payloads, 1,000 topics in turn and MQTT 3.1.1 unless said otherwise; ${machine(load)}.`,
      `${rest.join('; ')}${rest.length > 0 ? '; after' : 'After'} the load the gateway holds ${gateway.rssMb().toFixed(0)} MB.`,
    ];
    if (ruled !== null) lines.push(...unchanged(of(gateway, named('topics')), of(ruled, named('ruleless'))));
    // On its own: what loads the machine would be measured too.
    for (const server of servers.reverse()) await server.stop();
    if (wanted?.includes(REST) ?? true) lines.push('', ...(await restLines(process.execPath, Number(values.rounds))));
    console.log(lines.join('\n'));
    if (values.write) writePage(lines);
  } finally {
    for (const server of servers) await server.stop();
  }
}

await main();

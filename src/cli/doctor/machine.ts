// `tidegate doctor`, the machine: descriptors, memory, clock, and the limits of the service. Called by doctor.ts.
// Asks the system's own programs where they are there, for a short time. Sources: getrlimit(2), systemctl(1),
// timedatectl(1), systemd.resource-control(5).
import { execFile } from 'node:child_process';
import { totalmem } from 'node:os';
import type { Config } from '../../config/config.ts';
import { sessionLimits } from '../../gateway/options.ts';
import { Descriptors } from '../../transport/descriptors.ts';
import { type Finding, Findings, sizeWords } from './finding.ts';

/** For one program. */
const ASK_MS = 3000;
/** Of Node.js itself, the store and the pages. */
const OWN_BYTES = 150 * 1024 * 1024;
/** For files, peers, the console. */
const OWN_DESCRIPTORS = 256;
const FEW_DESCRIPTORS = 4096;
/** No clock of a machine that has been set is older. */
const EARLIEST_MS = Date.UTC(2025, 0, 1);

export type Ask = (program: string, args: readonly string[]) => Promise<string | null>;

/** Standard output of a program; null where it is not there, fails or takes too long. */
export const askSystem: Ask = (program, args) =>
  new Promise((resolve) => {
    execFile(program, [...args], { timeout: ASK_MS, maxBuffer: 65_536 }, (error, stdout) => {
      resolve(error === null ? stdout : null);
    });
  });

/** Connections that the configuration allows; null: no listener has a limit. */
function mostConnections({ listeners }: Config): number | null {
  const limits = listeners.map(({ maxConnections }) => maxConnections);
  return limits.length === 0 || limits.includes(0) ? null : limits.reduce((sum, one) => sum + one, 0);
}

export function checkLimits(config: Config, limit: number | null = new Descriptors().limit): Finding[] {
  const found = new Findings('limits');
  const wanted = mostConnections(config);
  if (limit === null) found.skip('the system does not tell how many files a process may open');
  else if (wanted !== null && wanted + OWN_DESCRIPTORS > limit)
    found.warn(
      `${limit} files may be open, max_connections of the listeners allow ${wanted} clients`,
      `ulimit -n ${wanted + OWN_DESCRIPTORS}, or LimitNOFILE of the service`,
    );
  else if (wanted === null && limit < FEW_DESCRIPTORS)
    found.warn(
      `${limit} files may be open: about ${Math.max(0, limit - OWN_DESCRIPTORS)} clients`,
      'ulimit -n 65536, or LimitNOFILE of the service',
    );
  else found.ok(`${limit} files may be open`);
  return found.list;
}

export function checkMemory(
  config: Config,
  memory: number = totalmem(),
  group: number = process.constrainedMemory?.() ?? 0,
): Finding[] {
  const found = new Findings('memory');
  const { memoryBudget, keptBudget } = sessionLimits(config);
  const have = group > 0 ? Math.min(memory, group) : memory;
  // Queues count as full at one and a half budgets (gateway/options.ts).
  const need = 1.5 * memoryBudget + keptBudget + OWN_BYTES;
  const text = `up to ${sizeWords(need)} of ${sizeWords(have)} may be used`;
  if (need <= have) found.ok(text);
  else {
    const advice = 'lower mqtt.memory_budget and mqtt.kept_budget, or set broker.profile = small';
    found.warn(text, advice);
  }
  return found.list;
}

export async function checkClock(ask: Ask = askSystem, nowMs: number = Date.now()): Promise<Finding[]> {
  const found = new Findings('clock');
  const shown = new Date(nowMs).toISOString().slice(0, 19).replace('T', ' ');
  if (nowMs < EARLIEST_MS) {
    found.fail(`the clock says ${shown} UTC`, 'set it: certificates are not valid yet at this time');
    return found.list;
  }
  const answer = await ask('timedatectl', ['show', '--property=NTPSynchronized', '--value']);
  const synchronized = answer?.trim();
  if (synchronized === 'yes') found.ok(`the clock is set by the network: ${shown} UTC`);
  else if (synchronized === 'no')
    found.warn(
      `the clock is not set by the network: ${shown} UTC`,
      'timedatectl set-ntp true: certificates, tokens and logs need the right time',
    );
  else found.ok(`the clock says ${shown} UTC (no timedatectl tells whether the network sets it)`);
  return found.list;
}

const PROPERTIES = ['LoadState', 'ActiveState', 'LimitNOFILE', 'MemoryMax', 'TasksMax', 'User'];

export async function checkService(config: Config, ask: Ask = askSystem): Promise<Finding[]> {
  const found = new Findings('service');
  const answer = await ask('systemctl', ['show', 'tidegate.service', `--property=${PROPERTIES.join(',')}`]);
  const values = new Map(
    (answer ?? '').split('\n').map((line): [string, string] => {
      const at = line.indexOf('=');
      return [line.slice(0, at), line.slice(at + 1)];
    }),
  );
  if (values.get('LoadState') !== 'loaded') {
    found.skip('tidegate is not a service of systemd here');
    return found.list;
  }
  found.ok(`tidegate.service is ${values.get('ActiveState')}, as user ${values.get('User') || 'root'}`);
  const number = (name: string): number => {
    const text = values.get(name) ?? '';
    return /^\d{1,15}$/.test(text) ? Number(text) : Number.POSITIVE_INFINITY;
  };
  const wanted = mostConnections(config);
  const files = number('LimitNOFILE');
  if (wanted !== null && wanted + OWN_DESCRIPTORS > files)
    found.warn(
      `the service may open ${files} files, the listeners allow ${wanted} clients`,
      `systemctl edit tidegate: [Service] LimitNOFILE=${wanted + OWN_DESCRIPTORS}`,
    );
  const memory = number('MemoryMax');
  const need = sessionLimits(config).memoryBudget + OWN_BYTES;
  if (memory < need)
    found.warn(
      `the service may use ${sizeWords(memory)}, mqtt.memory_budget alone needs ${sizeWords(need)}`,
      'systemctl edit tidegate: a larger MemoryMax, or a lower mqtt.memory_budget',
    );
  if (number('TasksMax') < 32)
    found.warn(`the service may have ${number('TasksMax')} threads`, 'systemctl edit tidegate: [Service] TasksMax=64');
  return found.list;
}

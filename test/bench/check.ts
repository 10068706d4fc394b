// `make bench-check COMMIT=...`: the working tree against an older commit, the same loads in turns, so that no change makes
// the gateway slower unseen.
//   npx tsx test/bench/check.ts COMMIT [--only NAME[,NAME]] [--rounds N] [--seconds N] [--least RATIO]
// Both are built, the commit in a worktree of its own below the system's folder for temporary files, and measured
// alternately. A load fails when throughput and processor time a message are both below the least ratio: what is really
// slower is worse in both, and a busy machine rarely spoils the medians of both.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { measure, median, perMessageUs, type Sample, SCENARIOS, type Scenario } from './scenarios.ts';
import { Server } from './server.ts';

const root = path.dirname(path.dirname(path.dirname(fileURLToPath(import.meta.url))));

/** What is checked without --only: one of each kind. */
const CHECKED = [
  'one',
  'topics',
  'qos1',
  'qos2',
  'v5',
  'fanout',
  'fanin',
  '1k',
  '16k',
  '256k',
  'single',
  'mqtt2nng',
  'nng2mqtt',
];

/** Builds `commit` in a worktree of its own; returns its folder and what removes it. */
function checkout(commit: string): { folder: string; remove: () => void } {
  const parent = mkdtempSync(path.join(os.tmpdir(), 'tidegate-check-'));
  const folder = path.join(parent, 'tree');
  const git = (...args: string[]): void => void execFileSync('git', ['-C', root, ...args], { stdio: 'inherit' });
  const remove = (): void => {
    git('worktree', 'remove', '--force', folder);
    rmSync(parent, { recursive: true, force: true });
  };
  git('worktree', 'add', '--detach', '--quiet', folder, commit);
  try {
    // The packages of now: what the commit needs beyond them fails its build, and is said there.
    symlinkSync(path.join(root, 'node_modules'), path.join(folder, 'node_modules'));
    execFileSync('npx', ['tsx', 'scripts/build.ts'], { cwd: folder, stdio: 'inherit' });
  } catch (error) {
    remove();
    throw error;
  }
  return { folder, remove };
}

interface Verdict {
  readonly rate: number;
  readonly cost: number;
  readonly wrong: number;
}

function compare(now: readonly Sample[], before: readonly Sample[]): Verdict {
  const rate = (samples: readonly Sample[]): number => median(samples.map(({ result }) => result.receivedPerSecond));
  const cost = (samples: readonly Sample[]): number => median(samples.map(perMessageUs));
  const wrong = now.reduce((sum, { result }) => sum + result.lost + result.disorder, 0);
  return { rate: rate(now) / rate(before), cost: cost(before) / cost(now), wrong };
}

async function rounds(
  servers: readonly Server[],
  scenario: Scenario,
  count: number,
  seconds: number,
): Promise<Verdict> {
  const samples: Sample[][] = servers.map(() => []);
  for (let round = 0; round < count; round++)
    // Whoever comes second finds warmer caches and a busier machine: they take turns.
    for (const n of round % 2 === 0 ? [0, 1] : [1, 0]) samples[n].push(await measure(servers[n], scenario, seconds));
  return compare(samples[0], samples[1]);
}

async function main(): Promise<void> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      only: { type: 'string' },
      rounds: { type: 'string', default: '7' },
      seconds: { type: 'string', default: '1.5' },
      least: { type: 'string', default: '0.93' },
    },
  });
  const [commit] = positionals;
  if (commit === undefined) throw new Error('which commit? make bench-check COMMIT=...');
  const names = values.only?.split(',') ?? CHECKED;
  const scenarios = names.map((name) => {
    const found = SCENARIOS.find((scenario) => scenario.name === name);
    if (found === undefined) throw new Error(`no such scenario: ${name}`);
    return found;
  });
  const older = checkout(commit);
  const servers: Server[] = [];
  const slower: string[] = [];
  try {
    for (const folder of [root, older.folder]) {
      const server = await Server.gateway(folder, []);
      servers.push(server);
      await server.start();
    }
    console.log(`${'load'.padEnd(10)} throughput  processor time   (ratios to ${commit}; above 1 = better now)`);
    for (const scenario of scenarios) {
      const verdict = await rounds(servers, scenario, Number(values.rounds), Number(values.seconds));
      const bad = Math.max(verdict.rate, verdict.cost) < Number(values.least) || verdict.wrong > 0;
      if (bad) slower.push(scenario.name);
      const lost = verdict.wrong > 0 ? `  ${verdict.wrong} lost or out of order` : '';
      const text = `${verdict.rate.toFixed(2).padStart(10)} ${verdict.cost.toFixed(2).padStart(15)}`;
      console.log(`${scenario.name.padEnd(10)} ${text}${bad ? '   SLOWER' : ''}${lost}`);
    }
  } finally {
    for (const server of servers.reverse()) await server.stop();
    older.remove();
  }
  if (slower.length > 0) {
    console.log(`slower than ${commit}: ${slower.join(', ')}`);
    process.exitCode = 1;
  }
}

await main();

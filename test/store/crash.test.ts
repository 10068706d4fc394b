// kill -9 in the middle of everything, again and again on one database. TIDEGATE_CRASH_ROUNDS=300 makes it a long run.
import { spawn } from 'node:child_process';
import { mkdirSync, readFileSync, rmSync } from 'node:fs';
import { dirname } from 'node:path';
import { expect, test } from 'vitest';
import type { Restored } from '../../src/store/store.ts';
import { programBundle, storePath, testJournal, writerBundle } from '../harness/journal.ts';

const ROUNDS = Number(process.env.TIDEGATE_CRASH_ROUNDS ?? 8);
/** Rounds on one database. */
const FRESH = 10;

/** What the killed processes have said so far, over all rounds. */
class Said {
  readonly told = new Map<string, number[]>();
  readonly acknowledged = new Set<string>();
  readonly done = new Set<string>();
  readonly inbound: { packetId: number; session: string; sequence: number }[] = [];
  readonly retained = new Map<string, number>();
  spooled = 0;
  spoolDeleted = 0;

  line(text: string): void {
    const [kind, a, b, c] = text.split(' ');
    switch (kind) {
      case 'q':
        this.tell(a, Number(b));
        return;
      case 'i':
        this.inbound.push({ packetId: Number(a), session: b, sequence: Number(c) });
        this.tell(b, Number(c));
        return;
      case 'a':
        this.acknowledged.add(`${a} ${b}`);
        return;
      case 'd':
        this.done.add(`${a} ${b}`);
        return;
      case 'R':
        this.retained.set(a, Number(b));
        return;
      case 'S':
        this.spooled = Number(a);
        return;
      case 'x':
        this.spoolDeleted = Number(a);
    }
  }

  private tell(session: string, sequence: number): void {
    const list = this.told.get(session) ?? [];
    list.push(sequence);
    this.told.set(session, list);
  }
}

/** Runs the program until it is killed `afterMs` after it is ready. */
function killed(program: string, args: string[], afterMs: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [program, ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
    let errors = '';
    child.stderr.on('data', (chunk: Buffer) => {
      errors += chunk;
    });
    child.stdout.once('data', () => setTimeout(() => child.kill('SIGKILL'), afterMs));
    child.once('close', (_code, signal) => {
      if (signal === 'SIGKILL') resolve();
      else reject(new Error(`ended by itself: ${errors}`));
    });
  });
}

function check(restored: Restored, said: Said): void {
  for (const { session, queue, inbound } of restored.sessions) {
    const id = session.clientId.slice(1);
    const present = new Set(queue.map((m) => m.sequence));
    expect(queue.map((m) => m.sequence)).toEqual([...present].sort((x, y) => x - y));
    let missing: number | null = null;
    for (const sequence of said.told.get(id) ?? []) {
      // The next round begins a new stretch of sequences; what the last one left unwritten stays so.
      if (missing !== null && Math.floor(sequence / 1_000_000) !== Math.floor(missing / 1_000_000)) missing = null;
      if (present.has(sequence)) {
        // What is stored has no hole before it, or the order of the session would be lost.
        if (missing !== null) throw new Error(`session ${id}: ${sequence} is there and ${missing} is not`);
      } else if (!said.done.has(`${id} ${sequence}`)) {
        if (said.acknowledged.has(`${id} ${sequence}`))
          throw new Error(`session ${id}: ${sequence} was acknowledged and lost`);
        missing ??= sequence;
      }
    }
    for (const { packetId, session: owner, sequence } of said.inbound) {
      if (owner !== id || !inbound.includes(packetId)) continue;
      if (present.has(sequence) || said.done.has(`${id} ${sequence}`)) continue;
      throw new Error(`session ${id}: inbound id ${packetId} is there and its message ${sequence} is not`);
    }
  }
  const versions = new Map(restored.retained.map((m) => [m.topic, Number(Buffer.from(m.payload).toString())]));
  for (const [topic, version] of said.retained) expect(versions.get(topic) ?? -1).toBeGreaterThanOrEqual(version);
  const spool = restored.spools.get('mqtt:up') ?? [];
  if (said.spooled > said.spoolDeleted) expect(spool.at(-1)?.sequence ?? -1).toBeGreaterThanOrEqual(said.spooled);
}

test(`nothing acknowledged is lost and order is kept over ${ROUNDS} kills`, {
  timeout: 30_000 + ROUNDS * 5000,
}, async () => {
  let path = storePath();
  const program = programBundle('storecrash');
  let said = new Said();
  let acknowledged = 0;
  for (let round = 1; round <= ROUNDS; round++) {
    // A store that only grows makes the rounds long: now and then a new one begins.
    if (round % FRESH === 0) {
      path = storePath();
      said = new Said();
    }
    mkdirSync(dirname(path), { recursive: true });
    const lines = `${path}.said`;
    await killed(program, [path, writerBundle().href, `${round}`, lines], 20 + ((round * 37) % 200));
    for (const line of readFileSync(lines, 'utf8').split('\n').slice(0, -1)) said.line(line);
    rmSync(lines);
    const { journal } = testJournal(path, { onCorrupt: 'stop' });
    const restored = await journal.load();
    await journal.close();
    check(restored, said);
    acknowledged += said.acknowledged.size;
  }
  expect(acknowledged).toBeGreaterThan(ROUNDS);
});

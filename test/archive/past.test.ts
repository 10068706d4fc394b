// Figures over time and events: which step an answer has, what a file that does not answer leaves, what is bounded, and
// that a restart goes on where the gateway stopped. On the real file, without its thread.
import { mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Archive } from '../../src/archive/archive.ts';
import { Bounds, openArchive } from '../../src/archive/file.ts';
import { Happenings } from '../../src/archive/happenings.ts';
import { Past } from '../../src/archive/past.ts';
import type { Questions, Written } from '../../src/archive/protocol.ts';
import { Sampler } from '../../src/archive/sampler.ts';
import type { BrokerEvent } from '../../src/broker/broker.ts';
import type { Database } from '../../src/store/driver.ts';
import { FakeClock } from '../harness/clock.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;
const ALL = { kinds: [], search: '', limit: 1000, before: 0 };

let folder: string;
let db: Database;
let past: Past;
let broken: boolean;
let writes: number;

/** The archive without its thread; while `broken`, nothing is written and nothing answered. */
const archive: Archive = {
  write: (written: Written) => {
    if (broken) return Promise.reject(new Error('no room'));
    writes++;
    if (written.what === 'figures') past.writeFigures(written.rows);
    if (written.what === 'events') past.writeEvents(written.rows);
    return Promise.resolve();
  },
  ask: <N extends keyof Questions>(name: N, asked: Questions[N]['asked']) => {
    if (broken) return Promise.reject(new Error('damaged'));
    const { figures, events } = {
      figures: asked as Questions['figures']['asked'],
      events: asked as Questions['events']['asked'],
    };
    const { names, from, to, stepMs } = figures;
    const answer = name === 'figures' ? past.figures(names, from, to, stepMs) : past.events(events);
    return Promise.resolve(answer as Questions[N]['answer']);
  },
};

beforeEach(() => {
  folder = mkdtempSync(path.join(os.tmpdir(), 'past-'));
  ({ db } = openArchive(path.join(folder, 'archive.db'), false));
  past = new Past(db);
  broken = false;
  writes = 0;
});
afterEach(() => {
  db.close();
  rmSync(folder, { recursive: true, force: true });
});

/** Moves in steps of a look and lets what was started end. */
async function pass(clock: FakeClock, ms: number): Promise<void> {
  for (let gone = 0; gone < ms; gone += 10_000) {
    clock.advance(10_000);
    for (let i = 0; i < 5; i++) await Promise.resolve();
  }
}

describe('figures', () => {
  let total = 0;
  const source = { counters: ['sent'], look: () => ({ sent: (total += 50), clients: 3, lag_p99: total % 100 }) };

  test.each([
    ['ten minutes', 10 * MINUTE_MS, 10_000],
    ['an hour', HOUR_MS, 10_000],
    ['six hours', 6 * HOUR_MS, MINUTE_MS],
    ['a day', DAY_MS, MINUTE_MS],
    ['a week', 7 * DAY_MS, 10 * MINUTE_MS],
    ['thirty days', 30 * DAY_MS, 10 * MINUTE_MS],
  ])('%s are answered in the finest step that is kept for all of it', async (_name, backMs, stepMs) => {
    const clock = new FakeClock();
    const sampler = new Sampler(clock, source);
    sampler.start(archive);
    await pass(clock, 2 * HOUR_MS);
    const { times, values } = await sampler.find(['sent', 'clients', 'none'], clock.now() - backMs, clock.now(), 1);
    expect(times.length).toBeGreaterThan(5);
    expect(times[3] - times[2]).toBe(stepMs);
    expect(values.sent.slice(1)).toEqual(times.slice(1).map(() => 5));
    expect(values.clients).toEqual(times.map(() => 3));
    expect(values.none).toEqual(times.map(() => null));
    await sampler.stop();
  });

  test('after a restart there is what was before it, and the time away is a gap and not a fall', async () => {
    const clock = new FakeClock();
    const first = new Sampler(clock, source);
    first.start(archive);
    await pass(clock, 5 * MINUTE_MS);
    await first.stop();
    const stoppedAt = clock.now();
    clock.advance(10 * MINUTE_MS);
    total = 0;
    const second = new Sampler(clock, source);
    second.start(archive);
    await pass(clock, 5 * MINUTE_MS);
    const { times, values } = await second.find(['sent'], clock.now() - HOUR_MS, clock.now(), 1);
    expect(times.filter((time) => time <= stoppedAt)).toHaveLength(31);
    expect(times.filter((time) => time > stoppedAt && time < stoppedAt + 10 * MINUTE_MS)).toEqual([]);
    expect(values.sent.filter((value) => value !== 5)).toEqual([null, null]);
    await second.stop();
  });

  test('where the file does not answer, the last hour comes from memory and more is an error', async () => {
    const clock = new FakeClock();
    const sampler = new Sampler(clock, source);
    broken = true;
    sampler.start(archive);
    await pass(clock, 10 * MINUTE_MS);
    const { times } = await sampler.find(['clients'], clock.now() - HOUR_MS, clock.now(), 1);
    expect(times).toHaveLength(61);
    await expect(sampler.find(['clients'], clock.now() - DAY_MS, clock.now(), 1)).rejects.toThrow('damaged');
    broken = false;
    await pass(clock, MINUTE_MS);
    expect(past.figures(['clients'], 0, clock.now(), 1).times).toHaveLength(67);
    await sampler.stop();
  });

  test('thirty-one days take less than 8 MB, whatever the figures are', () => {
    const wide = Object.fromEntries(Array.from({ length: 24 }, (_, i) => [`figure_number_${i}`, 123_456.7 * (i + 1)]));
    const start = Date.UTC(2024, 0, 1);
    for (const [level, seconds] of [
      [10, 7200],
      [60, 2 * 86_400],
      [600, 31 * 86_400],
    ]) {
      const rows = Array.from({ length: seconds / level }, (_, i) => ({
        level,
        time: start + i * level * 1000,
        values: wide,
      }));
      db.exec('BEGIN');
      past.writeFigures(rows);
      db.exec('COMMIT');
    }
    const counts = db.prepare('SELECT level, count(*) FROM figure GROUP BY level ORDER BY level', true).all([]);
    expect(counts).toEqual([
      [10, 361],
      [60, 1441],
      [600, 4321],
    ]);
    expect(new Bounds(db, { keepMs: 0, maxBytes: 0 }).bytes()).toBeLessThan(8 << 20);
  });
});

describe('events', () => {
  test('changes with who, bridges and sums of clients are found by kind and text after a restart', async () => {
    const clock = new FakeClock();
    const first = new Happenings(clock);
    first.start(archive);
    const handlers = new Set<(event: BrokerEvent) => void>();
    const leave = first.follow({
      onEvent: (handler) => {
        handlers.add(handler);
        return () => handlers.delete(handler);
      },
    });
    const log = first.wrap(() => {});
    log('info', 'WEB-CHANGE', { user: 'alice', path: '/api/v4/bridges' });
    log('warn', 'NNG-STATE', { bridge: 'plant', state: 'retrying' });
    for (let i = 0; i < 3; i++)
      for (const handler of handlers) handler({ kind: 'refused', reason: 'bad-credentials' } as BrokerEvent);
    await pass(clock, MINUTE_MS);
    leave();
    await first.stop();
    const second = new Happenings(clock);
    second.start(archive);
    const find = async (more: object): Promise<string[]> =>
      (await second.find({ ...ALL, from: 0, to: clock.now(), ...more })).rows.map(({ kind }) => kind);
    expect(await find({ search: 'ALICE' })).toEqual(['configuration']);
    expect(await find({ kinds: ['bridge'] })).toEqual(['bridge']);
    expect(await find({ kinds: ['clients', 'bridge'] })).toEqual(['clients', 'bridge']);
    const { rows } = await second.find({ ...ALL, from: 0, to: clock.now(), kinds: ['clients'] });
    expect(JSON.parse(rows[0].fields)).toEqual({ connected: 0, disconnected: 0, refused: 3, 'bad-credentials': 3 });
    await second.stop();
  });

  test('what cannot be written waits, and is there once the file takes it', async () => {
    const clock = new FakeClock();
    const happenings = new Happenings(clock);
    broken = true;
    happenings.start(archive);
    happenings.wrap(() => {})('info', 'GW-RELOAD', { changed: 1 });
    await pass(clock, 20_000);
    await expect(happenings.find({ ...ALL, from: 0, to: clock.now() })).rejects.toThrow('damaged');
    broken = false;
    await pass(clock, 10_000);
    expect((await happenings.find({ ...ALL, from: 0, to: clock.now() })).rows).toHaveLength(1);
    expect(writes).toBe(1);
    await happenings.stop();
  });

  test('one kind of line that repeats leaves room for the others, and says how often it came', async () => {
    const clock = new FakeClock();
    const happenings = new Happenings(clock);
    happenings.start(null);
    const log = happenings.wrap(() => {});
    for (let i = 0; i < 500; i++) log('warn', 'NNG-STATE', { bridge: 'flapping' });
    log('info', 'GW-RELOAD', {});
    await pass(clock, MINUTE_MS);
    const { rows } = await happenings.find({ ...ALL, from: 0, to: clock.now() });
    expect(rows).toHaveLength(22);
    expect(rows[0].text).toContain('480 more times');
    await happenings.stop();
  });

  test('pages go on where the last one ended, each event once', () => {
    past.writeEvents(
      Array.from({ length: 25 }, (_, i) => ({ time: i, kind: 'alarm', level: 'warn', text: `n${i}`, fields: '{}' })),
    );
    const texts: string[] = [];
    for (let before: number | null = 0; before !== null; ) {
      const page = past.events({ ...ALL, from: 0, to: 100, limit: 10, before });
      texts.push(...page.rows.map(({ text }) => text));
      before = page.next;
    }
    expect(texts).toEqual(Array.from({ length: 25 }, (_, i) => `n${24 - i}`));
  });
});

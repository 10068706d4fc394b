// The gate: slots, lines that take turns, work that nobody needs any more.
import { expect, it } from 'vitest';
import { Gate } from '../../src/auth/gate.ts';

/** Jobs that end when they are told to. */
class Jobs {
  readonly began: string[] = [];
  private readonly ends: (() => void)[] = [];

  of(name: string): () => Promise<string> {
    return () => {
      this.began.push(name);
      return new Promise((resolve) => this.ends.push(() => resolve(name)));
    };
  }

  async endOne(): Promise<void> {
    this.ends.shift()?.();
    await new Promise((resolve) => setImmediate(resolve));
  }
}

it('lines take turns: who asks for much waits for its own work', async () => {
  const gate = new Gate(1, 100);
  const jobs = new Jobs();
  for (let n = 0; n < 5; n++) void gate.run(jobs.of(`much${n}`), { key: 'much' });
  void gate.run(jobs.of('other'), { key: 'other' });
  await jobs.endOne();
  await jobs.endOne();
  await jobs.endOne();
  expect(jobs.began).toEqual(['much0', 'much1', 'other', 'much2']);
});

it('work for who has gone is dropped when its turn comes', async () => {
  const gate = new Gate(1, 2000);
  const jobs = new Jobs();
  void gate.run(jobs.of('first'), { key: 'a' });
  const gone = Array.from({ length: 1100 }, (_, n) => gate.run(jobs.of(`${n}`), { key: 'a', gone: () => true }));
  void gate.run(jobs.of('here'), { key: 'a' });
  await jobs.endOne();
  expect(jobs.began).toEqual(['first', 'here']);
  expect(new Set(await Promise.all(gone))).toEqual(new Set([null]));
});

it('a full line makes room for those with less in it, and refuses those with more', async () => {
  const gate = new Gate(1, 4);
  const jobs = new Jobs();
  const many = Array.from({ length: 5 }, (_, n) => gate.run(jobs.of(`many${n}`), { key: 'many' }));
  expect(gate.run(jobs.of('many5'), { key: 'many' })).toBeNull();
  expect(gate.run(jobs.of('one'), { key: 'one' })).not.toBeNull();
  expect(await many[1]).toBeNull();
  for (let n = 0; n < 5; n++) await jobs.endOne();
  expect(jobs.began).toEqual(['many0', 'many2', 'one', 'many3', 'many4']);
});

it('a slot is free again after jobs that fail', async () => {
  const gate = new Gate(1, 4);
  await expect(gate.run(() => Promise.reject(new Error('no')), { key: 'a' })).rejects.toThrow('no');
  expect(await gate.run(async () => 'yes', { key: 'a' })).toBe('yes');
});

// Opening a database: damaged, foreign, newer, in use, read-only; what is set aside and what is left alone.
import { spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { dirname, resolve } from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import type { GatewayError } from '../../src/base/errors.ts';
import { openDatabase } from '../../src/store/driver.ts';
import { FORMAT_VERSION } from '../../src/store/schema.ts';
import type { Journal } from '../../src/store/store.ts';
import { crashCopy, message, queued, session, settled, storePath, testJournal } from '../harness/journal.ts';

let open: Journal[] = [];
afterEach(async () => {
  await Promise.all(open.map((journal) => journal.close()));
  open = [];
});

async function start(path: string, options = {}): Promise<ReturnType<typeof testJournal>> {
  const made = testJournal(path, options);
  open.push(made.journal);
  await made.journal.load();
  return made;
}

/** A database of about 400 KB, closed in order. */
async function filled(): Promise<string> {
  const path = storePath();
  const { journal } = await start(path);
  journal.sessionPut(session('c'));
  for (let n = 1; n <= 100; n++) {
    journal.messageQueued('c', queued(n, message('t', randomBytes(2000))));
    journal.retainedPut(message(`r/${n}`, randomBytes(1500)));
  }
  expect(await settled(journal)).toBe(0);
  await journal.close();
  return path;
}

test('database and log cannot be read by everybody, whatever the folder allows', async () => {
  const path = storePath();
  mkdirSync(dirname(path), { mode: 0o755 });
  const { journal } = await start(path);
  journal.retainedPut(message('r', 'x'));
  expect(await settled(journal)).toBe(0);
  for (const file of [path, `${path}-wal`]) expect(statSync(file).mode & 0o777, file).toBe(0o640);
});

const DAMAGE: Record<string, (path: string, size: number) => void> = {
  'full of zeros': (path, size) => writeFileSync(path, Buffer.alloc(size)),
  'cut in half': (path, size) => truncateSync(path, (size >> 1) - ((size >> 1) % 512) + 100),
  'a text file': (path) => writeFileSync(path, 'this was a database once\n'.repeat(400)),
  'a few bytes': (path) => writeFileSync(path, 'x'),
  'of no length': (path) => truncateSync(path, 0),
  'without its header': (path) => {
    const bytes = readFileSync(path);
    randomBytes(200).copy(bytes);
    writeFileSync(path, bytes);
  },
  'with every other page overwritten': (path, size) => {
    const bytes = readFileSync(path);
    for (let at = 4096; at < size - 4096; at += 8192) randomBytes(4096).copy(bytes, at);
    writeFileSync(path, bytes);
  },
};

describe('a damaged database', () => {
  for (const [how, damage] of Object.entries(DAMAGE)) {
    test(`${how} is set aside, and an empty store begins and stores`, async () => {
      const path = await filled();
      damage(path, statSync(path).size);
      const first = testJournal(path);
      open.push(first.journal);
      expect(await first.journal.load()).toEqual({ sessions: [], retained: [], spools: new Map() });
      expect(first.logged).toContain('STO-DAMAGED');
      expect(readdirSync(dirname(path)).some((name) => name.startsWith('t.db.bad-'))).toBe(true);
      first.journal.sessionPut(session('new'));
      expect(await settled(first.journal)).toBe(0);
      await first.journal.close();
      const second = testJournal(path);
      open.push(second.journal);
      expect((await second.journal.load()).sessions.map((s) => s.session.clientId)).toEqual(['new']);
    });
  }

  test('stops the start when on_corrupt is stop, and stays where it is', async () => {
    const path = await filled();
    DAMAGE['full of zeros'](path, statSync(path).size);
    const { journal } = testJournal(path, { onCorrupt: 'stop' });
    await expect(journal.load()).rejects.toMatchObject({ code: 'STORE-OPEN' });
    expect(readdirSync(dirname(path)).filter((name) => name.includes('bad'))).toEqual([]);
  });
});

/** Offsets in the header (https://www.sqlite.org/fileformat2.html, 1.3) and what a flipped byte there makes of the file. */
const FLIPS: Record<string, number> = {
  'page size': 16,
  'write version': 18,
  'read version': 19,
  'reserved bytes': 20,
  'payload fraction': 21,
  'size in pages': 28,
  'free pages': 36,
  'schema format': 47,
  'text encoding': 56,
  'high byte of the format': 60,
  'low byte of the format': 63,
  'mark of the program': 69,
};

describe('a flipped byte of the header', () => {
  for (const [field, at] of Object.entries(FLIPS)) {
    test(`(${field}) is damage`, async () => {
      const path = await filled();
      const bytes = readFileSync(path);
      bytes[at] ^= 0xff;
      writeFileSync(path, bytes);
      const { logged } = await start(path);
      expect(logged).toContain('STO-DAMAGED');
    });
  }

  test('costs nothing when the write-ahead log holds the header as well', async () => {
    const path = storePath();
    const { journal } = await start(path);
    journal.sessionPut(session('c'));
    expect(await settled(journal)).toBe(0);
    const copy = crashCopy(path);
    const bytes = readFileSync(copy);
    bytes[18] ^= 0xff;
    writeFileSync(copy, bytes);
    const again = testJournal(copy);
    open.push(again.journal);
    expect((await again.journal.load()).sessions.map((s) => s.session.clientId)).toEqual(['c']);
  });
});

describe('a database that is not ours to open', () => {
  test('is refused when it says a format that the next version may have', async () => {
    const path = await filled();
    const bytes = readFileSync(path);
    bytes.writeUInt32BE(FORMAT_VERSION + 1, 60);
    writeFileSync(path, bytes);
    await expect(testJournal(path).journal.load()).rejects.toMatchObject({ code: 'STORE-OPEN' });
    expect(readFileSync(path).equals(bytes)).toBe(true);
  });

  test('is refused when a newer version wrote it, and not touched', async () => {
    const path = await filled();
    const db = openDatabase(path);
    db.exec('PRAGMA user_version = 99');
    db.close();
    const before = readFileSync(path);
    await expect(testJournal(path).journal.load()).rejects.toMatchObject({ code: 'STORE-OPEN' });
    expect(readFileSync(path).equals(before)).toBe(true);
  });

  test('is refused when it is the database of another program', async () => {
    const path = storePath();
    mkdirSync(dirname(path), { recursive: true });
    const db = openDatabase(path);
    db.exec('CREATE TABLE things (a)');
    db.close();
    await expect(testJournal(path).journal.load()).rejects.toMatchObject({ code: 'STORE-OPEN' });
    expect(readdirSync(dirname(path)).filter((name) => name.includes('bad'))).toEqual([]);
  });

  test('is refused while another process has it', async () => {
    const path = storePath();
    await start(path);
    const script = `
      const { openStore } = await import(${JSON.stringify(resolve(import.meta.dirname, '../../src/store/open.ts'))});
      try { openStore({ path: ${JSON.stringify(path)}, synchronous: 'full', checkpointBytes: 4e6 }); console.log('opened'); }
      catch (error) { console.log(error.message); }`;
    const child = spawnSync(process.execPath, ['--import', 'tsx', '--input-type=module', '-e', script], {
      encoding: 'utf8',
    });
    expect(child.stdout).toContain('in use by another process');
  });

  // root may write whatever the mode says.
  test.skipIf(process.geteuid?.() === 0)(
    'is refused when it is read-only, and not touched (not shown as root: root writes everywhere)',
    async () => {
      const path = await filled();
      const before = readFileSync(path);
      chmodSync(path, 0o400);
      await expect(testJournal(path).journal.load()).rejects.toMatchObject({ code: 'STORE-OPEN' });
      expect(readFileSync(path).equals(before)).toBe(true);
    },
  );

  test('is refused when the path is a folder', async () => {
    const path = storePath();
    mkdirSync(path, { recursive: true });
    await expect(testJournal(path).journal.load()).rejects.toMatchObject({ code: 'STORE-OPEN' });
  });

  test('is refused when the folder cannot be made', async () => {
    await expect(testJournal('/proc/tidegate/t.db').journal.load()).rejects.toMatchObject({
      code: 'STORE-OPEN',
    });
  });
});

test('a journal without persistence of its files opens again after close', async () => {
  const path = await filled();
  const { journal } = await start(path);
  await journal.close();
  const again = testJournal(path);
  open.push(again.journal);
  expect((await again.journal.load()).retained).toHaveLength(100);
  expect(existsSync(path)).toBe(true);
});

test('rubbish behind the write-ahead log costs nothing that was committed', async () => {
  const path = storePath();
  const first = await start(path);
  first.journal.sessionPut(session('c'));
  expect(await settled(first.journal)).toBe(0);
  const copy = crashCopy(path);
  writeFileSync(`${copy}-wal`, Buffer.concat([readFileSync(`${copy}-wal`), randomBytes(5000)]));
  const second = testJournal(copy);
  open.push(second.journal);
  expect((await second.journal.load()).sessions).toHaveLength(1);
});

test('rubbish inside the write-ahead log never stops the start', async () => {
  const path = storePath();
  const first = await start(path);
  for (let n = 1; n <= 50; n++) {
    first.journal.retainedPut(message(`r/${n}`, randomBytes(1500)));
    expect(await settled(first.journal)).toBe(0);
  }
  for (let round = 0; round < 8; round++) {
    const copy = crashCopy(path);
    const bytes = readFileSync(`${copy}-wal`);
    const at = Math.floor((bytes.length * round) / 8);
    randomBytes(Math.min(9000, bytes.length - at)).copy(bytes, at);
    writeFileSync(`${copy}-wal`, bytes);
    const second = await start(copy);
    second.journal.retainedPut(message('new'));
    expect(await settled(second.journal)).toBe(0);
    await second.journal.close();
  }
});

test('bytes overwritten anywhere never stop the start, and what is restored is well-formed', {
  timeout: 60_000,
}, async () => {
  const path = await filled();
  const whole = readFileSync(path);
  let seed = 12_345;
  const random = (below: number): number => {
    seed = (Math.imul(seed, 1_103_515_245) + 12_345) >>> 0;
    return Math.floor((seed / 2 ** 32) * below);
  };
  for (let round = 0; round < 40; round++) {
    const copy = storePath();
    mkdirSync(dirname(copy), { recursive: true });
    const bytes = Buffer.from(whole);
    for (let n = 1 + random(8); n > 0; n--) {
      const at = random(bytes.length - 64);
      for (let i = 0; i < 1 + random(64); i++) bytes[at + i] = random(256);
    }
    writeFileSync(copy, bytes);
    const { journal } = testJournal(copy);
    open.push(journal);
    const restored = await journal.load().catch((error: GatewayError) => error.code);
    // A header that names a newer format is not damage that can be told from one.
    if (typeof restored === 'string') expect(restored).toBe('STORE-OPEN');
    else {
      for (const m of restored.retained)
        expect([typeof m.topic, m.payload instanceof Uint8Array]).toEqual(['string', true]);
      for (const s of restored.sessions) for (const m of s.queue) expect(m.qos).toBeLessThanOrEqual(2);
    }
    await journal.close();
  }
});

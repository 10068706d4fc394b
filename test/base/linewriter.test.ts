// Lines to a descriptor: src/base/linewriter.ts. /dev/full is a disk without room, a FIFO a reader that may be slow.
import { closeSync, existsSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, describe, expect, it, vi } from 'vitest';
import { LineWriter } from '../../src/base/linewriter.ts';

const folder = mkdtempSync(path.join(os.tmpdir(), 'tidegate-lines-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe('LineWriter', () => {
  it('writes lines in order and closes the descriptor at its end', async () => {
    const file = path.join(folder, 'order');
    const fd = openSync(file, 'w');
    const writer = new LineWriter(fd, 1 << 20, () => {});
    for (let n = 0; n < 1000; n++) {
      writer.write(`${n}\n`);
      if (n % 100 === 0) await new Promise((resolve) => setImmediate(resolve));
    }
    await vi.waitFor(() => expect(readFileSync(file, 'utf8').split('\n')).toHaveLength(1001));
    expect(readFileSync(file, 'utf8')).toBe(Array.from({ length: 1000 }, (_, n) => `${n}\n`).join(''));
    writer.end();
    await vi.waitFor(() => expect(() => closeSync(fd)).toThrow('EBADF'));
  });

  it('loses lines beyond its bound and says so once', () => {
    const told: string[] = [];
    const writer = new LineWriter(openSync(path.join(folder, 'bound'), 'w'), 10, (text) => told.push(text));
    for (let n = 0; n < 5; n++) writer.write('123456\n');
    expect(told).toEqual(['too slow, lines are lost']);
    writer.end();
  });

  it.skipIf(!existsSync('/dev/full'))('returns from a flush to a full disk, and says so once', () => {
    const told: string[] = [];
    const writer = new LineWriter(openSync('/dev/full', 'w'), 1000, (text) => told.push(text));
    writer.write('one\n');
    writer.write('two\n');
    writer.flush();
    writer.write('three\n');
    writer.flush();
    expect(told).toHaveLength(1);
    expect(told[0]).toContain('ENOSPC');
    writer.end();
  });

  it.skipIf(!existsSync('/dev/full'))('goes on writing after a failure', async () => {
    const told: string[] = [];
    const writer = new LineWriter(openSync('/dev/full', 'w'), 5, (text) => told.push(text));
    writer.write('one\n');
    await vi.waitFor(() => expect(told).toHaveLength(1));
    // The failed line is forgotten: there is room for the next one.
    writer.write('two\n');
    expect(told).toHaveLength(1);
    writer.end();
  });
});

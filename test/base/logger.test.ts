// Log lines: what of the outside may reach them and how, levels, files, rotation, reopening.
import { mkdtempSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Fields } from '../../src/base/log.ts';
import { createLogger, type Logger, type LoggerOptions } from '../../src/base/logger.ts';

let folder: string;
let file: string;
const errors: string[] = [];

beforeEach(() => {
  folder = mkdtempSync(path.join(os.tmpdir(), 'log-'));
  file = path.join(folder, 'deep', 'gate.log');
  errors.length = 0;
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

function options(over: Partial<LoggerOptions> = {}): LoggerOptions {
  return {
    level: 'info',
    format: 'json',
    console: false,
    file,
    rotateBytes: 0,
    rotateCount: 3,
    now: () => Date.UTC(2024, 0, 2, 3, 4, 5, 6),
    tty: false,
    onError: (text) => errors.push(text),
    ...over,
  };
}

async function open(over: Partial<LoggerOptions> = {}): Promise<Logger> {
  return createLogger(options(over));
}

/** The log file once it holds `count` lines. */
async function lines(count: number, name = file): Promise<string[]> {
  for (;;) {
    let text = '';
    try {
      text = readFileSync(name, 'utf8');
    } catch {
      // not there yet
    }
    const found = text.split('\n').slice(0, -1);
    if (found.length >= count) return found;
    await new Promise((resolve) => setImmediate(resolve));
  }
}

async function logged(fields: Fields): Promise<{ raw: string; json: Record<string, unknown> }> {
  const logger = await open();
  logger.log('info', 'CLI-CONNECT', fields);
  const [raw] = await lines(1);
  return { raw, json: JSON.parse(raw) };
}

describe('a line', () => {
  it('has level, time, msgid and msg before its fields', async () => {
    const { json } = await logged({ clientId: 'c1', count: 3 });
    expect(Object.entries(json)).toEqual([
      ['level', 'info'],
      ['time', '2024-01-02T03:04:05.006Z'],
      ['msgid', 'CLI-CONNECT'],
      ['msg', 'client connected'],
      ['clientId', 'c1'],
      ['count', 3],
    ]);
  });

  it('holds no control character of what came from outside', async () => {
    const hostile = 'a\n{"level":"fatal"}\r\u001b[31m\u0000\u007f\u009b2J\u2028\u202e\u200b\ufeffz';
    const { raw, json } = await logged({ clientId: hostile });
    expect(raw).toMatch(/^[\u0020-\u007e]*$/);
    expect(json.clientId).toBe(hostile);
  });

  it('keeps fields apart that are named like the line itself', async () => {
    const { json } = await logged({ level: 'x', msg: 'y', msgid: 'z', time: 1 });
    expect(json).toMatchObject({
      level: 'info',
      msgid: 'CLI-CONNECT',
      msg: 'client connected',
      level_: 'x',
      msg_: 'y',
    });
  });

  it('does not let a field name reach a terminal or a prototype', async () => {
    const fields = JSON.parse('{"__proto__":1,"a\\u001bb":2}');
    const { raw } = await logged(fields);
    expect(raw).toContain('"__proto___":1');
    expect(raw).toContain('"a_b":2');
  });

  it('cuts long text and deep or wide values', async () => {
    const deep: Record<string, unknown> = {};
    let at = deep;
    for (let i = 0; i < 50; i++) at = at.next = {};
    const { raw, json } = await logged({
      text: 'x'.repeat(1e6),
      list: Array(1000).fill(0),
      deep,
      self: new Map([['m', 1]]),
    });
    expect(raw.length).toBeLessThan(6000);
    expect(json.text).toContain('(1000000 characters)');
    expect(json.self).toEqual({ m: 1 });
  });

  it('shows an error with code and cause, bytes as their count, numbers too large for JSON as text', async () => {
    const error = Object.assign(new Error('no', { cause: new Error('why') }), { code: 'EIO' });
    const { json } = await logged({ error, bytes: new Uint8Array(5), big: 12n, own: () => 1 });
    expect(json.error).toMatchObject({ message: 'no', code: 'EIO', cause: { message: 'why' } });
    expect(json).toMatchObject({ bytes: '(5 bytes)', big: '12', own: '(function)' });
  });

  it('survives a value that contains itself', async () => {
    const loop: Record<string, unknown> = {};
    loop.loop = loop;
    const { raw } = await logged({ loop });
    expect(raw).toContain('(deeper)');
  });
});

describe('the level', () => {
  it('holds back what is below it, but never what scripts wait for', async () => {
    const logger = await open({ level: 'error' });
    logger.log('warn', 'CFG-WARNING');
    logger.log('info', 'GW-READY');
    logger.log('error', 'GW-INTERNAL');
    const got = (await lines(2)).map((line) => JSON.parse(line).msgid);
    expect(got).toEqual(['GW-READY', 'GW-INTERNAL']);
  });

  it('changes while running', async () => {
    const logger = await open({ level: 'error' });
    logger.log('debug', 'GW-START');
    logger.setLevel('debug');
    logger.log('debug', 'GW-STOP');
    expect((await lines(1)).map((line) => JSON.parse(line).msgid)).toEqual(['GW-STOP']);
  });
});

describe('a log file', () => {
  it('is rotated by size and keeps so many old ones', async () => {
    const logger = await open({ rotateBytes: 600, rotateCount: 2 });
    for (let n = 0; n < 40; n++) logger.log('info', 'CLI-CONNECT', { n });
    logger.flush();
    await lines(1);
    const names = readdirSync(path.dirname(file)).sort();
    expect(names).toEqual(['gate.log', 'gate.log.1', 'gate.log.2']);
    expect(errors).toEqual([]);
  });

  it('goes on under its name after somebody moved it away and asked for a reopen', async () => {
    const logger = await open();
    logger.log('info', 'GW-START');
    await lines(1);
    renameSync(file, `${file}.old`);
    logger.reopen();
    logger.log('info', 'GW-STOP');
    expect(JSON.parse((await lines(1))[0]).msgid).toBe('GW-STOP');
    expect(await lines(1, `${file}.old`)).toHaveLength(1);
  });

  it('has everything on disk after flush', async () => {
    const logger = await open();
    await lines(0);
    for (let n = 0; n < 500; n++) logger.log('info', 'CLI-CONNECT', { n });
    await new Promise((resolve) => setImmediate(resolve));
    logger.flush();
    expect(await lines(500)).toHaveLength(500);
  });

  it('that cannot be written is an error of the start', async () => {
    await expect(open({ file: '/dev/null/x.log' })).rejects.toThrow(/x\.log|ENOTDIR|EEXIST/);
  });
});

describe('pretty lines', () => {
  it('carry colours of their own and no escape sequence from a field', async () => {
    const { openSync, closeSync } = await import('node:fs');
    const target = path.join(folder, 'console');
    const fd = openSync(target, 'w');
    const logger = await open({ console: true, file: null, format: 'pretty', consoleFd: fd, tty: true });
    logger.log('warn', 'CLI-CONNECT', { clientId: 'x\u001b[2J\u009b2Jy\nz', list: ['\u001b]0;t\u0007'] });
    logger.flush();
    const [line, ...more] = await lines(1, target);
    closeSync(fd);
    const plain = stripVTControlCharacters(line);
    expect(more).toEqual([]);
    expect(plain).toMatch(/^[\u0020-\u007e]*$/);
    expect(plain).toContain('CLI-CONNECT');
    expect(plain).not.toBe(line);
  });

  it('carry no colours on a terminal whose user wants none', async () => {
    const { openSync, closeSync } = await import('node:fs');
    const target = path.join(folder, 'plain');
    const fd = openSync(target, 'w');
    const more = { console: true, file: null, format: 'pretty', consoleFd: fd, tty: true, colours: false } as const;
    const logger = await open(more);
    logger.log('warn', 'CLI-CONNECT', { clientId: 'x' });
    logger.flush();
    const [line] = await lines(1, target);
    closeSync(fd);
    expect(line).toBe(stripVTControlCharacters(line));
  });

  it('carry no colours where nobody has a terminal', async () => {
    const { openSync, closeSync } = await import('node:fs');
    const target = path.join(folder, 'pipe');
    const fd = openSync(target, 'w');
    const logger = await open({ console: true, file: null, format: 'pretty', consoleFd: fd, tty: false });
    logger.log('warn', 'CLI-CONNECT', { clientId: 'x' });
    logger.flush();
    const [line] = await lines(1, target);
    closeSync(fd);
    expect(line).toBe(stripVTControlCharacters(line));
  });
});

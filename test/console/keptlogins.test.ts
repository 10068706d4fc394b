// Console sessions that survive a restart: what is kept, and what is not.
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { nullLog } from '../../src/base/log.ts';
import { LoginFile } from '../../src/console/keptlogins.ts';
import { LoginSessions } from '../../src/console/login.ts';
import { FakeClock } from '../harness/clock.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(path.join(os.tmpdir(), 'logins-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const MINUTE = 60_000;

/** The sessions of another process at `wallMs`. */
function restarted(before: LoginSessions, wallMs: number): LoginSessions {
  const after = new LoginSessions(new FakeClock(wallMs));
  after.restore(before.dump());
  return after;
}

test('a session goes on after a restart with what is left of its time, one of a token does not', () => {
  const clock = new FakeClock();
  const before = new LoginSessions(clock);
  const { token, session } = before.open('alice', 'admin', 'hash');
  const byToken = before.open('bob', 'viewer', '');
  clock.advance(10 * MINUTE);
  const after = restarted(before, clock.now());
  expect(after.find(token)).toEqual(session);
  expect(after.find(byToken.token)).toBeUndefined();
  expect(restarted(before, clock.now() + 15 * MINUTE).find(token)).toEqual(session);
  expect(restarted(before, clock.now() + 31 * MINUTE).find(token)).toBeUndefined();
  // A clock that was set back makes nothing last longer than a new session would.
  expect(restarted(before, clock.now() - 1e12).dump()[0].endsAt).toBeLessThanOrEqual(
    clock.now() - 1e12 + 12 * 60 * MINUTE + 1000,
  );
});

test('a closed session is told at once', () => {
  const sessions = new LoginSessions(new FakeClock());
  let told = 0;
  sessions.onClosed = () => {
    told++;
  };
  const { token } = sessions.open('alice', 'admin', 'hash');
  sessions.close(token);
  sessions.close(token);
  expect(told).toBe(1);
  expect(sessions.dump()).toEqual([]);
});

test('the file is for its user alone, whatever a crash has left, and holds no token', async () => {
  const file = path.join(folder, 'logins.json');
  writeFileSync(`${file}.new`, 'left over', { mode: 0o644 });
  const sessions = new LoginSessions(new FakeClock());
  const { token } = sessions.open('alice', 'admin', 'hash');
  const logins = { pepper: Buffer.alloc(32, 1).toString('base64'), sessions: sessions.dump() };
  await new LoginFile(file, nullLog).write(logins);
  expect(statSync(file).mode & 0o777).toBe(0o600);
  expect(readFileSync(file, 'utf8')).not.toContain(token);
  expect(await new LoginFile(file, nullLog).read()).toEqual(logins);
});

test('a file of another shape keeps nobody logged in', async () => {
  const file = path.join(folder, 'logins.json');
  const read = (text: string): Promise<unknown> => {
    writeFileSync(file, text);
    return new LoginFile(file, nullLog).read();
  };
  expect(await new LoginFile(path.join(folder, 'none.json'), nullLog).read()).toBeNull();
  expect(await read('{')).toBeNull();
  expect(await read('[]')).toBeNull();
  const half = {
    pepper: 'x',
    sessions: [{ key: 'k', username: 'u', role: 'root', csrf: '', credentials: 'c', endsAt: 1, usedAt: 1 }, 3],
  };
  expect(await read(JSON.stringify(half))).toEqual({ pepper: 'x', sessions: [] });
});

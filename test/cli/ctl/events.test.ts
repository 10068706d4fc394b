// `tidegate ctl events` against a console server: pages, what is asked for, what is printed.
import { Command } from 'commander';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { registerCtl } from '../../../src/cli/ctl/ctl.ts';
import type { PastControl } from '../../../src/console/console.ts';
import { ADMIN, ConsoleStage } from '../../console/standins.ts';
import { fakeIo } from '../../harness/io.ts';

type Asked = Parameters<PastControl['events']>[0];

const KEPT = 2500;
const asked: Asked[] = [];
const past: PastControl = {
  figures: async () => ({ times: [], values: {} }),
  recording: null,
  // Numbers KEPT down to 1, as the archive gives them.
  events: async (query) => {
    asked.push(query);
    const top = query.before === 0 ? KEPT : query.before - 1;
    const count = Math.min(query.limit, top);
    const rows = Array.from({ length: count }, (_, i) => {
      const fields = JSON.stringify({ id: 'NNG-STATE', bridge: `b\u001b[2J${top - i}` });
      return { id: top - i, time: 1_700_000_000_000, kind: 'bridge', level: 'warn', text: 'state', fields };
    });
    return { rows, next: count < top ? top - count + 1 : null };
  },
};

let stage: ConsoleStage;
beforeEach(async () => {
  asked.length = 0;
  stage = await new ConsoleStage({ past: () => past }).start();
});
afterEach(() => stage.stop());

async function events(...words: string[]): Promise<string> {
  const io = fakeIo();
  const program = new Command('tidegate').exitOverride().enablePositionalOptions();
  const url = `http://127.0.0.1:${stage.server.port}`;
  const env = { TIDEGATE_URL: url, TIDEGATE_USER: ADMIN.username, TIDEGATE_PASSWORD: ADMIN.password };
  registerCtl(program, { io, exit: () => {} }, env, false);
  await program.parseAsync(['ctl', 'events', ...words], { from: 'user' });
  return io.stdout.text();
}

test('events are a table with their details, and control characters of them are shown, not sent', async () => {
  const out = await events('--limit', '2', '--kind', 'bridge,alarm', '--search', 'pump', '--from', '-2h');
  const lines = out.trimEnd().split('\n');
  expect(lines[0]).toMatch(/^TIME +KIND +LEVEL +WHAT +DETAILS$/);
  expect(lines).toHaveLength(3);
  expect(lines[1]).toMatch(/^2023-11-14T22:13:20\.000Z +bridge +warn +state +bridge=b\\x1b\[2J2500$/);
  expect(asked).toHaveLength(1);
  expect(asked[0]).toMatchObject({ kinds: ['bridge', 'alarm'], search: 'pump', limit: 2 });
  expect(asked[0].to - asked[0].from).toBe(7_200_000);
});

test('all pages are fetched up to the limit, each event once', async () => {
  const some = JSON.parse(await events('--json', '--limit', '1500')) as { id: number }[];
  expect(some.map(({ id }) => id)).toEqual(Array.from({ length: 1500 }, (_, i) => KEPT - i));
  const all = JSON.parse(await events('--json', '--limit', '10000')) as { id: number }[];
  expect(all.map(({ id }) => id)).toEqual(Array.from({ length: KEPT }, (_, i) => KEPT - i));
});

test('a kind that there is not is refused with those there are', async () => {
  await expect(events('--kind', 'nonsense')).rejects.toThrow('gateway, configuration, bridge, alarm, login, clients');
});

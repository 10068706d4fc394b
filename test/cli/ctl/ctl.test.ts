// `tidegate ctl` against a console server with stand-ins behind it.
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { Command } from 'commander';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Env } from '../../../src/cli/ctl/client.ts';
import { registerCtl } from '../../../src/cli/ctl/ctl.ts';
import { durationText, mqttVersion, printable, sizeText, table, uptimeText } from '../../../src/cli/ctl/table.ts';
import type { ProxyControl } from '../../../src/console/console.ts';
import { ADMIN, ConsoleStage } from '../../console/standins.ts';
import { FakeClock } from '../../harness/clock.ts';
import { type FakeIo, fakeIo } from '../../harness/io.ts';

let stage: ConsoleStage;
beforeEach(async () => {
  stage = await new ConsoleStage().start();
});
afterEach(() => stage.stop());

interface Outcome {
  readonly out: string;
  readonly code: number;
}

/** Runs `ctl` with these words; rejects as the command does. */
async function run(words: readonly string[], env: Env, io: FakeIo = fakeIo(), tty = false): Promise<Outcome> {
  const program = new Command('tidegate').exitOverride().enablePositionalOptions();
  program.configureOutput({ writeErr: () => {}, writeOut: () => {} });
  let code = 0;
  const exit = (value: number): void => {
    code = value;
  };
  registerCtl(program, { io, exit }, env, tty);
  await program.parseAsync(['ctl', ...words], { from: 'user' });
  return { out: io.stdout.text(), code };
}

function here(more: Env = {}): Env {
  const { username, password } = ADMIN;
  const url = `http://127.0.0.1:${stage.server.port}`;
  return { TIDEGATE_URL: url, TIDEGATE_USER: username, TIDEGATE_PASSWORD: password, ...more };
}

async function ctl(...words: string[]): Promise<string> {
  return (await run(words, here())).out;
}

function temporary(name: string, text: string): string {
  const file = path.join(mkdtempSync(path.join(tmpdir(), 'ctl-')), name);
  writeFileSync(file, text);
  return file;
}

describe('where and as whom', () => {
  test('options come before the environment', async () => {
    const url = `http://127.0.0.1:${stage.server.port}`;
    const env = { TIDEGATE_URL: 'http://127.0.0.1:1', TIDEGATE_USER: 'nobody' };
    const words = ['--url', url, '--user', ADMIN.username, '--password', ADMIN.password, 'status'];
    expect((await run(words, env)).out).toContain('Running');
  });

  test('the password may stand in a file, without its line end', async () => {
    const file = temporary('pw', `${ADMIN.password}\n`);
    const { TIDEGATE_PASSWORD: _no, ...env } = here();
    expect((await run(['--password-file', file, 'status'], env)).out).toContain('Running');
    expect((await run(['status'], { ...env, TIDEGATE_PASSWORD_FILE: file })).out).toContain('Running');
  });

  test('a configuration file has address and credentials', async () => {
    const { port } = stage.server;
    const block = `ip_addr = "127.0.0.1", port = ${port}, username = "${ADMIN.username}", password = "${ADMIN.password}"`;
    const file = temporary('t.conf', `http_server { ${block} }\n`);
    expect((await run(['-c', file, 'status'], {})).out).toContain('Running');
    const other = temporary('t.conf', 'mqtt { max_qos = 1 }\n');
    await expect(run(['-c', other, 'status'], {})).rejects.toMatchObject({
      exit: 1,
      message: expect.stringContaining('http_server'),
    });
    await expect(run(['-c', temporary('t.conf', 'mqtt {'), 'status'], {})).rejects.toMatchObject({ exit: 78 });
  });

  test('of the users in a configuration file an admin is taken whose password is not a hash', async () => {
    const hash = `$7$101$${Buffer.alloc(12).toString('base64')}$${Buffer.alloc(64).toString('base64')}`;
    const users = `v { password = other }, h { password = "${hash}", role = admin }, ${ADMIN.username} { password = "${ADMIN.password}", role = admin }`;
    const block = `ip_addr = "127.0.0.1", port = ${stage.server.port}, users { ${users} }`;
    const file = temporary('t.conf', `http_server { ${block} }\n`);
    expect((await run(['-c', file, 'status'], {})).out).toContain('Running');
  });

  test('options may stand behind the subcommand', async () => {
    expect(JSON.parse(await ctl('status', '--json'))).toMatchObject({ node_status: 'Running' });
  });

  test('nobody there is an error with exit code 1', async () => {
    await expect(run(['status'], { TIDEGATE_URL: 'http://127.0.0.1:1' })).rejects.toMatchObject({
      code: 'CLI-FAILED',
      exit: 1,
      message: expect.stringContaining('http://127.0.0.1:1'),
    });
  });

  test('wrong credentials are an error that says how to give them', async () => {
    await expect(run(['status'], here({ TIDEGATE_PASSWORD: 'no' }))).rejects.toMatchObject({
      exit: 1,
      message: expect.stringContaining('--password-file'),
    });
  });

  test.each(['ftp://x', 'nonsense', '127.0.0.1:8081'])('the address %s is wrong usage', async (url) => {
    await expect(run(['--url', url, 'status'], {})).rejects.toMatchObject({ code: 'CLI-USAGE', exit: 64 });
  });

  test.each([[['bogus']], [['bridge', 'bogus']], [['kick']], [['clients', '--limit']]])(
    'the words %j are refused by the parser',
    async (words) => {
      await expect(run(words, here())).rejects.toMatchObject({ code: expect.stringMatching(/^commander\./) });
    },
  );
});

describe('looking', () => {
  test('status names bridges with errors', async () => {
    stage.bridges.put({ kind: 'nng', direction: 'pub', name: 'bad' }, {}, { state: 'error' });
    const out = await ctl('status');
    expect(out).toMatch(/status +Running/);
    expect(out).toMatch(/NNG bridges +1, with errors: bad/);
  });

  test('clients are a table, over all pages', async () => {
    for (let i = 0; i < 2500; i++) stage.broker.addClient(`dev-${i}`);
    const lines = (await ctl('clients')).trimEnd().split('\n');
    expect(lines[0]).toMatch(/^CLIENT +USER +STATE/);
    expect(lines).toHaveLength(2501);
    expect((await ctl('clients', '--limit', '3')).trimEnd().split('\n')).toHaveLength(4);
    expect(await ctl('clients', '--search', 'dev-2499')).toContain('dev-2499');
  });

  test('a client id with an escape sequence does not reach the terminal', async () => {
    stage.broker.addClient('\x1b]0;owned\x07');
    const out = await ctl('clients');
    expect(out).not.toContain('\x1b');
    expect(out).toContain('\\x1b]0;owned\\x07');
  });

  test('--json prints what the API gave', async () => {
    stage.broker.addClient('a');
    expect(JSON.parse(await ctl('--json', 'clients'))).toMatchObject([{ client_id: 'a', conn_state: 'connected' }]);
  });

  test('bridges of both kinds are listed with state and error', async () => {
    stage.bridges.put(
      { kind: 'nng', direction: 'sub', name: 'n' },
      { sub_url: 'tcp://h:1' },
      { state: 'error', lastError: 'in use' },
    );
    stage.bridges.put({ kind: 'mqtt', direction: null, name: 'm' }, { server: 'mqtt-tcp://h:2' });
    const out = await ctl('bridges');
    expect(out).toMatch(/n +nng sub +error +tcp:\/\/h:1 +in use/);
    expect(out).toMatch(/m +mqtt +listening +mqtt-tcp:\/\/h:2/);
  });

  test('retained messages are listed and cleared', async () => {
    stage.broker.retain('t/a', 'x', 1);
    expect(await ctl('retained')).toMatch(/t\/a +1 +1 B +x/);
    expect(await ctl('retained', '--clear', 't/a')).toBe('cleared\n');
    expect(stage.broker.retainedList.size).toBe(0);
  });

  test('the store is a list of facts', async () => {
    expect(await ctl('store')).toBe('enable  false\n');
  });

  test('explain ends with exit code 1 when it is denied', async () => {
    const allowed = await run(['explain', '--clientid', 'c', '--topic', 'yes'], here());
    const judged = 'not connected  judged as no user name, any listener, any address\n';
    expect(allowed).toEqual({ out: `allowed        acl:3\n${judged}`, code: 0 });
    const denied = await run(['explain', '--clientid', 'c', '--topic', 'no'], here());
    expect(denied).toEqual({ out: `denied         acl:3\n${judged}`, code: 1 });
    stage.broker.addClient('here', { username: 'bob' });
    expect((await run(['explain', 'here', 'publish', 'yes'], here())).out).toBe('allowed  acl:3\n');
    expect(await run(['explain', 'c', 'publish', 'no'], here())).toEqual(denied);
    await expect(run(['explain', 'c', 'publish'], here())).rejects.toMatchObject({ code: 'CLI-USAGE' });
    expect(await run(['explain', 'c', 'subscribe', 'yes'], here())).toEqual(allowed);
    expect((await run(['explain', 'c', 'connect'], here())).out).toContain('acl:3');
  });
});

describe('upstreams', () => {
  const drained: unknown[] = [];
  const row = { address: '10.0.0.1:1883', from: 'config', weight: 5, connections: 12, served: 340, fails: 1 };
  const down = {
    address: '10.0.0.2:1883',
    from: 'srv',
    state: 'resting',
    weight: 1,
    connections: 0,
    served: 7,
    fails: 3,
  };
  const proxy: ProxyControl = {
    upstreams: () => [
      {
        name: 'pool',
        servers: [
          { server: 'one:1883', state: 'up', lastError: null, ...row },
          { server: 'two:1883', lastError: 'ECONNREFUSED', ...down },
        ],
      },
      { name: 'empty', servers: [] },
      { name: 'lab', servers: [{ server: 'lab:1', state: 'up', lastError: null, ...row }] },
    ],
    drain: (upstream, server, on) => {
      drained.push([upstream, server, on]);
      return upstream === 'pool' && server === 'one:1883' ? { ok: true } : { ok: false, why: 'missing' };
    },
  };
  beforeEach(async () => {
    drained.length = 0;
    await stage.stop();
    stage = await new ConsoleStage({ proxy }).start();
  });

  test('are a table with a row for each server of every pool', async () => {
    const lines = (await ctl('upstreams')).trimEnd().split('\n');
    expect(lines).toHaveLength(4);
    expect(lines[0]).toMatch(/^UPSTREAM +SERVER +ADDRESS +FROM +STATE +WEIGHT +OPEN +SERVED +FAILS +ERROR$/);
    expect(lines[1]).toMatch(/^pool +one:1883 +10\.0\.0\.1:1883 +config +up +5 +12 +340 +1 +-$/);
    expect(lines[2]).toMatch(/^pool +two:1883 +10\.0\.0\.2:1883 +srv +resting +1 +0 +7 +3 +ECONNREFUSED$/);
    expect(lines[3]).toMatch(/^lab +lab:1 /);
  });

  test('are those of one pool when it is named, as JSON when asked for', async () => {
    expect((await ctl('upstreams', 'lab')).trimEnd().split('\n')).toHaveLength(2);
    expect(JSON.parse(await ctl('upstreams', 'pool', '--json'))).toMatchObject([
      { upstream: 'pool', server: 'one:1883', connections: 12 },
      { upstream: 'pool', server: 'two:1883', lastError: 'ECONNREFUSED' },
    ]);
  });

  test('--drain takes a server out of its pool, --undrain puts it back', async () => {
    expect(await ctl('upstreams', 'pool', '--drain', 'one:1883')).toBe('drained\n');
    expect(await ctl('upstreams', 'pool', '--undrain', 'one:1883')).toBe('takes clients again\n');
    expect(drained).toEqual([
      ['pool', 'one:1883', true],
      ['pool', 'one:1883', false],
    ]);
  });

  test('a server that is not there is exit code 1, one without its pool wrong usage', async () => {
    await expect(ctl('upstreams', 'pool', '--drain', 'nope:1')).rejects.toMatchObject({ exit: 1 });
    await expect(ctl('upstreams', '--drain', 'one:1883')).rejects.toMatchObject({ code: 'CLI-USAGE', exit: 64 });
    expect(drained).toEqual([['pool', 'nope:1', true]]);
  });

  test('of a gateway without a proxy are the title line', async () => {
    await stage.stop();
    stage = await new ConsoleStage().start();
    expect((await ctl('upstreams')).trimEnd().split('\n')).toHaveLength(1);
  });
});

describe('changing', () => {
  test('kick disconnects; an unknown client is exit code 1', async () => {
    stage.broker.addClient('a/b c');
    expect(await ctl('kick', 'a/b c')).toBe('disconnected\n');
    expect(stage.broker.kicked).toEqual([['a/b c', false]]);
    await expect(ctl('kick', 'a/b c')).rejects.toMatchObject({
      exit: 1,
      message: expect.stringContaining('no such client'),
    });
  });

  test('changes of bridges are kept with --keep only, and where they are kept is said', async () => {
    const document = { type: 'pub', name: 'cb', pub_url: 'tcp://127.0.0.1:0' };
    await ctl('bridge', 'add', temporary('b.json', JSON.stringify(document)));
    await ctl('bridge', 'disable', 'cb');
    expect(stage.bridges.kept).toEqual([]);
    await ctl('bridge', 'enable', 'cb', '--keep');
    expect(await ctl('bridge', 'remove', 'cb', '--keep')).toBe('removed, kept in /d/50-console.conf\nkept disabled\n');
    await ctl('bridge', 'add', '--keep', temporary('b.json', JSON.stringify(document)));
    expect(stage.bridges.kept).toEqual(['cb', 'cb', 'cb']);
  });

  test('a bridge is added, disabled, enabled, removed', async () => {
    const document = { type: 'sub', name: 'cb', sub_url: 'tcp://127.0.0.1:1', subscription: [] };
    const ref = { kind: 'nng', direction: 'sub', name: 'cb' } as const;
    await ctl('bridge', 'add', temporary('b.json', JSON.stringify(document)));
    expect(stage.bridges.get(ref)?.enabled).toBe(true);
    await ctl('bridge', 'disable', 'cb');
    expect(stage.bridges.get(ref)?.enabled).toBe(false);
    await ctl('bridge', 'enable', 'cb');
    expect(JSON.parse(await ctl('bridge', 'show', 'cb'))).toMatchObject({ name: 'cb', enable: true });
    await ctl('bridge', 'remove', 'cb');
    expect(stage.bridges.get(ref)).toBeUndefined();
    await expect(ctl('bridge', 'remove', 'cb')).rejects.toMatchObject({ exit: 1 });
  });

  test('a rule is tried', async () => {
    const trial = { type: 'pub', rule: { local_topic: 'a' }, topic: 'b' };
    expect(await ctl('bridge', 'test', temporary('t.json', JSON.stringify(trial)))).toBe(
      'matched  false\nreason   no rule matches\n',
    );
  });

  test('a document comes from standard input with -', async () => {
    const io = fakeIo(JSON.stringify({ type: 'pub', name: 'p', pub_url: 'tcp://127.0.0.1:1' }));
    await run(['bridge', 'add', '-'], here(), io);
    expect(stage.bridges.get({ kind: 'nng', direction: 'pub', name: 'p' })).toBeDefined();
  });

  test('a document that is not JSON or not there is named', async () => {
    const file = temporary('b.json', '{');
    await expect(ctl('bridge', 'add', file)).rejects.toMatchObject({ message: expect.stringContaining(file) });
    await expect(ctl('bridge', 'add', '/nonexistent/b')).rejects.toMatchObject({ exit: 1 });
  });

  test('enable and disable reach bridges to remote brokers too', async () => {
    const ref = { kind: 'mqtt', direction: null, name: 'up' } as const;
    stage.bridges.put(ref, { server: 'mqtt-tcp://h:1' });
    await ctl('bridge', 'disable', 'up');
    expect(stage.bridges.get(ref)?.enabled).toBe(false);
    await expect(ctl('bridge', 'disable', 'nope')).rejects.toMatchObject({
      message: expect.stringContaining('no such bridge'),
    });
  });

  test('a bridge to a remote broker is added, shown, changed and removed', async () => {
    const ref = { kind: 'mqtt', direction: null, name: 'up' } as const;
    await ctl('bridge', 'add', temporary('b.json', JSON.stringify({ type: 'mqtt', name: 'up', server: 'x' })));
    expect(stage.bridges.get(ref)?.config).toMatchObject({ enable: true, server: 'x' });
    const shown = JSON.parse(await ctl('bridge', 'show', 'up'));
    expect(shown).toMatchObject({ name: 'up', server: 'x' });
    await ctl('bridge', 'change', 'up', temporary('c.json', JSON.stringify({ ...shown, server: 'y' })), '--keep');
    expect(stage.bridges.get(ref)?.config).toMatchObject({ server: 'y' });
    expect(stage.bridges.kept).toEqual(['up']);
    await ctl('bridge', 'remove', 'up', '--type', 'mqtt');
    expect(stage.bridges.get(ref)).toBeUndefined();
  });

  test('users are listed, set and removed; the password comes from standard input', async () => {
    expect(await ctl('users')).toMatch(/^USER {4}ROLE {6}PASSWORD\nadmin {3}admin {5}plain\n/);
    await run(['user', 'set', 'eve', '--role', 'operator'], here(), fakeIo('pw-of-eve\n'));
    expect(Object.fromEntries(stage.config.sets[0])).toEqual({
      'http_server.users.eve.role': 'operator',
      'http_server.users.eve.enable': true,
      'http_server.users.eve.password': 'hash of pw-of-eve',
    });
    await ctl('user', 'remove', 'viewer');
    expect(Object.fromEntries(stage.config.sets[1])).toEqual({ 'http_server.users.viewer.enable': false });
    await expect(ctl('user', 'remove', 'nobody')).rejects.toMatchObject({ exit: 1 });
  });

  test('the configuration is shown whole, as a block and as one key', async () => {
    expect(await ctl('config')).toContain('http_server.password  ***');
    expect(await ctl('config', 'mqtt')).toBe('mqtt.max_packet_size  10485760\n');
    expect(JSON.parse(await ctl('--json', 'config', 'mqtt.max_packet_size'))).toEqual({
      'mqtt.max_packet_size': 10_485_760,
    });
    await expect(ctl('config', 'mqtt.max')).rejects.toMatchObject({ exit: 1 });
  });

  test('keys are set together; a word without = is wrong usage', async () => {
    expect(await ctl('set', 'mqtt.max_qos=1', 'log.level=a=b')).toBe('set\n');
    expect(Object.fromEntries(stage.config.sets[0])).toEqual({ 'mqtt.max_qos': '1', 'log.level': 'a=b' });
    await expect(ctl('set', 'mqtt.max_qos')).rejects.toMatchObject({ exit: 64 });
    expect(await ctl('set', '--check', 'mqtt.max_qos=1')).toBe('valid\n');
    expect(stage.config.sets).toHaveLength(1);
  });

  test('log lines, changes, subscriptions and listeners are tables', async () => {
    const line = { time: 0, level: 'warn', msgid: 'GW-X', text: 'said', fields: { a: 'b', n: 1 } } as const;
    stage.logTail.lines.push(line);
    expect(await ctl('log')).toContain('1970-01-01T00:00:00.000Z  warn   GW-X  said a=b n=1\n');
    await ctl('set', 'mqtt.max_qos=1');
    expect(await ctl('audit')).toMatch(/ admin {2}127\.0\.0\.1 {5}200 {2}POST \/api\/v4\/config\n/);
    expect(await ctl('subscriptions')).toMatch(/^CLIENT {2}QOS {2}TOPIC FILTER\n/);
    expect(await ctl('access')).toMatch(/^LISTENER {2}ANONYMOUS {2}USERS/);
  });

  test('reload reads the file again; a wrong one is exit code 1 with what is wrong', async () => {
    expect(await ctl('reload')).toMatch(/^reloaded +yes\nchanged/);
    expect(stage.config.reloads).toBe(1);
    stage.config.result = { ok: true, report: { failed: [], needRestart: ['log'] } };
    const partly = await run(['reload'], here());
    expect([partly.code, partly.out]).toEqual([
      1,
      expect.stringMatching(/^reloaded +in part\n[\s\S]*need a restart +log/),
    ]);
    stage.config.result = { ok: false, why: 'invalid', problems: [{ pointer: '', message: 'f.conf:3:1: mqtt: no' }] };
    await expect(ctl('reload')).rejects.toMatchObject({ exit: 1, message: expect.stringContaining('f.conf:3:1') });
  });
});

test('top shows a line for each sample with the rate between them', async () => {
  await stage.stop();
  const clock = new FakeClock();
  stage = await new ConsoleStage({ clock }).start();
  const received = stage.metrics.cell({
    name: 'tidegate_publish_received_total',
    text: 'x',
    type: 'counter',
    unit: 'messages',
  });
  const io = fakeIo();
  const running = run(['top', '--count', '2'], here(), io);
  while (stage.metrics.value('tidegate_http_event_readers') !== 1)
    await new Promise((resolve) => setImmediate(resolve));
  clock.advance(2000);
  await io.stdout.until(/received 0\/s/);
  received.value = 500;
  clock.advance(2000);
  expect((await running).out).toContain('received 250/s');
});

describe('topics', () => {
  beforeEach(() => {
    stage.broker.topicList.push(
      { topic: 'plant/1', messages: 20, bytes: 60, messageRate: 0.25, byteRate: 6 },
      { topic: 'plant/\x1b[2J', messages: 400, bytes: 800_000, messageRate: 40, byteRate: 80_000 },
      { topic: 'silent', messages: 5, bytes: 9, messageRate: 0, byteRate: 0 },
      { topic: '$SYS/uptime', messages: 1, bytes: 1, messageRate: 0, byteRate: 0 },
    );
  });

  test('are listed with rates and counts, the busiest first, with what they come to', async () => {
    expect((await ctl('topics')).split('\n')).toEqual([
      'TOPIC          MSGS/S  BYTES/S  MESSAGES     BYTES',
      'plant/\\x1b[2J      40  78.1 KB       400  781.3 KB',
      'plant/1          0.25      6 B        20      60 B',
      'silent              0      0 B         5       9 B',
      '3 topics: 40 messages and 78.1 KB a second, 425 messages in all',
      'topics not counted one by one: 0.50 messages and 5 B a second, 7 messages in all',
      '',
    ]);
  });

  test('are narrowed, ordered and cut', async () => {
    const topics = async (...words: string[]): Promise<string[]> =>
      JSON.parse(await ctl('topics', '--json', ...words)).map(({ topic }: { topic: string }) => topic);
    expect(await topics('--search', 'SIL')).toEqual(['silent']);
    expect(await topics('--prefix', 'plant/1')).toEqual(['plant/1']);
    expect(await topics('--filter', '$SYS/#')).toEqual(['$SYS/uptime']);
    expect(await topics('--sort', 'bytes', '--limit', '1')).toEqual(['silent']);
    await expect(ctl('topics', '--sort', 'wrong')).rejects.toMatchObject({ exit: 1 });
  });

  test('the busiest stand below the counters of top on a terminal', async () => {
    await stage.stop();
    const clock = new FakeClock();
    const { topicList } = stage.broker;
    stage = await new ConsoleStage({ clock }).start();
    stage.broker.topicList.push(...topicList);
    const io = fakeIo();
    const running = run(['top', '--count', '1'], here(), io, true);
    while (stage.metrics.value('tidegate_http_event_readers') !== 1)
      await new Promise((resolve) => setImmediate(resolve));
    clock.advance(2000);
    const lines = (await running).out.split('\x1b[K\n');
    const title = lines.findIndex((line) => line.startsWith('TOPIC'));
    expect(title).toBeGreaterThan(5);
    expect(lines.slice(title + 1)).toEqual([
      'plant/\\x1b[2J      40  78.1 KB',
      'plant/1          0.25      6 B',
      '\x1b[J',
    ]);
  });
});

describe('tables', () => {
  test('columns are as wide as their widest cell, numbers stand right', () => {
    const columns = [
      { title: 'A', value: (row: Readonly<Record<string, unknown>>) => row.a },
      { title: 'N', right: true, value: (row: Readonly<Record<string, unknown>>) => row.n },
    ];
    expect(
      table(columns, [
        { a: 'long text', n: 5 },
        { a: null, n: 1000 },
      ]),
    ).toBe('A             N\nlong text     5\n-          1000\n');
  });

  test('an empty list is its title line', () => {
    expect(table([{ title: 'A', value: () => '' }], [])).toBe('A\n');
  });

  test.each([
    [0, '0 s'],
    [59.9, '59 s'],
    [60, '1 min'],
    [7530, '2 h 5 min'],
    [86_400, '1 d'],
    [90_061, '1 d 1 h'],
  ])('%d seconds are shown as %s', (seconds, text) => {
    expect(durationText(seconds)).toBe(text);
  });

  test('uptime, versions and bytes are for people', () => {
    expect(uptimeText('26 Hours, 2 minutes, 1 seconds')).toBe('1 d 2 h');
    expect(uptimeText(undefined)).toBeUndefined();
    expect([3, 4, 5, null].map(mqttVersion)).toEqual(['3.1', '3.1.1', '5.0', null]);
    expect(sizeText(1536)).toBe('1.5 KB');
  });

  test('status and clients show them, JSON stays as it is', async () => {
    expect(await ctl('status')).toMatch(/^uptime +\d+ (s|min)$/m);
    expect(JSON.parse(await ctl('status', '--json')).uptime).toMatch(/^\d+ Hours, /);
  });

  test.each([
    ['\x1b[2J', '\\x1b[2J'],
    ['a\nb', 'a\\x0ab'],
    ['\x9b', '\\x9b'],
    ['\u202eevil', '\\u202eevil'],
    ['grün', 'grün'],
  ])('%j is shown as %s', (text, expected) => {
    expect(printable(text)).toBe(expected);
  });
});

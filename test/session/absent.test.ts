// Rights of clients that are not here: wills after a restart, retained messages of publishers that came another way, restored sessions.
// All with real files, tokens and rules; a restart is a second broker on the same store.
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { SignJWT } from 'jose';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { AccessControl } from '../../src/auth/chain.ts';
import { JWT_DEFAULTS } from '../../src/auth/jwt.ts';
import type { AuthOptions } from '../../src/auth/options.ts';
import type { RuleOptions } from '../../src/auth/rules.ts';
import type { Journal } from '../../src/store/store.ts';
import { build, deps, Folder, line7, OFF } from '../auth/support.ts';
import { Diary } from '../broker/diary.ts';
import { openRoom, type Room, settled } from '../broker/room.ts';
import { FakeClock } from '../harness/clock.ts';
import { message, session, storePath, subscription, testJournal } from '../harness/journal.ts';

const KEEP = { cleanStart: false, expiry: 3600 } as const;
const SECRET = 'a secret that is long enough for all of it';
const password = Buffer.from('p');

let clock: FakeClock;
let folder: Folder;
let open: Room[] = [];
let server: Server | null = null;
beforeEach(() => {
  clock = new FakeClock();
  folder = new Folder();
});
afterEach(async () => {
  for (const room of open) await room.stop();
  open = [];
  server?.close();
  server = null;
  folder.done();
});

function control(options: Partial<AuthOptions>): Promise<AccessControl> {
  return build({ allowAnonymous: true, ...options }, deps({ clock }));
}

async function start(of: AccessControl, journal?: Journal): Promise<Room> {
  const room = await openRoom({ control: of, clock, limits: { checkRetainSource: true }, ...(journal && { journal }) });
  open.push(room);
  return room;
}

async function stop(room: Room): Promise<void> {
  await room.stop();
  open = open.filter((one) => one !== room);
}

function will(topicName: string, delayInterval = 0) {
  return { topicName, payload: Buffer.from('w'), qos: 1, retain: false, properties: null, delayInterval } as const;
}

function allow(topics: string[], more: Partial<RuleOptions> = {}): RuleOptions {
  const nobody = { username: null, clientId: null, ipaddrs: [], and: [], or: [] };
  return { permit: 'allow', action: 'pubsub', topics, ...nobody, ...more };
}

async function token(claims: Record<string, unknown>): Promise<Buffer> {
  const made = new SignJWT(claims).setProtectedHeader({ alg: 'HS256' });
  return Buffer.from(await made.sign(Buffer.from(SECRET)));
}

/** Ways in which somebody may write dev/x/# only, and how he comes. */
const LIMITED: Record<string, () => Promise<{ options: Partial<AuthOptions>; how: object }>> = {
  'an ACL file of the listener': async () => ({
    options: {
      listeners: new Map([
        ['open', {}],
        ['tcp', { aclFile: folder.put('acl', 'topic readwrite dev/x/#\n') }],
      ]),
    },
    how: {},
  }),
  'a rule for addresses': async () => ({
    options: {
      rules: {
        rules: [allow(['#'], { ipaddrs: ['10.9.9.9'] }), allow(['dev/x/#'], { ipaddrs: ['10.0.0.0/8'] })],
        noMatch: 'deny',
      },
      listeners: new Map([
        ['tcp', {}],
        ['open', {}],
      ]),
    },
    how: { remoteAddress: '10.0.0.7' },
  }),
  'the acl claim of a token': async () => ({
    options: {
      jwt: { ...JWT_DEFAULTS, requireExpiry: false, secret: SECRET, keyfile: null },
      listeners: new Map([
        ['tcp', {}],
        ['open', {}],
      ]),
    },
    how: { username: 'dev', password: await token({ sub: 'dev', acl: { all: ['dev/x/#'] } }) },
  }),
};
/** Who may read and write everything with them. */
const FREE = { listener: 'open', remoteAddress: '10.9.9.9' };

describe.each(Object.keys(LIMITED))('with %s', (limit) => {
  it('a will that is not allowed is not sent after a restart, one that is allowed is', async () => {
    const { options, how } = await LIMITED[limit]();
    const of = await control(options);
    const path = storePath();
    const first = await start(of, testJournal(path).journal);
    const watcher = await first.client('watcher', { ...KEEP, ...FREE });
    await watcher.subscribe('admin/#', 1);
    await watcher.subscribe('dev/#', 1);
    await first.client('bad', { ...KEEP, ...how, listener: 'tcp', will: will('admin/cmd') });
    await first.client('good', { ...KEEP, ...how, listener: 'tcp', will: will('dev/x/state') });
    await settled();
    await stop(first);
    const second = await start(of, testJournal(path).journal);
    await second.advance(120_000);
    const back = await second.client('watcher', { ...KEEP, ...FREE });
    expect((await back.messages()).map((m) => m.topic)).toEqual(['dev/x/state']);
    expect(second.metric('denied_total', { action: 'will' })).toBe(1);
  });

  it('a restored session gets what its client may read, and nothing else', async () => {
    const { options, how } = await LIMITED[limit]();
    const of = await control(options);
    const path = storePath();
    const first = await start(of, testJournal(path).journal);
    const reader = await first.client('reader', { ...KEEP, ...how, listener: 'tcp' });
    await reader.subscribe('dev/x/#', 1);
    await stop(first);
    const second = await start(of, testJournal(path).journal);
    const publisher = await second.client('p', FREE);
    await publisher.published('dev/x/1', 'yes', 1);
    expect(second.broker.client('reader')?.queued).toBe(1);
  });

  it('what such a client has retained reaches a new subscriber of another listener, before and after a restart', async () => {
    const { options, how } = await LIMITED[limit]();
    const of = await control(options);
    const path = storePath();
    const first = await start(of, testJournal(path).journal);
    const publisher = await first.client('p', { ...how, listener: 'tcp' });
    await publisher.published('dev/x/1', 'kept', 1, { retain: true });
    const one = await first.client('one', FREE);
    await one.subscribe('dev/#');
    expect((await one.messages()).map((m) => m.payload)).toEqual(['kept']);
    await stop(first);
    const second = await start(of, testJournal(path).journal);
    const two = await second.client('two', FREE);
    await two.subscribe('dev/#');
    expect((await two.messages()).map((m) => m.payload)).toEqual(['kept']);
  });
});

it('a retained message is judged by the rights of its publisher, not by those of the subscriber or its listener', async () => {
  const inner = folder.put('inner', 'topic readwrite a/#\n');
  const listeners = new Map([
    ['inner', { aclFile: inner }],
    ['outer', { aclFile: folder.put('outer', 'topic read #\n') }],
  ]);
  const of = await control({ listeners });
  const room = await start(of);
  await (await room.client('p', { listener: 'inner' })).published('a/1', 'x', 1, { retain: true });
  const reader = await room.client('reader', { listener: 'outer' });
  await reader.subscribe('#');
  expect((await reader.messages()).map((m) => m.topic)).toEqual(['a/1']);
  // The right is withdrawn where the publisher came in.
  folder.put('inner', 'topic read a/#\n');
  await of.reload({ ...OFF, allowAnonymous: true, listeners });
  room.broker.accessChanged();
  const later = await room.client('later', { listener: 'outer' });
  await later.subscribe('#');
  expect(await later.messages()).toEqual([]);
});

it('a retained message of a publisher whose rights a web server knows is delivered once the server has answered', async () => {
  const asked: string[] = [];
  server = createServer((request, response) => {
    asked.push(request.url ?? '');
    response.statusCode = request.url?.includes('/denied') === true && request.url.includes('access=2') ? 403 : 200;
    setImmediate(() => response.end());
  });
  await new Promise<void>((resolve) => server?.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const request = {
    url: `http://127.0.0.1:${port}/acl`,
    method: 'get',
    headers: [],
    params: [
      ['access', '%A'],
      ['topic', '%t'],
      ['ip', '%a'],
    ],
  } as const;
  const times = { timeoutMs: 2000, connectTimeoutMs: 0, poolSize: 4, cacheTtlMs: 0 };
  const http = { ...times, authReq: null, superReq: null, aclReq: request };
  const of = await control({ http, listeners: new Map([['tcp', {}]]) });
  const room = await start(of);
  const publisher = await room.client('p', { listener: 'tcp', remoteAddress: '10.0.0.7' });
  for (const topic of ['a/1', 'a/2', 'b/1']) await publisher.published(topic, topic, 1, { retain: true });
  // What the server has said before does not hold any more.
  await room.advance(5000);
  asked.length = 0;
  const reader = await room.client('reader', { listener: 'tcp', remoteAddress: '10.0.0.8' });
  await reader.subscribe('#', 1);
  const got = [await reader.message(), await reader.message(), await reader.message()];
  expect(got.map((m) => m.topic).sort()).toEqual(['a/1', 'a/2', 'b/1']);
  expect(asked.filter((url) => url.includes('ip=10.0.0.7') && url.includes('access=2')).length).toBe(3);
  of.close();
});

describe('a will whose time comes while its client is away', () => {
  async function delayed(
    of: AccessControl,
    how: object,
  ): Promise<{ room: Room; watcher: Awaited<ReturnType<Room['client']>> }> {
    const room = await start(of);
    const watcher = await room.client('watcher', { listener: 'open' });
    await watcher.subscribe('#', 1);
    const client = await room.client('c', { ...KEEP, ...how, listener: 'tcp', will: will('t', 100) });
    await client.drop();
    return { room, watcher };
  }

  it('is not sent when its user has been removed, also where there are no rules of rights', async () => {
    const file = folder.put('users', `${line7('u', 'p')}\n${line7('v', 'p')}\n`);
    const listeners = new Map([
      ['tcp', { passwordFile: file }],
      ['open', {}],
    ]);
    const of = await control({ listeners });
    const { room, watcher } = await delayed(of, { username: 'u', password });
    folder.put('users', `${line7('v', 'p')}\n`);
    await of.reload({ ...OFF, allowAnonymous: true, listeners });
    await room.advance(101_000);
    expect(await watcher.messages()).toEqual([]);
    expect(room.metric('denied_total', { action: 'will' })).toBe(1);
  });

  it('is sent when only the password of its user has changed', async () => {
    const file = folder.put('users', `${line7('u', 'p')}\n`);
    const listeners = new Map([
      ['tcp', { passwordFile: file }],
      ['open', {}],
    ]);
    const of = await control({ listeners });
    const { room, watcher } = await delayed(of, { username: 'u', password });
    folder.put('users', `${line7('u', 'q')}\n`);
    await of.reload({ ...OFF, allowAnonymous: true, listeners });
    await room.advance(101_000);
    expect((await watcher.messages()).map((m) => m.topic)).toEqual(['t']);
  });

  it('is not sent when its user has lost the right', async () => {
    const acl = folder.put('acl', 'topic write t\n');
    const listeners = new Map([
      ['tcp', { aclFile: acl }],
      ['open', {}],
    ]);
    const of = await control({ listeners });
    const { room, watcher } = await delayed(of, {});
    folder.put('acl', 'topic read t\n');
    await of.reload({ ...OFF, allowAnonymous: true, listeners });
    await room.advance(101_000);
    expect(await watcher.messages()).toEqual([]);
  });

  it('is not sent when its token has ended', async () => {
    const of = await control({
      jwt: { ...JWT_DEFAULTS, requireExpiry: false, secret: SECRET, keyfile: null },
      listeners: new Map([
        ['tcp', {}],
        ['open', {}],
      ]),
    });
    const exp = Math.floor(clock.now() / 1000) + 50;
    const { room, watcher } = await delayed(of, { username: 'u', password: await token({ sub: 'u', exp }) });
    await room.advance(101_000);
    expect(await watcher.messages()).toEqual([]);
  });
});

it('a session that waits gets messages past the end of its token: a new one is asked for before they leave', async () => {
  const of = await control({
    jwt: { ...JWT_DEFAULTS, requireExpiry: false, secret: SECRET, keyfile: null },
    listeners: new Map([
      ['tcp', {}],
      ['open', {}],
    ]),
  });
  const room = await start(of);
  const claims = (): object => ({ sub: 'u', exp: Math.floor(clock.now() / 1000) + 50, acl: { all: ['t/#'] } });
  const login = async () => ({ ...KEEP, listener: 'tcp', username: 'u', password: await token({ ...claims() }) });
  const client = await room.client('c', await login());
  await client.subscribe('t/#', 1);
  await client.drop();
  await room.advance(100_000);
  await (await room.client('p', { listener: 'open' })).published('t/1', 'late', 1);
  const back = await room.client('c', await login());
  expect((await back.messages()).map((m) => m.payload)).toEqual(['late']);
});

it('a session whose listener is not configured any more gets only what every listener would let it read', async () => {
  const stored = (listener: string) => ({
    session: session('c', { arrival: { listener, remoteAddress: '', realm: '', via: 'anonymous', claims: null } }),
    subscriptions: [subscription('#')],
    queue: [],
    inbound: [],
    will: null,
  });
  const listeners = new Map([
    ['tcp.a', { aclFile: folder.put('a', 'topic readwrite a/#\ntopic readwrite both\n') }],
    ['tcp.b', { aclFile: folder.put('b', 'topic readwrite b/#\ntopic readwrite both\n') }],
  ]);
  const of = await control({ listeners });
  const room = await start(of, new Diary({ sessions: [stored('tcp.gone')] }));
  await (await room.client('p', { listener: 'tcp.a' })).published('a/1', 'x', 1);
  await (await room.client('q', { listener: 'tcp.b' })).published('both', 'x', 1);
  expect(room.broker.client('c')?.queued).toBe(1);
});

it('a will and a retained message that an earlier version kept are judged as of somebody whose address and claims are not known', async () => {
  const rules = { rules: [allow(['open/#']), allow(['#'], { ipaddrs: ['10.0.0.0/8'] })], noMatch: 'deny' } as const;
  const of = await control({ rules, listeners: new Map([['tcp', {}]]) });
  const kept = (topic: string) => ({
    session: session(topic, { expiryInterval: 3600 }),
    subscriptions: [],
    queue: [],
    inbound: [],
    will: { message: message(topic), dueAt: clock.now() + 1000 },
  });
  const retained = [message('open/r', 'x', { retain: true }), message('shut/r', 'x', { retain: true })];
  const diary = new Diary({ sessions: [kept('open/w'), kept('shut/w')], retained });
  const room = await start(of, diary);
  const reader = await room.client('reader', { listener: 'tcp', remoteAddress: '10.0.0.1' });
  await reader.subscribe('#', 1);
  expect((await reader.messages()).map((m) => m.topic)).toEqual(['open/r']);
  await room.advance(2000);
  expect((await reader.messages()).map((m) => m.topic)).toEqual(['open/w']);
});

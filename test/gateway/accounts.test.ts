// MQTT users, groups and roles by REST and `ctl mqtt`, on a whole gateway: what is put is in force, and shown without its secrets.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { runCli } from '../../src/cli/cli.ts';
import { INITIAL, login } from '../harness/dynsec.ts';
import { type TestGateway, testGateway } from '../harness/gateway.ts';
import { fakeIo } from '../harness/io.ts';

const CONF = `listeners.tcp { bind = "127.0.0.1:0" }
persistence { enable = false }
auth { dynamic_security { enable = true } }
http_server { port = 0, username = admin, password = "console-Pw" }
`;

let stage: TestGateway;
let base: string;
beforeEach(async () => {
  stage = await testGateway(CONF);
  const up = stage.messages.find(({ id }) => id === 'WEB-UP');
  base = `http://${String(up?.fields?.address)}`;
});
afterEach(() => stage.stop());

async function call(
  method: string,
  path: string,
  body?: unknown,
): Promise<{ status: number; body: Record<string, unknown> }> {
  const response = await fetch(`${base}/api/v4${path}`, {
    method,
    headers: {
      authorization: `Basic ${Buffer.from('admin:console-Pw').toString('base64')}`,
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    },
    body: body === undefined ? undefined : JSON.stringify(body),
  });
  return { status: response.status, body: (await response.json()) as Record<string, unknown> };
}

async function ctl(words: readonly string[], input = ''): Promise<{ code: number; out: string }> {
  const io = fakeIo(input);
  const argv = ['ctl', '--url', base, '--user', 'admin', '--password', 'console-Pw', ...words];
  const code = await runCli(argv, io);
  return { code, out: io.stdout.text() + io.stderr.text() };
}

describe('REST of MQTT users', () => {
  it('adds, shows, changes, disables and removes a user', async () => {
    const { port } = stage;
    const path = '/mqtt/users/ann%2F1';
    expect(
      (await call('PUT', '/mqtt/roles/r', { acls: [{ acltype: 'publishClientSend', topic: 'a/#', allow: true }] }))
        .status,
    ).toBe(201);
    expect((await call('PUT', path, { password: 'first', roles: ['r'], textname: 'Ann' })).status).toBe(201);
    expect((await call('GET', path)).body.data).toEqual({
      username: 'ann/1',
      textname: 'Ann',
      has_password: true,
      roles: [{ rolename: 'r' }],
      groups: [],
    });
    expect(await login(port, { username: 'ann/1', password: 'first' })).toBe('in');
    expect((await call('PUT', `${path}/password`, { password: 'second' })).status).toBe(200);
    expect(await login(port, { username: 'ann/1', password: 'first' })).toBe(135);
    expect(await login(port, { username: 'ann/1', password: 'second' })).toBe('in');
    expect((await call('PUT', path, { disabled: true })).status).toBe(200);
    expect(await login(port, { username: 'ann/1', password: 'second' })).toBe(135);
    expect((await call('PUT', path, { disabled: false, textname: null })).status).toBe(200);
    expect(await login(port, { username: 'ann/1', password: 'second' })).toBe('in');
    expect((await call('DELETE', path)).status).toBe(200);
    expect((await call('DELETE', path)).status).toBe(404);
    expect((await call('GET', path)).status).toBe(404);
  });

  it('takes a shown document back as it is', async () => {
    await call('PUT', '/mqtt/roles/r', {
      textname: 'R',
      acls: [{ acltype: 'subscribePattern', topic: 'a', allow: false }],
    });
    await call('PUT', '/mqtt/users/ann', {
      password: 'p',
      clientid_pattern: 'dev-*',
      roles: [{ rolename: 'r', priority: 2 }],
    });
    await call('PUT', '/mqtt/groups/g', { roles: ['r'], clients: ['ann'] });
    for (const path of ['/mqtt/users/ann', '/mqtt/groups/g', '/mqtt/roles/r']) {
      const { body } = await call('GET', path);
      expect((await call('PUT', path, body.data)).status).toBe(200);
      expect((await call('GET', path)).body).toEqual(body);
    }
  });

  it('does a document whole or not at all, and says what is wrong with it', async () => {
    const wrong = await call('PUT', '/mqtt/users/ann', { password: 'p', roles: ['nowhere'] });
    expect(wrong).toMatchObject({ status: 400, body: { message: expect.stringContaining('Role not found') } });
    expect((await call('GET', '/mqtt/users/ann')).status).toBe(404);
    expect((await call('PUT', '/mqtt/users/ann', { pasword: 'p' })).body.pointer).toBe('/pasword');
    expect((await call('PUT', '/mqtt/groups/g', { disabled: true })).status).toBe(400);
    expect((await call('PUT', '/mqtt/users/ann/password', { password: '' })).status).toBe(400);
  });

  it('lists in pages, by a part of the name', async () => {
    const commands = Array.from({ length: 30 }, (_, i) => ({ command: 'createClient', username: `dev-${i}` }));
    await call('POST', '/mqtt/dynamic_security/commands', { commands });
    const { body } = await call('GET', '/mqtt/users?search=DEV-1&limit=5&page=2');
    expect(body.meta).toEqual({ page: 2, limit: 5, count: 11, hasnext: true });
    expect((body.data as { username: string }[]).map(({ username }) => username)).toEqual([
      'dev-14',
      'dev-15',
      'dev-16',
      'dev-17',
      'dev-18',
    ]);
  });

  it('changes the default access and the anonymous group', async () => {
    await call('PUT', '/mqtt/groups/guests', {});
    expect((await call('PUT', '/mqtt/default_access', { subscribe: true, anonymous_group: 'guests' })).status).toBe(
      200,
    );
    expect((await call('GET', '/mqtt/default_access')).body.data).toMatchObject({
      subscribe: true,
      anonymous_group: 'guests',
    });
    expect((await call('PUT', '/mqtt/default_access', { anonymous_group: null })).status).toBe(200);
    expect((await call('PUT', '/mqtt/default_access', { subscribe: 'yes' })).status).toBe(400);
  });

  it('imports and exports dynamic-security.json', async () => {
    expect((await call('PUT', '/mqtt/dynamic_security', JSON.parse(INITIAL))).status).toBe(200);
    expect(await login(stage.port, { username: 'admin', password: 'pw' })).toBe('in');
    const { body } = await call('GET', '/mqtt/dynamic_security');
    expect(body.data).toMatchObject({ clients: [{ username: 'admin', iterations: 101 }] });
    const wrong = await call('PUT', '/mqtt/dynamic_security', { clients: [{ username: 5 }] });
    expect(wrong).toMatchObject({ status: 400, body: { message: expect.stringContaining('/clients/0') } });
    expect(await login(stage.port, { username: 'admin', password: 'pw' })).toBe('in');
  });

  it('says which entry of which role decides', async () => {
    await call('PUT', '/mqtt/roles/r', { acls: [{ acltype: 'publishClientSend', topic: 'a/#', allow: true }] });
    await call('PUT', '/mqtt/users/ann', { password: 'p', roles: ['r'] });
    const ask = async (topic: string) =>
      (await call('GET', `/access/explain?clientid=c&username=ann&listener=tcp&action=publish&topic=${topic}`)).body
        .data;
    expect(await ask('a/b')).toMatchObject({
      allowed: true,
      connected: false,
      rule: 'role r: publishClientSend a/# allow',
    });
    expect(await ask('b')).toMatchObject({ allowed: false });
  });

  it('is closed to operators, and answers 404 where nothing is configured', async () => {
    writeFileSync(
      join(stage.folder, 'test.conf'),
      CONF.replace('dynamic_security { enable = true }', 'allow_anonymous = true'),
    );
    expect((await call('POST', '/reload')).body.code).toBe(0);
    expect((await call('GET', '/mqtt/users')).status).toBe(404);
    expect(await login(stage.port, {})).toBe('in');
  });
});

describe('ctl mqtt', () => {
  it('adds users, groups, roles and entries, and shows them', async () => {
    expect((await ctl(['mqtt', 'role', 'set', 'writer', '--text', 'may write'])).code).toBe(0);
    expect(
      (await ctl(['mqtt', 'acl', 'add', 'writer', 'publishClientSend', 'a/#', 'allow', '--priority', '3'])).code,
    ).toBe(0);
    expect(
      (await ctl(['mqtt', 'user', 'set', 'ann', '--role', 'writer:5', '--clientid', 'desk'], 'secret\n')).code,
    ).toBe(0);
    expect((await ctl(['mqtt', 'group', 'set', 'people', '--member', 'ann', '--role', 'writer'])).code).toBe(0);
    expect(await login(stage.port, { username: 'ann', password: 'secret', clientId: 'desk' })).toBe('in');
    expect((await ctl(['mqtt', 'users'])).out).toMatch(/ann +on +desk +writer \(5\) +people/);
    expect((await ctl(['mqtt', 'groups'])).out).toMatch(/people +writer +ann/);
    expect((await ctl(['mqtt', 'role', 'show', 'writer'])).out).toMatch(/publishClientSend +a\/# +allow +3/);
    expect((await ctl(['mqtt', 'user', 'disable', 'ann'])).code).toBe(0);
    expect(await login(stage.port, { username: 'ann', password: 'secret', clientId: 'desk' })).toBe(135);
    expect((await ctl(['mqtt', 'access', 'subscribe=allow', 'publishClientSend=deny'])).out).toMatch(
      /subscribe +allow/,
    );
    expect((await ctl(['mqtt', 'acl', 'remove', 'writer', 'publishClientSend', 'a/#'])).code).toBe(0);
    expect((await ctl(['mqtt', 'acl', 'remove', 'writer', 'publishClientSend', 'a/#'])).out).toContain('ACL not found');
    for (const [kind, name] of [
      ['user', 'ann'],
      ['group', 'people'],
      ['role', 'writer'],
    ])
      expect((await ctl(['mqtt', kind, 'remove', name])).code).toBe(0);
  });

  it('exports what it imports', async () => {
    const file = join(stage.folder, 'ds.json');
    writeFileSync(file, INITIAL);
    expect((await ctl(['mqtt', 'import', file])).code).toBe(0);
    const { out } = await ctl(['mqtt', 'export']);
    expect(JSON.parse(out)).toMatchObject({ clients: JSON.parse(INITIAL).clients });
  });
});

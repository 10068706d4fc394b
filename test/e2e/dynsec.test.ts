// Users at run time on the wire: mosquitto_ctrl drives the gateway, its answers stand beside those of mosquitto with the plugin, and what a
// command takes away is gone at once.
import { execFile } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import type { MqttClient } from 'mqtt';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Administrator, CONTROL, type Command, dial, INITIAL, login } from '../harness/dynsec.ts';
import { type TestGateway, testGateway } from '../harness/gateway.ts';
import { Mosquitto, programPath } from '../harness/mosquitto.ts';

const run = promisify(execFile);
const PLUGIN = ['/usr/lib/x86_64-linux-gnu', '/usr/lib/aarch64-linux-gnu', '/usr/lib']
  .map((folder) => path.join(folder, 'mosquitto_dynamic_security.so'))
  .find(existsSync);
const missing = programPath('mosquitto') === null || programPath('mosquitto_ctrl') === null || PLUGIN === undefined;

function conf(more = ''): string {
  return `listeners.tcp { bind = "127.0.0.1:0" }
persistence { enable = false }
auth { allow_anonymous = true, dynamic_security { enable = true } ${more} }
`;
}

/** A gateway whose tidegate.d holds the users that mosquitto_ctrl begins with. */
async function gatewayWith(more = ''): Promise<TestGateway> {
  const gateway = await testGateway(conf(more));
  const file = path.join(gateway.folder, 'tidegate.d', 'dynamic-security.json');
  const accounts = gateway.gateway.accounts.control();
  expect(accounts?.path).toBe(file);
  expect(await accounts?.replace(INITIAL, { user: 'test', remote: '' })).toMatchObject({ ok: true });
  return gateway;
}

/** Settles when the connection has ended. */
function closed(client: MqttClient): Promise<void> {
  return new Promise((resolve) => {
    client.once('close', () => resolve());
  });
}

/** Every command of `mosquitto_ctrl dynsec`, some of them twice. */
const WORDS = `listClients
createRole reader
createRole writer
addRoleACL reader subscribePattern plant/# allow 5
addRoleACL reader subscribeLiteral plant/secret deny
addRoleACL reader publishClientReceive plant/# allow
addRoleACL writer publishClientSend plant/# allow
addRoleACL writer unsubscribePattern plant/# allow
addRoleACL writer unsubscribeLiteral plant/x deny
addRoleACL writer publishClientSend plant/# allow
removeRoleACL writer unsubscribeLiteral plant/x
getRole reader
getRole nobody
listRoles
listRoles 1 1
createGroup people
createGroup machines
createClient ann -p secret -c desk
createClient ben -p secret
createClient ben -p secret
addGroupRole people reader 3
addGroupRole people writer
removeGroupRole people writer
addGroupClient people ann 4
addGroupClient people ben
addGroupClient people ben
removeGroupClient people ben
getGroup people
listGroups
addClientRole ann writer 2
addClientRole ben reader
removeClientRole ben reader
setClientPassword ann other
setClientId ann
setClientId ann shelf
getClient ann
disableClient ben
getClient ben
enableClient ben
listClients 1 1
getDefaultACLAccess
setAnonymousGroup people
getAnonymousGroup
setAnonymousGroup machines
deleteClient ben
deleteClient ben
getClient ben`.split('\n');
/** mosquitto 2.0.11 may crash when a role or a group in use is removed. */
const LAST_WORDS = ['deleteGroup people', 'deleteRole writer', 'deleteRole writer', 'listRoles', 'listGroups'];

async function control(port: number, words: string): Promise<string> {
  const argv = ['-h', '127.0.0.1', '-p', String(port), '-u', 'admin', '-P', 'pw', 'dynsec', ...words.split(' ')];
  const { stdout, stderr } = await run('mosquitto_ctrl', argv).catch(
    (error: { stdout: string; stderr: string }) => error,
  );
  return stdout + stderr.replace(/^Warning: You are running[\s\S]*passwords\.\n/, '');
}

describe.skipIf(missing)('mosquitto_ctrl dynsec', () => {
  let gateway: TestGateway;
  let mosquitto: Mosquitto;
  beforeAll(async () => {
    gateway = await gatewayWith();
    mosquitto = await Mosquitto.start(
      ['allow_anonymous true', `plugin ${PLUGIN}`, 'plugin_opt_config_file {dir}/ds.json'],
      { 'ds.json': INITIAL },
    );
  });
  afterAll(async () => {
    await gateway.stop();
    await mosquitto.stop();
  });

  it('prints for each command what it prints for mosquitto', { timeout: 60_000 }, async () => {
    for (const words of WORDS) {
      expect(`${words}: ${await control(gateway.port, words)}`).toBe(
        `${words}: ${await control(mosquitto.port, words)}`,
      );
    }
  });

  it('removes roles and groups that are in use', { timeout: 60_000 }, async () => {
    const said: string[] = [];
    for (const words of LAST_WORDS) said.push(await control(gateway.port, words));
    expect(said).toEqual(['\n', '\n', expect.stringContaining('Role not found'), 'admin\nreader\n\n', 'machines\n\n']);
  });

  it('changes the default access, which mosquitto 2.0.11 answers and does not do', async () => {
    await control(gateway.port, 'setDefaultACLAccess publishClientSend allow');
    expect(await control(gateway.port, 'getDefaultACLAccess')).toMatch(/publishClientSend\s*: allow/);
    await control(gateway.port, 'setDefaultACLAccess publishClientSend deny');
    expect(await control(gateway.port, 'getDefaultACLAccess')).toMatch(/publishClientSend\s*: deny/);
  });

  it('leaves a file that mosquitto starts with', async () => {
    const text = readFileSync(path.join(gateway.folder, 'tidegate.d', 'dynamic-security.json'), 'utf8');
    const other = await Mosquitto.start([`plugin ${PLUGIN}`, 'plugin_opt_config_file {dir}/ds.json'], {
      'ds.json': text,
    });
    expect(await login(other.port, { username: 'ann', password: 'other', clientId: 'shelf' })).toBe('in');
    expect(await login(other.port, { username: 'ann', password: 'other', clientId: 'desk' })).toBe(135);
    await other.stop();
  });

  /** Where mosquitto 2.0.11 takes what it then leaves out, or crashes: docs/from-mosquitto.md has the table. */
  it.each<[string, Command | string, string | undefined, string | undefined]>([
    ['no JSON', 'x', 'Payload not valid JSON', 'Payload not valid JSON'],
    ['no commands', '{}', 'Invalid/missing commands', 'Invalid/missing commands'],
    ['a command that is no object', '{"commands":[1]}', 'Command not an object', 'Command not an object'],
    ['a command without a name', '{"commands":[{}]}', 'Missing command', 'Missing command'],
    ['an unknown command', { command: 'constructor' }, 'Unknown command', 'Unknown command'],
    ['an empty name', { command: 'createClient', username: '' }, 'Invalid/missing username', undefined],
    ['groups that are no list', { command: 'createClient', username: 'n1', groups: 'x' }, "'groups' not", undefined],
    [
      'an unknown type',
      { command: 'createRole', rolename: 'n2', acls: [{ acltype: 'x' }] },
      'Unknown acltype',
      undefined,
    ],
    [
      'a wrong filter',
      { command: 'createRole', rolename: 'n3', acls: [{ acltype: 'subscribePattern', topic: '#/a' }] },
      'Invalid ACL topic',
      undefined,
    ],
    [
      'a priority in text',
      { command: 'addClientRole', username: 'ann', rolename: 'reader', priority: '1' },
      'Invalid/missing priority',
      undefined,
    ],
    [
      'a role twice',
      { command: 'addClientRole', username: 'admin', rolename: 'admin' },
      'Client already has this role',
      'Internal error',
    ],
    [
      'an unknown default',
      { command: 'setDefaultACLAccess', acls: [{ acltype: 'x', allow: true }] },
      'Unknown acltype',
      undefined,
    ],
    [
      'a password that is no text',
      { command: 'modifyClient', username: 'ann', password: 5 },
      'Invalid/missing password',
      undefined,
    ],
    [
      'a group that is not there',
      { command: 'modifyClient', username: 'ann', groups: [{ groupname: 'x' }] },
      'Group not found',
      undefined,
    ],
    [
      'a member that is not there',
      { command: 'modifyGroup', groupname: 'machines', clients: [{ username: 'x' }] },
      'Client not found',
      undefined,
    ],
  ])('answers %s', async (_, command, ours, theirs) => {
    const raw = typeof command === 'string' ? command : JSON.stringify({ commands: [command] });
    for (const [port, expected] of [
      [gateway.port, ours],
      [mosquitto.port, theirs],
    ] as const) {
      const admin = await Administrator.open(port);
      const { error } = (await admin.raw(raw)).responses[0];
      await admin.close();
      if (expected === undefined) expect(error).toBeUndefined();
      else expect(error).toContain(expected);
    }
  });
});

describe('a change of users over MQTT', () => {
  let gateway: TestGateway;
  let admin: Administrator;
  beforeAll(async () => {
    gateway = await gatewayWith();
    admin = await Administrator.open(gateway.port);
    await admin.done(
      {
        command: 'createRole',
        rolename: 'all',
        acls: [
          { acltype: 'publishClientSend', topic: 't/#', allow: true },
          { acltype: 'subscribePattern', topic: 't/#', allow: true },
        ],
      },
      { command: 'createRole', rolename: 'none' },
    );
  });
  afterAll(async () => {
    await admin.close();
    await gateway.stop();
  });

  async function user(name: string, role = 'all', more: Command = {}): Promise<MqttClient> {
    await admin.done({ command: 'createClient', username: name, password: 'p', roles: [{ rolename: role }], ...more });
    return dial(gateway.port, { username: name, password: 'p', clientId: `c-${name}` });
  }

  it.each<[string, Command]>([
    ['disabled', { command: 'disableClient' }],
    ['deleted', { command: 'deleteClient' }],
    ['given another password', { command: 'setClientPassword', password: 'other' }],
    ['bound to another client id', { command: 'setClientId', clientid: 'another' }],
  ])('ends the connection of a user that is %s, and it cannot come again', async (word, command) => {
    const name = word.replaceAll(' ', '-');
    const client = await user(name);
    const end = closed(client);
    await admin.done({ ...command, username: name });
    await end;
    expect(await login(gateway.port, { username: name, password: 'p', clientId: `c-${name}` })).toBe(135);
  });

  it('takes a right from a connected client, its subscriptions and its offline session', async () => {
    const options = { clean: false, properties: { sessionExpiryInterval: 600 } };
    const client = await user('loses');
    const away = await dial(gateway.port, { username: 'loses', password: 'p', clientId: 'away', ...options });
    for (const one of [client, away]) expect((await one.subscribeAsync('t/#', { qos: 1 }))[0].qos).toBe(1);
    await away.endAsync();
    const came = new Promise((resolve) => client.once('message', resolve));
    await client.publishAsync('t/1', 'x', { qos: 1 });
    await came;
    await admin.done({ command: 'removeClientRole', username: 'loses', rolename: 'all' });
    await expect(client.publishAsync('t/2', 'x', { qos: 1 })).rejects.toMatchObject({ code: 135 });
    expect([...gateway.gateway.broker.subscriptions('c-loses')]).toEqual([]);
    expect([...gateway.gateway.broker.subscriptions('away')]).toEqual([]);
    expect(client.connected).toBe(true);
    await client.endAsync(true);
  });

  it('gives a right at once', async () => {
    const client = await user('gains', 'none');
    await expect(client.publishAsync('t/1', 'x', { qos: 1 })).rejects.toMatchObject({ code: 135 });
    await admin.done({ command: 'addClientRole', username: 'gains', rolename: 'all' });
    await expect(client.publishAsync('t/1', 'x', { qos: 1 })).resolves.toBeDefined();
    await client.endAsync(true);
  });

  it('refuses to end a subscription that an entry keeps', async () => {
    await admin.done({
      command: 'createRole',
      rolename: 'kept',
      acls: [
        { acltype: 'subscribePattern', topic: '#', allow: true },
        { acltype: 'unsubscribePattern', topic: 't/#', allow: false },
      ],
    });
    const client = await user('kept', 'kept');
    await client.subscribeAsync(['t/1', 'u/1']);
    const packet = await client.unsubscribeAsync(['t/1', 'u/1']).catch((error: unknown) => error);
    expect(packet).toBeDefined();
    expect([...gateway.gateway.broker.subscriptions('c-kept')].map((one) => one.topicFilter)).toEqual(['t/1']);
    await client.endAsync(true);
  });

  it('judges clients without a name by the anonymous group', async () => {
    await admin.done(
      { command: 'createGroup', groupname: 'guests', roles: [{ rolename: 'all' }] },
      { command: 'setAnonymousGroup', groupname: 'guests' },
    );
    const guest = await dial(gateway.port, { clientId: 'guest' });
    await expect(guest.publishAsync('t/1', 'x', { qos: 1 })).resolves.toBeDefined();
    await expect(guest.publishAsync('u/1', 'x', { qos: 1 })).rejects.toMatchObject({ code: 135 });
    await admin.done({ command: 'setAnonymousGroup', groupname: '' });
    await expect(guest.publishAsync('t/1', 'x', { qos: 1 })).rejects.toMatchObject({ code: 135 });
    await guest.endAsync(true);
  });

  it('is shown to nobody else, whatever they have subscribed to, and never kept', async () => {
    const seen: string[] = [];
    const spy = await user('spy', 'admin');
    spy.on('message', (topic) => seen.push(topic));
    await spy.subscribeAsync(['$CONTROL/#', '#']);
    await admin.done({ command: 'createClient', username: 'secret', password: 'very secret' });
    await spy.subscribeAsync('$CONTROL/dynamic-security/v1');
    await spy.publishAsync(CONTROL, '{"commands":[{"command":"getClient","username":"spy"}]}', { qos: 1 });
    // Its own answer comes behind whatever was sent before.
    await expect.poll(() => seen).toEqual([`${CONTROL}/response`]);
    expect([...gateway.gateway.broker.retained('$CONTROL/#')]).toEqual([]);
    await spy.endAsync(true);
  });

  it('comes only from those that an entry names', async () => {
    const client = await user('nobody');
    await expect(client.publishAsync(CONTROL, '{}', { qos: 1 })).rejects.toMatchObject({ code: 135 });
    await expect(client.subscribeAsync(`${CONTROL}/response`)).rejects.toThrow();
    await client.endAsync(true);
  });

  it('is logged with who made it, without the password', async () => {
    await admin.done({ command: 'createClient', username: 'logged', password: 'not to be seen' });
    const line = gateway.messages.findLast(({ id }) => id === 'AUTH-CHANGE');
    expect(line?.fields).toMatchObject({ user: 'admin', via: 'mqtt', command: 'createClient', name: 'logged' });
    expect(JSON.stringify(gateway.messages)).not.toContain('not to be seen');
  });

  it('is refused, and the user is not there, while it cannot be written', async () => {
    const file = path.join(gateway.folder, 'tidegate.d', 'dynamic-security.json');
    const before = readFileSync(file);
    writeFileSync(file, '{}');
    const [{ error }] = await admin.run({ command: 'createClient', username: 'lost', password: 'p' });
    expect(error).toContain('changed by somebody else');
    expect(gateway.gateway.accounts.control()?.user('lost')).toBeUndefined();
    writeFileSync(file, before);
    expect(await gateway.gateway.reload()).toMatchObject({ ok: true });
    await admin.done({ command: 'createClient', username: 'kept-again', password: 'p' });
  });

  it('is bounded in bytes and in commands', async () => {
    const large = await admin.raw(JSON.stringify({ commands: [{ command: 'x'.repeat(1024 * 1024) }] }));
    expect(large.responses[0].error).toContain('larger than');
    const many = await admin.raw(JSON.stringify({ commands: Array(1001).fill({}) }));
    expect(many.responses[0].error).toBe('More than 1000 commands');
  });
});

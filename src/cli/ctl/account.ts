// `tidegate ctl mqtt`: MQTT users, groups and roles at run time, in the words of mosquitto's dynamic security. Called
// by ctl.ts. Passwords are asked for or come from standard input, never from the command line. What is right is the
// gateway's to decide.
import { type Command, Option } from 'commander';
import { GatewayError } from '../../base/errors.ts';
import { askPassword } from '../secret.ts';
import { type Column, column, facts, type Row } from './table.ts';
import { type Adder, documentOf, pages, rowOf, rowsOf, say, show, type Work } from './work.ts';

const RIGHTS = [
  'publishClientSend',
  'publishClientReceive',
  'subscribeLiteral',
  'subscribePattern',
  'unsubscribeLiteral',
  'unsubscribePattern',
];

/** Names of a list of uses, with their priorities: "admin (5), reader". */
function names(list: unknown, key: string): string {
  return rowsOf(list)
    .map((use) => `${String(use[key])}${use.priority === undefined ? '' : ` (${String(use.priority)})`}`)
    .join(', ');
}

const roles: Column = { title: 'ROLES', value: (row) => names(row.roles, 'rolename') };
const USERS: readonly Column[] = [
  column('USER', 'username'),
  { title: 'STATE', value: (row) => (row.disabled === true ? 'disabled' : row.has_password ? 'on' : 'no password') },
  { title: 'CLIENT ID', value: (row) => row.clientid ?? row.clientid_pattern ?? '' },
  roles,
  { title: 'GROUPS', value: (row) => names(row.groups, 'groupname') },
];
const GROUPS: readonly Column[] = [
  column('GROUP', 'groupname'),
  roles,
  { title: 'USERS', value: (row) => names(row.clients, 'username') },
];
const ROLES: readonly Column[] = [
  column('ROLE', 'rolename'),
  { title: 'ENTRIES', right: true, value: (row) => rowsOf(row.acls).length },
  column('TEXT', 'textname'),
];
const ENTRIES: readonly Column[] = [
  column('TYPE', 'acltype'),
  column('TOPIC', 'topic'),
  { title: 'ANSWER', value: (row) => (row.allow === true ? 'allow' : 'deny') },
  column('PRIORITY', 'priority', true),
];

interface ListOptions {
  readonly search?: string;
}
interface SetOptions {
  readonly password?: boolean;
  readonly clientid?: string;
  readonly clientidPattern?: string;
  readonly role?: readonly string[];
  readonly group?: readonly string[];
  readonly member?: readonly string[];
  readonly text?: string;
}
interface EntryOptions {
  readonly priority?: string;
}

function path(kind: string, name: string): string {
  return `/mqtt/${kind}/${encodeURIComponent(name)}`;
}

function collect(value: string, list: readonly string[] = []): string[] {
  return [...list, value];
}

/** "name" or "name:priority" as commands have it; a name may hold colons before the last. */
function uses(list: readonly string[] | undefined, key: string): Row[] | undefined {
  return list?.map((word) => {
    const parts = /^(.+):(-?\d{1,9})$/.exec(word);
    return parts === null ? { [key]: word } : { [key]: parts[1], priority: Number(parts[2]) };
  });
}

/** One command of dynamic security. Throws CLI-FAILED with what it is refused for. */
async function command(work: Work, request: Row): Promise<void> {
  const { data } = await work.client.call('POST', '/mqtt/dynamic_security/commands', { commands: [request] });
  const { error } = rowsOf(data)[0] ?? {};
  if (error !== undefined) throw new GatewayError('CLI-FAILED', String(error));
}

async function list(work: Work, kind: string, columns: readonly Column[], { search }: ListOptions): Promise<void> {
  show(work, await pages(work, `/mqtt/${kind}`, { search }, Number.POSITIVE_INFINITY), columns);
}

async function set(work: Work, name: string, options: SetOptions): Promise<void> {
  const password = options.password === false ? undefined : (await askPassword(work.io)).toString();
  await work.client.call('PUT', path('users', name), {
    password,
    clientid: options.clientid,
    clientid_pattern: options.clientidPattern,
    textname: options.text,
    roles: uses(options.role, 'rolename'),
    groups: uses(options.group, 'groupname'),
  });
  say(work, { username: name }, 'done\n');
}

function addUser(mqtt: Command, add: Adder): void {
  const user = mqtt.command('user').description('one MQTT user');
  add(user, 'show <name>', 'a user, its roles and groups', async (work, _, [name]) => {
    const { data } = await work.client.call('GET', path('users', name));
    const row = rowOf(data);
    say(work, data, facts(USERS.map(({ title, value }) => [title.toLowerCase(), value(row)])));
  });
  add<SetOptions>(
    user,
    'set <name>',
    'add a user, or change what is given; the password is asked for or read from standard input',
    (work, options, [name]) => set(work, name, options),
  )
    .option('--no-password', 'leave the password as it is; a new user cannot log in with one')
    .option('--clientid <id>', 'the only client id it may use; "" = any')
    .option('--clientid-pattern <pattern>', 'the same with * for any text')
    .option('--role <name[:priority]>', 'its roles, once for each; they take the place of those it has', collect)
    .option('--group <name[:priority]>', 'its groups, in the same way', collect)
    .option('--text <text>', 'a text for people');
  add(user, 'password <name>', 'another password; connections of the user end', async (work, _, [name]) => {
    const password = (await askPassword(work.io)).toString();
    await work.client.call('PUT', `${path('users', name)}/password`, { password });
    say(work, { username: name }, 'done\n');
  });
  for (const [word, text] of [
    ['enable', 'let a user in again'],
    ['disable', 'let a user in no more and end its connections'],
  ]) {
    add(user, `${word} <name>`, text, async (work, _, [name]) => {
      await command(work, { command: `${word}Client`, username: name });
      say(work, { username: name, disabled: word === 'disable' }, 'done\n');
    });
  }
  addRemove(user, add, 'users', 'username');
}

function addRemove(parent: Command, add: Adder, kind: string, key: string): void {
  add(parent, 'remove <name>', 'remove it', async (work, _, [name]) => {
    await work.client.call('DELETE', path(kind, name));
    say(work, { [key]: name, removed: true }, 'removed\n');
  });
}

function addGroup(mqtt: Command, add: Adder): void {
  const group = mqtt.command('group').description('one group');
  add<SetOptions>(group, 'set <name>', 'add a group, or change what is given', async (work, options, [name]) => {
    await work.client.call('PUT', path('groups', name), {
      textname: options.text,
      roles: uses(options.role, 'rolename'),
      clients: uses(options.member, 'username'),
    });
    say(work, { groupname: name }, 'done\n');
  })
    .option('--role <name[:priority]>', 'its roles, once for each; they take the place of those it has', collect)
    .option('--member <name[:priority]>', 'its users, in the same way', collect)
    .option('--text <text>', 'a text for people');
  addRemove(group, add, 'groups', 'groupname');
}

function addRole(mqtt: Command, add: Adder): void {
  const role = mqtt.command('role').description('one role');
  add(role, 'show <name>', 'the entries of a role, in the order they are looked at', async (work, _, [name]) => {
    const { data } = await work.client.call('GET', path('roles', name));
    if (work.json) say(work, data, '');
    else show(work, rowsOf(rowOf(data).acls), ENTRIES);
  });
  add<SetOptions>(role, 'set <name>', 'add a role, or change its text', async (work, { text }, [name]) => {
    await work.client.call('PUT', path('roles', name), { textname: text });
    say(work, { rolename: name }, 'done\n');
  }).option('--text <text>', 'a text for people');
  addRemove(role, add, 'roles', 'rolename');
  const acl = mqtt.command('acl').description('one entry of a role');
  const about = (verb: string): string => `${verb} <role> <type> <topic>`;
  add<EntryOptions>(
    acl,
    `${about('add')} <answer>`,
    `add an entry; type: ${RIGHTS.join(', ')}; answer: allow or deny`,
    async (work, { priority }, [rolename, acltype, topic, answer]) => {
      if (answer !== 'allow' && answer !== 'deny')
        throw new GatewayError('CLI-USAGE', `${answer}: allow or deny expected`);
      const allow = answer === 'allow';
      const more = priority === undefined ? {} : { priority: Number(priority) };
      await command(work, { command: 'addRoleACL', rolename, acltype, topic, allow, ...more });
      say(work, { rolename, acltype, topic, allow }, 'done\n');
    },
  ).addOption(new Option('--priority <n>', 'a higher one is looked at first'));
  add(acl, about('remove'), 'remove an entry', async (work, _, [rolename, acltype, topic]) => {
    await command(work, { command: 'removeRoleACL', rolename, acltype, topic });
    say(work, { rolename, acltype, topic, removed: true }, 'removed\n');
  });
}

function addWhole(mqtt: Command, add: Adder): void {
  add(
    mqtt,
    'access [settings...]',
    'what holds where no role says anything; publishClientSend=deny changes it',
    access,
  );
  add(mqtt, 'export', 'everything as dynamic-security.json, with the hashes of passwords', async (work) => {
    const { data } = await work.client.call('GET', '/mqtt/dynamic_security');
    work.io.stdout.write(`${JSON.stringify(data, null, 2)}\n`);
  });
  add(
    mqtt,
    'import <file>',
    'take users, groups and roles from a dynamic-security.json, in the place of all there are',
    async (work, _, [file]) => {
      await work.client.call('PUT', '/mqtt/dynamic_security', await documentOf(file, work.io));
      say(work, { imported: true }, 'imported\n');
    },
  );
}

async function access(work: Work, _: object, changes: readonly string[]): Promise<void> {
  const body: Record<string, unknown> = {};
  for (const word of changes) {
    const [, kind, answer] = /^(\w+)=(.*)$/.exec(word) ?? [];
    if (kind === undefined) throw new GatewayError('CLI-USAGE', `${word}: <type>=allow or <type>=deny expected`);
    body[kind] = kind === 'anonymous_group' ? answer : answer === 'allow' ? true : answer === 'deny' ? false : answer;
  }
  if (changes.length > 0) await work.client.call('PUT', '/mqtt/default_access', body);
  const { data } = await work.client.call('GET', '/mqtt/default_access');
  const shown = Object.entries(rowOf(data)).map(([kind, value]): [string, unknown] => [
    kind,
    value === true ? 'allow' : value === false ? 'deny' : (value ?? '-'),
  ]);
  say(work, data, facts(shown));
}

/** Adds `mqtt` with its subcommands. */
export function addAccountCommands(ctl: Command, add: Adder): void {
  const mqtt = ctl.command('mqtt').description('MQTT users, groups and roles that are managed at run time');
  const search = ['--search <text>', 'part of the name'] as const;
  add<ListOptions>(mqtt, 'users', 'all users', (work, options) => list(work, 'users', USERS, options)).option(
    ...search,
  );
  add<ListOptions>(mqtt, 'groups', 'all groups', (work, options) => list(work, 'groups', GROUPS, options)).option(
    ...search,
  );
  add<ListOptions>(mqtt, 'roles', 'all roles', (work, options) => list(work, 'roles', ROLES, options)).option(
    ...search,
  );
  addUser(mqtt, add);
  addGroup(mqtt, add);
  addRole(mqtt, add);
  addWhole(mqtt, add);
}

// REST: MQTT users, groups and roles at run time (auth.dynamic_security): list, get, put, delete, set a password,
// import and export. Called by routes.ts. For admins. Documents have the keys of mosquitto's dynamic security; what
// they may hold is checked by auth/, and a document is done whole or not at all. Passwords come in clear and are never
// sent back.
import { type Answer, data, done, fail, isObject } from './answer.ts';
import type { AccountsCaller, AccountsControl, AccountsOutcome, ConsoleOptions, Json, JsonObject } from './console.ts';
import { collect, PAGE_QUERY, readPage } from './page.ts';
import { type Call, get, param, type QueryParameter, type Route, write } from './route.ts';

type Act = (accounts: AccountsControl, call: Call) => Answer | Promise<Answer>;

/** What is listed: names, one document, the commands that change it. */
interface Kind {
  readonly plural: string;
  readonly text: string;
  /** The key of its name, in documents and commands. */
  readonly key: 'username' | 'groupname' | 'rolename';
  readonly command: 'Client' | 'Group' | 'Role';
  /** Keys of a document that a change may hold. */
  readonly keys: readonly string[];
  names(accounts: AccountsControl): Iterable<string>;
  one(accounts: AccountsControl, name: string): JsonObject | undefined;
}

/** In one request. */
const MOST_COMMANDS = 1000;
const TEXTS = ['textname', 'textdescription'];
const KINDS: readonly Kind[] = [
  {
    plural: 'users',
    text: 'MQTT users',
    key: 'username',
    command: 'Client',
    keys: ['password', 'clientid', 'clientid_pattern', ...TEXTS, 'disabled', 'roles', 'groups'],
    names: (accounts) => accounts.users(),
    one: (accounts, name) => accounts.user(name),
  },
  {
    plural: 'groups',
    text: 'groups of MQTT users',
    key: 'groupname',
    command: 'Group',
    keys: [...TEXTS, 'roles', 'clients'],
    names: (accounts) => accounts.groups(),
    one: (accounts, name) => accounts.group(name),
  },
  {
    plural: 'roles',
    text: 'roles of MQTT users',
    key: 'rolename',
    command: 'Role',
    keys: [...TEXTS, 'acls'],
    names: (accounts) => accounts.roles(),
    one: (accounts, name) => accounts.role(name),
  },
];

const LIST_QUERY: readonly QueryParameter[] = [
  { name: 'search', text: 'part of the name, upper or lower case', type: 'string' },
  ...PAGE_QUERY,
];

function callerOf({ caller, asking }: Call): AccountsCaller {
  return { user: caller.username, remote: asking.remote };
}

/** What came of commands that belong together. */
function outcomeOf(outcome: AccountsOutcome, missing: boolean, status = 200): Answer {
  if (!outcome.ok) return fail(outcome.why === 'invalid' ? 'value' : 'unavailable', outcome.message);
  const error = outcome.responses.find((response) => response.error !== undefined)?.error;
  if (error === undefined) return done(status);
  return missing && / not found$/.test(String(error)) ? fail('account') : fail('value', String(error));
}

async function list(kind: Kind, accounts: AccountsControl, call: Call): Promise<Answer> {
  const page = readPage(call.query);
  if ('status' in page) return page;
  const search = call.query.get('search')?.toLowerCase();
  const names = [...kind.names(accounts)].sort();
  const { rows, meta } = await collect(
    names,
    (name) => search === undefined || name.toLowerCase().includes(search),
    (name): Json => kind.one(accounts, name) ?? {},
    page,
  );
  return data(rows, { meta });
}

/** "admin" as { rolename: "admin" }: a list may hold names. */
function named(value: Json, key: string): Json {
  return Array.isArray(value) ? value.map((one: Json) => (typeof one === 'string' ? { [key]: one } : one)) : value;
}

const LISTED: ReadonlyMap<string, string> = new Map([
  ['roles', 'rolename'],
  ['groups', 'groupname'],
  ['clients', 'username'],
]);

/** The commands that a document stands for; keys that are absent stay as they are. */
function commandsOf(kind: Kind, name: string, document: JsonObject, isNew: boolean): JsonObject[] | Answer {
  const { disabled, ...rest } = document;
  const keys: Record<string, Json> = {};
  for (const [key, value] of Object.entries(rest)) {
    if (key === kind.key || key === 'has_password') continue;
    if (!kind.keys.includes(key)) return fail('value', `there is no ${key}`, `/${key}`);
    const list = LISTED.get(key);
    keys[key] = value === null ? '' : list === undefined ? value : named(value, list);
  }
  if (disabled !== undefined && (!kind.keys.includes('disabled') || typeof disabled !== 'boolean'))
    return fail('value', 'disabled has to be true or false', '/disabled');
  const commands: JsonObject[] = [
    { ...keys, command: `${isNew ? 'create' : 'modify'}${kind.command}`, [kind.key]: name },
  ];
  if (typeof disabled === 'boolean')
    commands.push({ command: disabled ? 'disableClient' : 'enableClient', username: name });
  return commands;
}

async function put(kind: Kind, accounts: AccountsControl, call: Call): Promise<Answer> {
  if (!isObject(call.body)) return fail('value', 'the body has to be an object');
  const name = param(call, 'name');
  const isNew = kind.one(accounts, name) === undefined;
  const commands = commandsOf(kind, name, call.body, isNew);
  if (!Array.isArray(commands)) return commands as Answer;
  return outcomeOf(await accounts.run(commands as JsonObject[], callerOf(call), true), false, isNew ? 201 : 200);
}

async function remove(kind: Kind, accounts: AccountsControl, call: Call): Promise<Answer> {
  const command = { command: `delete${kind.command}`, [kind.key]: param(call, 'name') };
  return outcomeOf(await accounts.run([command], callerOf(call), true), true);
}

async function setPassword(accounts: AccountsControl, call: Call): Promise<Answer> {
  if (!isObject(call.body)) return fail('value', 'the body has to be an object');
  const { password, ...others } = call.body;
  const [unknown] = Object.keys(others);
  if (unknown !== undefined) return fail('value', `there is no ${unknown}`, `/${unknown}`);
  if (typeof password !== 'string' || password === '') return fail('missing', 'password', '/password');
  const command = { command: 'setClientPassword', username: param(call, 'name'), password };
  return outcomeOf(await accounts.run([command], callerOf(call), true), true);
}

async function putDefaults(accounts: AccountsControl, call: Call): Promise<Answer> {
  if (!isObject(call.body)) return fail('value', 'the body has to be an object');
  const { anonymous_group: group, ...access } = call.body;
  const commands: JsonObject[] = [];
  const acls = Object.entries(access).map(([acltype, allow]) => ({ acltype, allow }));
  if (acls.length > 0) commands.push({ command: 'setDefaultACLAccess', acls });
  if (group !== undefined) commands.push({ command: 'setAnonymousGroup', groupname: group ?? '' });
  return outcomeOf(await accounts.run(commands, callerOf(call), true), false);
}

/** Commands as they come over MQTT; each answers for itself. */
async function run(accounts: AccountsControl, call: Call): Promise<Answer> {
  const commands = isObject(call.body) ? call.body.commands : undefined;
  if (!Array.isArray(commands) || commands.length > MOST_COMMANDS)
    return fail('missing', `commands, a list of at most ${MOST_COMMANDS}`, '/commands');
  const outcome = await accounts.run(commands as JsonObject[], callerOf(call), false);
  return outcome.ok ? data(outcome.responses) : outcomeOf(outcome, false);
}

async function replace(accounts: AccountsControl, call: Call): Promise<Answer> {
  return outcomeOf(await accounts.replace(JSON.stringify(call.body), callerOf(call)), false);
}

export function accountRoutes(options: ConsoleOptions): Route[] {
  const served =
    (act: Act): Route['handle'] =>
    (call) => {
      const accounts = options.accounts?.() ?? null;
      return accounts === null ? fail('accounts') : act(accounts, call);
    };
  const routes = KINDS.flatMap((kind): Route[] => {
    const all = `/api/v4/mqtt/${kind.plural}`;
    const one = `${all}/{name}`;
    const find: Act = (accounts, call) => {
      const found = kind.one(accounts, param(call, 'name'));
      return found === undefined ? fail('account') : data(found);
    };
    return [
      get(
        all,
        kind.text,
        served((accounts, call) => list(kind, accounts, call)),
        'admin',
        LIST_QUERY,
      ),
      get(one, 'one of them', served(find), 'admin'),
      write(
        'PUT',
        one,
        'adds it, or changes the keys that are given',
        'json',
        'admin',
        served((a, c) => put(kind, a, c)),
      ),
      write(
        'DELETE',
        one,
        'removes it',
        'none',
        'admin',
        served((a, c) => remove(kind, a, c)),
      ),
    ];
  });
  const password = '/api/v4/mqtt/users/{name}/password';
  const defaults = '/api/v4/mqtt/default_access';
  const file = '/api/v4/mqtt/dynamic_security';
  const commands = `${file}/commands`;
  return [
    ...routes,
    write('PUT', password, 'sets a password; connections of the user end', 'json', 'admin', served(setPassword)),
    get(
      defaults,
      'what holds where no role says anything',
      served((accounts) => data(accounts.defaults())),
      'admin',
    ),
    write('PUT', defaults, 'changes the keys that are given', 'json', 'admin', served(putDefaults)),
    get(
      file,
      'users, groups and roles as dynamic-security.json',
      served((a) => data(JSON.parse(a.text()) as Json)),
      'admin',
    ),
    write('PUT', file, 'takes the place of all users, groups and roles', 'json', 'admin', served(replace)),
    write('POST', commands, "commands of mosquitto's dynamic security, as over MQTT", 'json', 'admin', served(run)),
  ];
}

// REST: who may use console and REST API, with which role; adding, changing and removing such users. Called by
// routes.ts. For admins. Users are keys of http_server.users, so the schema decides. Passwords come in clear, are kept
// as hashes and never sent back.
import { type Answer, changed, data, fail, isObject } from './answer.ts';
import { type ConsoleOptions, type Json, ROLES, type Role, type WebUser } from './console.ts';
import { KEEP, keepOf } from './keeping.ts';
import { type Call, get, param, type Route, write } from './route.ts';

/** A name that can be a key of the configuration. */
const NAME = /^[A-Za-z0-9_-]{1,64}$/;
const LEAST_PASSWORD = 8;
const LONGEST_PASSWORD = 512;

type Values = Map<string, string | boolean>;

function list({ config, settings }: ConsoleOptions): Answer {
  const { users, authType } = settings();
  const first = config.current().httpServer?.username ?? null;
  const rows = users.map(
    ({ username, role, hashed }): Json => ({ username, role, hashed: hashed === true, fixed: username === first }),
  );
  return data(rows, { auth_type: authType });
}

/** Whether somebody could still administer the gateway when `name` is `role`, null = gone. */
function leavesAdmin({ settings }: ConsoleOptions, name: string, role: Role | null): boolean {
  return role === 'admin' || settings().users.some((user) => user.role === 'admin' && user.username !== name);
}

/** The user a path names: changed here only where http_server.users has it. */
function named(options: ConsoleOptions, call: Call): { name: string; user: WebUser | undefined } | Answer {
  const name = param(call, 'name');
  if (!NAME.test(name)) return fail('value', 'a name has letters, digits, _ and -, at most 64');
  if (options.config.current().httpServer?.username === name)
    return fail('denied', 'the user of http_server.username is changed in the configuration');
  return { name, user: options.settings().users.find(({ username }) => username === name) };
}

async function passwordValues(options: ConsoleOptions, key: string, password: Json | undefined, values: Values) {
  if (password === undefined) return null;
  if (typeof password !== 'string' || password.length < LEAST_PASSWORD || password.length > LONGEST_PASSWORD)
    return fail('value', `password has ${LEAST_PASSWORD} to ${LONGEST_PASSWORD} characters`, '/password');
  if (options.makeHash === undefined) return fail('unavailable', 'passwords cannot be hashed here');
  values.set(`${key}.password`, await options.makeHash(password));
  return null;
}

async function put(options: ConsoleOptions, call: Call): Promise<Answer> {
  const keep = keepOf(call);
  if (typeof keep === 'object') return keep;
  const found = named(options, call);
  if ('status' in found) return found;
  const { name, user } = found;
  if (!isObject(call.body)) return fail('value', 'the body has to be an object');
  const { role: asked, password, ...others } = call.body;
  const [unknown] = Object.keys(others);
  if (unknown !== undefined) return fail('value', `there is no ${unknown}`, `/${unknown}`);
  const role = asked === undefined ? (user?.role ?? 'viewer') : ROLES.find((known) => known === asked);
  if (role === undefined) return fail('value', `role has to be ${ROLES.join(', ')}`, '/role');
  if (user === undefined && password === undefined) return fail('missing', 'password', '/password');
  if (!leavesAdmin(options, name, role)) return fail('value', 'there would be no admin', '/role');
  const key = `http_server.users.${name}`;
  const values: Values = new Map<string, string | boolean>([
    [`${key}.role`, role],
    [`${key}.enable`, true],
  ]);
  const refused = await passwordValues(options, key, password, values);
  return refused ?? changed(await options.config.set(values, keep), 'user', user === undefined ? 201 : 200);
}

/** A file can take nothing away: the user stands there, not enabled. */
async function remove(options: ConsoleOptions, call: Call): Promise<Answer> {
  const keep = keepOf(call);
  if (typeof keep === 'object') return keep;
  const found = named(options, call);
  if ('status' in found) return found;
  if (found.user === undefined) return fail('user');
  if (!leavesAdmin(options, found.name, null)) return fail('value', 'there would be no admin');
  return changed(await options.config.set(new Map([[`http_server.users.${found.name}.enable`, false]]), keep), 'user');
}

export function userRoutes(options: ConsoleOptions): Route[] {
  const one = '/api/v4/users/{name}';
  return [
    get('/api/v4/users', 'users of console and API with their roles', () => list(options), 'admin'),
    write('PUT', one, 'adds a user or changes role and password', 'json', 'admin', (c) => put(options, c), [KEEP]),
    write('DELETE', one, 'lets a user in no more', 'none', 'admin', (c) => remove(options, c), [KEEP]),
  ];
}

// The file of users, groups and roles that are managed at run time: the JSON of mosquitto's dynamic security. Used by
// auth/accounts/ and by config/mosquitto/dynsec.ts, which takes such a file over. Pure. Sources: files of mosquitto
// 2.0.11 and 2.1. Nothing in an error ever shows a hash.
import {
  type Account,
  type Book,
  byPriority,
  DEFAULTS,
  type Described,
  EMPTY_BOOK,
  type Group,
  inOrder,
  type Json,
  LONGEST_TEXT,
  MOST_NAMES,
  MOST_RIGHTS,
  membersOf,
  objectOf,
  priorityOf,
  type Right,
  type Role,
  readRight,
  shownRight,
  shownUse,
  trimmed,
  type Use,
  wrongName,
} from './accounts.ts';
import { parseHash } from './passwordhash.ts';

/** Where and what; the message never holds a value that may be secret. */
export class BookError extends Error {
  readonly pointer: string;

  constructor(pointer: string, text: string) {
    super(`${pointer}: ${text}`);
    this.pointer = pointer;
  }
}

export interface ReadBook {
  readonly book: Book;
  /** What was left out, because it names something that is not there. */
  readonly warnings: readonly string[];
}

/** Reads a dynamic-security.json. Throws BookError for whatever would not mean what it says. */
export function parseBook(text: string): ReadBook {
  let root: unknown;
  try {
    root = JSON.parse(text);
  } catch {
    throw new BookError('/', 'not valid JSON');
  }
  const json = objectOf(root);
  if (json === null) throw new BookError('/', 'an object expected');
  return new Reader(json).read();
}

class Reader {
  private readonly json: Json;
  private readonly warnings: string[] = [];
  private readonly roles = new Map<string, Role>();
  private readonly groups = new Map<string, Group>();
  private readonly accounts = new Map<string, Account>();
  /** Groups by user name. */
  private readonly memberships = new Map<string, Use[]>();

  constructor(json: Json) {
    this.json = json;
  }

  read(): ReadBook {
    for (const [role, at] of entries(this.json, '/roles')) this.role(role, at);
    for (const [group, at] of entries(this.json, '/groups')) this.group(group, at);
    for (const [client, at] of entries(this.json, '/clients')) this.client(client, at);
    for (const [username, groups] of this.memberships) {
      const account = this.accounts.get(username);
      if (account === undefined) this.missing('/groups', `client ${username}`);
      else this.accounts.set(username, { ...account, groups: byPriority(groups) });
    }
    const { accounts, groups, roles, warnings } = this;
    const book = { accounts, groups, roles, defaults: this.defaults(), anonymousGroup: this.anonymous() };
    return { book, warnings };
  }

  private missing(at: string, what: string): void {
    this.warnings.push(`${at}: there is no ${what}; left out`);
  }

  private role(json: Json, at: string): void {
    const name = nameOf(json, 'rolename', at, this.roles);
    const rights: Right[] = [];
    for (const [acl, place] of entries(json, '/acls', at)) {
      const right = readRight(acl);
      if (typeof right === 'string') throw new BookError(place, right);
      if (rights.some((one) => one.kind === right.kind && one.topic === right.topic))
        this.warnings.push(`${place}: the same acltype and topic again; left out`);
      else rights.push(right);
    }
    if (rights.length > MOST_RIGHTS) throw new BookError(at, `more than ${MOST_RIGHTS} acls`);
    this.roles.set(name, { ...described(json, at), rights: inOrder(rights) });
  }

  private uses(json: Json, list: string, key: string, at: string, known: ReadonlyMap<string, unknown>): Use[] {
    const uses = new Map<string, Use>();
    for (const [one, place] of entries(json, `/${list}`, at)) {
      const name = one[key];
      if (typeof name !== 'string') throw new BookError(place, `${key} expected`);
      const priority = priorityOf(one, -1);
      if (priority === null) throw new BookError(place, 'priority has to be a whole number');
      if (!known.has(name)) this.missing(place, `${key === 'rolename' ? 'role' : 'group'} ${name}`);
      else if (!uses.has(name)) uses.set(name, { name, priority });
    }
    return byPriority([...uses.values()]);
  }

  private group(json: Json, at: string): void {
    const name = nameOf(json, 'groupname', at, this.groups);
    for (const [member, place] of entries(json, '/clients', at)) {
      const { username } = member;
      const priority = priorityOf(member, -1);
      if (typeof username !== 'string' || priority === null) throw new BookError(place, 'username expected');
      const list = this.memberships.get(username) ?? [];
      if (!list.some((use) => use.name === name)) list.push({ name, priority });
      this.memberships.set(username, list);
    }
    this.groups.set(name, { ...described(json, at), roles: this.uses(json, 'roles', 'rolename', at, this.roles) });
  }

  private client(json: Json, at: string): void {
    const name = nameOf(json, 'username', at, this.accounts);
    const { clientid = null, clientid_pattern: pattern = null, disabled = false } = json;
    if (typeof (pattern ?? clientid ?? '') !== 'string') throw new BookError(`${at}/clientid`, 'text expected');
    if (typeof disabled !== 'boolean') throw new BookError(`${at}/disabled`, 'true or false expected');
    const bound = (pattern ?? clientid) as string | null;
    this.accounts.set(name, {
      ...described(json, at),
      clientId: bound === '' ? null : bound,
      isPattern: pattern !== null,
      disabled,
      hash: readHash(json, at),
      roles: this.uses(json, 'roles', 'rolename', at, this.roles),
      groups: [],
    });
  }

  private defaults(): Book['defaults'] {
    const { defaultACLAccess: given } = this.json;
    const json = given === undefined ? {} : objectOf(given);
    if (json === null) throw new BookError('/defaultACLAccess', 'an object expected');
    const defaults = { ...EMPTY_BOOK.defaults };
    for (const kind of DEFAULTS) {
      const value = json[kind];
      if (value === undefined) continue;
      if (typeof value !== 'boolean') throw new BookError(`/defaultACLAccess/${kind}`, 'true or false expected');
      defaults[kind] = value;
    }
    return defaults;
  }

  private anonymous(): string | null {
    const { anonymousGroup: name = null } = this.json;
    if (name === null || name === '') return null;
    if (typeof name !== 'string') throw new BookError('/anonymousGroup', 'text expected');
    if (this.groups.has(name)) return name;
    this.missing('/anonymousGroup', `group ${name}`);
    return null;
  }
}

/** The objects of a list, with their places. */
function entries(json: Json, pointer: string, at = ''): [Json, string][] {
  const list = json[pointer.slice(1)];
  if (list === undefined) return [];
  if (!Array.isArray(list)) throw new BookError(`${at}${pointer}`, 'a list expected');
  if (list.length > MOST_NAMES) throw new BookError(`${at}${pointer}`, `more than ${MOST_NAMES}`);
  return list.map((value, i): [Json, string] => {
    const place = `${at}${pointer}/${i}`;
    const one = objectOf(value);
    if (one === null) throw new BookError(place, 'an object expected');
    return [one, place];
  });
}

function nameOf(json: Json, key: string, at: string, known: ReadonlyMap<string, unknown>): string {
  const name = json[key];
  if (typeof name !== 'string') throw new BookError(at, `${key} expected`);
  const wrong = wrongName(name);
  if (wrong !== null) throw new BookError(`${at}/${key}`, wrong);
  if (known.has(name)) throw new BookError(`${at}/${key}`, 'the same name again');
  return name;
}

/** mosquitto_ctrl of 2.0 writes textName where the broker writes textname. */
function described(json: Json, at: string): Described {
  const text = (low: string, high: string): string | null => {
    const value = json[low] ?? json[high] ?? null;
    if (value !== null && (typeof value !== 'string' || value.length > LONGEST_TEXT))
      throw new BookError(`${at}/${low}`, 'a short text expected');
    return value;
  };
  return { textName: text('textname', 'textName'), textDescription: text('textdescription', 'textDescription') };
}

/** The iterations of mosquitto 2.0 where its file does not say. */
const ITERATIONS = 101;

function readHash(json: Json, at: string): Account['hash'] {
  const { password, salt, iterations = ITERATIONS, encoded_password: encoded } = json;
  if (password === undefined && encoded === undefined) return null;
  const isOld = typeof password === 'string' && typeof salt === 'string' && typeof iterations === 'number';
  const text = typeof encoded === 'string' ? encoded : isOld ? `$7$${iterations}$${salt}$${password}` : '';
  const parsed = parseHash(text);
  if (typeof parsed === 'string') throw new BookError(`${at}/password`, parsed);
  return { text, parsed };
}

/** The text of an account, kept for as long as it stays the same. */
type Texts = WeakMap<object, string>;

/** The file's text, one entry a line. `texts` keeps that of entries that have not changed. */
export function bookText(book: Book, texts: Texts): string {
  const line = (value: object, show: () => Json): string => {
    let text = texts.get(value);
    if (text === undefined) {
      text = JSON.stringify(trimmed(show()));
      texts.set(value, text);
    }
    return text;
  };
  const members = membersOf(book);
  const clients = [...book.accounts].map(([name, one]) => line(one, () => accountJson(name, one)));
  const groups = [...book.groups].map(([name, one]) => JSON.stringify(trimmed(groupJson(name, one, members))));
  const roles = [...book.roles].map(([name, one]) => line(one, () => roleJson(name, one)));
  const list = (rows: readonly string[]): string => (rows.length === 0 ? '[]' : `[\n    ${rows.join(',\n    ')}\n  ]`);
  const parts = [
    `"defaultACLAccess": ${JSON.stringify(book.defaults)}`,
    `"clients": ${list(clients)}`,
    `"groups": ${list(groups)}`,
    ...(book.anonymousGroup === null ? [] : [`"anonymousGroup": ${JSON.stringify(book.anonymousGroup)}`]),
    `"roles": ${list(roles)}`,
  ];
  return `{\n  ${parts.join(',\n  ')}\n}\n`;
}

function accountJson(username: string, account: Account): Json {
  const { textName, textDescription, clientId, isPattern, disabled, roles, hash } = account;
  return {
    username,
    clientid: isPattern ? null : clientId,
    clientid_pattern: isPattern ? clientId : null,
    textname: textName,
    textdescription: textDescription,
    disabled: disabled ? true : null,
    roles: roles.map((use) => shownUse('rolename', use)),
    ...hashJson(hash),
  };
}

/** mosquitto 2.0 reads PBKDF2 in parts only. */
function hashJson(hash: Account['hash']): Json {
  if (hash === null) return {};
  const { text, parsed } = hash;
  if (parsed.kind !== 'pbkdf2') return { encoded_password: text };
  const [, , , salt, password] = text.split('$');
  return { password, salt, iterations: parsed.iterations };
}

function groupJson(groupname: string, group: Group, members: ReadonlyMap<string, readonly Use[]>): Json {
  return {
    groupname,
    textname: group.textName,
    textdescription: group.textDescription,
    roles: group.roles.map((use) => shownUse('rolename', use)),
    clients: (members.get(groupname) ?? []).map((use) => shownUse('username', use)),
  };
}

function roleJson(rolename: string, role: Role): Json {
  return {
    rolename,
    textname: role.textName,
    textdescription: role.textDescription,
    acls: role.rights.map(shownRight),
  };
}

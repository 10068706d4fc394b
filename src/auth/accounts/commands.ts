// The commands of mosquitto's dynamic security: the JSON of $CONTROL/dynamic-security/v1, of `mosquitto_ctrl dynsec`
// and of the REST API. Called by accounts.ts with the requests of one message. Each command answers for itself, in
// mosquitto's words; one that is refused changes nothing. Passwords come here hashed already. Sources: the plugin's
// documentation; mosquitto 2.0.11 on the wire; docs/from-mosquitto.md lists the differences.
import {
  type Book,
  DEFAULTS,
  type DefaultKind,
  type Json,
  membersOf,
  objectOf,
  type Role,
  readRight,
  type Use,
} from '../../base/accounts.ts';
import { type Draft, Refused, refuse } from './draft.ts';
import { accountOf, clientId, described, type Hashed, name, priority, rights, uses } from './request.ts';
import { shownAccount, shownGroup, shownRole } from './shown.ts';

export interface Answered {
  readonly response: Json;
  /** The name of what was changed, for the log; null: nothing was, or it was refused. */
  readonly changed: { readonly command: string; readonly name: string } | null;
}

type Command = (draft: Draft, request: Json, hash: Hashed | null) => Json | undefined;

/** One request; `hash` is that of its password. */
export function answer(draft: Draft, request: unknown, hash: Hashed | null): Answered {
  const json = objectOf(request);
  if (json === null) return failed('Unknown command', 'Command not an object', {});
  const { command, correlationData } = json;
  if (typeof command !== 'string') return failed('Unknown command', 'Missing command', {});
  if (correlationData !== undefined && typeof correlationData !== 'string')
    return failed(command, 'Invalid correlationData data type.', {});
  const more = correlationData === undefined ? {} : { correlationData };
  const run = COMMANDS.get(command);
  if (run === undefined) return failed(command, 'Unknown command', more);
  try {
    const data = run(draft, json, hash);
    const response = { command, ...(data === undefined ? {} : { data }), ...more };
    return { response, changed: READING.test(command) ? null : { command, name: subjectOf(json) } };
  } catch (error) {
    if (error instanceof Refused) return failed(command, error.message, more);
    throw error;
  }
}

const READING = /^(?:get|list)/;

function failed(command: string, error: string, more: Json): Answered {
  return { response: { command, error, ...more }, changed: null };
}

/** Names only. */
function subjectOf({ username, groupname, rolename, acltype, topic }: Json): string {
  const words = [username, groupname, rolename, acltype, topic].filter((word) => typeof word === 'string');
  return words.join(' ');
}

/** The members of one group. */
export function members(book: Book, groupname: string): Use[] {
  const found: Use[] = [];
  for (const [username, { groups }] of book.accounts) {
    const use = groups.find((one) => one.name === groupname);
    if (use !== undefined) found.push({ name: username, priority: use.priority });
  }
  return found;
}

/** Names in the order of their bytes, as far as count and offset reach; mosquitto takes a count of 0 for 1. */
function page(names: Iterable<string>, { count, offset }: Json): string[] {
  const from = typeof offset === 'number' && offset > 0 ? Math.floor(offset) : 0;
  const most = typeof count === 'number' && count >= 0 ? Math.max(1, Math.floor(count)) : Number.POSITIVE_INFINITY;
  return [...names].sort().slice(from, from + most);
}

// ---- the commands

function removeUse(list: readonly Use[], named: string): Use[] {
  return list.filter((use) => use.name !== named);
}

function has(list: readonly Use[], named: string): boolean {
  return list.some((use) => use.name === named);
}

const CLIENTS: Record<string, Command> = {
  createClient: (draft, request, hash) => {
    const username = name(request, 'username');
    draft.addAccount(username, accountOf(request, hash));
    return undefined;
  },
  modifyClient: (draft, request, hash) => {
    const username = name(request, 'username');
    draft.account(username);
    draft.changeAccount(username, accountOf(request, hash));
    return undefined;
  },
  deleteClient: (draft, request) => {
    draft.removeAccount(name(request, 'username'));
    return undefined;
  },
  enableClient: (draft, request) => {
    draft.changeAccount(name(request, 'username'), { disabled: false });
    return undefined;
  },
  disableClient: (draft, request) => {
    draft.changeAccount(name(request, 'username'), { disabled: true });
    return undefined;
  },
  setClientPassword: (draft, request, hash) => {
    const username = name(request, 'username');
    if (typeof request.password !== 'string') refuse('Invalid/missing password');
    if (hash === null) refuse('Empty password is not allowed');
    draft.changeAccount(username, { hash });
    return undefined;
  },
  setClientId: (draft, request) => {
    const username = name(request, 'username');
    const bound = clientId(request, 'client ID');
    draft.changeAccount(username, { clientId: null, isPattern: false, ...bound });
    return undefined;
  },
  addClientRole: (draft, request) => {
    const username = name(request, 'username');
    const rolename = name(request, 'rolename');
    const { roles } = draft.account(username);
    draft.role(rolename);
    if (has(roles, rolename)) refuse('Client already has this role');
    draft.changeAccount(username, { roles: [...roles, { name: rolename, priority: priority(request) }] });
    return undefined;
  },
  removeClientRole: (draft, request) => {
    const username = name(request, 'username');
    const rolename = name(request, 'rolename');
    const { roles } = draft.account(username);
    draft.role(rolename);
    draft.changeAccount(username, { roles: removeUse(roles, rolename) });
    return undefined;
  },
  getClient: (draft, request) => {
    const username = name(request, 'username');
    return { client: shownAccount(username, draft.account(username)) };
  },
  listClients: (draft, request) => {
    const { accounts } = draft.book;
    const names = page(accounts.keys(), request);
    const rows = names.map((one) => shownAccount(one, draft.account(one)));
    return { totalCount: accounts.size, clients: request.verbose === true ? rows : names };
  },
};

const GROUPS: Record<string, Command> = {
  createGroup: (draft, request) => {
    const groupname = name(request, 'groupname');
    const roles = uses(request, 'roles', 'rolename');
    const clients = uses(request, 'clients', 'username');
    for (const { name: username } of clients ?? []) draft.account(username);
    draft.addGroup(groupname, { ...described(request), ...(roles === undefined ? {} : { roles }) });
    if (clients !== undefined) draft.setMembers(groupname, clients);
    return undefined;
  },
  modifyGroup: (draft, request) => {
    const groupname = name(request, 'groupname');
    draft.group(groupname);
    const roles = uses(request, 'roles', 'rolename');
    const clients = uses(request, 'clients', 'username');
    for (const { name: username } of clients ?? []) draft.account(username);
    draft.changeGroup(groupname, { ...described(request), ...(roles === undefined ? {} : { roles }) });
    if (clients !== undefined) draft.setMembers(groupname, clients);
    return undefined;
  },
  deleteGroup: (draft, request) => {
    draft.removeGroup(name(request, 'groupname'));
    return undefined;
  },
  addGroupRole: (draft, request) => {
    const groupname = name(request, 'groupname');
    const rolename = name(request, 'rolename');
    const { roles } = draft.group(groupname);
    draft.role(rolename);
    if (has(roles, rolename)) refuse('Group is already in this role');
    draft.changeGroup(groupname, { roles: [...roles, { name: rolename, priority: priority(request) }] });
    return undefined;
  },
  removeGroupRole: (draft, request) => {
    const groupname = name(request, 'groupname');
    const rolename = name(request, 'rolename');
    const { roles } = draft.group(groupname);
    draft.role(rolename);
    draft.changeGroup(groupname, { roles: removeUse(roles, rolename) });
    return undefined;
  },
  addGroupClient: (draft, request) => {
    const groupname = name(request, 'groupname');
    const username = name(request, 'username');
    const { groups } = draft.account(username);
    draft.group(groupname);
    if (has(groups, groupname)) refuse('Client is already in this group');
    draft.changeAccount(username, { groups: [...groups, { name: groupname, priority: priority(request) }] });
    return undefined;
  },
  removeGroupClient: (draft, request) => {
    const groupname = name(request, 'groupname');
    const username = name(request, 'username');
    const { groups } = draft.account(username);
    draft.group(groupname);
    draft.changeAccount(username, { groups: removeUse(groups, groupname) });
    return undefined;
  },
  getGroup: (draft, request) => {
    const groupname = name(request, 'groupname');
    return { group: shownGroup(groupname, draft.group(groupname), members(draft.book, groupname)) };
  },
  listGroups: (draft, request) => {
    const { book } = draft;
    const names = page(book.groups.keys(), request);
    const isVerbose = request.verbose === true;
    const all = isVerbose ? membersOf(book) : new Map<string, Use[]>();
    const rows = names.map((one) => shownGroup(one, draft.group(one), all.get(one) ?? []));
    return { totalCount: book.groups.size, groups: isVerbose ? rows : names };
  },
  setAnonymousGroup: (draft, request) => {
    const { groupname } = request;
    if (typeof groupname !== 'string') refuse('Invalid/missing groupname');
    draft.setAnonymousGroup(groupname === '' ? null : groupname);
    return undefined;
  },
  getAnonymousGroup: (draft) => ({ group: { groupname: draft.book.anonymousGroup ?? '' } }),
};

/** The role was there, or mosquitto's words for that. */
function roleToChange(draft: Draft, rolename: string): Role {
  return draft.book.roles.get(rolename) ?? refuse('Role does not exist');
}

const ROLES: Record<string, Command> = {
  createRole: (draft, request) => {
    const rolename = name(request, 'rolename');
    const given = rights(request);
    draft.addRole(rolename, { ...described(request), ...(given === undefined ? {} : { rights: given }) });
    return undefined;
  },
  modifyRole: (draft, request) => {
    const rolename = name(request, 'rolename');
    roleToChange(draft, rolename);
    const given = rights(request);
    draft.changeRole(rolename, { ...described(request), ...(given === undefined ? {} : { rights: given }) });
    return undefined;
  },
  deleteRole: (draft, request) => {
    draft.removeRole(name(request, 'rolename'));
    return undefined;
  },
  addRoleACL: (draft, request) => {
    const rolename = name(request, 'rolename');
    const role = draft.role(rolename);
    const right = readRight(request);
    if (typeof right === 'string') refuse(right);
    draft.changeRole(rolename, { rights: [...role.rights, right] });
    return undefined;
  },
  removeRoleACL: (draft, request) => {
    const rolename = name(request, 'rolename');
    const role = draft.role(rolename);
    // Only what names an entry is read: its acltype and its topic.
    const named = readRight({ acltype: request.acltype, topic: request.topic });
    if (typeof named === 'string') refuse(named === 'Invalid ACL topic' ? 'ACL not found' : named);
    const left = role.rights.filter(({ kind, topic }) => kind !== named.kind || topic !== named.topic);
    if (left.length === role.rights.length) refuse('ACL not found');
    draft.changeRole(rolename, { rights: left });
    return undefined;
  },
  getRole: (draft, request) => {
    const rolename = name(request, 'rolename');
    return { role: shownRole(rolename, draft.role(rolename)) };
  },
  listRoles: (draft, request) => {
    const { roles } = draft.book;
    const names = page(roles.keys(), request);
    const rows = names.map((one) => shownRole(one, draft.role(one)));
    return { totalCount: roles.size, roles: request.verbose === true ? rows : names };
  },
};

/** As mosquitto_ctrl of 2.0 sends it, where its broker looks for allow. */
const ACCESS: ReadonlyMap<unknown, boolean> = new Map([
  ['allow', true],
  ['deny', false],
]);

const DEFAULT_ACCESS: Record<string, Command> = {
  setDefaultACLAccess: (draft, { acls }) => {
    if (!Array.isArray(acls)) refuse('Missing/invalid actions array');
    const change: Partial<Record<DefaultKind, boolean>> = {};
    for (const entry of acls as unknown[]) {
      const { acltype, access, allow = ACCESS.get(access) } = objectOf(entry) ?? {};
      const kind = DEFAULTS.find((one) => one === acltype);
      if (kind === undefined) refuse('Unknown acltype');
      if (typeof allow !== 'boolean') refuse('Invalid/missing allow');
      change[kind] = allow;
    }
    draft.setDefaults(change);
    return undefined;
  },
  getDefaultACLAccess: (draft) => ({
    acls: DEFAULTS.map((kind) => ({ acltype: kind, allow: draft.book.defaults[kind] })),
  }),
};

/** By name; nothing is found by a name like `constructor`. */
const COMMANDS: ReadonlyMap<string, Command> = new Map(
  [CLIENTS, GROUPS, ROLES, DEFAULT_ACCESS].flatMap((group) => Object.entries(group)),
);

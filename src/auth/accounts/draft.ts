// A book of accounts that is being changed: the commands of one request work on it, and it takes the old one's place
// only as a whole. Made by accounts.ts. Every method checks everything first: one that throws Refused has changed
// nothing. The words of a refusal are mosquitto's where it has some: tools show them.
import {
  type Account,
  type Book,
  byPriority,
  type Group,
  inOrder,
  MOST_NAMES,
  MOST_RIGHTS,
  type Right,
  type Role,
  type Use,
  wrongName,
} from '../../base/accounts.ts';

/** A command that cannot be done; the message is the answer. */
export class Refused extends Error {}

type Described<T> = Partial<Pick<Account & Group & Role, 'textName' | 'textDescription'>> & T;

const NO_TEXT = { textName: null, textDescription: null };
export const NEW_ACCOUNT: Account = {
  ...NO_TEXT,
  clientId: null,
  isPattern: false,
  disabled: false,
  hash: null,
  roles: [],
  groups: [],
};

export class Draft {
  private accounts: Map<string, Account> | null = null;
  private groups: Map<string, Group> | null = null;
  private roles: Map<string, Role> | null = null;
  private defaults: Book['defaults'];
  private anonymousGroup: string | null;
  private readonly before: Book;
  /** Whether anything has been changed. */
  changed = false;
  /** Users whose connections end: what let them in does not hold any more. */
  readonly ended = new Set<string>();

  constructor(before: Book) {
    this.before = before;
    this.defaults = before.defaults;
    this.anonymousGroup = before.anonymousGroup;
  }

  /** As it is with what has been changed so far. */
  get book(): Book {
    const { before, defaults, anonymousGroup } = this;
    return {
      accounts: this.accounts ?? before.accounts,
      groups: this.groups ?? before.groups,
      roles: this.roles ?? before.roles,
      defaults,
      anonymousGroup,
    };
  }

  /** Everything at once: an import. */
  replace(book: Book): void {
    for (const [name, account] of this.book.accounts) if (ends(account, book.accounts.get(name))) this.ended.add(name);
    // Names that another source let in until now are the book's from here on.
    for (const name of book.accounts.keys()) if (!this.book.accounts.has(name)) this.ended.add(name);
    this.accounts = new Map(book.accounts);
    this.groups = new Map(book.groups);
    this.roles = new Map(book.roles);
    this.defaults = book.defaults;
    this.anonymousGroup = book.anonymousGroup;
    this.changed = true;
  }

  // ---- accounts

  account(username: string): Account {
    return this.book.accounts.get(username) ?? refuse('Client not found');
  }

  addAccount(username: string, account: Partial<Account>): void {
    if (this.book.accounts.has(username)) refuse('Client already exists');
    this.fits(username, this.book.accounts, 'username');
    this.setAccount(username, { ...NEW_ACCOUNT, ...account });
  }

  /** Keys that are not given stay. */
  changeAccount(username: string, change: Partial<Account>): void {
    this.setAccount(username, { ...this.account(username), ...change });
  }

  removeAccount(username: string): void {
    this.account(username);
    this.writableAccounts().delete(username);
    this.ended.add(username);
  }

  private setAccount(username: string, account: Account): void {
    for (const { name } of account.roles) this.role(name);
    for (const { name } of account.groups) this.group(name);
    const before = this.book.accounts.get(username);
    const next = { ...account, roles: sorted(account.roles), groups: sorted(account.groups) };
    this.writableAccounts().set(username, next);
    // A new account takes its name over from whoever let it in before.
    if (before === undefined || ends(before, next)) this.ended.add(username);
  }

  // ---- groups

  group(name: string): Group {
    return this.book.groups.get(name) ?? refuse('Group not found');
  }

  addGroup(name: string, group: Described<{ readonly roles?: readonly Use[] }>): void {
    if (this.book.groups.has(name)) refuse('Group already exists');
    this.fits(name, this.book.groups, 'groupname');
    this.setGroup(name, { ...NO_TEXT, roles: [], ...group });
  }

  changeGroup(name: string, change: Partial<Group>): void {
    this.setGroup(name, { ...this.group(name), ...change });
  }

  removeGroup(name: string): void {
    this.group(name);
    this.writableGroups().delete(name);
    this.withoutUse('groups', name);
    if (this.anonymousGroup === name) this.anonymousGroup = null;
  }

  /** Makes these, and no others, the members of a group. */
  setMembers(name: string, members: readonly Use[]): void {
    this.group(name);
    const wanted = new Map(members.map((member) => [member.name, member.priority]));
    for (const username of wanted.keys()) this.account(username);
    const accounts = this.writableAccounts();
    for (const [username, account] of accounts) {
      const priority = wanted.get(username);
      const isMember = account.groups.some((use) => use.name === name);
      if (priority === undefined && !isMember) continue;
      const others = account.groups.filter((use) => use.name !== name);
      const groups = priority === undefined ? others : byPriority([...others, { name, priority }]);
      accounts.set(username, { ...account, groups });
    }
  }

  private setGroup(name: string, group: Group): void {
    for (const use of group.roles) this.role(use.name);
    this.writableGroups().set(name, { ...group, roles: sorted(group.roles) });
  }

  // ---- roles

  role(name: string): Role {
    return this.book.roles.get(name) ?? refuse('Role not found');
  }

  addRole(name: string, role: Described<{ readonly rights?: readonly Right[] }>): void {
    if (this.book.roles.has(name)) refuse('Role already exists');
    this.fits(name, this.book.roles, 'rolename');
    this.setRole(name, { ...NO_TEXT, rights: [], ...role });
  }

  changeRole(name: string, change: Partial<Role>): void {
    this.setRole(name, { ...this.role(name), ...change });
  }

  removeRole(name: string): void {
    this.role(name);
    this.writableRoles().delete(name);
    this.withoutUse('roles', name);
    const groups = this.writableGroups();
    for (const [group, value] of groups) {
      if (value.roles.some((use) => use.name === name))
        groups.set(group, { ...value, roles: value.roles.filter((use) => use.name !== name) });
    }
  }

  private setRole(name: string, role: Role): void {
    if (role.rights.length > MOST_RIGHTS) refuse(`A role has at most ${MOST_RIGHTS} ACLs`);
    const seen = new Set<string>();
    for (const { kind, topic } of role.rights) {
      if (seen.has(`${kind} ${topic}`)) refuse('ACL with this topic already exists');
      seen.add(`${kind} ${topic}`);
    }
    this.writableRoles().set(name, { ...role, rights: inOrder(role.rights) });
  }

  // ---- all of them

  setDefaults(change: Partial<Book['defaults']>): void {
    this.defaults = { ...this.defaults, ...change };
    this.changed = true;
  }

  /** null: clients without a user name have no group. */
  setAnonymousGroup(name: string | null): void {
    if (name !== null) this.group(name);
    this.anonymousGroup = name;
    this.changed = true;
  }

  private withoutUse(list: 'roles' | 'groups', name: string): void {
    const accounts = this.writableAccounts();
    for (const [username, account] of accounts) {
      if (account[list].some((use) => use.name === name))
        accounts.set(username, { ...account, [list]: account[list].filter((use) => use.name !== name) });
    }
  }

  private fits(name: string, names: ReadonlyMap<string, unknown>, what: string): void {
    if (wrongName(name) !== null) refuse(`Invalid/missing ${what}`);
    if (names.size >= MOST_NAMES) refuse(`More than ${MOST_NAMES} names`);
  }

  private writableAccounts(): Map<string, Account> {
    this.changed = true;
    this.accounts ??= new Map(this.before.accounts);
    return this.accounts;
  }

  private writableGroups(): Map<string, Group> {
    this.changed = true;
    this.groups ??= new Map(this.before.groups);
    return this.groups;
  }

  private writableRoles(): Map<string, Role> {
    this.changed = true;
    this.roles ??= new Map(this.before.roles);
    return this.roles;
  }
}

export function refuse(text: string): never {
  throw new Refused(text);
}

/** One of each name, the first one, by priority. */
function sorted(uses: readonly Use[]): Use[] {
  const first = new Map<string, Use>();
  for (const use of uses) if (!first.has(use.name)) first.set(use.name, use);
  return byPriority([...first.values()]);
}

/** Whether what let a client in under `before` would not under `after`. */
export function ends(before: Account, after: Account | undefined): boolean {
  if (after === undefined || (after.disabled && !before.disabled)) return true;
  const sameId = before.clientId === after.clientId && before.isPattern === after.isPattern;
  return before.hash?.text !== after.hash?.text || (!sameId && after.clientId !== null);
}

// What the roles of one book allow: the entries of each account in the order in which they are looked at, the first
// that matches decides. Made by accounts.ts for each book, asked by authorizer.ts. Pure but for what it has worked out.
// Order as in mosquitto 2.0 and 2.1: roles of the account before those of its groups, higher priority first; in a role,
// literal filters before patterns.
import type { Account, Book, DefaultKind, RightKind, Role, Use } from '../../base/accounts.ts';
import { levels } from '../../mqtt/topic.ts';
import type { Explanation } from '../aclfile.ts';
import { covers, sharedFilter } from '../filter.ts';

export type AccountAction = 'publish' | 'deliver' | 'subscribe' | 'unsubscribe';

/** Who asks: a client by its names. */
export interface Asking {
  readonly username: string | null;
  readonly clientId: string;
}

interface Line {
  readonly literal: boolean;
  readonly topic: string;
  readonly parts: readonly string[];
  readonly allow: boolean;
  /** For people. */
  readonly rule: string;
}

type Lines = Readonly<Record<AccountAction, readonly Line[]>>;

const KINDS: Readonly<Record<AccountAction, readonly RightKind[]>> = {
  publish: ['publishClientSend'],
  deliver: ['publishClientReceive'],
  subscribe: ['subscribeLiteral', 'subscribePattern'],
  unsubscribe: ['unsubscribeLiteral', 'unsubscribePattern'],
};
const FALLBACK: Readonly<Record<AccountAction, DefaultKind>> = {
  publish: 'publishClientSend',
  deliver: 'publishClientReceive',
  subscribe: 'subscribe',
  unsubscribe: 'unsubscribe',
};

export class Judge {
  private readonly book: Book;
  /** By user name; null = clients without one. */
  private readonly known = new Map<string | null, Lines | null>();

  constructor(book: Book) {
    this.book = book;
  }

  /** What is decided here; null: nothing is, others may say. O(entries). */
  judge(who: Asking, action: AccountAction, topic: string): Explanation | null {
    const { username } = who;
    // The book says nothing of users that are not in it.
    if (username !== null && !this.book.accounts.has(username)) return null;
    const found = this.find(who, action, topic);
    if (found !== null) return found;
    const fallback = FALLBACK[action];
    // Commands are only for those that an entry names.
    if (!this.book.defaults[fallback] || topic.startsWith('$CONTROL')) return null;
    return { allowed: true, rule: `defaultACLAccess ${fallback}` };
  }

  private find(who: Asking, action: AccountAction, topic: string): Explanation | null {
    const lines = this.linesOf(who.username)?.[action] ?? [];
    if (lines.length === 0) return null;
    const parts = levels(topic);
    const isFilter = action === 'subscribe' || action === 'unsubscribe';
    const inner = isFilter ? sharedFilter(topic) : topic;
    const innerParts = inner === topic ? null : levels(inner);
    for (const line of lines) {
      const matched =
        matchesLine(line, who, topic, parts, isFilter) ||
        // A denial is not evaded by sharing a subscription.
        (innerParts !== null && !line.allow && matchesLine(line, who, inner, innerParts, isFilter));
      if (matched) return { allowed: line.allow, rule: line.rule };
    }
    return null;
  }

  private linesOf(username: string | null): Lines | null {
    let lines = this.known.get(username);
    if (lines === undefined) {
      lines = this.collect(username);
      this.known.set(username, lines);
    }
    return lines;
  }

  private collect(username: string | null): Lines | null {
    const { accounts, groups, anonymousGroup } = this.book;
    if (username === null)
      return anonymousGroup === null ? null : linesFor(this.rolesOf(groups.get(anonymousGroup)?.roles ?? [], null));
    const account: Account | undefined = accounts.get(username);
    if (account === undefined) return null;
    const own = this.rolesOf(account.roles, null);
    return linesFor([
      ...own,
      ...account.groups.flatMap(({ name }) => this.rolesOf(groups.get(name)?.roles ?? [], name)),
    ]);
  }

  private rolesOf(uses: readonly Use[], group: string | null): { role: Role; name: string }[] {
    return uses.flatMap(({ name }) => {
      const role = this.book.roles.get(name);
      return role === undefined ? [] : [{ role, name: group === null ? name : `${name} of group ${group}` }];
    });
  }
}

function linesFor(roles: readonly { readonly role: Role; readonly name: string }[]): Lines {
  const of = (action: AccountAction): Line[] =>
    roles.flatMap(({ role, name }) =>
      KINDS[action].flatMap((kind) =>
        role.rights
          .filter((right) => right.kind === kind)
          .map(({ topic, allow }) => ({
            literal: kind.endsWith('Literal'),
            topic,
            parts: levels(topic),
            allow,
            rule: `role ${name}: ${kind} ${topic} ${allow ? 'allow' : 'deny'}`,
          })),
      ),
    );
  return { publish: of('publish'), deliver: of('deliver'), subscribe: of('subscribe'), unsubscribe: of('unsubscribe') };
}

function matchesLine(line: Line, who: Asking, topic: string, parts: readonly string[], isFilter: boolean): boolean {
  const outer = filled(line.parts, who);
  // A name that would change what the entry means: it gives nothing and denies everything.
  if (outer === null) return !line.allow;
  if (line.literal) return outer === line.parts ? line.topic === topic : same(outer, parts);
  if (line.topic === '') return false;
  // Filters are compared level by level; only topics of messages keep a leading $ apart [MQTT-4.7.2-1].
  return covers(outer, parts, isFilter);
}

function same(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((level, i) => level === b[i]);
}

/** With %u and %c as whole levels replaced; null where the name cannot stand there. */
function filled(parts: readonly string[], { username, clientId }: Asking): readonly string[] | null {
  let made: string[] | null = null;
  for (let i = 0; i < parts.length; i++) {
    if (parts[i] !== '%u' && parts[i] !== '%c') continue;
    const name = parts[i] === '%u' ? username : clientId;
    if (name === null || name === '' || /[+#/]/.test(name)) return null;
    made ??= [...parts];
    made[i] = name;
  }
  return made ?? parts;
}

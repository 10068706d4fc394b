// Users, groups and roles that are managed at run time, as data: what mosquitto's dynamic security knows. Used by
// auth/accounts/, which runs on it; accountsfile.ts reads and writes the file. Pure. Sources: the plugin's
// documentation; mosquitto 2.0.11 and 2.1.
import type { PasswordHash } from './passwordhash.ts';

/** Kinds of rights, in the order in which the file lists them. */
export const RIGHTS = [
  'publishClientSend',
  'publishClientReceive',
  'subscribeLiteral',
  'subscribePattern',
  'unsubscribeLiteral',
  'unsubscribePattern',
] as const;
export type RightKind = (typeof RIGHTS)[number];
/** What holds where no role says anything. */
export const DEFAULTS = ['publishClientSend', 'publishClientReceive', 'subscribe', 'unsubscribe'] as const;
export type DefaultKind = (typeof DEFAULTS)[number];

/** One entry of a role. */
export interface Right {
  readonly kind: RightKind;
  readonly topic: string;
  readonly priority: number;
  readonly allow: boolean;
}

/** A role of an account or group, or a group of an account. The higher priority is looked at first; -1 = none given. */
export interface Use {
  readonly name: string;
  readonly priority: number;
}

export interface Described {
  readonly textName: string | null;
  readonly textDescription: string | null;
}

export interface Account extends Described {
  /** The only client id it may use; null = any. A `*` stands for any text where `isPattern`. */
  readonly clientId: string | null;
  readonly isPattern: boolean;
  readonly disabled: boolean;
  /** As in a password file; null: nobody can log in with a password. */
  readonly hash: { readonly text: string; readonly parsed: PasswordHash } | null;
  readonly roles: readonly Use[];
  readonly groups: readonly Use[];
}

export interface Group extends Described {
  readonly roles: readonly Use[];
}

export interface Role extends Described {
  readonly rights: readonly Right[];
}

/** Everything, by name. Never changed: a change makes another one. */
export interface Book {
  readonly accounts: ReadonlyMap<string, Account>;
  readonly groups: ReadonlyMap<string, Group>;
  readonly roles: ReadonlyMap<string, Role>;
  readonly defaults: Readonly<Record<DefaultKind, boolean>>;
  /** Whose roles hold for clients without a user name. */
  readonly anonymousGroup: string | null;
}

/** Sizes that a book stays within: it is written as a whole at each change. */
export const MOST_NAMES = 50_000;
export const MOST_RIGHTS = 10_000;
export const LONGEST_NAME = 512;
export const LONGEST_TEXT = 4096;

export const EMPTY_BOOK: Book = {
  accounts: new Map(),
  groups: new Map(),
  roles: new Map(),
  defaults: { publishClientSend: false, publishClientReceive: true, subscribe: false, unsubscribe: true },
  anonymousGroup: null,
};

/** What is wrong with the name of an account, group or role; null = nothing. */
export function wrongName(name: string): string | null {
  if (name === '' || name.length > LONGEST_NAME) return `a name has 1 to ${LONGEST_NAME} characters`;
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
  return /[\u0000-\u001f\u007f]/.test(name) || /\p{Cs}/u.test(name) ? 'a name holds no control characters' : null;
}

/** Highest priority first; equal ones stay in their order. */
export function byPriority<T extends { readonly priority: number }>(list: readonly T[]): T[] {
  return [...list].sort((a, b) => b.priority - a.priority);
}

/** In the order of the file: by kind, then by priority. */
export function inOrder(rights: readonly Right[]): Right[] {
  return RIGHTS.flatMap((kind) => byPriority(rights.filter((right) => right.kind === kind)));
}

export type Json = Readonly<Record<string, unknown>>;

export function objectOf(value: unknown): Json | null {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Json) : null;
}

/** A whole number, `fallback` where there is none, null where it is something else. */
export function priorityOf({ priority }: Json, fallback: number): number | null {
  if (priority === undefined) return fallback;
  return typeof priority === 'number' && Number.isSafeInteger(priority) ? priority : null;
}

/** An ACL entry, or what is wrong with it in mosquitto's words. */
export function readRight(json: Json): Right | string {
  const { acltype, topic, allow = false } = json;
  if (typeof acltype !== 'string') return 'Invalid/missing acltype';
  const kind = RIGHTS.find((one) => one === acltype);
  if (kind === undefined) return 'Unknown acltype';
  if (typeof topic !== 'string') return 'Invalid/missing topic';
  if (topic.length > 65_535 || topic.includes('\0') || /\p{Cs}/u.test(topic)) return 'Invalid ACL topic';
  if (!isFilter(topic)) return 'Invalid ACL topic';
  const priority = priorityOf(json, 0);
  if (priority === null) return 'Invalid/missing priority';
  return typeof allow === 'boolean' ? { kind, topic, priority, allow } : 'Invalid/missing allow';
}

/** Wildcards only as whole levels, # only at the end. An empty topic matches nothing. */
function isFilter(topic: string): boolean {
  const levels = topic.split('/');
  return levels.every((level, i) =>
    level === '+' || (level === '#' && i === levels.length - 1) ? true : !level.includes('+') && !level.includes('#'),
  );
}

/** `null` and empty values left out, as mosquitto does. */
export function trimmed(json: Json): Json {
  return Object.fromEntries(Object.entries(json).filter(([, value]) => value !== null && value !== undefined));
}

/** As commands and the file show it; a priority of -1 is none. */
export function shownUse(key: string, { name, priority }: Use): Json {
  return priority === -1 ? { [key]: name } : { [key]: name, priority };
}

export function shownRight({ kind, topic, priority, allow }: Right): Json {
  return { acltype: kind, topic, priority, allow };
}

/** The members of each group. */
export function membersOf({ accounts }: Book): Map<string, Use[]> {
  const members = new Map<string, Use[]>();
  for (const [username, { groups }] of accounts) {
    for (const { name, priority } of groups) {
      const list = members.get(name);
      if (list === undefined) members.set(name, [{ name: username, priority }]);
      else list.push({ name: username, priority });
    }
  }
  return members;
}

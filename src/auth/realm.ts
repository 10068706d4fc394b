// All that holds for the clients of one listener at one moment: sources of users, sources of rights, the anonymous
// rule. Built whole by chain.ts from files and options, read by authenticator.ts and authorizer.ts, never changed
// afterwards.

import type { Via } from '../mqtt/message.ts';
import type { Accounts } from './accounts/accounts.ts';
import type { AclFile, Explanation } from './aclfile.ts';
import type { Credentials, DenyAction, EnhancedMethod, Identity, Verdict } from './auth.ts';
import type { CertificateField } from './certificate.ts';
import type { Hooks } from './hooks.ts';
import type { Action, Rules } from './rules.ts';
import type { Source } from './source.ts';
import type { UserTable } from './users.ts';

/** A further source of rights (HTTP, token). Each has to agree; none can grant what another denies. */
export interface Rights {
  publish(identity: Identity, topicName: string, qos: number, retain: boolean): Verdict;
  subscribe(identity: Identity, topicFilter: string, qos: number): Verdict;
  deliver(identity: Identity, topicName: string): boolean;
  /** null when it has no opinion that is known now. */
  explain(identity: Identity, action: Action, topic: string): Explanation | null;
}

export interface Realm {
  /**
   * Which set of users: "" = the global one, else the listener's own source. Client ids and sessions belong to a user
   * of one realm.
   */
  readonly name: string;
  readonly allowAnonymous: boolean;
  /** Users the gateway knows itself; null when there are none configured (an empty file is a source without users). */
  readonly users: UserTable | null;
  /** Users, groups and roles that are managed at run time; null where they have no say. */
  readonly accounts: Accounts | null;
  /** Asked for what a token in the password field says; null without. */
  readonly token: (Source & { readonly mark: string }) | null;
  /** Asked last, for users that nobody here knows; null without. */
  readonly remote: Source | null;
  /**
   * The embedding program, asked about everybody who is let in or known to nobody; null where it does not judge that.
   */
  readonly hook: Hooks | null;
  readonly identity: CertificateField | null;
  readonly acl: AclFile | null;
  readonly aclSubscribe: 'mosquitto' | 'truthful';
  readonly rules: Rules | null;
  readonly rights: readonly Rights[];
  readonly enhanced: readonly EnhancedMethod[];
  /** Asked for claims of a client that another source let in; null without. */
  readonly enrich: ((credentials: Credentials) => Promise<ReadonlyMap<string, unknown>>) | null;
  /**
   * Milliseconds after which verdicts may change by themselves (remote answers, expiring tokens); 0 = never.
   */
  readonly periodMs: number;
  readonly denyAction: DenyAction;
}

export function hasSource(realm: Realm): boolean {
  return realm.users !== null || realm.token !== null || realm.remote !== null;
}

/** Whether a name is that of a user whom the gateway knows itself. */
function isUser({ users }: Realm, username: string | null): boolean {
  return username !== null && users !== null && users.mark(username) !== null;
}

/**
 * Whether a client that got in under `before` must leave under `after`: its user is gone or has another password, it is
 * anonymous and that is no longer allowed, its name was never checked and now would be, or what had vouched for it is
 * no longer asked. One that a hook let in leaves when its name has become that of a configured user.
 */
export function revoked(before: Realm, after: Realm, username: string | null, via?: Via): boolean {
  if (before.identity !== after.identity) return true;
  if (via === 'hook') {
    return isUser(after, username) || after.hook === null || before.name !== after.name;
  }
  if (after.identity !== null) return false;
  if (username !== null && !hasSource(before)) return hasSource(after) || !after.allowAnonymous;
  const mark = username === null ? null : (before.users?.mark(username) ?? null);
  if (username !== null && mark !== null) return mark !== (after.users?.mark(username) ?? null);
  if (username === null && (after.allowAnonymous || before.allowAnonymous)) return !after.allowAnonymous;
  // Let in by a token or a web server, which of them is not kept: another key ends what the old one had let in.
  if (before.token !== null && before.token.mark !== after.token?.mark) return true;
  return after.token === null && after.remote === null;
}

/**
 * Whether what let this client in would let it in now, as far as the gateway can know without its password or token:
 * its user is still there, or anonymous clients still are allowed. Of a client whose source is not known only local
 * users are certain.
 */
export function vouches(realm: Realm, identity: Identity): boolean {
  if (identity.internal) return true;
  const { username, via } = identity;
  if ((realm.accounts?.bar(username, identity.clientId) ?? null) !== null) return false;
  if ((identity.realm ?? (identity.realm === null ? null : '')) !== realm.name) return false;
  if (via === 'certificate') return realm.identity !== null;
  if (realm.identity !== null) return false;
  if (via === 'token') return realm.token !== null;
  if (via === 'http') return realm.remote !== null;
  if (via === 'hook') return realm.hook !== null && !isUser(realm, username);
  if (username === null) return realm.allowAnonymous;
  if (realm.users !== null && realm.users.mark(username) !== null) return true;
  return via !== 'users' && !hasSource(realm) && realm.allowAnonymous;
}

/** Whether a client with this name could come in as one of the realm. */
export function couldKnow(realm: Realm, username: string | null): boolean {
  if (realm.identity !== null) return username !== null;
  if (realm.token !== null || realm.remote !== null || realm.hook !== null) return true;
  if (username === null) return realm.allowAnonymous;
  return realm.users === null ? realm.allowAnonymous : realm.users.mark(username) !== null;
}

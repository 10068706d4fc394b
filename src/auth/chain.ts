// Builds who may connect and what they may do, for every listener, and rebuilds it at reload. Called by
// gateway/gateway.ts. Files are read whole before anything changes: at start an error stops it, at reload the last good
// state stays and the result says why. Users and rights change as one unit. Nothing here fails open.
import { errorText, GatewayError } from '../base/errors.ts';
import type { Via } from '../mqtt/message.ts';
import { AbsentAccess } from './absent.ts';
import type { Accounts } from './accounts/accounts.ts';
import type { Absentees, Access, Authenticator, Authorizer, DenyAction, EnhancedMethod, Identity } from './auth.ts';
import { AuthCounters, ChainAuthenticator } from './authenticator.ts';
import { ChainAuthorizer } from './authorizer.ts';
import { Gate } from './gate.ts';
import { HookedAccess } from './hooks.ts';
import { FailureLimits } from './limits.ts';
import type { AuthOptions } from './options.ts';
import { couldKnow, type Realm, revoked, vouches } from './realm.ts';
import { type AuthDeps, loadRealms, type State, type Tools } from './realms.ts';
import { stableSecret } from './secret.ts';
import type { UserTable } from './users.ts';

/**
 * Password hashes that are computed at once, and that may wait: a hash of 100 ms and 1,024 waiting are a minute's work.
 */
const HASHES_AT_ONCE = 2;
const HASHES_WAITING = 1024;

/** What a reload did. */
export type AuthReload =
  | {
      readonly ok: true;
      readonly usersAdded: number;
      readonly usersRemoved: number;
      readonly usersChanged: number;
      /**
       * Whether a connected client has to go: its user is gone or changed, or anonymous clients are no longer allowed.
       */
      revoked(listener: string, username: string | null, via?: Via): boolean;
    }
  /** Nothing has changed; `error` names file and line. */
  | { readonly ok: false; readonly error: GatewayError };

/** What holds for the clients of one listener; "" = of those that say nothing themselves. */
export interface RealmView {
  readonly listener: string;
  readonly anonymous: boolean;
  readonly users: readonly string[] | null;
  readonly sources: readonly string[];
  readonly aclFile: string | null;
  readonly rules: boolean;
}

/** Access of one listener: always the same object, always what holds now. */
class ListenerAccess implements Access {
  readonly authenticator: Authenticator;
  readonly authorizer: Authorizer;
  private readonly now: () => Realm;

  constructor(realm: () => Realm, authenticator: Authenticator, authorizer: Authorizer) {
    this.now = realm;
    this.authenticator = authenticator;
    this.authorizer = authorizer;
  }

  get realm(): string {
    return this.now().name;
  }

  vouches(identity: Identity): boolean {
    return vouches(this.now(), identity);
  }

  get enhanced(): readonly EnhancedMethod[] {
    return this.now().enhanced;
  }

  get denyAction(): DenyAction {
    return this.now().denyAction;
  }
}

export class AccessControl {
  private state: State;
  /** Tells the tools that outlive a reload what holds now. */
  private readonly publish: (state: State) => void;
  private readonly tools: Tools;
  private readonly versions = { current: 1 };
  private readonly counters: AuthCounters;
  private readonly made = new Map<string, Access>();
  /** Those without the hooks of an embedding program. */
  private readonly bare = new Map<string, Access>();
  /** By realm, of clients whose listener is not there. */
  private readonly absent = new Map<string | null, Access>();
  /** By realm, as listeners are now. */
  private readonly ways = new Map<string | null, readonly Access[]>();
  private reloading: Promise<AuthReload> | null = null;

  private constructor(state: State, publish: (state: State) => void, tools: Tools) {
    this.state = state;
    this.publish = publish;
    this.tools = tools;
    this.counters = new AuthCounters(tools.deps.metrics);
  }

  /** Reads all files and builds; throws AUTH-SOURCE naming file and line. */
  static async build(options: AuthOptions, deps: AuthDeps): Promise<AccessControl> {
    const box: { state: State | null; secret: Buffer | null } = { state: null, secret: null };
    const tools: Tools = {
      deps,
      gate: new Gate(HASHES_AT_ONCE, HASHES_WAITING),
      limits: new FailureLimits(deps.clock, deps.log),
      get scramSecret(): Buffer {
        // Only who uses SCRAM has a secret to keep.
        box.secret ??= stableSecret(deps.secretPath ?? null);
        return box.secret;
      },
      markNow: (listener, username) =>
        box.state === null ? null : (realmOf(box.state, listener).users?.mark(username) ?? null),
      http: null,
      remoteKeys: null,
      accounts: null,
    };
    deps.ledger?.watch('failures', () => tools.limits.bytes);
    box.state = await loadRealms(options, tools);
    adopt(box.state, tools);
    return new AccessControl(box.state, (state) => (box.state = state), tools);
  }

  /** What session/ asks for clients of this listener; "" for clients inside the process. */
  access(listener: string): Access {
    let access = this.made.get(listener);
    if (access === undefined) {
      access = this.hooked(this.bareAccess(listener));
      this.made.set(listener, access);
    }
    return access;
  }

  private hooked(access: Access): Access {
    const { hooks = null } = this.tools.deps;
    return hooks === null ? access : new HookedAccess(access, hooks);
  }

  /** As the configured sources have it. */
  private bareAccess(listener: string): Access {
    let access = this.bare.get(listener);
    if (access === undefined) {
      const realm = (): Realm => realmOf(this.state, listener);
      access = new ListenerAccess(
        realm,
        new ChainAuthenticator(realm, this.tools.limits, this.counters),
        new ChainAuthorizer(realm, this.versions, this.tools.deps.clock),
      );
      this.bare.set(listener, access);
    }
    return access;
  }

  /** What session/ asks about clients that are not here. */
  readonly absentees: Absentees = {
    access: (identity) => this.accessOf(identity),
    realmOf: (username) => {
      const names = new Set(
        this.realms()
          .filter((realm) => couldKnow(realm, username))
          .map(({ name }) => name),
      );
      const [only] = names;
      return names.size === 1 ? only : null;
    },
  };

  private accessOf(identity: Identity): Access {
    const { listener, realm = '' } = identity;
    const known = identity.partial !== true && (this.state.listeners.has(listener) || isGlobal(listener));
    if (identity.internal || known) return this.access(listener);
    let access = this.absent.get(realm);
    if (access === undefined) {
      // The ways without hooks: one client is one question.
      access = this.hooked(new AbsentAccess(realm ?? '', () => this.waysOf(realm)));
      this.absent.set(realm, access);
    }
    return access;
  }

  /** Every way in for users of a realm; every way there is where none is of it, or it is not known. */
  private waysOf(realm: string | null): readonly Access[] {
    const known = this.ways.get(realm);
    if (known !== undefined) return known;
    const ways = this.findWays(realm);
    this.ways.set(realm, ways);
    return ways;
  }

  private findWays(realm: string | null): Access[] {
    const all = ['', ...this.state.listeners.keys()].map((listener) => this.bareAccess(listener));
    const own = all.filter((access) => access.realm === realm);
    return own.length > 0 ? own : all;
  }

  private realms(): Realm[] {
    return [this.state.base, ...this.state.listeners.values()];
  }

  /**
   * Applies new options, or the same after files have changed: all of it or nothing. Never rejects; calls run one after
   * the other.
   */
  reload(options: AuthOptions): Promise<AuthReload> {
    const before = this.reloading ?? Promise.resolve(null);
    const mine = before.then(() => this.apply(options));
    this.reloading = mine;
    return mine;
  }

  private async apply(options: AuthOptions): Promise<AuthReload> {
    let next: State;
    try {
      next = await loadRealms(options, this.tools);
    } catch (error) {
      const known = error instanceof GatewayError ? error : new GatewayError('AUTH-SOURCE', errorText(error), error);
      return { ok: false, error: known };
    }
    const before = this.state;
    const added = difference(before, next);
    const ended = adopt(next, this.tools);
    this.state = next;
    this.publish(next);
    this.versions.current++;
    this.ways.clear();
    return {
      ok: true,
      ...added,
      revoked: (listener, username, via) =>
        this.ends(listener, username, ended) ||
        revoked(realmOf(before, listener), realmOf(next, listener), username, via),
    };
  }

  /** Users, groups and roles that are managed at run time; null where there are none. */
  get accounts(): Accounts | null {
    return this.state.base.accounts;
  }

  /** A change of accounts holds: verdicts are given again. */
  accountsChanged(): void {
    this.versions.current++;
  }

  /** Whether a client of this listener and name is one of those whose accounts do not let them stay. */
  ends(listener: string, username: string | null, ended: ReadonlySet<string>): boolean {
    return username !== null && ended.has(username) && realmOf(this.state, listener).accounts !== null;
  }

  /** Whether accounts deny a subscription that was granted before. */
  deniesSubscription(identity: Identity, topicFilter: string): boolean {
    const { accounts } = realmOf(this.state, identity.listener);
    if (accounts === null || identity.internal) return false;
    return this.access(identity.listener).authorizer.subscribe(identity, topicFilter, 0) === false;
  }

  /** Who may come in where and what decides on rights, for people: names only. */
  view(): RealmView[] {
    const rows = [viewOf('', this.state.base)];
    for (const [listener, realm] of this.state.listeners) rows.push(viewOf(listener, realm));
    return rows;
  }

  /** Lets go of the connections of remote sources. */
  close(): void {
    this.tools.http?.server.close();
    this.tools.remoteKeys?.keys.close();
  }
}

/** Names that are never configured as listeners: clients inside the process, and those that a proxy hands over. */
function isGlobal(listener: string): boolean {
  return listener === '' || listener.startsWith('proxy.');
}

/** What was read of accounts holds from now on. Gives the users whose connections have to end. */
function adopt({ reading }: State, tools: Tools): ReadonlySet<string> {
  tools.accounts = reading?.accounts ?? null;
  if (reading === null) return new Set();
  reading.accounts.served = reading.served;
  return reading.accounts.adopt(reading.reading);
}

function viewOf(listener: string, realm: Realm): RealmView {
  const sources: string[] = [];
  if (realm.identity !== null) sources.push('certificate');
  if (realm.token !== null) sources.push('token');
  if (realm.remote !== null) sources.push('http');
  if (realm.hook !== null) sources.push('hook');
  if (realm.accounts !== null) sources.push('dynamic_security');
  return {
    listener,
    anonymous: realm.allowAnonymous,
    users: realm.users === null ? null : [...realm.users.names()],
    sources,
    aclFile: realm.acl?.path ?? null,
    rules: realm.rules !== null,
  };
}

function realmOf(state: State, listener: string): Realm {
  return state.listeners.get(listener) ?? state.base;
}

/** Every user table of a state once, by the name of the listeners that have it. */
function tables(state: State): Map<string, UserTable> {
  const found = new Map<string, UserTable>();
  if (state.base.users !== null) found.set('', state.base.users);
  for (const [name, realm] of state.listeners) {
    if (realm.users !== null && realm.users !== state.base.users) found.set(name, realm.users);
  }
  return found;
}

function difference(before: State, after: State): { usersAdded: number; usersRemoved: number; usersChanged: number } {
  const old = tables(before);
  const now = tables(after);
  let usersAdded = 0;
  let usersRemoved = 0;
  let usersChanged = 0;
  for (const [name, users] of old) {
    const other = now.get(name);
    for (const user of users.names()) {
      const mark = other?.mark(user) ?? null;
      if (mark === null) usersRemoved++;
      else if (mark !== users.mark(user)) usersChanged++;
    }
  }
  for (const [name, users] of now) {
    for (const user of users.names()) if ((old.get(name)?.mark(user) ?? null) === null) usersAdded++;
  }
  return { usersAdded, usersRemoved, usersChanged };
}

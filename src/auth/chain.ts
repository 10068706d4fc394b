// Builds who may connect and what they may do, for every listener, and rebuilds it at reload. Called by gateway/gateway.ts.
// Files are read whole before anything changes: at start an error stops it, at reload the last good state stays and the result
// says why. Users and rights change as one unit. Nothing here fails open.
import { randomBytes } from 'node:crypto';
import type { Clock } from '../base/clock.ts';
import { errorText, GatewayError } from '../base/errors.ts';
import type { Log } from '../base/log.ts';
import type { Metrics } from '../base/metrics.ts';
import { type AclFile, loadAclFile } from './aclfile.ts';
import type { Access, Authenticator, Authorizer, DenyAction, EnhancedMethod } from './auth.ts';
import { AuthCounters, ChainAuthenticator } from './authenticator.ts';
import { ChainAuthorizer } from './authorizer.ts';
import { Gate } from './gate.ts';
import { type Argon2, loadArgon2 } from './hash.ts';
import { HttpAuth } from './http.ts';
import { JwtAuth, TOKEN_PERIOD_MS } from './jwt.ts';
import { FailureLimits } from './limits.ts';
import type { AuthOptions, ListenerAuthOptions } from './options.ts';
import { loadPasswordFile, type PasswordFile } from './passwordfile.ts';
import { type Realm, type Rights, revoked } from './realm.ts';
import { Rules } from './rules.ts';
import { loadScramFile, type ScramKeys } from './scram.ts';
import { ScramMethod } from './scramexchange.ts';
import { lineError } from './textfile.ts';
import { Users } from './users.ts';

export interface AuthDeps {
  readonly log: Log;
  readonly metrics: Metrics;
  readonly clock: Clock;
  /** How the optional argon2 package is found; for tests. */
  readonly argon2?: () => Promise<Argon2 | null>;
}

/** What a reload did. */
export type AuthReload =
  | {
      readonly ok: true;
      readonly usersAdded: number;
      readonly usersRemoved: number;
      readonly usersChanged: number;
      /** Whether a connected client has to go: its user is gone or changed, or anonymous clients are no longer allowed. */
      revoked(listener: string, username: string | null): boolean;
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

/** Password hashes that are computed at once, and that may wait: a hash of 100 ms and 1,024 waiting are a minute's work. */
const HASHES_AT_ONCE = 2;
const HASHES_WAITING = 1024;

/** What stays the same over reloads. */
interface Tools {
  readonly deps: AuthDeps;
  readonly gate: Gate;
  /** Failures are remembered over a reload. */
  readonly limits: FailureLimits;
  readonly scramSecret: Buffer;
  /** What identifies the password of a user now; for what began before a reload. */
  readonly markNow: (listener: string, username: string) => string | null;
  /** The web server of the last load: kept, with its connections and answers, while its options stay the same. */
  http: { readonly key: string; readonly server: HttpAuth } | null;
}

/** Everything that was read and built for one set of options. */
interface State {
  readonly base: Realm;
  readonly listeners: ReadonlyMap<string, Realm>;
}

/** The files of one load, each read once whatever number of listeners names it. */
class Files {
  private readonly passwords = new Map<string, Promise<PasswordFile>>();
  private readonly acls = new Map<string, Promise<AclFile>>();

  password(path: string): Promise<PasswordFile> {
    return once(this.passwords, path, loadPasswordFile);
  }

  acl(path: string): Promise<AclFile> {
    return once(this.acls, path, loadAclFile);
  }

  async loaded(): Promise<{ passwords: PasswordFile[]; acls: AclFile[] }> {
    return { passwords: await Promise.all(this.passwords.values()), acls: await Promise.all(this.acls.values()) };
  }
}

function once<T>(known: Map<string, Promise<T>>, path: string, load: (path: string) => Promise<T>): Promise<T> {
  let file = known.get(path);
  if (file === undefined) {
    file = load(path);
    known.set(path, file);
  }
  return file;
}

/** Access of one listener: always the same object, always what holds now. */
class ListenerAccess implements Access {
  readonly authenticator: Authenticator;
  readonly authorizer: Authorizer;
  private readonly realm: () => Realm;

  constructor(realm: () => Realm, authenticator: Authenticator, authorizer: Authorizer) {
    this.realm = realm;
    this.authenticator = authenticator;
    this.authorizer = authorizer;
  }

  get enhanced(): readonly EnhancedMethod[] {
    return this.realm().enhanced;
  }

  get denyAction(): DenyAction {
    return this.realm().denyAction;
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
  private reloading: Promise<AuthReload> | null = null;

  private constructor(state: State, publish: (state: State) => void, tools: Tools) {
    this.state = state;
    this.publish = publish;
    this.tools = tools;
    this.counters = new AuthCounters(tools.deps.metrics);
  }

  /** Reads all files and builds; throws AUTH-SOURCE naming file and line. */
  static async build(options: AuthOptions, deps: AuthDeps): Promise<AccessControl> {
    const box: { state: State | null } = { state: null };
    const tools: Tools = {
      deps,
      gate: new Gate(HASHES_AT_ONCE, HASHES_WAITING),
      limits: new FailureLimits(deps.clock, deps.log),
      scramSecret: randomBytes(32),
      markNow: (listener, username) =>
        box.state === null ? null : (realmOf(box.state, listener).users?.mark(username) ?? null),
      http: null,
    };
    box.state = await load(options, tools);
    return new AccessControl(box.state, (state) => (box.state = state), tools);
  }

  /** What session/ asks for clients of this listener; "" for clients inside the process. */
  access(listener: string): Access {
    let access = this.made.get(listener);
    if (access === undefined) {
      const realm = (): Realm => realmOf(this.state, listener);
      access = new ListenerAccess(
        realm,
        new ChainAuthenticator(realm, this.tools.limits, this.counters),
        new ChainAuthorizer(realm, this.versions, this.tools.deps.clock),
      );
      this.made.set(listener, access);
    }
    return access;
  }

  /** Applies new options, or the same after files have changed: all of it or nothing. Never rejects; calls run one after the other. */
  reload(options: AuthOptions): Promise<AuthReload> {
    const before = this.reloading ?? Promise.resolve(null);
    const mine = before.then(() => this.apply(options));
    this.reloading = mine;
    return mine;
  }

  private async apply(options: AuthOptions): Promise<AuthReload> {
    let next: State;
    try {
      next = await load(options, this.tools);
    } catch (error) {
      const known = error instanceof GatewayError ? error : new GatewayError('AUTH-SOURCE', errorText(error), error);
      return { ok: false, error: known };
    }
    const before = this.state;
    this.state = next;
    this.publish(next);
    this.versions.current++;
    return {
      ok: true,
      ...difference(before, next),
      revoked: (listener, username) => revoked(realmOf(before, listener), realmOf(next, listener), username),
    };
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
  }
}

function viewOf(listener: string, realm: Realm): RealmView {
  const sources: string[] = [];
  if (realm.identity !== null) sources.push('certificate');
  if (realm.token !== null) sources.push('token');
  if (realm.remote !== null) sources.push('http');
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
function tables(state: State): Map<string, Users> {
  const found = new Map<string, Users>();
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

/** The argon2 package when a file needs it; throws AUTH-SOURCE with the first line that does when it is not installed. */
async function argon2For(files: readonly PasswordFile[], deps: AuthDeps): Promise<Argon2 | null> {
  for (const file of files) {
    for (const entry of file.users.values()) {
      if (entry.hash.kind !== 'argon2id') continue;
      const argon2 = await (deps.argon2 ?? loadArgon2)();
      if (argon2 === null) {
        throw lineError(
          file.path,
          entry.line,
          'an argon2id hash needs the package @node-rs/argon2, which is not installed',
        );
      }
      return argon2;
    }
  }
  return null;
}

/** Reads every file that the options name; the first error, in the order of the keys, is thrown. */
async function readFiles(options: AuthOptions): Promise<Files> {
  const files = new Files();
  const listeners = [...options.listeners.values()];
  const paths = (list: (string | null | undefined)[]): string[] => list.filter((path) => typeof path === 'string');
  const reads: Promise<unknown>[] = [
    ...paths([options.passwordFile, ...listeners.map((one) => one.passwordFile)]).map((path) => files.password(path)),
    ...paths([options.aclFile, ...listeners.map((one) => one.aclFile)]).map((path) => files.acl(path)),
  ];
  for (const outcome of await Promise.allSettled(reads)) if (outcome.status === 'rejected') throw outcome.reason;
  return files;
}

async function load(options: AuthOptions, tools: Tools): Promise<State> {
  const files = await readFiles(options);
  const { passwords, acls } = await files.loaded();
  const argon2 = await argon2For(passwords, tools.deps);
  const base = await baseRealm(options, files, tools, argon2);
  const made = new Map<string, Realm>();
  for (const [name, own] of options.listeners) made.set(name, await listenerRealm(base, own, files, tools, argon2));
  tools.limits.configure(options.limits);
  warn(passwords, acls, tools.deps.log);
  return { base, listeners: made };
}

function warn(passwords: readonly PasswordFile[], acls: readonly AclFile[], log: Log): void {
  for (const file of passwords) {
    if ((file.mode & 0o007) !== 0) {
      log('warn', 'AUTH-WARNING', { text: `${file.path}: every user of this machine can read or change it` });
    }
  }
  for (const acl of acls) for (const text of acl.warnings) log('warn', 'AUTH-WARNING', { text });
}

async function baseRealm(options: AuthOptions, files: Files, tools: Tools, argon2: Argon2 | null): Promise<Realm> {
  const { clock } = tools.deps;
  const file = options.passwordFile === null ? null : await files.password(options.passwordFile);
  const scram = typeof options.scramFile === 'string' ? await loadScramFile(options.scramFile) : null;
  const known = file !== null || options.passwords !== null || scram !== null;
  const jwt = options.jwt ? await JwtAuth.load(options.jwt, clock) : null;
  const http = httpFor(options, tools);
  const rights: Rights[] = [];
  if (jwt !== null) rights.push(jwt);
  if (http?.authorizes) rights.push(http);
  const periods = [...(jwt === null ? [] : [TOKEN_PERIOD_MS]), ...(http?.authorizes ? [http.periodMs] : [])];
  return {
    allowAnonymous: options.allowAnonymous,
    users: known ? new Users({ file, passwords: options.passwords, scram }, tools.gate, argon2) : null,
    token: jwt,
    remote: http?.authenticates ? http : null,
    identity: null,
    acl: options.aclFile === null ? null : await files.acl(options.aclFile),
    aclSubscribe: options.aclSubscribe,
    rules: options.rules === null ? null : new Rules(options.rules),
    rights,
    enhanced: scramFor(options, file, scram, tools),
    enrich: http?.authorizes ? (credentials) => http.claims(credentials) : null,
    periodMs: periods.length === 0 ? 0 : Math.min(...periods),
    denyAction: options.denyAction,
  };
}

/** The web server, the running one if nothing about it has changed; a replaced one ends when its last requests have. */
function httpFor(options: AuthOptions, tools: Tools): HttpAuth | null {
  const { clock, log } = tools.deps;
  const key = JSON.stringify(options.http ?? null);
  if (tools.http !== null && tools.http.key === key) return tools.http.server;
  const server = options.http ? new HttpAuth(options.http, clock, log) : null;
  tools.http?.server.retire();
  tools.http = server === null ? null : { key, server };
  return server;
}

/** SCRAM-SHA-256 for the users whose password or keys are known; where the password file has a name too, the file decides. */
function scramFor(
  options: AuthOptions,
  file: PasswordFile | null,
  stored: ReadonlyMap<string, ScramKeys> | null,
  tools: Tools,
): ScramMethod[] {
  if (options.passwords === null && stored === null) return [];
  const without = <T>(users: ReadonlyMap<string, T> | null): ReadonlyMap<string, T> | null =>
    users === null || file === null ? users : new Map([...users].filter(([name]) => !file.users.has(name)));
  const passwords = without(options.passwords);
  // As in the table of users, a configured password goes before stored keys.
  const others = stored === null ? null : new Map([...stored].filter(([name]) => passwords?.has(name) !== true));
  return [new ScramMethod({ passwords, stored: without(others) }, tools)];
}

async function listenerRealm(
  base: Realm,
  own: ListenerAuthOptions,
  files: Files,
  tools: Tools,
  argon2: Argon2 | null,
): Promise<Realm> {
  const realm: { -readonly [K in keyof Realm]: Realm[K] } = { ...base, identity: own.identity ?? null };
  // The certificate says who it is; no other way to a name is open then.
  if (realm.identity !== null) realm.enhanced = [];
  if (typeof own.allowAnonymous === 'boolean') realm.allowAnonymous = own.allowAnonymous;
  if (typeof own.passwordFile === 'string') {
    const file = await files.password(own.passwordFile);
    realm.users = new Users({ file, passwords: null, scram: null }, tools.gate, argon2);
    realm.token = null;
    realm.remote = null;
    realm.enhanced = [];
  }
  if (typeof own.aclFile === 'string') {
    realm.acl = await files.acl(own.aclFile);
    realm.rules = null;
  }
  return realm;
}

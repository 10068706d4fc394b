// Reads every file that the options name and builds the realms of all listeners from them. Called by chain.ts at start
// and reload. Everything is read before anything is built; the first error, in the order of the keys, is thrown as
// AUTH-SOURCE. Changes nothing.
import type { Book } from '../base/accounts.ts';
import type { Clock } from '../base/clock.ts';
import { GatewayError } from '../base/errors.ts';
import type { Ledger } from '../base/ledger.ts';
import type { Log } from '../base/log.ts';
import type { Metrics } from '../base/metrics.ts';
import { Accounts, type Reading } from './accounts/accounts.ts';
import { AccountUsers, withoutAccounts } from './accounts/users.ts';
import { type AclFile, loadAclFile } from './aclfile.ts';
import type { Gate } from './gate.ts';
import { type Argon2, loadArgon2 } from './hash.ts';
import type { Hooks } from './hooks.ts';
import type { HttpAuth } from './http.ts';
import { JwtAuth, TOKEN_PERIOD_MS } from './jwt.ts';
import type { FailureLimits } from './limits.ts';
import type { AuthOptions, ListenerAuthOptions } from './options.ts';
import { loadPasswordFile, type PasswordFile } from './passwordfile.ts';
import type { Realm, Rights } from './realm.ts';
import { type FetchKeys, RemoteKeys } from './remotekeys.ts';
import { Rules } from './rules.ts';
import { loadScramFile, type ScramKeys } from './scram.ts';
import { ScramMethod } from './scramexchange.ts';
import { lineError } from './textfile.ts';
import { Users } from './users.ts';

export interface AuthDeps {
  readonly log: Log;
  readonly metrics: Metrics;
  readonly clock: Clock;
  /** Where tables of failures are counted. */
  readonly ledger?: Ledger;
  /** Where a secret may be kept over restarts; absent or null: nowhere. */
  readonly secretPath?: string | null;
  /** How keys of tokens are fetched by URL; absent: not at all. */
  readonly fetchKeys?: FetchKeys;
  /** The embedding program's, where it has any. */
  readonly hooks?: Hooks | null;
  /** How the optional argon2 package is found; for tests. */
  readonly argon2?: () => Promise<Argon2 | null>;
}

/** What stays the same over reloads. */
export interface Tools {
  readonly deps: AuthDeps;
  readonly gate: Gate;
  /** Failures are remembered over a reload. */
  readonly limits: FailureLimits;
  readonly scramSecret: Buffer;
  /** What identifies the password of a user now; for what began before a reload. */
  readonly markNow: (listener: string, username: string) => string | null;
  /** The web server of the last load: kept, with its connections and answers, while its options stay the same. */
  http: { readonly key: string; readonly server: HttpAuth } | null;
  /** Users managed at run time, those of the last load while their file stays the same. */
  accounts: Accounts | null;
  /** The fetched keys of the last load, kept in the same way. */
  remoteKeys: { readonly key: string; readonly keys: RemoteKeys } | null;
}

/** Everything that was read and built for one set of options. */
export interface State {
  readonly base: Realm;
  readonly listeners: ReadonlyMap<string, Realm>;
  /** What was read of accounts and does not hold yet; null where there are none. */
  readonly reading: { readonly accounts: Accounts; readonly reading: Reading; readonly served: boolean } | null;
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

/**
 * The argon2 package when a file needs it; throws AUTH-SOURCE with the first line that does when it is not installed.
 */
async function argon2For(files: readonly PasswordFile[], book: Book | null, deps: AuthDeps): Promise<Argon2 | null> {
  for (const [name, { hash }] of book?.accounts ?? []) {
    if (hash?.parsed.kind !== 'argon2id') continue;
    const argon2 = await (deps.argon2 ?? loadArgon2)();
    const text = `the hash of client ${name} needs the package @node-rs/argon2, which is not installed`;
    if (argon2 === null) throw new GatewayError('AUTH-SOURCE', text);
    return argon2;
  }
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

/** The realms of all listeners. Throws AUTH-SOURCE. */
export async function loadRealms(options: AuthOptions, tools: Tools): Promise<State> {
  const files = await readFiles(options);
  const { passwords, acls } = await files.loaded();
  const reading = await readAccounts(options, tools);
  const argon2 = await argon2For(passwords, reading?.reading.book ?? null, tools.deps);
  const base = await baseRealm(options, files, tools, { argon2, accounts: reading?.accounts ?? null });
  const made = new Map<string, Realm>();
  for (const [name, own] of options.listeners) {
    const realm = await listenerRealm(base, own, files, tools, argon2);
    // The global file under a listener's name: the same users.
    const same = own.passwordFile === options.passwordFile && realm.identity === null;
    made.set(name, same ? { ...realm, name: '' } : realm);
  }
  tools.limits.configure(options.limits);
  warn(passwords, acls, tools.deps.log);
  return { base, listeners: made, reading };
}

function warn(passwords: readonly PasswordFile[], acls: readonly AclFile[], log: Log): void {
  for (const file of passwords) {
    if ((file.mode & 0o007) !== 0) {
      log('warn', 'AUTH-WARNING', { text: `${file.path}: every user of this machine can read or change it` });
    }
  }
  for (const acl of acls) for (const text of acl.warnings) log('warn', 'AUTH-WARNING', { text });
}

/** The file of accounts as it is now; the same object as before while its path is. */
async function readAccounts(options: AuthOptions, tools: Tools): Promise<State['reading']> {
  const { accountsFile = null } = options;
  if (accountsFile === null) return null;
  const { gate, deps } = tools;
  const kept = tools.accounts?.path === accountsFile ? tools.accounts : null;
  const accounts = kept ?? new Accounts(accountsFile, { log: deps.log, gate });
  return { accounts, reading: await accounts.read(), served: options.accountsControl ?? false };
}

async function baseRealm(
  options: AuthOptions,
  files: Files,
  tools: Tools,
  { argon2, accounts }: { readonly argon2: Argon2 | null; readonly accounts: Accounts | null },
): Promise<Realm> {
  const { clock } = tools.deps;
  const file = options.passwordFile === null ? null : await files.password(options.passwordFile);
  const scram = typeof options.scramFile === 'string' ? await loadScramFile(options.scramFile) : null;
  const known = file !== null || options.passwords !== null || scram !== null;
  const jwt = options.jwt ? await JwtAuth.load(options.jwt, clock, await remoteKeysFor(options, tools)) : null;
  const http = await httpFor(options, tools);
  const hook = tools.deps.hooks?.given.authenticate === undefined ? null : tools.deps.hooks;
  const scrams = scramFor(options, file, scram, tools);
  const methods = accounts === null ? scrams : scrams.map((method) => withoutAccounts(method, accounts));
  const users = known ? new Users({ file, passwords: options.passwords, scram }, tools.gate, argon2) : null;
  const rights: Rights[] = [];
  if (jwt !== null) rights.push(jwt);
  if (http?.authorizes) rights.push(http);
  const periods = [...(jwt === null ? [] : [TOKEN_PERIOD_MS]), ...(http?.authorizes ? [http.periodMs] : [])];
  return {
    name: '',
    allowAnonymous: options.allowAnonymous,
    users: accounts === null ? users : new AccountUsers(accounts, users, tools.gate, argon2),
    accounts,
    token: jwt,
    remote: http?.authenticates ? http : null,
    hook,
    identity: null,
    acl: options.aclFile === null ? null : await files.acl(options.aclFile),
    aclSubscribe: options.aclSubscribe,
    rules: options.rules === null ? null : new Rules(options.rules),
    rights,
    enhanced: hook === null ? methods : methods.map((method) => hook.guard(method)),
    enrich: http?.authorizes ? (credentials) => http.claims(credentials) : null,
    periodMs: periods.length === 0 ? 0 : Math.min(...periods),
    denyAction: options.denyAction,
  };
}

/** The web server, the running one if nothing about it has changed; a replaced one ends when its last requests have. */
async function httpFor(options: AuthOptions, tools: Tools): Promise<HttpAuth | null> {
  const { clock, log } = tools.deps;
  const key = JSON.stringify(options.http ?? null);
  // Before the comparison: two realms that load at the same time share one server.
  const loaded = options.http ? await import('./http.ts') : null;
  if (tools.http !== null && tools.http.key === key) return tools.http.server;
  const server = options.http && loaded !== null ? new loaded.HttpAuth(options.http, clock, log) : null;
  tools.http?.server.retire();
  tools.http = server === null ? null : { key, server };
  return server;
}

/**
 * The fetched keys of tokens, those of before if nothing about them has changed; a fetch of replaced ones ends by
 * itself. The first fetch begins here; logins wait for it.
 */
async function remoteKeysFor(options: AuthOptions, tools: Tools): Promise<RemoteKeys | null> {
  const remote = options.jwt?.remote ?? null;
  const key = JSON.stringify(remote);
  if (tools.remoteKeys !== null && tools.remoteKeys.key === key) return tools.remoteKeys.keys;
  let keys: RemoteKeys | null = null;
  if (remote !== null) {
    const { fetchKeys, clock, log } = tools.deps;
    if (fetchKeys === undefined) throw new GatewayError('AUTH-SOURCE', 'auth.jwt: nothing here can fetch keys by URL');
    keys = new RemoteKeys(remote, { fetch: fetchKeys, clock, log }, await import('jose'));
    void keys.refresh();
  }
  tools.remoteKeys = keys === null ? null : { key, keys };
  return keys;
}

/**
 * SCRAM-SHA-256 for the users whose password or keys are known; where the password file has a name too, the file
 * decides.
 */
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
  if (realm.identity !== null) {
    realm.enhanced = [];
    realm.name = `certificate ${own.authority ?? ''}`.trimEnd();
  }
  if (typeof own.allowAnonymous === 'boolean') realm.allowAnonymous = own.allowAnonymous;
  if (typeof own.passwordFile === 'string') {
    const file = await files.password(own.passwordFile);
    realm.users = new Users({ file, passwords: null, scram: null }, tools.gate, argon2);
    if (realm.identity === null) realm.name = `password_file ${own.passwordFile}`;
    realm.accounts = null;
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

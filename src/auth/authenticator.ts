// Who may connect on one listener: certificate, anonymous rule, sources of users in order. Asked by session/ at
// CONNECT. Credentials that are sent are checked even where anonymous is allowed. Every doubt is a refusal; a promise
// never rejects. CONNACK 5 / 0x87 for anything wrong with user or password, 4 / 0x86 where the certificate gives no
// name.
import type { Cell, Metrics } from '../base/metrics.ts';
import type { Via } from '../mqtt/message.ts';
import { BAD_USER_NAME_OR_PASSWORD, NOT_AUTHORIZED } from '../mqtt/reason.ts';
import type { Authenticator, AuthResult, Credentials } from './auth.ts';
import { certificateName } from './certificate.ts';
import { type Hooks, refusalOf } from './hooks.ts';
import type { FailureLimits } from './limits.ts';
import { hasSource, type Realm, revoked } from './realm.ts';
import type { Answer, Source } from './source.ts';

const REFUSED = {
  name: 'tidegate_auth_refused_total',
  text: 'connections refused, by reason',
  type: 'counter',
  unit: 'connections',
} as const;
/** The usual reasons: these series are there from the start, so that a first refusal is an increase. */
const REASONS = [
  'account',
  'anonymous',
  'bad-password',
  'busy',
  'certificate',
  'changed',
  'client-id',
  'disabled',
  'hash-error',
  'http-refused',
  'internal',
  'locked',
  'no-password',
  'no-source',
  'token-clientid',
  'token-expired',
  'token-invalid',
  'token-no-expiry',
  'token-username',
  'unknown-user',
];

/** Counters of answers, by reason. */
export class AuthCounters {
  private readonly metrics: Metrics;
  private readonly accepted: Cell;

  constructor(metrics: Metrics) {
    this.metrics = metrics;
    this.accepted = metrics.cell({
      name: 'tidegate_auth_accepted_total',
      text: 'connections let in',
      type: 'counter',
      unit: 'connections',
    });
    for (const why of REASONS) metrics.cell(REFUSED, { why });
  }

  count(result: AuthResult): AuthResult {
    if (result.accepted) this.accepted.value++;
    else {
      this.metrics.cell(REFUSED, { why: result.why }).value++;
    }
    return result;
  }
}

function refuse(why: string, reasonCode = NOT_AUTHORIZED): AuthResult {
  return { accepted: false, reasonCode, why };
}

/** Lets a client in under a name that `via` vouches for. */
function accept(credentials: Credentials, realm: Realm, username: string | null, via: Via): AuthResult {
  const { clientId, remoteAddress, listener } = credentials;
  const bar = realm.accounts?.bar(username, clientId) ?? null;
  if (bar !== null) return refuse(bar);
  return {
    accepted: true,
    identity: {
      clientId,
      username,
      remoteAddress,
      listener,
      realm: realm.name,
      via,
      claims: null,
      internal: false,
    },
  };
}

/** The same with what a source has said of it. */
function acceptAs(credentials: Credentials, realm: Realm, answer: Answer & { readonly kind: 'accept' }): AuthResult {
  const name = answer.username === undefined ? credentials.username : answer.username;
  const result = accept(credentials, realm, name, answer.via);
  const { claims = null, validUntil } = answer;
  if (!result.accepted || (claims === null && validUntil === undefined)) return result;
  const identity = { ...result.identity, claims };
  return { accepted: true, identity: validUntil === undefined ? identity : { ...identity, validUntil } };
}

/** Adds what another source says of a client that is in and has no claims yet. */
async function withClaims(
  result: AuthResult,
  credentials: Credentials,
  enrich: NonNullable<Realm['enrich']>,
): Promise<AuthResult> {
  if (!result.accepted || result.identity.claims !== null) return result;
  return { accepted: true, identity: { ...result.identity, claims: await enrich(credentials) } };
}

/** Asks one source after the other until one knows the user. */
function ask(sources: readonly Source[], credentials: Credentials, from = 0): Answer | Promise<Answer> {
  for (let i = from; i < sources.length; i++) {
    const answer = sources[i].check(credentials);
    if (answer instanceof Promise) {
      return answer.then((late) => (late.kind === 'unknown' ? ask(sources, credentials, i + 1) : late));
    }
    if (answer.kind !== 'unknown') return answer;
  }
  return { kind: 'unknown' };
}

/** No other source could say who a client is that gives this name. */
function onlyHookKnows({ hook, users, token, remote }: Realm, username: string): boolean {
  if (hook === null || token !== null || remote !== null) return false;
  return users === null || users.mark(username) === null;
}

export class ChainAuthenticator implements Authenticator {
  private readonly realm: () => Realm;
  private readonly limits: FailureLimits;
  private readonly counters: AuthCounters;

  /** @param realm what holds now; it changes with a reload. */
  constructor(realm: () => Realm, limits: FailureLimits, counters: AuthCounters) {
    this.realm = realm;
    this.limits = limits;
    this.counters = counters;
  }

  authenticate(credentials: Credentials): AuthResult | Promise<AuthResult> {
    const realm = this.realm();
    const decided = this.decide(credentials, realm);
    const { enrich, hook } = realm;
    const last = enrich === null && hook === null;
    if (!(decided instanceof Promise) && (last || !decided.accepted)) return this.counters.count(decided);
    return Promise.resolve(decided)
      .then((result) => (enrich === null ? result : withClaims(result, credentials, enrich)))
      .then((result) => (hook === null ? result : this.confirm(result, credentials, realm, hook)))
      .then(
        (result) => this.counters.count(result),
        () => this.counters.count(refuse('internal')),
      );
  }

  private decide(credentials: Credentials, realm: Realm): AuthResult | Promise<AuthResult> {
    if (realm.identity !== null) {
      const name = certificateName(credentials.tls, realm.identity);
      return name === null
        ? refuse('certificate', BAD_USER_NAME_OR_PASSWORD)
        : accept(credentials, realm, name, 'certificate');
    }
    // An empty user name is none, an empty password is none.
    const username = credentials.username === '' ? null : credentials.username;
    const password = credentials.password?.length === 0 ? null : credentials.password;
    if (username !== null) {
      if (!hasSource(realm) && (realm.allowAnonymous || realm.hook === null))
        return realm.allowAnonymous ? accept(credentials, realm, username, 'unchecked') : refuse('no-source');
      if (password === null && !onlyHookKnows(realm, username)) return refuse('no-password');
    }
    // C programs end a string at a NUL: a password with one is nobody's, rather than that of the part before it.
    if (password?.includes(0)) return refuse('bad-password');
    const checked = { ...credentials, username, password };
    return username === null ? this.anonymous(checked, realm) : this.named(checked, username, realm);
  }

  /**
   * Without a user name: a token in the password is checked, then the anonymous rule holds, then a remote source may
   * know the client.
   */
  private anonymous(credentials: Credentials, realm: Realm): AuthResult | Promise<AuthResult> {
    const token = credentials.password === null ? null : realm.token;
    const sources: Source[] = token === null ? [] : [token];
    if (!realm.allowAnonymous && realm.remote !== null) sources.push(realm.remote);
    if (!realm.allowAnonymous && realm.hook !== null) sources.push(realm.hook);
    if (sources.length === 0)
      return realm.allowAnonymous ? accept(credentials, realm, null, 'anonymous') : refuse('anonymous');
    if (this.limits.locked(credentials.remoteAddress, null)) return refuse('locked');
    return this.conclude(ask(sources, credentials), credentials, realm, (unknown) =>
      unknown && realm.allowAnonymous ? accept(credentials, realm, null, 'anonymous') : refuse('anonymous'),
    );
  }

  private named(credentials: Credentials, username: string, realm: Realm): AuthResult | Promise<AuthResult> {
    if (this.limits.locked(credentials.remoteAddress, username)) return refuse('locked');
    const { users, token, remote, hook } = realm;
    const { password, remoteAddress, gone, clientId } = credentials;
    const asker = { key: remoteAddress, gone };
    // A token is known by its form; what is none is told at once, so that local users may be the last who are asked.
    const sources: Source[] = token === null ? [] : [token];
    if (users !== null && password !== null) {
      sources.push({ check: () => users.check(username, password, remote === null && hook === null, asker, clientId) });
    }
    if (remote !== null) sources.push(remote);
    if (hook !== null) sources.push(hook);
    return this.conclude(ask(sources, credentials), credentials, realm, () => refuse('unknown-user'));
  }

  /**
   * A client that was let in is shown to the embedding program, which may refuse it; one that it let in itself has
   * been.
   */
  private async confirm(result: AuthResult, credentials: Credentials, realm: Realm, hook: Hooks): Promise<AuthResult> {
    if (!result.accepted || result.identity.via === 'hook') return result;
    const { clientId, username, remoteAddress, listener, via } = result.identity;
    // Nobody has checked a name that is let in without a source: guesses at the hook's passwords are limited like
    // others.
    if (this.limits.locked(remoteAddress, username)) return refuse('locked');
    const judged = await hook.authenticate({ clientId, username, remoteAddress, listener }, credentials.password);
    if (judged !== 'allowed') {
      const { reasonCode, why } = refusalOf(judged);
      if (judged === 'refused') this.limits.failed(remoteAddress, username);
      return refuse(why, reasonCode);
    }
    if (username !== null) this.limits.passed(remoteAddress, username);
    const now = this.realm();
    return now !== realm && revoked(realm, now, username, via) ? refuse('changed') : result;
  }

  private conclude(
    answer: Answer | Promise<Answer>,
    credentials: Credentials,
    realm: Realm,
    unknown: (unknown: boolean) => AuthResult,
  ): AuthResult | Promise<AuthResult> {
    if (answer instanceof Promise) return answer.then((late) => this.result(late, credentials, realm, unknown));
    return this.result(answer, credentials, realm, unknown);
  }

  private result(
    answer: Answer,
    credentials: Credentials,
    realm: Realm,
    unknown: (unknown: boolean) => AuthResult,
  ): AuthResult {
    const { remoteAddress, username } = credentials;
    if (answer.kind === 'accept') {
      const name = answer.username === undefined ? username : answer.username;
      // Users were reloaded while a hash was computed or a server asked: what holds now decides.
      const now = this.realm();
      if (now !== realm && revoked(realm, now, name, answer.via)) return refuse('changed');
      // A hook that lets nameless clients in must not clear what their address has tried.
      if (username !== null || answer.via !== 'hook') this.limits.passed(remoteAddress, username);
      return acceptAs(credentials, realm, answer);
    }
    const result = answer.kind === 'unknown' ? unknown(true) : refuse(answer.why, answer.reasonCode);
    // A server that is down or a full line says nothing about who asked.
    if (!result.accepted && result.reasonCode === NOT_AUTHORIZED) this.limits.failed(remoteAddress, username);
    return result;
  }
}

// NanoMQ's auth.http_auth: a web server decides who may connect (auth_req), who may do everything (super_req) and who
// may publish or subscribe what (acl_req). Status 200 allows, 4xx refuses, anything else is a server that is down, and
// then nobody is let in. Called by realms.ts; asked by authenticator.ts and authorizer.ts. Requests are bounded in
// number and time; nothing is thrown.
import type { Clock } from '../base/clock.ts';
import { GatewayError, ProtocolError } from '../base/errors.ts';
import { type Log, limitLog } from '../base/log.ts';
import { NOT_AUTHORIZED, SERVER_BUSY, SERVER_UNAVAILABLE } from '../mqtt/reason.ts';
import type { Explanation } from './aclfile.ts';
import type { Credentials, Identity, Verdict } from './auth.ts';
import { type Asker, Gate } from './gate.ts';
import { type Fields, type Outcome, type RequestOptions, RequestTemplate } from './httprequest.ts';
import type { Rights } from './realm.ts';
import type { Answer, Source } from './source.ts';
import { TimedCache } from './timedcache.ts';

export interface HttpAuthOptions {
  readonly timeoutMs: number;
  readonly connectTimeoutMs: number;
  /** Requests at once, of each kind. */
  readonly poolSize: number;
  /**
   * How long an answer holds. Rights are asked again after at most this time or a second, whichever is longer; 0 = no
   * cache for logins.
   */
  readonly cacheTtlMs: number;
  readonly authReq: RequestOptions | null;
  readonly superReq: RequestOptions | null;
  readonly aclReq: RequestOptions | null;
  /** The TCP port of a listener, for %p; 0 = unknown. */
  readonly portOf?: (listener: string) => number;
  /** What a client that is in may do while acl_req is not answered. Logins are always refused then. */
  readonly rightsWhenDown?: 'deny' | 'allow';
}

/** Requests that may wait for each one under way. */
const WAITING_PER_SLOT = 64;
/**
 * A source that does not answer is asked again after this, then after twice as long and so on, within the time for an
 * answer.
 */
const FIRST_RETRY_MS = 100;
const CACHED = 10_000;
const LOG_PERIOD_MS = 10_000;
const SHORTEST_RIGHTS_MS = 1000;
/** NanoMQ's "0s means never": a connection that waits for ever is a leak, so a minute. */
const LONGEST_TIMEOUT_MS = 60_000;
export const SUPERUSER = 'superuser';

/** Access numbers of %A. */
const SUBSCRIBE = '1';
const PUBLISH = '2';

function fieldsOf(credentials: Credentials, port: number): Fields {
  const { username, clientId, remoteAddress, password, tls } = credentials;
  return {
    u: username ?? '',
    c: clientId,
    a: remoteAddress,
    P: password ?? new Uint8Array(0),
    p: port === 0 ? '' : String(port),
    C: tls?.peer?.commonName ?? '',
    d: tls?.peer?.subject ?? '',
    r: 'mqtt',
    t: '',
    m: '',
    A: '',
  };
}

/** Logins take turns by address. */
function askerOf({ remoteAddress, gone }: Credentials): Asker {
  return { key: remoteAddress, gone };
}

/** The web server as a source of users and of rights. */
export class HttpAuth implements Source, Rights {
  private readonly options: HttpAuthOptions;
  private readonly auth: RequestTemplate | null;
  private readonly superuser: RequestTemplate | null;
  private readonly acl: RequestTemplate | null;
  private readonly gate: Gate;
  private readonly clock: Clock;
  private readonly log: Log;
  private readonly warn: Log;
  private readonly logins: TimedCache<Outcome>;
  private readonly verdicts: TimedCache<boolean>;
  private readonly asking = new Map<string, Promise<boolean>>();
  private down = false;
  /**
   * Verdicts may have changed after this many milliseconds: half the time they hold, the other half they lie in
   * `verdicts`.
   */
  readonly periodMs: number;

  /** Throws AUTH-SOURCE for a URL, header or parameter that makes no request. */
  constructor(options: HttpAuthOptions, clock: Clock, log: Log) {
    this.options = options;
    this.clock = clock;
    this.log = log;
    this.warn = limitLog(log, () => clock.mono(), LOG_PERIOD_MS);
    const slots = Math.max(1, options.poolSize);
    this.gate = new Gate(slots, slots * WAITING_PER_SLOT);
    this.periodMs = Math.max(options.cacheTtlMs, SHORTEST_RIGHTS_MS) / 2;
    this.logins = new TimedCache(CACHED, options.cacheTtlMs, clock);
    this.verdicts = new TimedCache(CACHED, this.periodMs, clock);
    const template = (request: RequestOptions | null, name: string): RequestTemplate | null =>
      request === null ? null : new RequestTemplate(request, `auth.http_auth.${name}`, slots);
    this.auth = template(options.authReq, 'auth_req');
    this.superuser = template(options.superReq, 'super_req');
    this.acl = template(options.aclReq, 'acl_req');
    if (this.auth === null && this.acl === null && this.superuser === null) {
      throw new GatewayError('AUTH-SOURCE', 'auth.http_auth: none of auth_req, super_req and acl_req');
    }
  }

  /** Whether it decides who may connect. */
  get authenticates(): boolean {
    return this.auth !== null;
  }

  /** Whether it decides what a client may do. */
  get authorizes(): boolean {
    return this.acl !== null;
  }

  async check(credentials: Credentials): Promise<Answer> {
    if (this.auth === null) return { kind: 'unknown' };
    const fields = fieldsOf(credentials, this.options.portOf?.(credentials.listener) ?? 0);
    const outcome = await this.ask(this.auth, fields, this.logins, askerOf(credentials));
    if (outcome === 'refused') return { kind: 'refuse', reasonCode: NOT_AUTHORIZED, why: 'http-refused' };
    if (outcome !== 'allowed') return { kind: 'refuse', reasonCode: SERVER_UNAVAILABLE, why: outcome };
    return { kind: 'accept', claims: await this.claims(credentials), via: 'http' };
  }

  /** Asked once at login, while the password is at hand: whether acl_req need not be asked for this client. */
  async claims(credentials: Credentials): Promise<ReadonlyMap<string, unknown>> {
    if (this.superuser === null) return new Map();
    const fields = fieldsOf(credentials, this.options.portOf?.(credentials.listener) ?? 0);
    const outcome = await this.ask(this.superuser, fields, this.logins, askerOf(credentials));
    return outcome === 'allowed' ? new Map([[SUPERUSER, true]]) : new Map();
  }

  publish(identity: Identity, topicName: string): Verdict {
    return this.may(identity, topicName, PUBLISH);
  }

  subscribe(identity: Identity, topicFilter: string): Verdict {
    return this.may(identity, topicFilter, SUBSCRIBE);
  }

  /** The server was asked at SUBSCRIBE; delivery does not wait for it. */
  deliver(): boolean {
    return true;
  }

  explain(identity: Identity, action: 'publish' | 'subscribe' | 'deliver', topic: string): Explanation | null {
    if (this.acl === null || action === 'deliver' || this.exempt(identity)) return null;
    const known = this.verdicts.get(this.key(identity, topic, action === 'publish' ? PUBLISH : SUBSCRIBE));
    return known === undefined ? null : { allowed: known, rule: 'auth.http_auth.acl_req' };
  }

  /** Requests under way may end; then the connections go. */
  retire(): void {
    this.clock.after(LONGEST_TIMEOUT_MS, () => this.close());
  }

  close(): void {
    for (const template of [this.auth, this.superuser, this.acl]) template?.close();
  }

  /** Clients inside the process were never shown to the server. */
  private exempt(identity: Identity): boolean {
    return identity.internal || identity.claims?.get(SUPERUSER) === true;
  }

  private key(identity: Identity, topic: string, access: string): string {
    return JSON.stringify([access, identity.clientId, identity.username, identity.remoteAddress, topic]);
  }

  private may(identity: Identity, topic: string, access: string): Verdict {
    if (this.acl === null || this.exempt(identity)) return true;
    // A server that is asked about an address nobody knows would answer for another.
    if (identity.partial === true) return false;
    const key = this.key(identity, topic, access);
    const known = this.verdicts.get(key);
    if (known !== undefined) return known;
    let asked = this.asking.get(key);
    if (asked === undefined) {
      asked = this.askRights(this.acl, identity, topic, access)
        .then((allowed) => {
          this.verdicts.set(key, allowed);
          return allowed;
        })
        .finally(() => this.asking.delete(key));
      this.asking.set(key, asked);
    }
    return asked;
  }

  private async askRights(acl: RequestTemplate, identity: Identity, topic: string, access: string): Promise<boolean> {
    const { clientId, username, remoteAddress, listener } = identity;
    const credentials = { clientId, username, remoteAddress, listener, password: null, tls: null, version: 5 } as const;
    const fields = { ...fieldsOf(credentials, this.options.portOf?.(listener) ?? 0), t: topic, A: access };
    // Not knowing is not denying: the client waits, and its connection ends when the time for an answer is over.
    const endsAt = this.clock.mono() + this.timeoutMs;
    for (let delayMs = FIRST_RETRY_MS; ; delayMs *= 2) {
      const outcome = await this.ask(acl, fields, null, { key: clientId });
      if (outcome === 'allowed' || outcome === 'refused') return outcome === 'allowed';
      if (this.options.rightsWhenDown === 'allow') return true;
      if (this.clock.mono() + delayMs >= endsAt) break;
      await new Promise<void>((resolve) => this.clock.after(delayMs, resolve));
    }
    throw new ProtocolError(SERVER_BUSY, 'the source of rights does not answer');
  }

  private get timeoutMs(): number {
    const { timeoutMs } = this.options;
    return timeoutMs > 0 ? Math.min(timeoutMs, LONGEST_TIMEOUT_MS) : LONGEST_TIMEOUT_MS;
  }

  private async ask(
    template: RequestTemplate,
    fields: Fields,
    cache: TimedCache<Outcome> | null,
    asker: Asker,
  ): Promise<Outcome> {
    const request = template.fill(fields);
    if (request === null) return 'refused';
    const key = cache === null ? '' : `${request.path} ${request.body}`;
    const known = cache?.get(key);
    if (known !== undefined) return known;
    const { timeoutMs } = this;
    const endsAt = this.clock.mono() + timeoutMs;
    const connectTimeoutMs = this.options.connectTimeoutMs > 0 ? this.options.connectTimeoutMs : timeoutMs;
    const job = this.gate.run(async (): Promise<Outcome> => {
      // Time in the line counts: who has waited too long is not asked about any more.
      const leftMs = endsAt - this.clock.mono();
      if (leftMs <= 0) return 'source-busy';
      return template.send(request, leftMs, Math.min(connectTimeoutMs, leftMs), this.clock);
    }, asker);
    const outcome = job === null ? 'source-busy' : ((await job) ?? 'dropped');
    // Nobody waits for it any more, or others had less in line: that says nothing about the server.
    if (outcome === 'dropped') return 'source-busy';
    this.note(outcome, template);
    if (outcome === 'allowed' || outcome === 'refused') cache?.set(key, outcome);
    return outcome;
  }

  private note(outcome: Outcome, template: RequestTemplate): void {
    if (outcome === 'source-busy' || outcome === 'source-down') {
      this.down = true;
      this.warn('warn', 'AUTH-SOURCE-DOWN', { source: template.where, reason: template.lastError ?? outcome });
    } else if (this.down) {
      this.down = false;
      this.log('info', 'AUTH-SOURCE-UP', { source: template.where });
    }
  }
}

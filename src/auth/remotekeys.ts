// The public keys of an issuer, fetched by URL: directly, or by way of its discovery document. Made by realms.ts, asked
// by jwt.ts. Keys are kept, fetched again in time and for a key id that is not known; a server that is down is bridged
// for a limited time. Without keys every token is refused. jose picks the key; its own remote set knows neither the
// limits nor the clock of the gateway. Sources: RFC 7517 section 5, RFC 8414 section 3, OpenID Connect Discovery 1.0
// section 4.
import type { JWTVerifyGetKey } from 'jose';
import type { Clock } from '../base/clock.ts';
import { errorText } from '../base/errors.ts';
import { type Log, limitLog } from '../base/log.ts';

export interface RemoteKeyOptions {
  /** The key set; null: discovery by the issuer tells where it is. */
  readonly jwksUrl: string | null;
  readonly issuer: string | null;
  /** Keys older than this are fetched again at the next login. */
  readonly jwksRefreshMs: number;
  /** How long after that they still hold while they cannot be fetched. */
  readonly jwksStaleMs: number;
  /** For one request. */
  readonly jwksTimeoutMs: number;
  /** PEM files; without jwksCacertfile the system's authorities. */
  readonly jwksCacertfile: string | null;
  readonly jwksCertfile: string | null;
  readonly jwksCertkeyfile: string | null;
}

export interface KeyRequest {
  readonly timeoutMs: number;
  readonly maxBytes: number;
  readonly caFile: string | null;
  readonly certFile: string | null;
  readonly certKeyFile: string | null;
  readonly signal: AbortSignal;
}

/** One GET, bounded in time and bytes, without redirects. Rejects with the reason. */
export type FetchKeys = (
  url: string,
  request: KeyRequest,
) => Promise<{ readonly status: number; readonly body: Buffer }>;

export interface RemoteKeyDeps {
  readonly fetch: FetchKeys;
  readonly clock: Clock;
  readonly log: Log;
}

/** There are no keys that may be used: neither a yes nor a no to a token. */
export class KeysUnavailable extends Error {}

/** Some hundred keys; what is larger is no key set. */
const LARGEST_ANSWER_BYTES = 256 * 1024;
/**
 * Key ids that nobody knows may cause this many fetches at once, and one more each period: a stranger makes up any
 * number of ids.
 */
const UNKNOWN_BURST = 3;
const UNKNOWN_PERIOD_MS = 10_000;
/** After a fetch that failed nothing is asked for this long. */
const RETRY_MS = 2000;
const LOG_PERIOD_MS = 10_000;

type Jose = typeof import('jose');

export class RemoteKeys {
  private readonly options: RemoteKeyOptions;
  private readonly deps: RemoteKeyDeps;
  private readonly warn: Log;
  private readonly ended = new AbortController();
  private readonly jose: Jose;
  private keys: JWTVerifyGetKey | null = null;
  private fetchedAtMs = 0;
  private failedAtMs = -RETRY_MS;
  private down = false;
  private pending: Promise<boolean> | null = null;
  private credit = UNKNOWN_BURST;
  private creditAtMs = 0;

  constructor(options: RemoteKeyOptions, deps: RemoteKeyDeps, jose: Jose) {
    this.options = options;
    this.deps = deps;
    this.jose = jose;
    this.warn = limitLog(deps.log, () => deps.clock.mono(), LOG_PERIOD_MS);
  }

  /** The key for a token. Rejects with KeysUnavailable when there are no keys, with jose's error when none fits. */
  readonly find: JWTVerifyGetKey = async (header, token) => {
    let keys = await this.current();
    try {
      return await keys(header, token);
    } catch (error) {
      if (!(error instanceof this.jose.errors.JWKSNoMatchingKey)) throw error;
      // The issuer may have begun to sign with another key.
      if (this.pending === null && !this.mayAskAgain()) throw error;
      if (!(await this.refresh())) throw new KeysUnavailable('the key is not known and keys cannot be fetched');
      keys = this.keys ?? keys;
      return keys(header, token);
    }
  };

  /** Fetches the keys now, or joins the fetch under way. False: it failed or is not yet due again. Never rejects. */
  refresh(): Promise<boolean> {
    if (this.pending !== null) return this.pending;
    if (this.deps.clock.mono() - this.failedAtMs < RETRY_MS) return Promise.resolve(false);
    const fetching = this.fetch().then(
      (keys) => this.took(keys),
      (error: unknown) => this.failed(error),
    );
    this.pending = fetching.finally(() => {
      this.pending = null;
    });
    return this.pending;
  }

  /** Ends a fetch under way, for good. */
  close(): void {
    this.ended.abort();
  }

  private async current(): Promise<JWTVerifyGetKey> {
    const { jwksRefreshMs: refreshMs, jwksStaleMs: staleMs } = this.options;
    const ageMs = this.deps.clock.mono() - this.fetchedAtMs;
    if (this.keys === null || ageMs > refreshMs + staleMs) {
      if (!(await this.refresh()) || this.keys === null) throw new KeysUnavailable('keys cannot be fetched');
    } else if (ageMs > refreshMs) {
      // The known keys serve meanwhile; refresh() reports what fails.
      void this.refresh();
    }
    return this.keys;
  }

  private mayAskAgain(): boolean {
    const now = this.deps.clock.mono();
    const regained = Math.floor((now - this.creditAtMs) / UNKNOWN_PERIOD_MS);
    if (regained > 0) {
      this.credit = Math.min(UNKNOWN_BURST, this.credit + regained);
      this.creditAtMs = now;
    }
    if (this.credit === 0) return false;
    this.credit -= 1;
    return true;
  }

  private took(keys: JWTVerifyGetKey): boolean {
    this.keys = keys;
    this.fetchedAtMs = this.deps.clock.mono();
    this.failedAtMs = -RETRY_MS;
    if (this.down) this.deps.log('info', 'AUTH-SOURCE-UP', { source: 'auth.jwt' });
    this.down = false;
    return true;
  }

  private failed(error: unknown): boolean {
    this.failedAtMs = this.deps.clock.mono();
    if (this.ended.signal.aborted) return false;
    this.down = true;
    this.warn('warn', 'AUTH-SOURCE-DOWN', { source: 'auth.jwt', reason: errorText(error) });
    return false;
  }

  private async fetch(): Promise<JWTVerifyGetKey> {
    const url = this.options.jwksUrl ?? (await this.discover());
    const { keys } = await this.get(url);
    if (!Array.isArray(keys)) throw new Error(`${shown(url)}: not a key set`);
    // Symmetric keys in a set would let whoever reads it sign.
    const usable = keys.filter((key: unknown) => isRecord(key) && typeof key.kty === 'string' && key.kty !== 'oct');
    if (usable.length === 0) throw new Error(`${shown(url)}: no public key in it`);
    return this.jose.createLocalJWKSet({ keys: usable });
  }

  private async discover(): Promise<string> {
    const issuer = this.options.issuer ?? '';
    const at = `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`;
    const document = await this.get(at);
    // Another issuer's document would put another issuer's keys in place.
    if (document.issuer !== issuer) throw new Error(`${shown(at)}: it is the document of another issuer`);
    const uri = document.jwks_uri;
    if (typeof uri !== 'string' || !/^https?:\/\//.test(uri) || !URL.canParse(uri))
      throw new Error(`${shown(at)}: jwks_uri is missing or not a web address`);
    if (at.startsWith('https:') && !uri.startsWith('https:'))
      throw new Error(`${shown(at)}: jwks_uri leaves TLS, keys are not fetched over http`);
    return uri;
  }

  private async get(url: string): Promise<Record<string, unknown>> {
    const { jwksTimeoutMs, jwksCacertfile: caFile, jwksCertfile: certFile, jwksCertkeyfile } = this.options;
    const bounds = { timeoutMs: jwksTimeoutMs, maxBytes: LARGEST_ANSWER_BYTES, signal: this.ended.signal };
    const files = { caFile, certFile, certKeyFile: jwksCertkeyfile };
    try {
      const { status, body } = await this.deps.fetch(url, { ...bounds, ...files });
      if (status !== 200) throw new Error(`status ${status}`);
      const json: unknown = JSON.parse(body.toString('utf8'));
      if (isRecord(json)) return json;
    } catch (error) {
      throw new Error(`${shown(url)}: ${error instanceof SyntaxError ? 'not JSON' : errorText(error)}`);
    }
    throw new Error(`${shown(url)}: not a JSON object`);
  }
}

/** For the log: without user, password and query. */
function shown(url: string): string {
  const { origin, pathname } = new URL(url);
  return `${origin}${pathname}`;
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

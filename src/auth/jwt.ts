// A JSON Web Token in the password field: who the client is and what it may do, signed by somebody the gateway trusts.
// Built by realms.ts, asked by authenticator.ts (is the token good) and authorizer.ts (its acl claim, its expiry).
// `jose` is loaded when tokens are configured. Only configured algorithms that fit the key are taken, never "none".
// Sources: RFC 7519, RFC 8725.
import { createHash, createPublicKey, createSecretKey, type KeyObject } from 'node:crypto';
import type { JWTPayload, JWTVerifyGetKey } from 'jose';
import type { Clock } from '../base/clock.ts';
import { errorText, GatewayError } from '../base/errors.ts';
import { NOT_AUTHORIZED, SERVER_UNAVAILABLE } from '../mqtt/reason.ts';
import type { Explanation } from './aclfile.ts';
import type { Credentials, Identity } from './auth.ts';
import type { Rights } from './realm.ts';
import { KeysUnavailable, type RemoteKeyOptions, type RemoteKeys } from './remotekeys.ts';
import { type Action, type RuleOptions, Rules } from './rules.ts';
import type { Answer, Source } from './source.ts';
import { readTextFile } from './textfile.ts';

export interface JwtOptions {
  /** Shared secret for HS256, HS384, HS512; or null. */
  readonly secret: string | null;
  /** A public key or certificate (PEM), a JWK or a JWK set (JSON); or null. */
  readonly keyfile: string | null;
  /** Keys that are fetched; absent or null: none. */
  readonly remote?: RemoteKeyOptions | null;
  /** Empty = all that fit the key. */
  readonly algorithms: readonly string[];
  readonly issuer: string | null;
  readonly audience: string | null;
  readonly clockToleranceMs: number;
  /** Whether a token without expiry is refused: it would hold for ever, whatever became of its owner. */
  readonly requireExpiry: boolean;
  /** The first of these claims that is there names the user. */
  readonly usernameClaims: readonly string[];
  /** When the token has it, the client id has to be equal. */
  readonly clientIdClaim: string;
  /** { "pub": [filters], "sub": [filters], "all": [filters] }; without it the token limits nothing. */
  readonly aclClaim: string;
}

export const JWT_DEFAULTS: Omit<JwtOptions, 'secret' | 'keyfile'> = {
  algorithms: [],
  issuer: null,
  audience: null,
  clockToleranceMs: 5000,
  requireExpiry: true,
  usernameClaims: ['username', 'sub'],
  clientIdClaim: 'clientid',
  aclClaim: 'acl',
};

/** Far above any token that fits its purpose; verifying costs time in proportion. */
const LONGEST_TOKEN_BYTES = 16 * 1024;
const MOST_TOPICS = 500;
/** RFC 7518 section 3.2: at least as long as the digest. */
const SHORTEST_SECRET_BYTES = 32;
/** Rights are looked at again this often, so that they end with the token. */
export const TOKEN_PERIOD_MS = 5000;
const ACL = 'acl';

const FITTING: ReadonlyMap<string, readonly string[]> = new Map([
  ['secret', ['HS256', 'HS384', 'HS512']],
  ['rsa', ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512']],
  ['rsa-pss', ['PS256', 'PS384', 'PS512']],
  ['ec', ['ES256', 'ES384', 'ES512']],
  ['ed25519', ['EdDSA', 'Ed25519']],
  ['set', ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES256', 'ES384', 'ES512', 'EdDSA', 'Ed25519']],
]);

interface Key {
  readonly kind: string;
  readonly key: KeyObject | JWTVerifyGetKey;
  /** The file it came from. */
  readonly text: string;
}

async function keyOf(options: JwtOptions, jose: typeof import('jose'), remote: RemoteKeys | null): Promise<Key> {
  if (remote !== null) return { kind: 'set', key: remote.find, text: '' };
  if (options.secret !== null) {
    const bytes = Buffer.from(options.secret);
    if (bytes.length < SHORTEST_SECRET_BYTES) {
      throw new GatewayError('AUTH-SOURCE', `auth.jwt.secret: shorter than ${SHORTEST_SECRET_BYTES} bytes`);
    }
    return { kind: 'secret', key: createSecretKey(bytes), text: '' };
  }
  if (options.keyfile === null) throw new GatewayError('AUTH-SOURCE', 'auth.jwt: neither secret nor key file');
  const file = await readTextFile(options.keyfile);
  const text = file.lines.join('\n');
  try {
    if (!text.trimStart().startsWith('{')) return publicKey(createPublicKey(text), text);
    const json: unknown = JSON.parse(text);
    if (isRecord(json) && Array.isArray(json.keys)) {
      // Symmetric keys in a set would let whoever reads it sign.
      const keys = json.keys.filter((key: unknown) => isRecord(key) && key.kty !== 'oct');
      return { kind: 'set', key: jose.createLocalJWKSet({ keys }), text };
    }
    if (isRecord(json)) return publicKey(createPublicKey({ key: json, format: 'jwk' }), text);
  } catch (error) {
    throw new GatewayError('AUTH-SOURCE', `${options.keyfile}: not a public key: ${errorText(error)}`, error);
  }
  throw new GatewayError('AUTH-SOURCE', `${options.keyfile}: not a public key`);
}

/** NumericDate counts seconds, RFC 7519 section 2. */
function toleranceSeconds({ clockToleranceMs }: JwtOptions): number {
  return Math.floor(clockToleranceMs / 1000);
}

function publicKey(key: KeyObject, text: string): Key {
  return { kind: key.asymmetricKeyType ?? 'unknown', key, text };
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function algorithmsFor(options: JwtOptions, kind: string): string[] {
  const fitting = FITTING.get(kind) ?? [];
  const wanted = options.algorithms.length === 0 ? fitting : options.algorithms;
  for (const algorithm of wanted) {
    if (!fitting.includes(algorithm)) {
      throw new GatewayError('AUTH-SOURCE', `auth.jwt.algorithms: ${algorithm} does not fit the key`);
    }
  }
  if (wanted.length === 0) throw new GatewayError('AUTH-SOURCE', 'auth.jwt: no algorithm fits the key');
  return [...wanted];
}

/** Three base64url parts, the first of which is a JSON object: what no other password looks like. */
function tokenOf(password: Uint8Array | null): string | null {
  if (password === null || password.length > LONGEST_TOKEN_BYTES) return null;
  const text = Buffer.from(password).toString('latin1');
  return /^eyJ[A-Za-z0-9_-]*\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*$/.test(text) ? text : null;
}

function refuse(why: string): Answer {
  return { kind: 'refuse', reasonCode: NOT_AUTHORIZED, why };
}

/** The acl claim as rules: what it does not grant is denied. A string says what is wrong. */
function rulesOf(claim: unknown): Rules | string {
  if (!isRecord(claim)) return 'token-acl';
  const rules: RuleOptions[] = [];
  let count = 0;
  for (const [name, action] of [
    ['pub', 'publish'],
    ['sub', 'subscribe'],
    ['all', 'pubsub'],
  ] as const) {
    const topics = claim[name] ?? [];
    if (!Array.isArray(topics) || !topics.every((topic) => typeof topic === 'string')) return 'token-acl';
    count += topics.length;
    if (topics.length > 0) {
      rules.push({ permit: 'allow', action, topics, username: null, clientId: null, ipaddrs: [], and: [], or: [] });
    }
  }
  if (count > MOST_TOPICS) return 'token-acl';
  try {
    return new Rules({ rules, noMatch: 'deny' }, 'token acl');
  } catch {
    return 'token-acl';
  }
}

export class JwtAuth implements Source, Rights {
  private readonly options: JwtOptions;
  private readonly verify: (token: string) => Promise<JWTPayload>;
  private readonly clock: Clock;
  /** The acl claim of a set of claims, prepared. */
  private readonly rules = new WeakMap<ReadonlyMap<string, unknown>, Rules | 'unknown'>();
  /** Another text = tokens are judged otherwise. For comparison only. */
  readonly mark: string;

  private constructor(options: JwtOptions, verify: (token: string) => Promise<JWTPayload>, mark: string, clock: Clock) {
    this.mark = mark;
    this.options = options;
    this.verify = verify;
    this.clock = clock;
  }

  /** Reads the key, or takes the fetched keys; throws AUTH-SOURCE when there is none or nothing fits it. */
  static async load(options: JwtOptions, clock: Clock, remote: RemoteKeys | null = null): Promise<JwtAuth> {
    const jose = await import('jose');
    const { kind, key, text } = await keyOf(options, jose, remote);
    const checks = {
      algorithms: algorithmsFor(options, kind),
      issuer: options.issuer ?? undefined,
      audience: options.audience ?? undefined,
      clockTolerance: toleranceSeconds(options),
    };
    const verify = async (token: string): Promise<JWTPayload> => {
      const at = { ...checks, currentDate: new Date(clock.now()) };
      const result = await (typeof key === 'function'
        ? jose.jwtVerify(token, key, at)
        : jose.jwtVerify(token, key, at));
      return result.payload;
    };
    const mark = createHash('sha256').update(JSON.stringify(options)).update(text).digest('hex');
    return new JwtAuth(options, verify, mark, clock);
  }

  check(credentials: Credentials): Answer | Promise<Answer> {
    const token = tokenOf(credentials.password);
    if (token === null) return { kind: 'unknown' };
    return this.verify(token).then(
      (payload) => this.judge(credentials, payload),
      (error: unknown) => refusal(error),
    );
  }

  private judge(credentials: Credentials, payload: JWTPayload): Answer {
    const { usernameClaims, clientIdClaim, aclClaim, requireExpiry } = this.options;
    if (requireExpiry && payload.exp === undefined) return refuse('token-no-expiry');
    const clientId = Object.hasOwn(payload, clientIdClaim) ? payload[clientIdClaim] : undefined;
    if (clientId !== undefined && clientId !== credentials.clientId) return refuse('token-clientid');
    const claim = usernameClaims.find((name) => Object.hasOwn(payload, name));
    const username = claim === undefined ? null : payload[claim];
    // A name that the token does not vouch for would be a way to another user's rights.
    if (username !== null && (typeof username !== 'string' || username === '')) return refuse('token-username');
    if (credentials.username !== null && credentials.username !== username) return refuse('token-username');
    const claims = new Map<string, unknown>();
    if (Object.hasOwn(payload, aclClaim)) {
      const rules = rulesOf(payload[aclClaim]);
      if (typeof rules === 'string') return refuse(rules);
      claims.set(ACL, payload[aclClaim]);
      this.rules.set(claims, rules);
    }
    const accepted = { kind: 'accept', username, claims, via: 'token' } as const;
    if (payload.exp === undefined) return accepted;
    return { ...accepted, validUntil: (payload.exp + toleranceSeconds(this.options)) * 1000 };
  }

  publish(identity: Identity, topicName: string): boolean {
    return this.may(identity, 'publish', topicName);
  }

  subscribe(identity: Identity, topicFilter: string): boolean {
    return this.may(identity, 'subscribe', topicFilter);
  }

  deliver(identity: Identity, topicName: string): boolean {
    return this.may(identity, 'deliver', topicName);
  }

  explain(identity: Identity, action: Action, topic: string): Explanation | null {
    if (this.expired(identity)) return { allowed: false, rule: 'the token has expired' };
    const rules = this.rulesFor(identity);
    if (rules === 'unknown') return { allowed: false, rule: 'what its token granted is not known' };
    return rules === null ? null : rules.explain(identity, action, topic);
  }

  private may(identity: Identity, action: Action, topic: string): boolean {
    if (this.expired(identity)) return false;
    const rules = this.rulesFor(identity);
    return rules === null || (rules !== 'unknown' && rules.allows(identity, action, topic));
  }

  /** What the token of a client grants; null: it limits nothing, or another source let the client in. */
  private rulesFor(identity: Identity): Rules | 'unknown' | null {
    // Without its token nobody can say what a client of an earlier run may do, unless local users or nobody vouched for
    // it.
    if (identity.partial === true) return 'unknown';
    if (identity.via !== 'token') return null;
    const { claims } = identity;
    if (claims === null) return 'unknown';
    if (!claims.has(ACL)) return null;
    const known = this.rules.get(claims);
    if (known !== undefined) return known;
    // Claims that were stored: read once.
    const made = rulesOf(claims.get(ACL));
    const rules = typeof made === 'string' ? 'unknown' : made;
    this.rules.set(claims, rules);
    return rules;
  }

  private expired({ validUntil }: Identity): boolean {
    return validUntil !== undefined && validUntil <= this.clock.now();
  }
}

function refusal(error: unknown): Answer {
  if (!(error instanceof KeysUnavailable)) return refuse(isExpired(error) ? 'token-expired' : 'token-invalid');
  return { kind: 'refuse', reasonCode: SERVER_UNAVAILABLE, why: 'token-keys-unavailable' };
}

function isExpired(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ERR_JWT_EXPIRED';
}

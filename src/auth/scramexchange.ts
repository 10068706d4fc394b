// One SCRAM-SHA-256 conversation after the other: the server's half of RFC 5802 on top of the stored keys of scram.ts.
// Made by realms.ts, begun by session/ at CONNECT or re-authentication. Nothing is thrown: a message that breaks the
// grammar, an unknown user and a wrong proof all end in the same refusal, the last two after the same number of steps.
//   client-first  n,,n=<user>,r=<nonce>            server-first  r=<nonce><ours>,s=<salt>,i=<iterations>
//   client-final  c=<header>,r=<nonce>,p=<proof>   server-final  v=<signature>
import { createHash, createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import { boundedKey } from '../base/brief.ts';
import { NOT_AUTHORIZED, SERVER_BUSY } from '../mqtt/reason.ts';
import type { Credentials, EnhancedExchange, EnhancedMethod, EnhancedStep } from './auth.ts';
import type { Gate } from './gate.ts';
import type { FailureLimits } from './limits.ts';
import { DEFAULT_SCRAM_ITERATIONS, deriveScram, METHOD, type ScramKeys } from './scram.ts';

/** Far above what the longest name and nonce of a sane client take. */
const LONGEST_MESSAGE_BYTES = 4096;
const NONCE_BYTES = 18;
const SALT_BYTES = 16;
/** Derived keys that are kept, so that a user pays for the derivation once. */
const KEPT = 10_000;

export interface ScramUsers {
  /** Stored keys of a file. */
  readonly stored: ReadonlyMap<string, ScramKeys> | null;
  /** Passwords of the configuration: keys are derived at first use. */
  readonly passwords: ReadonlyMap<string, string> | null;
}

interface ClientFirst {
  readonly header: string;
  readonly bare: string;
  readonly username: string;
  readonly nonce: string;
}

/** `=2C` is a comma and `=3D` an equals sign; anything else behind = is wrong (RFC 5802 section 5.1). */
function unescapeName(text: string): string | null {
  if (/=(?!2C|3D)/.test(text)) return null;
  return text.replaceAll('=2C', ',').replaceAll('=3D', '=');
}

function parseFirst(message: string): ClientFirst | null {
  const parts = /^([ny]),(?:a=([^,]+))?,(n=([^,]+),r=([\x21-\x2b\x2d-\x7e]+)(?:,.*)?)$/.exec(message);
  if (parts === null) return null;
  const username = unescapeName(parts[4]);
  const authorised = parts[2] === undefined ? username : unescapeName(parts[2]);
  // Acting for somebody else is not offered.
  if (username === null || username === '' || authorised !== username) return null;
  return { header: message.slice(0, message.length - parts[3].length), bare: parts[3], username, nonce: parts[5] };
}

interface ClientFinal {
  readonly withoutProof: string;
  readonly binding: string;
  readonly nonce: string;
  readonly proof: Buffer;
}

function parseFinal(message: string): ClientFinal | null {
  const parts = /^(c=([A-Za-z0-9+/=]+),r=([\x21-\x2b\x2d-\x7e]+)(?:,[a-zA-Z]=[^,]*)*),p=([A-Za-z0-9+/]{43}=)$/.exec(
    message,
  );
  if (parts === null) return null;
  return { withoutProof: parts[1], binding: parts[2], nonce: parts[3], proof: Buffer.from(parts[4], 'base64') };
}

function hmac(key: Uint8Array, text: string): Buffer {
  return createHmac('sha256', key).update(text).digest();
}

function proves(keys: ScramKeys, authMessage: string, proof: Buffer): boolean {
  const signature = hmac(keys.storedKey, authMessage);
  const clientKey = Buffer.alloc(proof.length);
  for (let i = 0; i < proof.length; i++) clientKey[i] = proof[i] ^ signature[i];
  return timingSafeEqual(createHash('sha256').update(clientKey).digest(), keys.storedKey);
}

function refuse(why: string, reasonCode = NOT_AUTHORIZED): EnhancedStep {
  return { kind: 'refuse', reasonCode, why };
}

export interface ScramTools {
  readonly gate: Gate;
  readonly limits: FailureLimits;
  /** The same over reloads and restarts, else one would tell which names are made up. */
  readonly scramSecret: Buffer;
  /** What identifies the password of a user of a listener now, null for nobody. */
  readonly markNow: (listener: string, username: string) => string | null;
}

export class ScramMethod implements EnhancedMethod {
  readonly name = METHOD;
  readonly tools: ScramTools;
  private readonly users: ScramUsers;
  private readonly derived = new Map<string, Promise<ScramKeys | null>>();
  /** What most users have: a made-up name has it too. */
  private readonly usual: { readonly iterations: number; readonly saltBytes: number };

  constructor(users: ScramUsers, tools: ScramTools) {
    this.users = users;
    this.tools = tools;
    this.usual = usualOf(users);
  }

  begin(credentials: Credentials): EnhancedExchange {
    return new ScramExchange(this, credentials);
  }

  knows(username: string): boolean {
    return this.users.stored?.has(username) === true || this.users.passwords?.has(username) === true;
  }

  /**
   * The keys of a user, or made-up ones that nothing proves; null when too many derivations wait. @param address whose
   * line it waits in
   */
  keys(username: string, address: string): ScramKeys | Promise<ScramKeys | null> | null {
    const stored = this.users.stored?.get(username);
    if (stored !== undefined) return stored;
    const configured = this.users.passwords?.get(username);
    const { iterations, saltBytes } =
      configured === undefined ? this.usual : { iterations: DEFAULT_SCRAM_ITERATIONS, saltBytes: SALT_BYTES };
    const salt = hmac(this.tools.scramSecret, username).subarray(0, saltBytes);
    if (this.users.passwords === null) {
      const keys = { iterations, salt, text: '' };
      return { ...keys, storedKey: randomBytes(32), serverKey: randomBytes(32) };
    }
    const key = boundedKey(username);
    const known = this.derived.get(key);
    if (known !== undefined) return known;
    const password = configured ?? randomBytes(32).toString('base64');
    const made = this.tools.gate.run(() => deriveScram(password, salt, iterations), { key: address });
    if (made === null) return null;
    if (this.derived.size >= KEPT) this.derived.clear();
    this.derived.set(key, made);
    // One that had to make room for others is derived when it is asked for again.
    void made.then(
      (keys) => keys === null && this.derived.delete(key),
      () => this.derived.delete(key),
    );
    return made;
  }
}

/** Iterations and length of salt that most users have; of equals the first. */
function usualOf({ stored, passwords }: ScramUsers): { iterations: number; saltBytes: number } {
  const plain = { iterations: DEFAULT_SCRAM_ITERATIONS, saltBytes: SALT_BYTES };
  const counts = new Map<string, { count: number; form: typeof plain }>();
  const add = (form: typeof plain, count: number): void => {
    const key = `${form.iterations} ${form.saltBytes}`;
    const known = counts.get(key);
    if (known === undefined) counts.set(key, { count, form });
    else known.count += count;
  };
  if (passwords !== null && passwords.size > 0) add(plain, passwords.size);
  for (const { iterations, salt } of stored?.values() ?? [])
    add({ iterations, saltBytes: Math.min(salt.length, 32) }, 1);
  let most = 0;
  let usual = plain;
  for (const { count, form } of counts.values()) {
    if (count <= most) continue;
    most = count;
    usual = form;
  }
  return usual;
}

class ScramExchange implements EnhancedExchange {
  private readonly method: ScramMethod;
  private readonly credentials: Credentials;
  private state: 'first' | 'final' | 'done' = 'first';
  private first: ClientFirst | null = null;
  private keys: ScramKeys | null = null;
  private nonce = '';
  private serverFirst = '';
  /** Of the user's password when the conversation began. */
  private mark: string | null = null;

  constructor(method: ScramMethod, credentials: Credentials) {
    this.method = method;
    this.credentials = credentials;
  }

  step(data: Uint8Array | null): EnhancedStep | Promise<EnhancedStep> {
    if (data === null || data.length === 0) {
      // A client may ask with an empty first message (RFC 4422 section 5): it is told to go on.
      return this.state === 'first' ? { kind: 'continue', data: null } : this.fail('scram-message');
    }
    if (data.length > LONGEST_MESSAGE_BYTES) return this.fail('scram-message');
    let message: string;
    try {
      message = new TextDecoder('utf-8', { fatal: true }).decode(data);
    } catch {
      return this.fail('scram-message');
    }
    if (this.state === 'first') return this.clientFirst(message);
    return this.state === 'final' ? this.clientFinal(message) : this.fail('scram-message');
  }

  private fail(why: string, reasonCode?: number): EnhancedStep {
    this.state = 'done';
    return refuse(why, reasonCode);
  }

  private clientFirst(message: string): EnhancedStep | Promise<EnhancedStep> {
    const first = parseFirst(message);
    if (first === null) return this.fail('scram-message');
    const { username } = this.credentials;
    if (username !== null && username !== '' && username !== first.username) return this.fail('scram-user');
    if (this.method.tools.limits.locked(this.credentials.remoteAddress, first.username)) return this.fail('locked');
    this.mark = this.method.tools.markNow(this.credentials.listener, first.username);
    const keys = this.method.keys(first.username, this.credentials.remoteAddress);
    if (keys === null) return this.fail('busy', SERVER_BUSY);
    this.first = first;
    if (!(keys instanceof Promise)) return this.challenge(first, keys);
    return keys.then(
      (derived) => (derived === null ? this.fail('busy', SERVER_BUSY) : this.challenge(first, derived)),
      () => this.fail('hash-error'),
    );
  }

  private challenge(first: ClientFirst, keys: ScramKeys): EnhancedStep {
    this.keys = keys;
    this.nonce = first.nonce + randomBytes(NONCE_BYTES).toString('base64');
    this.serverFirst = `r=${this.nonce},s=${keys.salt.toString('base64')},i=${keys.iterations}`;
    this.state = 'final';
    return { kind: 'continue', data: Buffer.from(this.serverFirst) };
  }

  private clientFinal(message: string): EnhancedStep {
    this.state = 'done';
    const { first, keys, method } = this;
    const final = parseFinal(message);
    if (first === null || keys === null || final === null) return refuse('scram-message');
    const bound = Buffer.from(final.binding, 'base64').toString('utf8') === first.header;
    if (!bound || final.nonce !== this.nonce) return refuse('scram-message');
    const authMessage = `${first.bare},${this.serverFirst},${final.withoutProof}`;
    const proven = proves(keys, authMessage, final.proof) && method.knows(first.username);
    const { remoteAddress, listener } = this.credentials;
    const { limits, markNow } = method.tools;
    if (!proven) {
      limits.failed(remoteAddress, first.username);
      return refuse(method.knows(first.username) ? 'bad-password' : 'unknown-user');
    }
    // Users were reloaded meanwhile: what holds now decides.
    if (this.mark === null || markNow(listener, first.username) !== this.mark) return refuse('changed');
    limits.passed(remoteAddress, first.username);
    const data = Buffer.from(`v=${hmac(keys.serverKey, authMessage).toString('base64')}`);
    return { kind: 'accept', data, username: first.username };
  }
}

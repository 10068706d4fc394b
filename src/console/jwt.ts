// Bearer tokens for http_server.auth_type = jwt: signed by somebody else, checked here with a public key. Called by
// access.ts. The library is loaded at the first token. Only asymmetric algorithms: a public key must never serve as a
// shared secret (RFC 8725 3.1). Source: RFC 7519. A token needs `exp`; its role is the claim `role`, viewer when it has
// none.
import { createPublicKey, type KeyObject } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import type { Clock } from '../base/clock.ts';
import { GatewayError } from '../base/errors.ts';
import type { JwtSettings, Role } from './console.ts';
import { ROLES } from './console.ts';

/** Clocks of issuer and gateway may differ by this many seconds. */
const TOLERANCE_SECONDS = 30;
/** RFC 7518 and 8037: signatures with a public key. */
const ALGORITHMS = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES256', 'ES384', 'ES512', 'EdDSA'];

export interface TokenOwner {
  readonly username: string;
  readonly role: Role;
  /** How long the token still holds, in milliseconds. */
  readonly lifeMs: number;
}

export class TokenChecker {
  private readonly clock: Clock;
  private keyFile: string | null = null;
  private key: Promise<KeyObject> | null = null;

  constructor(clock: Clock) {
    this.clock = clock;
  }

  /** Reads the key now, so that a wrong file is known at the start. Throws GatewayError AUTH-SOURCE. */
  async prepare(settings: JwtSettings): Promise<void> {
    await this.keyOf(settings.publicKeyFile);
  }

  /** Drops the key, so that the next token reads the file again. */
  reload(): void {
    this.key = null;
  }

  /** Whose token it is, or null when it is not valid. */
  async check(token: string, settings: JwtSettings): Promise<TokenOwner | null> {
    const { jwtVerify } = await import('jose');
    try {
      const { payload } = await jwtVerify(token, await this.keyOf(settings.publicKeyFile), {
        algorithms: ALGORITHMS,
        clockTolerance: TOLERANCE_SECONDS,
        currentDate: new Date(this.clock.now()),
        requiredClaims: ['exp'],
        ...(settings.issuer === null ? {} : { issuer: settings.issuer }),
        ...(settings.audience === null ? {} : { audience: settings.audience }),
      });
      // A role that is not ours is a mistake of the issuer, not a viewer.
      const role = payload.role === undefined ? 'viewer' : ROLES.find((known) => known === payload.role);
      const lifeMs = Math.max(0, (payload.exp ?? 0) * 1000 - this.clock.now());
      return role === undefined ? null : { username: payload.sub ?? 'token', role, lifeMs };
    } catch {
      return null;
    }
  }

  private keyOf(file: string): Promise<KeyObject> {
    if (this.key === null || this.keyFile !== file) {
      this.keyFile = file;
      const key = readKey(file);
      this.key = key;
      // A file that cannot be read is tried again with the next token.
      key.catch(() => {
        if (this.key === key) this.key = null;
      });
    }
    return this.key;
  }
}

async function readKey(file: string): Promise<KeyObject> {
  try {
    return createPublicKey(await readFile(file));
  } catch (error) {
    throw new GatewayError('AUTH-SOURCE', `http_server.jwt.public.keyfile ${file}`, error);
  }
}

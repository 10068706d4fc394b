// What the tests of auth/ share: credentials, identities, hashes of known passwords, options with everything off.
import { createHash, pbkdf2Sync } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { AuthResult, Credentials, Identity } from '../../src/auth/auth.ts';
import { AccessControl } from '../../src/auth/chain.ts';
import type { AuthOptions } from '../../src/auth/options.ts';
import type { AuthDeps } from '../../src/auth/realms.ts';
import { type TextFile, textFile } from '../../src/auth/textfile.ts';
import { systemClock } from '../../src/base/clock.ts';
import { nullLog } from '../../src/base/log.ts';
import { Metrics } from '../../src/base/metrics.ts';

export function credentials(
  username: string | null,
  password: string | Uint8Array | null,
  more: Partial<Credentials> = {},
): Credentials {
  return {
    clientId: 'c',
    username,
    password: typeof password === 'string' ? Buffer.from(password) : password,
    remoteAddress: '127.0.0.1',
    listener: 'tcp',
    tls: null,
    version: 4,
    ...more,
  };
}

export function identity(username: string | null, more: Partial<Identity> = {}): Identity {
  return {
    clientId: 'c',
    username,
    remoteAddress: '127.0.0.1',
    listener: 'tcp',
    claims: null,
    internal: false,
    ...more,
  };
}

function saltOf(bytes: number): Buffer {
  return Buffer.alloc(bytes, 'salt');
}

/** `user:$6$...` */
export function line6(user: string, password: string | Uint8Array, saltBytes = 12): string {
  const salt = saltOf(saltBytes);
  const digest = createHash('sha512').update(password).update(salt).digest('base64');
  return `${user}:$6$${salt.toString('base64')}$${digest}`;
}

/** `user:$7$...` */
export function line7(user: string, password: string | Uint8Array, iterations = 101, saltBytes = 12): string {
  const salt = saltOf(saltBytes);
  const digest = pbkdf2Sync(password, salt, iterations, 64, 'sha512').toString('base64');
  return `${user}:$7$${iterations}$${salt.toString('base64')}$${digest}`;
}

export function fileOf(text: string | Uint8Array, path = '/etc/file'): TextFile {
  return textFile(path, Buffer.from(text), 0o600);
}

export const OFF: AuthOptions = {
  allowAnonymous: false,
  passwordFile: null,
  aclFile: null,
  aclSubscribe: 'mosquitto',
  passwords: null,
  scramFile: null,
  jwt: null,
  http: null,
  rules: null,
  denyAction: 'ignore',
  limits: null,
  listeners: new Map(),
};

export function deps(more: Partial<AuthDeps> = {}): AuthDeps {
  return { log: nullLog, metrics: new Metrics(), clock: systemClock, ...more };
}

export function build(options: Partial<AuthOptions>, more: Partial<AuthDeps> = {}): Promise<AccessControl> {
  return AccessControl.build({ ...OFF, ...options }, deps(more));
}

/** 'ok', or why it was refused. */
export async function word(result: AuthResult | Promise<AuthResult>): Promise<string> {
  const settled = await result;
  return settled.accepted ? 'ok' : settled.why;
}

/** A folder that is removed by done(). */
export class Folder {
  readonly path = mkdtempSync(join(tmpdir(), 'auth-'));

  /** Writes a file and gives its path. */
  put(name: string, text: string | Uint8Array, mode = 0o600): string {
    const path = join(this.path, name);
    writeFileSync(path, text, { mode });
    return path;
  }

  at(name: string): string {
    return join(this.path, name);
  }

  done(): void {
    rmSync(this.path, { recursive: true, force: true });
  }
}

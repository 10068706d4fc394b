// The effective configuration of auth, as config.ts hands it out. Made by config/build/auth.ts; gateway/options.ts
// gives it to auth/ as it is. Types alone. Keys, their types and texts stand in config/schema/auth.ts; here is only
// what is not a key, and what several keys make together.
import type { Position } from './problem.ts';
import type { AUTH, REMOTE_KEYS } from './schema/auth.ts';
import type { Effective } from './schema/effective.ts';
import type { Checked, ValueOf } from './schema/key.ts';

type AuthKeys = Effective<ValueOf<typeof AUTH>>;
type AclKeys = NonNullable<AuthKeys['acl']>['rules'][number];
type JwtKeys = NonNullable<AuthKeys['jwt']>;
type RemoteKeys = Effective<Checked<typeof REMOTE_KEYS>>;

/** Who an ACL rule is about: every field that is set has to fit. `ipaddr` is one of ipaddrs. */
export type AclWho = Omit<AclKeys['and'][number], 'ipaddr'>;

/** One rule of auth.acl.rules; the first one that fits decides. */
export type AclRule = AclWho &
  Omit<AclKeys, 'ipaddr' | 'and' | 'or'> & {
    /** All of these have to fit too; empty = nothing more. */
    readonly and: readonly AclWho[];
    /** One of these has to fit too; empty = nothing more. */
    readonly or: readonly AclWho[];
    readonly source: Position;
  };

export type HttpAuthConfig = NonNullable<AuthKeys['httpAuth']>;

/** Keys of tokens that are fetched: from jwksUrl, or from where the issuer's discovery document says. */
export type RemoteKeysConfig = Omit<RemoteKeys, 'issuerDiscovery'> & Pick<JwtKeys, 'issuer'>;

/** Exactly one of secret, keyfile and remote is given. */
export type JwtConfig = JwtKeys & { readonly remote: RemoteKeysConfig | null };

/** The blocks are null when absent or not enabled. */
export type AuthConfig = Omit<AuthKeys, 'allowAnonymous' | 'password' | 'acl' | 'jwt'> & {
  /** Effective, for listeners that say nothing themselves. */
  readonly allowAnonymous: boolean;
  /** auth.password, in file order. */
  readonly users: readonly { readonly username: string; readonly password: string }[];
  /** auth.acl.rules; noMatch has no meaning without. */
  readonly acl: readonly AclRule[] | null;
  readonly jwt: JwtConfig | null;
};

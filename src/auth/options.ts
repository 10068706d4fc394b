// What auth/ is built from, as plain data: gateway/options.ts makes it of the configuration, chain.ts builds from it.
// Secrets are in clear here and are never shown.
import type { DenyAction } from './auth.ts';
import type { CertificateField } from './certificate.ts';
import type { HttpAuthOptions } from './http.ts';
import type { JwtOptions } from './jwt.ts';
import type { LimitOptions } from './limits.ts';
import type { RulesOptions } from './rules.ts';

/** Settings of one listener; what is null or absent is taken from the global ones. */
export interface ListenerAuthOptions {
  readonly allowAnonymous?: boolean | null;
  /** The listener's own users: with it, no other source of users is asked on this listener. */
  readonly passwordFile?: string | null;
  /** Instead of the global ACL file and acl.rules. */
  readonly aclFile?: string | null;
  /** The user name comes from the client certificate, credentials of the CONNECT are left aside. */
  readonly identity?: CertificateField | null;
  /** The file of the authorities that sign those certificates: listeners with the same one have the same users. */
  readonly authority?: string | null;
}

export interface AuthOptions {
  /** For listeners that say nothing themselves and for clients inside the process. */
  readonly allowAnonymous: boolean;
  readonly passwordFile: string | null;
  readonly aclFile: string | null;
  /**
   * mosquitto: an ACL file grants every SUBSCRIBE and filters deliveries; truthful: it refuses what cannot deliver.
   */
  readonly aclSubscribe: 'mosquitto' | 'truthful';
  /** auth.password; null without the block. */
  readonly passwords: ReadonlyMap<string, string> | null;
  /** Users with stored SCRAM-SHA-256 keys; null without. */
  readonly scramFile?: string | null;
  /** The file of users, groups and roles that are managed at run time; null or absent: there are none. */
  readonly accountsFile?: string | null;
  /** Whether clients with the right to do so may manage them over MQTT ($CONTROL/dynamic-security/v1). */
  readonly accountsControl?: boolean;
  readonly jwt?: JwtOptions | null;
  readonly http?: HttpAuthOptions | null;
  /** acl.rules and no_match; null when the configuration has neither. */
  readonly rules: RulesOptions | null;
  readonly denyAction: DenyAction;
  /** Against guessing; null = none. */
  readonly limits: LimitOptions | null;
  readonly listeners: ReadonlyMap<string, ListenerAuthOptions>;
}

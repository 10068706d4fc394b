// The effective configuration of the CONNECT-aware proxy: proxy.<name>, its routes and filters, and upstreams.<name>.
// Made by config/build/proxy.ts; read by the wiring (gateway/options.ts), which gives it to proxy/. Types alone. Keys,
// their types and texts stand in config/schema/proxy.ts; here is only what is not a key: names, and what several keys
// make together.
import type { AddressTest } from '../base/networks.ts';
import type { TlsClientConfig, TlsNameConfig, TlsServerConfig } from './listeners.ts';
import type { Position } from './problem.ts';
import type { Effective } from './schema/effective.ts';
import type { Checked, ValueOf } from './schema/key.ts';
import type { TLS_SESSIONS } from './schema/listeners.ts';
import type { RouteCondition } from './schema/match.ts';
import type { PROXY } from './schema/proxy.ts';
import type { UPSTREAMS } from './schema/upstreams.ts';

type ProxyKeys = Effective<ValueOf<typeof PROXY.item>>;
type UpstreamKeys = Effective<ValueOf<typeof UPSTREAMS.item>>;

/** Where something was written. */
interface Placed {
  readonly source: Position;
}

/** A share of the clients; shares of a list follow each other. */
export type ShareConfig = ProxyKeys['split'][number];
export type ProxyFilterConfig = ProxyKeys['filter'];

export type RouteConfig = Omit<ProxyKeys['routes'][number], 'match'> &
  Placed & {
    /** All have to fit. */
    readonly match: readonly RouteCondition[];
  };

export interface MapEntry {
  /** A text, "*.suffix" or "prefix.*"; patterns without their marks. */
  readonly key: string;
  /** null for texts and masks. */
  readonly pattern: RegExp | null;
  /** Of a key that is a network; null for all others. */
  readonly network: { readonly bits: number; readonly has: AddressTest } | null;
  readonly upstream: string;
}

/** Its values are in the order of the file. */
export type ProxyMapConfig = Omit<NonNullable<ProxyKeys['map']>, 'values'> & { readonly values: readonly MapEntry[] };

export type ProxyConfig = Omit<
  ProxyKeys,
  'tls' | 'websocket' | 'routes' | 'map' | 'deny' | 'allow' | 'filter' | 'inspect'
> &
  Placed & {
    readonly name: string;
    readonly host: string;
    readonly port: number;
    /** Addresses besides the first. */
    readonly otherBinds: readonly { readonly host: string; readonly port: number }[];
    readonly tls: (TlsServerConfig & Partial<Effective<Checked<typeof TLS_SESSIONS>>>) | null;
    readonly tlsNames: readonly TlsNameConfig[];
    readonly useIdentityAsUsername: boolean;
    /** null = no WebSocket. */
    readonly web: {
      /** null = any. */
      readonly paths: readonly string[] | null;
      /** null = any. */
      readonly origins: readonly string[] | null;
      readonly maxMessageBytes: number;
    } | null;
    readonly routes: readonly RouteConfig[];
    readonly map: ProxyMapConfig | null;
    /** Each a list of conditions that all have to fit. */
    readonly deny: readonly (readonly RouteCondition[])[];
    readonly allow: readonly (readonly RouteCondition[])[];
    /** Set with inspect = true. */
    readonly filter: ProxyFilterConfig | null;
  };

/** addr is as written: it is hashed in this form. */
export type UpstreamServer = UpstreamKeys['servers'][number] &
  Placed & {
    readonly host: string;
    readonly port: number;
    /** Path of a Unix socket (addr "unix:/path"), else null. */
    readonly path: string | null;
  };

type Discovery = Omit<NonNullable<UpstreamKeys['discover']>, 'tls'> & { readonly tls: TlsClientConfig | null };

export type UpstreamConfig = Omit<UpstreamKeys, 'servers' | 'discover' | 'tls'> &
  Placed & {
    readonly name: string;
    readonly servers: readonly UpstreamServer[];
    readonly discover: Discovery | null;
    readonly tls: TlsClientConfig | null;
  };

// The effective configuration of the CONNECT-aware proxy: proxy.<name>, its routes and filters, and upstreams.<name>.
// Filled in by config/build/proxy.ts; read by the wiring (gateway/options.ts), which gives it to proxy/. Types alone.
// The same words hold as in config.ts: sizes are bytes, times milliseconds. Source: config/schema/proxy.ts, which names every key.
import type { TlsClientConfig, TlsNameConfig, TlsServerConfig } from './config.ts';
import type { Position } from './problem.ts';

export type MatchField = 'clientid' | 'username' | 'version' | 'sni' | 'listener' | 'remote_addr' | 'cert_cn';
export type MatchOp = '==' | '!=' | '=~' | '!~' | '=~*' | '!~*';

export interface RouteCondition {
  readonly field: MatchField;
  readonly op: MatchOp;
  /** The text to compare, or the pattern without its marks. */
  readonly value: string;
  /** Compiled for the linear engine, case already cared for; null for == and !=. */
  readonly pattern: RegExp | null;
}

/** A share of the clients; shares of a list follow each other. */
export interface ShareConfig {
  /** Hundredths of a percent; -1 = all that are left. */
  readonly percent: number;
  readonly upstream: string;
}

export interface RouteConfig {
  /** All have to fit. */
  readonly match: readonly RouteCondition[];
  /** Name of an upstream, or "local"; null where `split` decides. */
  readonly upstream: string | null;
  readonly split: readonly ShareConfig[];
  readonly source: Position;
}

export interface MapEntry {
  /** A text, "*.suffix" or "prefix.*"; patterns without their marks. */
  readonly key: string;
  /** null for texts and masks. */
  readonly pattern: RegExp | null;
  readonly upstream: string;
}

export interface ProxyMapConfig {
  readonly source: string;
  readonly ignoreCase: boolean;
  readonly hostnames: boolean;
  /** In the order of the file. */
  readonly values: readonly MapEntry[];
  readonly default: string | null;
}

export interface ProxyFilterConfig {
  readonly prefix: string;
  readonly publish: { readonly allow: readonly string[]; readonly deny: readonly string[] };
  readonly subscribe: { readonly allow: readonly string[]; readonly deny: readonly string[] };
  readonly denied: 'ignore' | 'disconnect';
  /** 0 = no limit. */
  readonly messagesPerSecond: number;
  readonly userProperties: readonly (readonly [string, string])[];
}

/** undefined = leave the field, null = remove it, text = a template with ${...}. */
export interface ProxySet {
  readonly clientId: string | null | undefined;
  readonly username: string | null | undefined;
  readonly password: string | null | undefined;
}

export interface ProxyConfig {
  readonly name: string;
  readonly enable: boolean;
  readonly bind: string;
  readonly host: string;
  readonly port: number;
  readonly protocol: 'tcp' | 'udp';
  readonly udpTimeoutMs: number;
  readonly tls: TlsServerConfig | null;
  readonly tlsNames: readonly TlsNameConfig[];
  readonly useIdentityAsUsername: boolean;
  readonly proxyProtocol: boolean;
  /** Addresses and networks whose header is believed; empty = any. */
  readonly proxyProtocolFrom: readonly string[];
  readonly preread: boolean;
  readonly nonMqtt: 'close' | 'pass';
  readonly prereadMaxBytes: number;
  readonly prereadTimeoutMs: number;
  readonly connectTimeoutMs: number;
  /** null = auto: 1.5 x keep alive + 10 s; 0 = never. */
  readonly idleTimeoutMs: number | null;
  readonly halfClose: boolean;
  /** 0 = no limit, for both. */
  readonly nextUpstream: { readonly tries: number; readonly timeoutMs: number };
  readonly reject: 'close' | 'connack';
  readonly set: ProxySet;
  readonly routes: readonly RouteConfig[];
  readonly map: ProxyMapConfig | null;
  readonly split: readonly ShareConfig[];
  readonly splitKey: string;
  /** Name of an upstream, "local", or null: what no route takes is refused. */
  readonly default: string | null;
  readonly maxConnections: number;
  readonly limitConn: { readonly perIp: number; readonly perClientId: number; readonly perUsername: number };
  /** Connects allowed a second, 0 = no limit. */
  readonly limitRate: { readonly connectsPerSecond: number };
  /** Each a list of conditions that all have to fit. */
  readonly deny: readonly (readonly RouteCondition[])[];
  readonly allow: readonly (readonly RouteCondition[])[];
  /** Set with inspect = true. */
  readonly filter: ProxyFilterConfig | null;
  readonly accessLog: {
    readonly file: string;
    readonly format: 'text' | 'json';
    readonly rotation: { readonly size: number; readonly count: number };
  } | null;
  readonly source: Position;
}

export interface UpstreamServer {
  /** As written: it is hashed in this form. */
  readonly addr: string;
  readonly host: string;
  readonly port: number;
  /** Path of a Unix socket (addr "unix:/path"), else null. */
  readonly path: string | null;
  readonly weight: number;
  readonly backup: boolean;
  readonly down: boolean;
  /** 0 = failures never count. */
  readonly maxFails: number;
  readonly failTimeoutMs: number;
  readonly maxConns: number;
  readonly source: Position;
}

export interface DiscoveryConfig {
  readonly type: 'dns' | 'srv' | 'file' | 'http' | 'consul';
  readonly name: string;
  readonly port: number;
  readonly resolver: string | null;
  readonly path: string;
  readonly url: string;
  readonly token: string | null;
  readonly tag: string | null;
  readonly datacenter: string | null;
  readonly tls: TlsClientConfig | null;
  readonly weightLabel: string;
  readonly refreshMs: number;
  readonly timeoutMs: number;
}

export interface UpstreamConfig {
  readonly name: string;
  readonly balance: 'round_robin' | 'least_conn' | 'ip_hash' | 'hash' | 'consistent_hash' | 'random';
  readonly hashKey: string;
  readonly servers: readonly UpstreamServer[];
  readonly discover: DiscoveryConfig | null;
  readonly health: {
    readonly type: 'tcp' | 'mqtt';
    readonly intervalMs: number;
    readonly timeoutMs: number;
    readonly fails: number;
    readonly passes: number;
    readonly anyConnack: boolean;
    readonly username: string | null;
    readonly password: string | null;
  } | null;
  readonly tls: TlsClientConfig | null;
  readonly slowStartMs: number;
  readonly dnsRefreshMs: number;
  readonly sendProxyProtocol: 'off' | 'v1' | 'v2';
  readonly source: Position;
}

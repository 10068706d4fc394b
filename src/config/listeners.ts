// The effective configuration of listeners and of TLS, as config.ts hands it out. Made by config/build/listeners.ts and
// build/values.ts; read by the wiring (gateway/listeners.ts, gateway/transports.ts). Types alone. Keys, their types and
// texts stand in config/schema/listeners.ts; here is only what is not a key, and what several keys make together.
import type { Position } from './problem.ts';
import type { Effective } from './schema/effective.ts';
import type { Checked, ValueOf } from './schema/key.ts';
import type { CERTIFICATES, LISTENER, LISTENERS, TLS_CLIENT, TLS_SERVER } from './schema/listeners.ts';

/** Without the kinds that are known and not supported. */
export type ListenerKind = Exclude<keyof ValueOf<typeof LISTENERS>, 'quic'>;

export type TlsVersion = 'TLSv1.2' | 'TLSv1.3';

/** Server side of TLS: takes the place of transport's TlsServerOptions. */
export type TlsServerConfig = Omit<Effective<Checked<typeof TLS_SERVER>>, 'keyfile' | 'certfile' | 'minVersion'> & {
  readonly minVersion: TlsVersion;
  readonly keyfile: string;
  readonly certfile: string;
  /** Keys instead of certificates; keyfile and certfile are "" then. */
  readonly psk?: { readonly file: string; readonly hint: string | null } | null;
};
/** Client side of TLS: takes the place of transport's TlsClientOptions. */
export type TlsClientConfig = Omit<Effective<Checked<typeof TLS_CLIENT>>, 'minVersion'> & {
  readonly minVersion: TlsVersion;
  /** A key in hexadecimal instead of certificates. */
  readonly psk?: string | null;
  readonly pskIdentity?: string | null;
};

type CertificateKeys = Effective<Checked<typeof CERTIFICATES>>['certificates'][number];
/** Certificate for one server name: of a listener or a proxy that has more than one. */
export type TlsNameConfig = Omit<CertificateKeys, 'serverName'> & { readonly name: string };

/** Where a listener is open, and how it speaks. */
interface Place {
  /** "tcp" for listeners.tcp, "tcp.second" for listeners.tcp.second. */
  readonly name: string;
  readonly kind: ListenerKind;
  /** As written, "127.0.0.1:1883", "127.0.0.1:8083/mqtt"; the path for unix. */
  readonly bind: string;
  /** Without brackets; "" for unix; "*" for IPv4 and IPv6. */
  readonly host: string;
  readonly ipv6Only: boolean;
  /** 0 = any free port; 0 for unix. */
  readonly port: number;
  /** The URL path of ws and wss, the socket path of unix, else "". */
  readonly path: string;
  /** Paths that ws and wss take, null = any. */
  readonly paths: readonly string[] | null;
  /** Octal text such as "0660", unix only. */
  readonly mode: string | null;
  readonly group: string | null;
  /** Addresses and networks whose header is believed; empty = any. */
  readonly proxyProtocolFrom: readonly string[];
  /** The PROXY header must describe a verified certificate of the client. */
  readonly proxyCertificate: boolean;
  /** Set for ssl and wss. */
  readonly tls: TlsServerConfig | null;
  readonly tlsNames: readonly TlsNameConfig[];
  /** What of the verified client certificate is the username; null = nothing. */
  readonly identity: 'cn' | 'subject' | null;
  /** Origin headers that ws and wss take, null = any. */
  readonly origins: readonly string[] | null;
  readonly source: Position;
}

/** One enabled listener; disabled ones are not in the list. The keys of every kind stand for themselves. */
export type ListenerConfig = Place &
  Omit<Effective<Checked<typeof LISTENER>>, 'enable' | 'allowAnonymous'> & {
    /** Effective: the listener's own value, else that of auth, else the default rule. */
    readonly allowAnonymous: boolean;
  };

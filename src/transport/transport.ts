// SEAM of transport/: byte streams, whatever carries them. Built by gateway/gateway.ts and sp/, used by session/, sp/,
// proxy/. A Connection delivers chunks to one reader and takes writes of any size; it knows nothing of MQTT or SP.
// Contract (test/contract/transport.ts holds it for every kind):
//  - onData gets each chunk once, in order; the chunk belongs to the callee only until it returns. Of tcp, tls and unix
//    it is a buffer of its own that nobody writes to again: proxy/ hands such chunks on without copying, a transport
//    that pools them must be another kind.
//  - write() keeps order; the bytes may not change until done() is called, which happens exactly once, also when the
//    connection dies.
//  - onClose is called exactly once, after the last onData, whoever ended the connection. Nothing is ever thrown at the
//    user.
//  - pause() stops onData soon (a chunk already read may still come); resume() goes on.
//
// Map (made by `make docs`):
//   abstract.ts     Abstract Unix socket names, to the byte
//   acceptor.ts     The doors of a listener: binds its addresses, counts and limits what comes in, hands sockets on
//   address.ts      Addresses as text: "host:port" taken apart and put together
//   backoff.ts      How long to wait before the next attempt: doubling up to a limit
//   certificate.ts  Keys and certificates as files, or as the PEM text itself: read
//   der.ts          As much of ASN.1 DER as revocation lists need: elements with one-byte tags and definite lengths
//   descriptors.ts  How near this process is to the end of its file descriptors
//   dial.ts         Outgoing connections of every kind
//   dnsquery.ts     One question to the DNS, with the Times To Live that Node's own resolver keeps to itself: UDP first
//   duplex.ts       A Connection over any Duplex of Node.js that an embedding program hands over: a tunnel
//   examine.ts      A look at a TLS server: which certificate it shows, for which names
//   handshake.ts    A socket between its accept and the moment it becomes a Connection: PROXY protocol header, TLS
//   httpget.ts      One HTTP GET with a time limit and a bound on bytes
//   memory.ts       Connections inside the process
//   proxyline.ts    The PROXY protocol header, versions 1 and 2: read from incoming connections
//   psk.ts          Pre-shared keys of TLS
//   pushback.ts     A connection from which something has been read already
//   readbuffers.ts  Buffers that a connection reads into again and again
//   revocations.ts  Whether a client's certificate has been revoked
//   stream.ts       A Connection over a socket of Node: tcp, tls and unix are the same but for their kind
//   tcp.ts          The TCP listener
//   tls.ts          TLS: the listener, its reload, and the client's half for dial.ts
//   tlsreason.ts    Why a TLS handshake failed, as a stable word for metrics and log
//   udp.ts          Datagram sockets for the proxy's `protocol = udp`: one bound where clients send to
//   unix.ts         Unix socket listeners: files and, on Linux, abstract names
//   websocket.ts    A Connection over a WebSocket that is open, of either side
//   ws.ts           The WebSocket listener, with and without TLS
//   wsdial.ts       The client's half of a WebSocket handshake, on a socket that dial.ts has connected and secured
import type { ByteSink } from '../base/writer.ts';

export type TransportKind = 'tcp' | 'tls' | 'ws' | 'wss' | 'unix' | 'memory';

/** What TLS knows of a peer that has shown a verified certificate. */
export interface PeerCertificate {
  readonly commonName: string | null;
  /** RFC 2253 form, most specific attribute first. */
  readonly subject: string;
  /** SHA-256 of the certificate, hex. */
  readonly fingerprint: string;
  readonly pem: string;
}
export interface TlsInfo {
  readonly version: string;
  readonly cipher: string;
  readonly serverName: string | null;
  /** The application protocol that both agreed on; absent or null = none. */
  readonly alpn?: string | null;
  readonly peer: PeerCertificate | null;
  /** Whose pre-shared key it was; absent: there was none. */
  readonly pskIdentity?: string;
}

/**
 * What a PROXY header tells of the client's TLS. told: a connection without TLS of its own has it as `tls`. required:
 * the same, and a peer whose header does not tell of a verified certificate is rejected with "proxy-certificate".
 */
export type ProxyTls = 'ignored' | 'told' | 'required';

/** Why a connection ended. `error` is an errno name (ECONNRESET) or a TLS reason when the network ended it. */
export interface CloseReason {
  readonly by: 'peer' | 'us' | 'error';
  readonly error?: string;
}

/** Large buffers that connections share for reading: readbuffers.ts. */
export interface ReadBuffers {
  /** Many are lent: who has little to read should not keep one. */
  readonly scarce: boolean;
  /** null = as many are lent as may be. */
  take(): Buffer | null;
  /** `kept`: somebody needs what is in it, it must not be written to again. */
  giveBack(buffer: Buffer, kept: boolean): void;
}

/** Gets what was read. True = the bytes are still needed: their buffer is left to the reader. */
export type LentReader = (chunk: Buffer) => boolean;

/**
 * A reader that says where bytes go: one that is done with them before the next read, or puts large pieces together
 * where they lie. take() gets buffer[0, bytes): the buffer that place() gave last or, for what the carrier had read
 * before, one of the carrier's own.
 */
export interface Intake {
  /** Asked before the first read and after each take(). Not empty; the carrier writes to it until the next take(). */
  place(): Buffer;
  take(buffer: Buffer, bytes: number): void;
}

export interface Connection extends ByteSink {
  readonly kind: TransportKind;
  /**
   * Printable, "127.0.0.1:50312", "[::1]:1", "unix:<pid or counter>": the real client where the PROXY protocol told it.
   */
  readonly remote: string;
  /** The address without port, for limits and ACL rules; "" for unix and memory. */
  readonly remoteAddress: string;
  readonly local: string;
  readonly tls: TlsInfo | null;
  /** Bytes written and not yet taken by the system. */
  readonly queuedBytes: number;
  /** Reading starts with the first handler; a later one takes the place of the one before. */
  onData(handler: (chunk: Buffer) => void): void;
  /**
   * Reads into buffers that are used again, for one who passes bytes on: a chunk is lent until `reader` returns, or
   * left to it for good when that says so. Takes the place of onData. False where the carrier has no such thing:
   * nothing has changed then, and onData is to be used.
   */
  readInto?(buffers: ReadBuffers, reader: LentReader): boolean;
  /**
   * Reads to where `intake` says, in the place of onData. False where the carrier has no such thing: nothing has
   * changed then.
   */
  fill?(intake: Intake): boolean;
  onClose(handler: (reason: CloseReason) => void): void;
  /** The peer has sent its last byte; writing is still possible. Without a handler the connection ends by itself. */
  onEnd(handler: () => void): void;
  pause(): void;
  resume(): void;
  /**
   * Half close: sends what is queued, then tells the peer that nothing follows; reading goes on. Later writes are lost
   * (done() is called). Where the carrier has no half close (ws, wss) it is end().
   */
  shutdown(): void;
  /**
   * Sends what is queued, then closes; after `graceMs` without that (default 5000) it destroys. What still comes in is
   * thrown away.
   */
  end(graceMs?: number): void;
  /** Closes at once; `reset` sends RST where the transport can. */
  destroy(reset?: boolean): void;
}

/** A bound address, as shown in the log line GW-READY and in REST. */
export interface Bound {
  readonly kind: TransportKind | 'udp';
  /** "127.0.0.1:1883", "/run/x.sock", "127.0.0.1:8083/mqtt". */
  readonly address: string;
  /** 0 where there is none. */
  readonly port: number;
}

/**
 * Something that accepts connections. A failed start() throws GatewayError TRANSPORT-BIND and leaves nothing behind.
 */
export interface Listener {
  /** One entry for each address bound: a name that resolves to several has several. */
  start(): Promise<Bound[]>;
  /** Stops accepting. Connections that exist go on; they belong to whoever got them. */
  stop(): Promise<void>;
}

/** Called for each connection, TLS, WebSocket and PROXY handshakes done. */
export type Accept = (connection: Connection) => void;

/**
 * Called for each peer that failed before it became a connection, with a stable word for the metric: tls-unknown-ca,
 * tls-no-shared-cipher, plain-on-tls, ws-path, ws-subprotocol, proxy-header, handshake-timeout, full, descriptors (the
 * process has hardly any left) ...
 */
export type Reject = (reason: string, remote: string) => void;

/** Limits that hold before a listener's user sees anything of a peer. */
export interface ListenerOptions {
  readonly accept: Accept;
  readonly reject: Reject;
  /** Connections at once, 0 = no limit. Above it new ones are closed and rejected with "full". */
  readonly maxConnections: number;
  /** For TLS, WebSocket and PROXY protocol handshakes. */
  readonly handshakeTimeoutMs: number;
  /** A PROXY protocol header (v1 or v2) is required and read first. */
  readonly proxyProtocol: boolean;
  /**
   * Addresses and networks whose header is believed; peers from elsewhere are rejected with "proxy-untrusted" before a
   * byte is read. Empty or left out = any. Peers of a Unix socket have no address: not for them.
   */
  readonly proxyProtocolFrom?: readonly string[];
  /** What becomes of what the header (version 2) tells of TLS; ignored when left out. */
  readonly proxyTls?: ProxyTls;
  /**
   * Asked before a TLS or WebSocket handshake, with the address that PROXY has told: a reason to reject with, or null.
   */
  readonly admit?: (remoteAddress: string) => string | null;
}

export type TlsVersion = 'TLSv1.2' | 'TLSv1.3';

export interface TlsServerOptions {
  readonly keyfile: string;
  readonly certfile: string;
  readonly cacertfile: string | null;
  readonly crlfile: string | null;
  readonly keyPassword: string | null;
  readonly verifyPeer: boolean;
  readonly failIfNoPeerCert: boolean;
  readonly alpn: readonly string[];
  /** Absent: TLS 1.2. */
  readonly minVersion?: TlsVersion;
  readonly ciphers?: string | null;
  /** Groups for the key exchange in OpenSSL notation; absent or null: those of Node.js. */
  readonly curves?: string | null;
  /** false: a session is not taken up again. */
  readonly sessionTickets?: boolean;
  /** A file of 48 random bytes: sessions are taken up again after a restart, and by others that have the same. */
  readonly ticketKeys?: string | null;
  /** Keys instead of certificates: a file of identities and keys, and the hint for clients. */
  readonly psk?: { readonly file: string; readonly hint: string | null } | null;
}
/** What a certificate says, in plain values. */
export interface CertificateFacts {
  readonly subject: string;
  readonly issuer: string;
  /** Host names and addresses it is for. */
  readonly names: readonly string[];
  /** Milliseconds since the epoch. */
  readonly validFrom: number;
  readonly validTo: number;
  /** SHA-256, hexadecimal. */
  readonly fingerprint: string;
}

export interface TlsClientOptions {
  readonly ca: string | null;
  readonly cert: string | null;
  readonly key: string | null;
  readonly keyPassword: string | null;
  readonly verify: boolean;
  /** false: any certificate of a trusted authority is good, whatever name it is for. */
  readonly verifyName?: boolean;
  readonly serverName: string | null;
  /** Absent: TLS 1.2. */
  readonly minVersion?: TlsVersion;
  readonly ciphers?: string | null;
  /** A pre-shared key in hexadecimal and the identity it belongs to, instead of certificates. */
  readonly psk?: string | null;
  readonly pskIdentity?: string | null;
}

/** Where to dial. */
export type DialTarget =
  | { readonly kind: 'tcp'; readonly host: string; readonly port: number; readonly interface?: string }
  | {
      readonly kind: 'tls';
      readonly host: string;
      readonly port: number;
      readonly tls: TlsClientOptions;
      readonly alpn?: readonly string[];
      readonly interface?: string;
    }
  | {
      readonly kind: 'ws' | 'wss';
      readonly url: string;
      readonly subprotocol: string;
      readonly tls?: TlsClientOptions;
      /** Connected to in the place of the URL's host, which is still asked for. */
      readonly address?: string;
    }
  /** A path, or an abstract name with a leading NUL. */
  | { readonly kind: 'unix'; readonly path: string }
  | { readonly kind: 'memory'; readonly name: string };

/**
 * A socket for datagrams: bound for anybody's, or connected to one address (udp.ts). A datagram that cannot be sent is
 * lost.
 */
export interface DatagramSocket {
  /** "127.0.0.1:1883". */
  readonly local: string;
  readonly port: number;
  /** To `address`, or to the other end of a connected socket. The bytes may not change afterwards. */
  send(bytes: Buffer, port?: number, address?: string): void;
  onMessage(handler: (bytes: Buffer, address: string, port: number) => void): void;
  onError(handler: (error: Error) => void): void;
  close(): void;
}

// TLS: the listener, its reload, and the client's half for dial.ts. Built by gateway/transports.ts. The server that
// shakes hands has no port of its own: sockets come from acceptor.ts (PROXY header read, counted), so a reload is
// simply another server for the next socket, and connections that exist keep theirs. Loaded only when TLS is
// configured. Source: RFC 8446, RFC 5246, RFC 6066 section 3 (SNI), RFC 7301 (ALPN).
import type { Socket } from 'node:net';
import { isIP } from 'node:net';
import type { ConnectionOptions, SecureContext, Server, TLSSocket, TlsOptions } from 'node:tls';
import { checkServerIdentity, connect, createSecureContext, createServer } from 'node:tls';
import { errorText, GatewayError } from '../base/errors.ts';
import { Acceptor } from './acceptor.ts';
import {
  clientContext,
  revocationsOf,
  serverMaterial,
  sessionContextOf,
  tlsInfo,
  verifiesPeers,
} from './certificate.ts';
import type { Handshake } from './handshake.ts';
import { pskBytes, readPskFile } from './psk.ts';
import type { Revocations } from './revocations.ts';
import { errorName, StreamConnection } from './stream.ts';
import { bareHost, boundAs, type TcpListenerOptions } from './tcp.ts';
import { failureReason, verifyReason } from './tlsreason.ts';
import type { Bound, Listener, TlsClientOptions, TlsInfo, TlsServerOptions } from './transport.ts';

export interface TlsListenerOptions extends TcpListenerOptions {
  readonly tls: TlsServerOptions;
  /**
   * Other certificates by server name; "*.example.org" stands for one more label. Their authorities are those of `tls`.
   */
  readonly names?: Names;
}

export interface TlsListener extends Listener {
  /**
   * New files and flags for the connections that come from now on; without arguments the files there are, read again.
   * Throws TRANSPORT-TLS and changes nothing when they cannot be used.
   */
  reload(tls?: TlsServerOptions, names?: Names): void;
}

type Names = ReadonlyMap<string, TlsServerOptions>;

const NO_NAMES: Names = new Map();

/** The server's side of handshakes, for sockets that somebody else has accepted. Also used under WebSockets. */
export class TlsDoor {
  private server: Server;
  private tls: TlsServerOptions;
  private names: Names;
  private readonly timeoutMs: number;
  private readonly next: (handshake: Handshake, socket: TLSSocket, info: TlsInfo) => void;
  /** Handshakes under way, by the socket below them. */
  private readonly under = new WeakMap<object, Handshake>();

  /** Throws TRANSPORT-TLS when the files cannot be used. */
  constructor(
    tls: TlsServerOptions,
    names: Names,
    timeoutMs: number,
    next: (handshake: Handshake, socket: TLSSocket, info: TlsInfo) => void,
  ) {
    this.timeoutMs = timeoutMs;
    this.next = next;
    this.tls = tls;
    this.names = names;
    this.server = this.build(tls, names);
  }

  /** Throws TRANSPORT-TLS and stays as it is when the files cannot be used. */
  reload(tls: TlsServerOptions = this.tls, names: Names = this.names): void {
    this.server = this.build(tls, names);
    this.tls = tls;
    this.names = names;
  }

  begin(handshake: Handshake): void {
    handshake.stage = 'tls';
    this.under.set(handshake.socket, handshake);
    // A peer that ends within the handshake has gone; from then on half-open is allowed again. Node hands this on to
    // the TLS socket.
    handshake.socket.allowHalfOpen = false;
    this.server.emit('connection', handshake.socket);
  }

  private build(tls: TlsServerOptions, names: Names): Server {
    const sessionIdContext = sessionContextOf(tls);
    const contexts = new Map<string, SecureContext>();
    for (const [name, other] of names) {
      const { keyfile, certfile, keyPassword } = other;
      const material = serverMaterial({ ...tls, keyfile, certfile, keyPassword });
      contexts.set(name.toLowerCase(), createSecureContext({ ...material, sessionIdContext }));
    }
    const revocations = revocationsOf(tls);
    const identities = tls.psk ? new WeakMap<object, string>() : null;
    const server = createServer({
      ...(tls.psk && identities !== null ? pskServer(tls.psk, identities) : {}),
      ...serverMaterial(tls),
      sessionIdContext,
      requestCert: verifiesPeers(tls),
      rejectUnauthorized: tls.failIfNoPeerCert,
      // The handshake's own deadline comes first.
      handshakeTimeout: this.timeoutMs + 1000,
      ALPNProtocols: tls.alpn.length > 0 ? [...tls.alpn] : undefined,
      SNICallback: (name, done) => done(null, contextFor(name, contexts)),
    });
    server.on('secureConnection', (socket) => this.secured(socket, tls, revocations, identities));
    server.on('tlsClientError', (error, socket) => this.failed(error, socket));
    return server;
  }

  private secured(
    socket: TLSSocket,
    tls: TlsServerOptions,
    revocations: Revocations | null,
    identities: WeakMap<object, string> | null,
  ): void {
    const handshake = this.handshakeOf(socket);
    if (handshake === undefined || handshake.over) {
      socket.destroy();
      return;
    }
    socket.allowHalfOpen = true;
    if (identities !== null) {
      const pskIdentity = identities.get(socket);
      if (pskIdentity === undefined) handshake.fail('tls-psk');
      else this.next(handshake, socket, { ...tlsInfo(socket, null, false), pskIdentity });
      return;
    }
    const peer = verifiesPeers(tls) ? socket.getPeerX509Certificate() : undefined;
    const shown = peer !== undefined;
    const good = peer !== undefined && socket.authorized;
    const refusal = good ? revocations?.refusal(peer, socket.isSessionReused(), Date.now()) : null;
    if (tls.failIfNoPeerCert && !shown) handshake.fail('tls-no-certificate');
    else if (shown && !socket.authorized) handshake.fail(verifyReason(String(socket.authorizationError)));
    else if (typeof refusal === 'string') handshake.fail(refusal);
    else {
      const name: unknown = Reflect.get(socket, 'servername');
      this.next(handshake, socket, tlsInfo(socket, typeof name === 'string' && name !== '' ? name : null, shown));
    }
  }

  private failed(error: Error, socket: TLSSocket): void {
    // Its own errors come here; any that follow are of no interest.
    socket.on('error', ignore);
    const handshake = this.handshakeOf(socket);
    const verdict: unknown = socket.authorizationError;
    if (handshake === undefined) socket.destroy();
    else if (verdict !== undefined && verdict !== null) handshake.fail(verifyReason(String(verdict)));
    else if (errorName(error) === 'ECONNRESET' && 'syscall' in error) handshake.fail('reset');
    else if (errorName(error) === 'ECONNRESET') handshake.fail(handshake.reasonOfClose());
    else handshake.fail(failureReason(errorName(error)));
  }

  /** Node keeps the socket below a TLS socket in `_parent`; without it the peer is given up, never let in unchecked. */
  private handshakeOf(socket: TLSSocket): Handshake | undefined {
    const below: unknown = Reflect.get(socket, '_parent');
    return typeof below === 'object' && below !== null ? this.under.get(below) : undefined;
  }
}

/** A key for each identity that has one; what follows is OpenSSL's. Throws TRANSPORT-TLS for a file it cannot use. */
function pskServer(psk: NonNullable<TlsServerOptions['psk']>, identities: WeakMap<object, string>): TlsOptions {
  const keys = readPskFile(psk.file);
  return {
    pskIdentityHint: psk.hint ?? undefined,
    pskCallback: (socket, identity) => {
      const key = keys.get(identity);
      if (key === undefined) return null;
      identities.set(socket, identity);
      return key;
    },
  };
}

/** The same for a client. A server that shows a certificate has not used the key: whoever it is, it is not ours. */
function pskClient({ psk, pskIdentity }: TlsClientOptions): ConnectionOptions | null {
  if (!psk) return null;
  const key = pskBytes(psk);
  if (typeof key === 'string') throw new GatewayError('TRANSPORT-TLS', key);
  return {
    pskCallback: () => ({ psk: key, identity: pskIdentity ?? '' }),
    checkServerIdentity: (_, certificate) =>
      Object.keys(certificate ?? {}).length === 0 ? undefined : new Error('the server did not use the key'),
    rejectUnauthorized: true,
  };
}

function ignore(): void {}

function contextFor(name: string, contexts: ReadonlyMap<string, SecureContext>): SecureContext | undefined {
  const lower = name.toLowerCase();
  const exact = contexts.get(lower);
  if (exact !== undefined) return exact;
  const dot = lower.indexOf('.');
  return dot < 0 ? undefined : contexts.get(`*${lower.slice(dot)}`);
}

class TlsListenerImpl implements TlsListener {
  private readonly options: TlsListenerOptions;
  private readonly acceptor: Acceptor;
  private door: TlsDoor | null = null;

  constructor(options: TlsListenerOptions) {
    this.options = options;
    this.acceptor = new Acceptor({
      ...options,
      onSocket: (socket) => socket.destroy(),
      onHandshake: (handshake) => this.door?.begin(handshake),
    });
  }

  async start(): Promise<Bound[]> {
    const { tls, names = NO_NAMES, handshakeTimeoutMs, host, port } = this.options;
    this.door = new TlsDoor(tls, names, handshakeTimeoutMs, (handshake, socket, info) =>
      this.take(handshake, socket, info),
    );
    return boundAs('tls', await this.acceptor.bindHost(bareHost(host), port));
  }

  stop(): Promise<void> {
    return this.acceptor.close();
  }

  reload(tls?: TlsServerOptions, names?: Names): void {
    if (this.door === null) throw new GatewayError('GW-STATE', 'the listener has not been started');
    this.door.reload(tls, names);
  }

  private take(handshake: Handshake, socket: TLSSocket, info: TlsInfo): void {
    if (!handshake.finish()) return;
    this.options.accept(new StreamConnection('tls', socket, handshake.peer, info, handshake.socket));
  }
}

/** A listener for TLS over TCP. Files are read by start(), which throws TRANSPORT-TLS when they cannot be used. */
export function listenTls(options: TlsListenerOptions): TlsListener {
  return new TlsListenerImpl(options);
}

export interface SecureOptions {
  /** The host that was dialled: the name in the certificate unless the options have another. */
  readonly host: string;
  readonly alpn?: readonly string[];
}

/**
 * The client's half of a handshake on a connected socket. Rejects with TRANSPORT-TLS; its caller destroys `socket` when
 * it has waited long enough, which rejects too.
 */
export function secure(socket: Socket, tls: TlsClientOptions, options: SecureOptions): Promise<[TLSSocket, TlsInfo]> {
  return new Promise((resolve, reject) => {
    const context = clientContext(tls);
    const psk = pskClient(tls);
    const name = tls.serverName ?? options.host;
    const secured = connect({
      socket,
      secureContext: context,
      rejectUnauthorized: tls.verify,
      // A name is asked for, an address never (RFC 6066 section 3); both are checked against the certificate.
      servername: isIP(name) === 0 ? name : undefined,
      checkServerIdentity: (_, certificate) =>
        tls.verifyName === false ? undefined : checkServerIdentity(name, certificate),
      ALPNProtocols: options.alpn === undefined ? undefined : [...options.alpn],
      ...psk,
    });
    const fail = (error: Error): void => {
      secured.on('error', ignore);
      secured.destroy();
      reject(new GatewayError('TRANSPORT-TLS', `${name}: ${errorText(error)}`, error));
    };
    const onClose = (): void => fail(new Error('closed during the handshake'));
    secured.on('error', fail);
    secured.once('close', onClose);
    secured.once('secureConnect', () => {
      if ((tls.verify || psk !== null) && !secured.authorized) {
        fail(new Error('the certificate was not verified'));
        return;
      }
      secured.removeListener('error', fail);
      secured.removeListener('close', onClose);
      resolve([secured, tlsInfo(secured, isIP(name) === 0 ? name : null, tls.verify && psk === null)]);
    });
  });
}

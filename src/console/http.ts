// The HTTP server of `http_server`: REST API, events, console pages. Built and started by gateway/console.ts only when
// the block is present. hono is loaded by the first request, not before. Limits: size of heads and bodies,
// connections, requests at once, time for each part of a request. A server without credentials refuses to bind anything
// but loopback, whatever the configuration says.
import { readFile } from 'node:fs/promises';
import { createServer, type RequestListener } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { TLSSocket } from 'node:tls';
import { SERVER_CIPHERS } from '../base/ciphers.ts';
import type { Timer } from '../base/clock.ts';
import { errorText, GatewayError } from '../base/errors.ts';
import type { Service } from '../base/service.ts';
import type { TlsServerOptions } from '../transport/transport.ts';
import { isLoopback, isOpen, WebAccess } from './access.ts';
import { fail } from './answer.ts';
import { App, send } from './app.ts';
import { Audit } from './audit.ts';
import { announcesMore, bodyLimit } from './body.ts';
import type { ConsoleOptions, HttpSettings } from './console.ts';
import { ControlSocket } from './controlsocket.ts';
import { EventFeed } from './events.ts';
import { LoginFile } from './keptlogins.ts';
import { addressText, Listening, SERVER_OPTIONS } from './listening.ts';
import type { ProcessMetrics } from './process.ts';
import type { Route } from './route.ts';
import { allRoutes } from './routes.ts';

/** Connections at once, each costing about 20 KB; for one more the oldest that waits for no answer is closed. */
const MAX_CONNECTIONS = 512;
/** Silence after which a connection is cut (event streams have a heartbeat). */
const SILENT_MS = 60_000;
/** A crash loses logins of this time. */
const KEEP_LOGINS_MS = 5000;

async function readTls(tls: TlsServerOptions): Promise<Record<string, unknown>> {
  try {
    return {
      key: await readFile(tls.keyfile),
      cert: await readFile(tls.certfile),
      ca: tls.cacertfile === null ? undefined : await readFile(tls.cacertfile),
      crl: tls.crlfile === null ? undefined : await readFile(tls.crlfile),
      passphrase: tls.keyPassword ?? undefined,
      requestCert: tls.verifyPeer,
      rejectUnauthorized: tls.verifyPeer && tls.failIfNoPeerCert,
      minVersion: tls.minVersion ?? 'TLSv1.2',
      ciphers: tls.ciphers ?? SERVER_CIPHERS,
    };
  } catch (error) {
    throw new GatewayError('TRANSPORT-TLS', `http_server.tls: ${errorText(error)}`, error);
  }
}

/** Who shows a certificate has to show a good one, also where showing none is allowed. */
function refuseUnverified(socket: TLSSocket): void {
  if (!socket.authorized && Object.keys(socket.getPeerCertificate()).length > 0) socket.destroy();
}

export class HttpServer implements Service {
  /** All that is served; openapi.ts and tests read it. */
  readonly routes: readonly Route[];
  private readonly options: ConsoleOptions;
  private readonly access: WebAccess;
  private readonly feed: EventFeed;
  private readonly app: App;
  private listening: Listening | null = null;
  private control: ControlSocket | null = null;
  private readonly logins: LoginFile | null;
  private keeping: Timer | null = null;

  constructor(options: ConsoleOptions, process: ProcessMetrics) {
    this.options = options;
    const { settings, clock, log, metrics, matchesHash } = options;
    this.access = new WebAccess(settings, clock, log, metrics, matchesHash);
    this.feed = new EventFeed(options, process);
    const { loginsFile = null } = options;
    this.logins = loginsFile === null ? null : new LoginFile(loginsFile, log);
    const audit = new Audit(clock, log);
    const parts = { options, access: this.access, audit, feed: this.feed, process };
    this.routes = allRoutes(parts);
    this.app = new App(parts);
    options.followAccounts?.((by, done) => audit.keep('setup', by.user, by.remote, 'MQTT', done, 200));
  }

  /** "127.0.0.1:8081" once started, with the real port. */
  get address(): string {
    return addressText(this.options.settings().host, this.port);
  }

  /** 0 while not started. */
  get port(): number {
    return this.listening?.port ?? 0;
  }

  /** What the console shows as numbers, now. */
  figures(): Readonly<Record<string, number>> {
    return this.feed.figures();
  }

  async start(): Promise<void> {
    const settings = this.options.settings();
    this.refuseOpenServer(settings);
    if (settings.authType === 'jwt' && settings.jwt !== null) await this.access.tokens.prepare(settings.jwt);
    await this.takeUpLogins();
    const listener = this.whenAsked(() => this.app.listener(this.routes));
    const server =
      settings.tls === null
        ? createServer(SERVER_OPTIONS, listener)
        : createTlsServer({ ...SERVER_OPTIONS, ...(await readTls(settings.tls)) }, listener);
    if (settings.tls?.verifyPeer === true) server.on('secureConnection', refuseUnverified);
    server.timeout = SILENT_MS;
    server.on('checkContinue', this.onContinue(listener));
    this.listening = await Listening.open(server, settings.host, settings.port, 'http_server', MAX_CONNECTIONS);
    await this.openControl(listener);
    this.feed.start();
    this.options.log('info', 'WEB-UP', {
      address: this.address,
      tls: settings.tls !== null,
      auth: isOpen(settings) ? 'none' : settings.authType,
    });
  }

  /**
   * Takes up renewed certificate and key files. Throws GatewayError TRANSPORT-TLS and keeps the old ones when they are
   * wrong.
   */
  async reload(): Promise<void> {
    this.access.tokens.reload();
    const { tls } = this.options.settings();
    const server = this.listening?.server;
    if (tls === null || server === undefined || !('setSecureContext' in server)) return;
    const files = await readTls(tls);
    try {
      server.setSecureContext(files);
    } catch (error) {
      throw new GatewayError('TRANSPORT-TLS', `http_server.tls: ${errorText(error)}`, error);
    }
  }

  async stop(deadlineMs: number): Promise<void> {
    const { listening } = this;
    this.listening = null;
    this.keeping?.cancel();
    await this.logins?.write(this.access.keptLogins());
    await this.control?.stop();
    if (listening === null) return;
    this.feed.stop();
    await listening.close(deadlineMs);
  }

  /** Whoever was logged in before a restart still is. */
  private async takeUpLogins(): Promise<void> {
    const { logins, access } = this;
    if (logins === null) return;
    const kept = await logins.read();
    if (kept !== null) access.restoreLogins(kept);
    const keep = (): void => void logins.write(access.keptLogins());
    this.keeping = this.options.clock.every(KEEP_LOGINS_MS, keep);
    access.sessions.onClosed = keep;
  }

  /** Without it `ctl` needs address and password; nothing else changes. */
  private async openControl(listener: RequestListener): Promise<void> {
    const { controlFolder = null, log } = this.options;
    if (controlFolder === null) return;
    const control = new ControlSocket(controlFolder, this.app.locals);
    try {
      await control.start(listener);
      this.control = control;
    } catch (error) {
      log('info', 'WEB-CONTROL', { error: errorText(error) });
    }
  }

  /** A gateway whose console nobody opens does without the router and what comes with it: 40 ms and 9 MB. */
  private whenAsked(load: () => Promise<RequestListener>): RequestListener {
    let loading: Promise<RequestListener> | null = null;
    return (incoming, outgoing) => {
      if (loading === null) {
        loading = load();
        loading.catch((error: unknown) => this.options.log('error', 'WEB-FAILED', { error: errorText(error) }));
      }
      loading.then(
        (listener) => listener(incoming, outgoing),
        () => send(outgoing, fail('internal'), null),
      );
    };
  }

  private refuseOpenServer(settings: HttpSettings): void {
    if (isOpen(settings) && !isLoopback(settings.host)) {
      throw new GatewayError(
        'CFG-INVALID',
        `http_server: ${settings.host} is reachable from other machines, so username and password are needed`,
      );
    }
    if (settings.authType === 'jwt' && settings.jwt === null) {
      throw new GatewayError('CFG-INVALID', 'http_server: auth_type jwt needs jwt.public.keyfile');
    }
  }

  /** "Expect: 100-continue": a body that is too large is refused before it is sent. */
  private onContinue(listener: RequestListener): RequestListener {
    return (incoming, outgoing) => {
      if (announcesMore(incoming, bodyLimit(this.options.settings()))) {
        outgoing.shouldKeepAlive = false;
        send(outgoing, fail('tooLarge'), null);
        return;
      }
      outgoing.writeContinue();
      listener(incoming, outgoing);
    };
  }
}

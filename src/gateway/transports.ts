// The transports as the listeners, sp/, bridge/ and proxy/ ask for them: one case for each kind, TLS and WebSocket
// loaded when first needed. Called by gateway.ts, listeners.ts and `tidegate nng`; but for MemoryNetwork the only place
// outside transport/ that names its files.
import { lookup } from 'node:dns/promises';
import type { Clock } from '../base/clock.ts';
import { GatewayError } from '../base/errors.ts';
import type { MqttParts } from '../bridge/mqtt/options.ts';
import type { ListenerConfig, TlsNameConfig } from '../config/listeners.ts';
import type { ListenAt, ProxyListener, ProxyTransports } from '../proxy/proxy.ts';
import type { ListenTarget, ProgramTarget, Transports } from '../sp/transports.ts';
import { parseHostPort } from '../transport/address.ts';
import { Backoff } from '../transport/backoff.ts';
import { ACCEPT_RESERVE, Descriptors, DIAL_RESERVE } from '../transport/descriptors.ts';
import { dial } from '../transport/dial.ts';
import { listenMemory, type MemoryNetwork } from '../transport/memory.ts';
import { encodeProxyHeader } from '../transport/proxyline.ts';
import { withPushback } from '../transport/pushback.ts';
import { LargeBuffers } from '../transport/readbuffers.ts';
import { listenTcp } from '../transport/tcp.ts';
import type { Bound, Listener, ListenerOptions, TlsServerOptions } from '../transport/transport.ts';
import { listenUnix } from '../transport/unix.ts';
import { dialProgram, ProgramListener, type ProgramTransports } from './programtransport.ts';
import { watchedFiles } from './watchedfiles.ts';

/** A listener whose code is loaded at its start. */
class LazyListener implements Listener {
  private readonly make: () => Promise<Listener>;
  private listener: Listener | null = null;

  constructor(make: () => Promise<Listener>) {
    this.make = make;
  }

  async start(): Promise<Bound[]> {
    this.listener = await this.make();
    return this.listener.start();
  }

  async stop(): Promise<void> {
    await this.listener?.stop();
  }

  /** Reads certificates again where there are some; connections that exist keep theirs. */
  async reloadCertificates(): Promise<void> {
    const { listener } = this;
    if (listener !== null && 'reload' in listener && typeof listener.reload === 'function') await listener.reload();
  }
}

/** What SP sockets listen and dial with. `network` is where inproc names live, `own` what is behind program://. */
export function spTransports(network: MemoryNetwork, own: ProgramTransports = {}): Transports {
  return {
    listen: (target, options) =>
      target.kind === 'program' ? new ProgramListener(own, target.name, options) : spListener(target, options, network),
    dial: (target, timeoutMs, maxMessage) => {
      if (target.kind === 'program') return dialProgram(own, target.name, timeoutMs);
      return dial(target, { timeoutMs, network, maxMessageBytes: maxMessage, framed: true });
    },
  };
}

function spListener(
  target: Exclude<ListenTarget, ProgramTarget>,
  options: ListenerOptions,
  network: MemoryNetwork,
): Listener {
  switch (target.kind) {
    case 'tcp':
      return listenTcp({ ...options, host: target.host, port: target.port });
    case 'unix':
      return listenUnix({ ...options, path: target.path, mode: octal(target.mode), group: target.group });
    case 'memory':
      return listenMemory({ ...options, network, name: target.name });
    case 'tls':
      return new LazyListener(async () => {
        const { listenTls } = await import('../transport/tls.ts');
        return listenTls({ ...options, host: target.host, port: target.port, tls: target.tls });
      });
    case 'ws':
    case 'wss':
      return new LazyListener(async () => {
        const { listenWs } = await import('../transport/ws.ts');
        const { host, port, path, subprotocol, maxMessage, tls } = target;
        return listenWs({
          ...options,
          host,
          port,
          path,
          subprotocols: [subprotocol],
          maxMessageBytes: maxMessage,
          framed: true,
          tls,
        });
      });
  }
}

/** The listener of one configured MQTT address. `maxMessageBytes` bounds a WebSocket message before it is read. */
export function mqttListener(
  config: ListenerConfig,
  handlers: Pick<ListenerOptions, 'accept' | 'reject'>,
  maxMessageBytes: number,
): Listener {
  // Where and how it speaks is decided below, for each kind; the limits hold for all.
  const { host, port, path, tls, ipv6Only, mode, group, ...limits } = config;
  const proxyTls = config.proxyCertificate ? 'required' : 'ignored';
  const options: ListenerOptions = { ...limits, ...handlers, handshakeTimeoutMs: config.connectTimeoutMs, proxyTls };
  switch (config.kind) {
    case 'tcp':
      return listenTcp({ ...options, host, port, ipv6Only });
    case 'unix':
      return listenUnix({ ...options, path, mode: octal(mode), group });
    case 'ssl':
      return new LazyListener(async () => {
        const { listenTls } = await import('../transport/tls.ts');
        if (tls === null) throw new Error(`listeners.${config.name} has no certificate`);
        return listenTls({ ...options, host, port, ipv6Only, tls, names: namesOf(tls, config.tlsNames) });
      });
    case 'ws':
    case 'wss':
      return new LazyListener(async () => {
        const { listenWs, MQTT_SUBPROTOCOLS } = await import('../transport/ws.ts');
        const { origins, paths } = config;
        const at = { host, port, ipv6Only, path, paths, origins };
        const shared = { ...options, ...at, subprotocols: MQTT_SUBPROTOCOLS, maxMessageBytes };
        return listenWs(tls === null ? shared : { ...shared, tls, names: namesOf(tls, config.tlsNames) });
      });
  }
}

/** "Ready" would not be true where every connection is going to be refused. Throws GW-DESCRIPTORS. */
export function checkDescriptors(listenerCount: number, descriptors = new Descriptors()): void {
  const { free, limit } = descriptors;
  if (listenerCount === 0 || free === null || free > ACCEPT_RESERVE) return;
  throw new GatewayError(
    'GW-DESCRIPTORS',
    `${free} of ${limit} are free and ${ACCEPT_RESERVE} are kept back: no client could connect (raise ulimit -n, LimitNOFILE of the service)`,
  );
}

/** What the system would say a moment later. */
const OUT_OF_DESCRIPTORS = Object.freeze({ code: 'EMFILE' });

/** What the proxy listens and dials with. */
export function proxyTransports(): ProxyTransports {
  const descriptors = new Descriptors();
  const mayOpen = (): void => {
    if (descriptors.short(DIAL_RESERVE))
      throw new GatewayError('TRANSPORT-DIAL', 'out of file descriptors', OUT_OF_DESCRIPTORS);
  };
  return {
    listen: proxyListener,
    buffers: new LargeBuffers(),
    descriptorLimit: descriptors.limit,
    dial: async (target, options) => {
      mayOpen();
      return dial(target, options);
    },
    resolve: async (host) => {
      const found = await lookup(host, { all: true, verbatim: true });
      return [...new Set(found.map((entry) => entry.address))];
    },
    bindDatagrams: async (host, port) => (await import('../transport/udp.ts')).bindUdp(host, port),
    connectDatagrams: async (address, port) => {
      mayOpen();
      return (await import('../transport/udp.ts')).connectUdp(address, port);
    },
    query: async (name, type, options) => (await import('../transport/dnsquery.ts')).queryDns(name, type, options),
    get: async (url, options) => (await import('../transport/httpget.ts')).httpGet(url, options),
    files: watchedFiles,
    pushBack: withPushback,
    proxyHeader: (version, client) =>
      client === null
        ? encodeProxyHeader(version, null, null)
        : encodeProxyHeader(version, parseHostPort(client.remote), parseHostPort(client.local), client.tls),
  };
}

function proxyListener(at: ListenAt, options: ListenerOptions): ProxyListener {
  const { host, port, tls, tlsNames, web } = at;
  if (web !== null) {
    return new LazyListener(async () => {
      const { listenWs, MQTT_SUBPROTOCOLS } = await import('../transport/ws.ts');
      const shared = { ...options, host, port, path: '/mqtt', ...web, subprotocols: MQTT_SUBPROTOCOLS };
      return listenWs(tls === null ? shared : { ...shared, tls, names: namesOf(tls, tlsNames) });
    });
  }
  if (tls === null) return listenTcp({ ...options, host, port });
  return new LazyListener(async () => {
    const { listenTls } = await import('../transport/tls.ts');
    return listenTls({ ...options, host, port, tls, names: namesOf(tls, tlsNames) });
  });
}

/** How bridges to remote brokers connect, and how long they wait between attempts. */
export function remoteDialing(clock: Clock): Pick<MqttParts, 'dial' | 'retry'> {
  return {
    dial: (target, timeoutMs, signal) => dial(target, { timeoutMs, signal }),
    retry: (maxMs) => new Backoff({ clock, random: Math.random, maxMs }),
  };
}

/** Certificates by server name; everything but the files is that of the first one. */
function namesOf(tls: TlsServerOptions, names: readonly TlsNameConfig[]): ReadonlyMap<string, TlsServerOptions> {
  return new Map(names.map(({ name, ...files }) => [name, { ...tls, ...files }]));
}

function octal(mode: string | null): number | null {
  return mode === null ? null : Number.parseInt(mode, 8);
}

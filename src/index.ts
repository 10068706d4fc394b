// The library: a gateway inside another program, with its MQTT broker, its bridges and SP sockets that share inproc://
// with them. What is exported here is the whole public interface; docs/embedding.md shows it, and its examples run as
// tests.
import { isIP } from 'node:net';
import type { Duplex } from 'node:stream';
import { systemClock } from './base/clock.ts';
import { errorText, GatewayError } from './base/errors.ts';
import { type Log, nullLog } from './base/log.ts';
import type { BridgeStatus } from './bridge/bridge.ts';
import type { ClientView, LocalClient, LocalSubscription } from './broker/broker.ts';
import { loadConfig } from './config/load.ts';
import { Gateway } from './gateway/gateway.ts';
import { checkHooks, type GatewayHooks } from './gateway/hooks.ts';
import type { ProgramTransports } from './gateway/programtransport.ts';
import type { Hold, Publication } from './mqtt/message.ts';
import type { Qos } from './mqtt/packet.ts';
import type { Properties } from './mqtt/property.ts';
import { IMPLEMENTATION_SPECIFIC_ERROR } from './mqtt/reason.ts';
import { isTopicFilter, isTopicName } from './mqtt/topic.ts';
import type { Overflow, Protocol, SpSocket } from './sp/sp.ts';
import { DuplexConnection } from './transport/duplex.ts';
import type { Bound } from './transport/transport.ts';

export type { AuthHooks, HookAnswer, HookClient, RefusalCode } from './auth/hooks.ts';
export { GatewayError } from './base/errors.ts';
export type { Fields, Level, Log } from './base/log.ts';
export type { BridgeState, BridgeStatus } from './bridge/bridge.ts';
export type { ClientView } from './broker/broker.ts';
export type { DeliveredInstead, GatewayHooks, PublishedMessage, Publisher } from './gateway/hooks.ts';
export type { ProgramTransport, ProgramTransports } from './gateway/programtransport.ts';
export type { Qos } from './mqtt/packet.ts';
export type { Properties } from './mqtt/property.ts';
export type { Overflow, PipeView, Protocol, SpSocket } from './sp/sp.ts';
export type { Bound } from './transport/transport.ts';

/**
 * Where the configuration comes from: a file, HOCON or TOML text, or a plain tree with the keys of the configuration
 * reference.
 */
export type GatewaySource =
  | { readonly file: string }
  | { readonly hocon: string }
  | { readonly toml: string }
  | { readonly tree: Readonly<Record<string, unknown>> };

export interface GatewayOptions {
  /** Functions that judge clients and are told what happens; docs/embedding.md has their contract. */
  readonly hooks?: GatewayHooks;
  /** SP transports of your own: `program://name` in an NNG bridge is carried by the streams they give. */
  readonly transports?: ProgramTransports;
  /** Gets every log line; without it nothing is logged. */
  readonly log?: Log;
  /**
   * Environment for ${VAR} and TIDEGATE__a__b=value; none by default: an embedded gateway does what its program says.
   */
  readonly env?: Readonly<Record<string, string | undefined>>;
}

export interface PublishOptions {
  readonly qos?: Qos;
  readonly retain?: boolean;
  /** MQTT 5.0 properties. */
  readonly properties?: Properties | null;
}

/** A message as a subscriber gets it; the bytes are its own. */
export interface ReceivedMessage {
  readonly topic: string;
  readonly payload: Uint8Array;
  /** Lowered to that of the subscription. */
  readonly qos: Qos;
  readonly retain: boolean;
  readonly properties: Properties | null;
}

export interface SubscribeOptions {
  readonly qos?: Qos;
  /** Stored retained messages are given first; default true. */
  readonly retained?: boolean;
}

export type Handler = (message: ReceivedMessage) => unknown;

export interface AcceptOptions {
  /** The listener whose users, rights, quotas and topics hold for the client, e.g. "tcp"; default: those of `auth`. */
  readonly listener?: string;
  /** IP address of the client, for limits and ACL rules. */
  readonly remoteAddress?: string;
  /** How it is shown; default: the address. */
  readonly remote?: string;
}

export interface SpSocketOptions {
  /** Bytes that may wait for one peer; default 4 MB. */
  readonly sendBuffer?: number;
  readonly overflow?: Overflow;
  /** Bytes of the largest message taken; default 16 MB. */
  readonly recvMaxSize?: number;
}

const SEND_BUFFER = 4 * 1024 * 1024;
const RECV_MAX = 16 * 1024 * 1024;
const RECONNECT_MAX_MS = 30_000;
const STOP_MS = 5000;

/** A gateway that runs in this process. */
export class EmbeddedGateway {
  private readonly gateway: Gateway;
  private readonly log: Log;
  private readonly sockets = new Set<SpSocket>();
  private client: LocalClient | null = null;
  /** Settles when memory is free, or its turn has come; null while there is enough. */
  private held: Promise<void> | null = null;

  /** Use createGateway(). */
  constructor(gateway: Gateway, log: Log) {
    this.gateway = gateway;
    this.log = log;
  }

  /** Opens listeners and bridges. Rejects with GatewayError when an address is in use or a file cannot be read. */
  async start(): Promise<void> {
    try {
      await this.gateway.start();
    } catch (error) {
      await this.gateway.stop(0);
      throw error;
    }
    this.client = this.gateway.broker.attach({
      clientId: 'embedded',
      username: null,
      kind: 'api',
      bridge: null,
      trusted: true,
    });
  }

  /** Closes everything; queued messages get up to `deadlineMs` to leave. */
  async stop(deadlineMs = STOP_MS): Promise<void> {
    this.client?.close();
    this.client = null;
    await Promise.all([...this.sockets].map((socket) => socket.stop(deadlineMs)));
    this.sockets.clear();
    await this.gateway.stop(deadlineMs);
  }

  /** MQTT addresses that are bound, with real ports. */
  get addresses(): readonly Bound[] {
    return this.gateway.bound;
  }

  /**
   * Serves an MQTT client on a stream of your own: a tunnel, a serial line, a worker. It authenticates like any other.
   * Throws GatewayError while the gateway is not running.
   */
  accept(stream: Duplex, options: AcceptOptions = {}): void {
    const { listener = 'program', remoteAddress = '', remote = remoteAddress || 'program' } = options;
    if (remoteAddress !== '' && isIP(remoteAddress) === 0)
      throw new GatewayError('CLI-USAGE', `not an IP address: ${JSON.stringify(remoteAddress)}`);
    this.attached();
    this.gateway.accept(new DuplexConnection(stream, remote, remoteAddress), listener);
  }

  /** NNG bridges with state, peers and counters. */
  bridges(): readonly BridgeStatus[] {
    return this.gateway.bridges.list();
  }

  /** MQTT clients, connected or not. */
  clients(): Iterable<ClientView> {
    return this.gateway.broker.clients();
  }

  /** Ends the connection of a client; false: it has none. `dropSession`: its session ends too. */
  disconnect(clientId: string, dropSession = false): boolean {
    return this.gateway.broker.kick(clientId, dropSession);
  }

  /** Calls `handler` for each client that was refused at CONNECT, until the returned function is called. */
  onRefused(
    handler: (refused: { readonly clientId: string; readonly remote: string; readonly reason: string }) => void,
  ): () => void {
    return this.gateway.broker.onEvent((event) => {
      if (event.kind === 'refused') handler({ clientId: event.clientId, remote: event.remote, reason: event.reason });
    });
  }

  /**
   * Publishes to every subscriber and every rule that matches. Resolves when the message is accepted: at QoS 1 and 2
   * with persistence, when it is stored. While the gateway is over its memory budget it waits before it publishes: who
   * awaits each call is slowed down as clients are. Rejects with GatewayError for a topic that is no Topic Name, or
   * when it cannot be kept.
   */
  async publish(topic: string, payload: Uint8Array | string, options: PublishOptions = {}): Promise<void> {
    if (!isTopicName(topic)) throw new GatewayError('CLI-USAGE', `not a topic name: ${JSON.stringify(topic)}`);
    const client = this.attached();
    while (this.held !== null) await this.held;
    this.slowDown(client);
    while (this.held !== null) await this.held;
    const bytes = typeof payload === 'string' ? Buffer.from(payload) : payload;
    const { qos = 0, retain = false, properties = null } = options;
    this.gateway.turn.enter();
    let outcome: ReturnType<LocalClient['publish']>;
    try {
      outcome = client.publish(topic, bytes, 0, bytes.length, qos, retain, properties);
    } finally {
      this.gateway.turn.leave();
    }
    if (outcome !== 'accepted' && outcome !== 'no-subscribers')
      throw new GatewayError('GW-STATE', `publish ${outcome}`);
    const hold = qos > 0 ? client.lastHold() : null;
    if (hold !== null) await settled(hold);
  }

  /**
   * Calls `handler` for each message that matches, in order; gives the function that ends it. Where the handler gives a
   * promise, the publisher of a QoS 1 or 2 message is acknowledged when it has settled, and refused when it rejects.
   */
  subscribe(topicFilter: string, handler: Handler, options: SubscribeOptions = {}): () => void {
    if (!isTopicFilter(topicFilter))
      throw new GatewayError('CLI-USAGE', `not a topic filter: ${JSON.stringify(topicFilter)}`);
    const client = this.attached();
    const subscription: LocalSubscription = {
      topicFilter,
      qos: options.qos ?? 0,
      retainHandling: options.retained === false ? 2 : 0,
      receiver: { receive: (publication, qos) => this.hand(handler, publication, qos) },
    };
    client.subscribe(subscription);
    return () => client.unsubscribe(subscription);
  }

  /** A Scalability Protocols socket whose inproc:// names are those of the bridges of this gateway. Stopped with it. */
  socket(protocol: Protocol, options: SpSocketOptions = {}): SpSocket {
    const socket = this.gateway.native.open(protocol, {
      sendBuffer: options.sendBuffer ?? SEND_BUFFER,
      overflow: options.overflow ?? 'drop_oldest',
      recvMaxSize: options.recvMaxSize ?? RECV_MAX,
      reconnectMaxMs: RECONNECT_MAX_MS,
      ipcMode: null,
      ipcGroup: null,
      interface: null,
      tlsServer: null,
      tlsClient: null,
    });
    this.sockets.add(socket);
    return socket;
  }

  /** A handler must not hurt its publisher by more than a refusal. */
  private hand(handler: Handler, publication: Publication, qos: Qos): void {
    try {
      const answer = handler(received(publication, qos));
      if (!(answer instanceof Promise)) return;
      const hold = publication.qos > 0 ? publication.hold() : null;
      hold?.add();
      answer.then(
        () => hold?.done(),
        (error: unknown) => {
          this.failed(error);
          hold?.done(IMPLEMENTATION_SPECIFIC_ERROR);
        },
      );
    } catch (error) {
      this.failed(error);
      if (publication.qos === 0) return;
      publication.hold().add();
      publication.hold().done(IMPLEMENTATION_SPECIFIC_ERROR);
    }
  }

  private failed(error: unknown): void {
    this.log('error', 'HOOK-FAILED', { hook: 'subscribe', why: 'error', error: errorText(error) });
  }

  /** Takes part in what slows clients down. */
  private slowDown(client: LocalClient): void {
    let resume = (): void => {};
    client.relieve({
      pause: () => {
        this.held = new Promise((resolve) => {
          resume = () => {
            this.held = null;
            resolve();
          };
        });
      },
      resume: () => resume(),
    });
  }

  private attached(): LocalClient {
    if (this.client === null) throw new GatewayError('GW-STATE', 'the gateway is not running');
    return this.client;
  }
}

function received(publication: Publication, qos: Qos): ReceivedMessage {
  const { topic, retain, properties } = publication;
  return { topic, payload: Uint8Array.from(publication.payload()), qos, retain, properties };
}

function settled(hold: Hold): Promise<void> {
  return new Promise((resolve, reject) => {
    hold.whenDone((reasonCode) => {
      if (reasonCode < 0x80) resolve();
      else reject(new GatewayError('STORE-WRITE', 'the message could not be kept'));
    });
  });
}

/**
 * Makes a gateway; nothing is opened before start(). Throws GatewayError CFG-INVALID with every problem of the
 * configuration, or for hooks that are none.
 */
export function createGateway(source: GatewaySource, options: GatewayOptions = {}): EmbeddedGateway {
  const { env = {} } = options;
  const load = (set: readonly string[] = [], kept?: string) => loadConfig({ ...sourceOf(source), set, env, kept });
  const hooks = checkHooks(options.hooks);
  const parts = {
    log: options.log ?? nullLog,
    clock: systemClock,
    load,
    relog: () => {},
    hooks,
    transports: options.transports,
  };
  return new EmbeddedGateway(new Gateway(load(), parts), parts.log);
}

function sourceOf(source: GatewaySource): Pick<Parameters<typeof loadConfig>[0], 'file' | 'text'> {
  if ('file' in source) return { file: source.file };
  if ('hocon' in source) return { text: { text: source.hocon, dialect: 'hocon' } };
  if ('toml' in source) return { text: { text: source.toml, dialect: 'toml' } };
  return { text: { text: JSON.stringify(source.tree), dialect: 'hocon' } };
}

// The library for programs that were written for aedes: the same names over a gateway of this process. `import { Aedes
// } from 'tidegate/aedes'` in the place of 'aedes'. What this broker does otherwise, or not at all, refuses with a
// text that says so; docs/embedding.md has the table. Sources: the documentation of aedes 1.x (Aedes.md, Client.md).
import { randomUUID } from 'node:crypto';
import { EventEmitter } from 'node:events';
import type { Duplex } from 'node:stream';
import { errorText, GatewayError } from './base/errors.ts';
import type { Log } from './base/log.ts';
import type { ClientView } from './broker/broker.ts';
import {
  createGateway,
  type DeliveredInstead,
  type EmbeddedGateway,
  type GatewaySource,
  type HookClient,
  type Properties,
  type PublishedMessage,
  type Publisher,
  type Qos,
  type RefusalCode,
} from './index.ts';

/** A PUBLISH as aedes' hooks have it. */
export interface AedesPacket {
  readonly cmd: 'publish';
  readonly topic: string;
  readonly payload: Buffer;
  readonly qos: Qos;
  readonly retain: boolean;
  readonly properties?: Properties;
}

export interface AedesSubscription {
  readonly topic: string;
  readonly qos: Qos;
}

export interface ConnectRequest {
  readonly cmd: 'connect';
  readonly clientId: string;
  readonly username: string | undefined;
  readonly password: Buffer | undefined;
}

export type AuthenticateError = Error & { returnCode?: number };

/** The options of aedes that are known here, and the gateway's own configuration. */
export interface AedesOptions {
  /** A configuration of this gateway under the broker; its listeners are opened beside what `handle` serves. */
  readonly gateway?: GatewaySource;
  readonly log?: Log;
  readonly id?: string;
  readonly maxTopicLevels?: number;
  readonly concurrency?: number;
  readonly heartbeatInterval?: number;
  readonly queueLimit?: number;
  readonly drainTimeout?: number;
  readonly maxInflightInbound?: number;
  preConnect?(client: AedesClient, packet: ConnectRequest, done: (error: Error | null, success: boolean) => void): void;
  authenticate?(
    client: AedesClient,
    username: string | undefined,
    password: Buffer | undefined,
    done: (error: AuthenticateError | null, success: boolean | null) => void,
  ): void;
  authorizePublish?(client: AedesClient | null, packet: AedesPacket, done: (error?: Error | null) => void): void;
  authorizeSubscribe?(
    client: AedesClient,
    subscription: AedesSubscription,
    done: (error: Error | null, subscription?: AedesSubscription | null) => void,
  ): void;
  /** null or nothing: the message is not sent to this client. */
  authorizeForward?(client: AedesClient, packet: AedesPacket): AedesPacket | null | undefined;
  published?(packet: AedesPacket, client: AedesClient | null, done: (error?: Error | null) => void): void;
}

type Hook =
  | 'preConnect'
  | 'authenticate'
  | 'authorizePublish'
  | 'authorizeSubscribe'
  | 'authorizeForward'
  | 'published';
const HOOKS: readonly Hook[] = [
  'preConnect',
  'authenticate',
  'authorizePublish',
  'authorizeSubscribe',
  'authorizeForward',
  'published',
];

/** Without effect: the gateway bounds this itself. */
const NEEDLESS = new Set(['concurrency', 'heartbeatInterval', 'queueLimit', 'drainTimeout', 'maxInflightInbound']);
const OPTIONS = new Set<string>([...HOOKS, ...NEEDLESS, ...['gateway', 'log', 'id', 'maxTopicLevels']]);
/** What would be a silent change of behaviour. */
const NOT_HERE: Readonly<Record<string, string>> = {
  mq: 'several gateways share a broker with broker.engine = aedes and broker.redis',
  persistence: 'messages and sessions are kept with persistence.path of the option gateway',
  decodeProtocol: 'listeners of the option gateway read the PROXY protocol',
  connectTimeout: 'a client has 10 seconds for its CONNECT; listeners of the option gateway have connect_timeout',
  keepaliveLimit: 'mqtt of the option gateway has the keep-alive keys',
  maxClientsIdLength: 'client ids may be as long as the specification allows',
  trustProxy: 'listeners of the option gateway read the PROXY protocol',
  trustedProxies: 'listeners of the option gateway read the PROXY protocol',
};
const EVENTS_NOT_HERE = new Set(['ping', 'ack']);
/** Return codes of 3.1.1 (section 3.2.2.3) as those of MQTT 5. */
const RETURN_CODES: ReadonlyMap<number | undefined, RefusalCode> = new Map<number | undefined, RefusalCode>([
  [2, 0x85],
  [3, 0x88],
  [4, 0x86],
  [5, 0x87],
]);

function refused(text: string): GatewayError {
  return new GatewayError('CLI-USAGE', `tidegate/aedes: ${text}`);
}

/** A client as aedes' hooks and events have it. */
export class AedesClient extends EventEmitter {
  readonly id: string;
  readonly username: string | null;
  clean = true;
  version = 4;
  connecting = true;
  connected = false;
  closed = false;
  /** The stream that was given to handle(); null while it is not known, and for clients of listeners. */
  conn: Duplex | null = null;
  readonly remoteAddress: string;
  readonly broker: Aedes;
  /** Why authorizePublish has ended it. */
  fault: Error | null = null;

  constructor(broker: Aedes, { clientId, username, remoteAddress }: HookClient) {
    super();
    this.broker = broker;
    this.id = clientId;
    this.username = username;
    this.remoteAddress = remoteAddress;
  }

  /** Ends the connection; the session of a client that keeps one stays. */
  close(done?: () => void): void {
    this.broker.end(this.id);
    if (done !== undefined) queueMicrotask(done);
  }

  publish(): never {
    throw refused('client.publish() is not available: publish on a topic that the client subscribes to');
  }

  subscribe(): never {
    throw refused('client.subscribe() is not available: topics.auto_subscribe of the option gateway does it');
  }

  unsubscribe(): never {
    throw refused('client.unsubscribe() is not available');
  }

  emptyOutgoingQueue(): never {
    throw refused('client.emptyOutgoingQueue() is not available');
  }
}

/** Calls a function with a callback as its last argument once, whatever it does. */
function answered<T>(call: (done: (value: T) => void) => void): Promise<T> {
  return new Promise((resolve, reject) => {
    try {
      call(resolve);
    } catch (error) {
      reject(error as Error);
    }
  });
}

type Deliver = (packet: AedesPacket, done: () => void) => void;

export class Aedes extends EventEmitter {
  readonly id: string;
  closed = false;
  preConnect: AedesOptions['preConnect'];
  authenticate: AedesOptions['authenticate'];
  authorizePublish: AedesOptions['authorizePublish'];
  authorizeSubscribe: AedesOptions['authorizeSubscribe'];
  authorizeForward: AedesOptions['authorizeForward'];
  published: AedesOptions['published'];
  private readonly gateway: EmbeddedGateway;
  private readonly log: Log | undefined;
  private readonly byId = new Map<string, AedesClient>();
  private readonly streams = new Map<string, Duplex>();
  private readonly subscriptions: { topic: string; deliver: Deliver; end: () => void }[] = [];
  private streamCount = 0;

  /** Use Aedes.createBroker(). */
  private constructor(options: AedesOptions) {
    super();
    this.id = options.id ?? randomUUID();
    this.log = options.log;
    for (const name of HOOKS) Object.assign(this, { [name]: options[name] });
    this.gateway = createGateway(options.gateway ?? sourceOf(options), {
      log: options.log,
      hooks: {
        authenticate: (client, username, password) => this.letIn(client, username, password),
        authorizePublish: (client, packet) => this.mayPublish(client, packet),
        authorizeSubscribe: (client, { topic, qos }) => this.maySubscribe(client, { topic, qos: qos as Qos }),
        ...(options.authorizeForward === undefined
          ? {}
          : { deliver: (message, client) => this.forward(message, client) }),
        published: (message, publisher) => this.tellPublished(message, publisher),
        connected: (view) => this.came(view),
        disconnected: (view, reason) => this.went(view, reason),
        subscribed: ({ clientId, topicFilter }) =>
          this.emit('subscribe', [{ topic: topicFilter }], this.clientOf(clientId)),
        unsubscribed: ({ clientId, topicFilter }) => this.emit('unsubscribe', [topicFilter], this.clientOf(clientId)),
      },
    });
  }

  /** Rejects with GatewayError for an option that would be without effect unseen. */
  static async createBroker(options: AedesOptions = {}): Promise<Aedes> {
    for (const name of Object.keys(options)) {
      const why = NOT_HERE[name];
      if (why !== undefined) throw refused(`the option ${name} is not available: ${why}`);
      if (!OPTIONS.has(name)) throw refused(`the option ${name} is not known`);
    }
    const broker = new Aedes(options);
    await broker.gateway.start();
    broker.gateway.onRefused(({ clientId, reason }) => {
      if (broker.listenerCount('connectionError') > 0)
        broker.emit('connectionError', broker.clientOf(clientId), new Error(reason));
    });
    return broker;
  }

  get connectedClients(): number {
    return [...this.gateway.clients()].filter(({ connected }) => connected).length;
  }

  override on(event: string, listener: (...args: never[]) => void): this {
    if (EVENTS_NOT_HERE.has(event)) throw refused(`the event ${event} is not available`);
    return super.on(event, listener as (...args: unknown[]) => void);
  }

  /** Serves an MQTT client on a stream: to be given to net.createServer() and the like. */
  readonly handle = (stream: Duplex): void => {
    const remote = `stream-${++this.streamCount}`;
    const address: unknown = Reflect.get(stream, 'remoteAddress');
    this.streams.set(remote, stream);
    stream.once('close', () => this.streams.delete(remote));
    const remoteAddress = typeof address === 'string' ? address.replace(/^::ffff:/, '') : '';
    this.gateway.accept(stream, { remote, remoteAddress, listener: 'aedes' });
  };

  /** @param packet what is to be published; `client` stands for the publisher in aedes and is not used here */
  publish(
    packet: { topic: string; payload?: string | Uint8Array; qos?: Qos; retain?: boolean; properties?: Properties },
    ...rest: unknown[]
  ): void {
    const done = rest.find((one) => typeof one === 'function') as ((error?: Error) => void) | undefined;
    const { topic, payload = '', qos = 0, retain = false, properties = null } = packet;
    this.gateway.publish(topic, payload, { qos, retain, properties }).then(
      () => done?.(),
      (error: Error) => done?.(error),
    );
  }

  subscribe(topic: string, deliver: Deliver, done: () => void = () => {}): void {
    const end = this.gateway.subscribe(
      topic,
      (message) => answered<void>((next) => deliver(packetOf(message), () => next())),
      { qos: 2 },
    );
    this.subscriptions.push({ topic, deliver, end });
    queueMicrotask(done);
  }

  unsubscribe(topic: string, deliver: Deliver, done: () => void = () => {}): void {
    const at = this.subscriptions.findIndex((one) => one.topic === topic && one.deliver === deliver);
    if (at >= 0) this.subscriptions.splice(at, 1)[0].end();
    queueMicrotask(done);
  }

  close(done: () => void = () => {}): void {
    if (this.closed) {
      queueMicrotask(done);
      return;
    }
    this.closed = true;
    this.gateway.stop().then(
      () => {
        this.emit('closed');
        done();
      },
      (error: unknown) => {
        this.failed('close', error);
        done();
      },
    );
  }

  /** Of AedesClient. */
  end(clientId: string): void {
    this.gateway.disconnect(clientId);
  }

  // ---- hooks

  private clientOf(clientId: string, known?: HookClient): AedesClient {
    const found = this.byId.get(clientId);
    if (found !== undefined) return found;
    return new AedesClient(this, known ?? { clientId, username: null, remoteAddress: '', listener: '' });
  }

  private async letIn(
    hook: HookClient,
    username: string | null,
    password: Uint8Array | null,
  ): Promise<boolean | RefusalCode> {
    const client = new AedesClient(this, hook);
    const name = username ?? undefined;
    const secret = password === null ? undefined : Buffer.from(password);
    const { preConnect, authenticate } = this;
    if (preConnect !== undefined) {
      const packet: ConnectRequest = { cmd: 'connect', clientId: hook.clientId, username: name, password: secret };
      const taken = await answered<boolean>((done) =>
        preConnect(client, packet, (error, success) => done(error === null && success === true)),
      );
      if (!taken) return false;
    }
    if (authenticate === undefined) return true;
    return answered<boolean | RefusalCode>((done) =>
      authenticate(client, name, secret, (error, success) => {
        if (error !== null && error !== undefined) done(RETURN_CODES.get(error.returnCode) ?? false);
        else done(success === true);
      }),
    );
  }

  private mayPublish(
    hook: HookClient,
    { topic, qos, retain }: { readonly topic: string; readonly qos: number; readonly retain: boolean },
  ): boolean | Promise<boolean> {
    const { authorizePublish } = this;
    if (authorizePublish === undefined) return true;
    const packet = readOnly({ cmd: 'publish', topic, qos: qos as Qos, retain });
    const client = this.clientOf(hook.clientId, hook);
    const closes = (error: unknown): void => this.expel(hook.clientId, error);
    try {
      return now<boolean>((done) =>
        authorizePublish(client, packet, (error) => {
          const denied = error !== null && error !== undefined;
          if (denied) closes(error);
          done(!denied);
        }),
      );
    } catch (error) {
      closes(error);
      throw error;
    }
  }

  /** aedes closes the connection of a client whose PUBLISH is refused; an absent client's will is only not sent. */
  private expel(clientId: string, error: unknown): void {
    const client = this.byId.get(clientId);
    if (client === undefined) return;
    client.fault = error instanceof Error ? error : new Error(errorText(error));
    queueMicrotask(() => this.end(clientId));
  }

  private maySubscribe(hook: HookClient, subscription: AedesSubscription): boolean | Promise<boolean> {
    const { authorizeSubscribe } = this;
    if (authorizeSubscribe === undefined) return true;
    const client = this.clientOf(hook.clientId, hook);
    return now<boolean>((done) =>
      authorizeSubscribe(client, { ...subscription }, (error, granted) => {
        if (error !== null && error !== undefined) done(false);
        else if (granted === null || granted === undefined) done(false);
        else if (granted.topic !== subscription.topic || granted.qos !== subscription.qos)
          throw refused('authorizeSubscribe cannot change a subscription: topics.rewrite of the configuration does it');
        else done(true);
      }),
    );
  }

  private forward(message: PublishedMessage, hook: HookClient): boolean | DeliveredInstead {
    const packet = packetOf(message);
    const answer = this.authorizeForward?.(this.clientOf(hook.clientId, hook), packet);
    if (answer === null || answer === undefined) return false;
    if (answer.topic !== message.topic)
      throw refused('authorizeForward cannot change the topic: topics.rewrite of the configuration does it');
    return { payload: answer.payload, properties: answer.properties ?? null };
  }

  private async tellPublished(message: PublishedMessage, { kind, clientId }: Publisher): Promise<void> {
    const packet = packetOf(message);
    const client = kind === 'client' ? this.clientOf(clientId) : null;
    this.emit('publish', packet, client);
    const { published } = this;
    if (published === undefined) return;
    const error = await answered<Error | null | undefined>((done) => published(packet, client, done));
    if (error !== null && error !== undefined) throw error;
  }

  private came(view: ClientView): void {
    const { clientId, username, remote, listener, version } = view;
    const client = new AedesClient(this, { clientId, username, remoteAddress: remote, listener });
    client.version = version;
    client.conn = this.streams.get(remote) ?? null;
    client.connecting = false;
    client.connected = true;
    this.byId.set(clientId, client);
    this.emit('client', client);
    this.emit('clientReady', client);
    client.emit('connected');
  }

  private went({ clientId }: ClientView, reason: string): void {
    const client = this.clientOf(clientId);
    this.byId.delete(clientId);
    client.connected = false;
    client.closed = true;
    if (/keep.?alive/i.test(reason)) this.emit('keepaliveTimeout', client);
    else if ((client.fault !== null || !ORDERLY.has(reason)) && this.listenerCount('clientError') > 0)
      this.emit('clientError', client, client.fault ?? new Error(reason));
    this.emit('clientDisconnect', client);
  }

  private failed(hook: string, error: unknown): void {
    this.log?.('error', 'HOOK-FAILED', { hook, why: 'error', error: errorText(error) });
  }
}

/** What authorizePublish gets: whatever reads the payload or changes anything fails, and what fails refuses. */
function readOnly(packet: Omit<AedesPacket, 'payload'>): AedesPacket {
  return new Proxy(packet as AedesPacket, {
    get(target, name) {
      if (name === 'payload')
        throw refused('the payload is not available in authorizePublish: validation of the configuration checks it');
      return Reflect.get(target, name) as unknown;
    },
    set() {
      throw refused('authorizePublish cannot change a packet: topics.rewrite and authorizeForward do it');
    },
  });
}

/** Reasons that are no error of the client. */
const ORDERLY = new Set(['disconnected', 'closed by the peer']);

/** The answer at once where the function gives it at once: then nobody waits. */
function now<T>(call: (done: (value: T) => void) => void): T | Promise<T> {
  let answer: { readonly value: T } | null = null;
  let later: ((value: T) => void) | null = null;
  call((value) => {
    answer ??= { value };
    later?.(value);
  });
  const given = answer as { readonly value: T } | null;
  if (given !== null) return given.value;
  return new Promise<T>((resolve) => {
    later = resolve;
  });
}

function packetOf({ topic, payload, qos, retain, properties }: PublishedMessage): AedesPacket {
  const bytes = Buffer.from(payload.buffer, payload.byteOffset, payload.byteLength);
  return { cmd: 'publish', topic, payload: bytes, qos, retain, ...(properties === null ? {} : { properties }) };
}

/** A gateway without listeners, bounded as the options say. */
function sourceOf({ maxTopicLevels }: AedesOptions): GatewaySource {
  return {
    tree: {
      listeners: { tcp: { enable: false } },
      auth: { allow_anonymous: true },
      mqtt: { ...(maxTopicLevels === undefined ? {} : { max_topic_levels: maxTopicLevels }) },
    },
  };
}

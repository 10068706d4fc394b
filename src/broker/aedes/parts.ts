// What is used of the packages behind engine = aedes, and how they are loaded: only when the configuration asks for
// them. Called by engine.ts and redis.ts. The packages are optional: one that is missing is a BROKER-ENGINE error,
// never a crash later. Sources: the public interfaces of aedes 1.x, aedes-persistence 10/11, mqemitter 7 and ioredis 5.
import { createRequire } from 'node:module';
import type { Duplex, Readable } from 'node:stream';
import { errorText, GatewayError } from '../../base/errors.ts';
import type { Qos } from '../../mqtt/packet.ts';

/** aedes and its persistence match topics of at most this many levels. */
export const MOST_LEVELS = 100;

export type Callback = (error?: Error | null) => void;

/** A PUBLISH as aedes, its persistence and its emitter pass it on. */
export interface AedesPacket {
  cmd: 'publish';
  topic: string;
  payload: Buffer;
  qos: Qos;
  retain: boolean;
  dup: boolean;
  brokerId: string;
  brokerCounter: number;
  clientId?: string;
  messageId?: number;
  /** Ours, for the other gateways of a shared broker: who published it. */
  kind?: 'client' | 'bridge' | 'api';
  username?: string | null;
  bridge?: string | null;
  /** How its client came (mqtt/arrival.ts). */
  arrival?: string;
  /** Ours: the counters under which the message is queued at QoS 1 and 2. */
  counters?: readonly number[];
}

export interface AedesSubscription {
  topic: string;
  qos: Qos;
  clientId?: string;
}

export interface AedesClient {
  readonly id: string;
  readonly clean: boolean;
  readonly closed: boolean;
  readonly conn: Duplex;
  /** Counters of other brokers' messages: what has a lower one is taken for a duplicate. */
  duplicates: object;
  deliver0(packet: AedesPacket, done: () => void): void;
  deliverQoS(packet: AedesPacket, done: () => void): void;
  close(done?: () => void): void;
}

export interface Persistence {
  setup(broker: unknown): Promise<void>;
  storeRetained(packet: AedesPacket): Promise<void>;
  createRetainedStream(filter: string): Readable;
  createRetainedStreamCombi(filters: string[]): Readable;
  addSubscriptions(client: { id: string }, subscriptions: AedesSubscription[]): Promise<unknown>;
  cleanSubscriptions(client: { id: string }): Promise<unknown>;
  subscriptionsByTopic(topic: string): Promise<AedesSubscription[]>;
  outgoingEnqueueCombi(subscriptions: AedesSubscription[], packet: AedesPacket): Promise<unknown>;
  outgoingStream(client: { id: string }): Readable;
  putWill(client: { id: string }, packet: AedesPacket): Promise<unknown>;
  delWill(client: { id: string }): Promise<unknown>;
  outgoingClearMessageId(client: { id: string }, packet: AedesPacket): Promise<unknown>;
  subscriptionsByClient(client: { id: string }): Promise<AedesSubscription[]>;
  /** Packet ids of QoS 2 publishes that are not released yet. */
  incomingStorePacket(client: AedesClient, packet: AedesPacket): Promise<unknown>;
  incomingGetPacket(client: AedesClient, packet: AedesPacket): Promise<unknown>;
  incomingDelPacket(client: AedesClient, packet: AedesPacket): Promise<unknown>;
}

export interface Emitter {
  /** Of the one over Redis. */
  readonly state?: { on(event: 'error', handler: (error: Error) => void): unknown };
  on(topic: string, handler: (packet: AedesPacket, done: () => void) => void, done?: () => void): unknown;
  emit(packet: AedesPacket, done?: Callback): unknown;
}

export interface AedesOptions {
  readonly id?: string;
  readonly mq?: Emitter;
  readonly persistence?: Persistence;
  readonly concurrency: number;
  readonly connectTimeout: number;
  readonly drainTimeout: number;
  readonly maxClientsIdLength: number;
  readonly maxTopicLevels: number;
  readonly maxInflightInbound: number;
  readonly authenticate: (
    client: AedesClient,
    username: string | undefined,
    password: Buffer | undefined,
    done: (error: Error | null, accepted: boolean) => void,
  ) => void;
  readonly authorizePublish: (client: AedesClient | null, packet: AedesPacket, done: Callback) => void;
  readonly authorizeSubscribe: (
    client: AedesClient,
    subscription: AedesSubscription,
    done: (error: Error | null, subscription: AedesSubscription | null) => void,
  ) => void;
  readonly authorizeForward: (client: AedesClient, packet: AedesPacket) => AedesPacket | null;
}

export type AedesPublish = (
  packet: AedesPacket,
  client: AedesClient | Callback | null | undefined,
  done?: Callback,
) => void;

export interface Aedes {
  readonly id: string;
  counter: number;
  readonly mq: Emitter;
  readonly persistence: Persistence;
  publish: AedesPublish;
  subscribe: (topic: string, handler: (packet: AedesPacket, done: () => void) => void, done: Callback) => void;
  unsubscribe: (topic: string, handler: (packet: AedesPacket, done: () => void) => void, done?: Callback) => void;
  listen(): Promise<void>;
  handle(connection: Duplex): AedesClient;
  close(done: () => void): void;
  on(event: 'client', handler: (client: AedesClient) => void): unknown;
  on(event: 'clientError' | 'connectionError', handler: (client: AedesClient, error: Error) => void): unknown;
  on(event: 'ack', handler: (packet: AedesPacket | undefined, client: AedesClient) => void): unknown;
  on(event: 'subscribe', handler: (subscriptions: AedesSubscription[], client: AedesClient) => void): unknown;
  on(event: 'unsubscribe', handler: (filters: string[], client: AedesClient) => void): unknown;
  on(event: 'error', handler: (error: Error) => void): unknown;
}

/** The part of ioredis that is used. */
export interface Redis {
  readonly status: string;
  connect(): Promise<void>;
  disconnect(): void;
  llen(key: string): Promise<number>;
  smembers(key: string): Promise<string[]>;
  on(event: 'error', handler: (error: Error) => void): unknown;
  on(event: 'ready' | 'close', handler: () => void): unknown;
}

export interface RedisPackages {
  readonly persistence: (options: object) => Persistence;
  readonly emitter: (options: object) => Emitter;
  readonly redis: new (url: string, options: object) => Redis;
}

function missing(packages: string, error: unknown): GatewayError {
  const why = errorText(error).split('\n')[0];
  return new GatewayError(
    'BROKER-ENGINE',
    `engine = aedes needs the npm packages ${packages} (${why}); engine = native needs nothing`,
    error,
  );
}

/** @param name for tests: a package that is not there. Throws BROKER-ENGINE. */
export async function loadAedes(name = 'aedes'): Promise<new (options: AedesOptions) => Aedes> {
  try {
    const loaded = (await import(name)) as { Aedes?: new (options: AedesOptions) => Aedes };
    if (typeof loaded.Aedes !== 'function') throw new Error('version 1 expected');
    return loaded.Aedes;
  } catch (error) {
    throw missing('aedes 1.x', error);
  }
}

/** Throws BROKER-ENGINE. */
export function loadRedis(): RedisPackages {
  try {
    const from = createRequire(import.meta.url);
    const persistence = from.resolve('aedes-persistence-redis');
    // The client is the one the persistence brings: a connection of ours can be given to both packages.
    const found: unknown = createRequire(persistence)('ioredis');
    return {
      persistence: from(persistence) as RedisPackages['persistence'],
      emitter: from('mqemitter-redis') as RedisPackages['emitter'],
      redis: found as RedisPackages['redis'],
    };
  } catch (error) {
    throw missing('aedes-persistence-redis and mqemitter-redis', error);
  }
}

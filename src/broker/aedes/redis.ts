// The three connections to Redis through which gateways form one broker: queues and retained messages, publishing,
// listening. Opened by sharing.ts before the broker starts. Commands fail at once while Redis is away: nothing piles up
// in memory here.

import { errorText, GatewayError } from '../../base/errors.ts';
import { type Log, limitLog } from '../../base/log.ts';
import type { Metrics } from '../../base/metrics.ts';
import { REDIS_METRICS } from './metrics.ts';
import { type Emitter, loadRedis, type Persistence, type Redis } from './parts.ts';

const CONNECT_MS = 5000;
const COMMAND_MS = 5000;
const RECONNECT_MOST_MS = 5000;
/** Queues and retained messages, publishing, listening. */
const CONNECTIONS = 3;

/**
 * Commands that the packages send without looking at what becomes of them: a failure there must not end the process.
 */
const UNWATCHED = ['lrem', 'rpush', 'subscribe', 'psubscribe', 'unsubscribe', 'punsubscribe'] as const;

type Command = (...args: unknown[]) => Promise<unknown>;

function guard(redis: Redis): void {
  const commands = redis as unknown as Record<string, Command>;
  for (const name of UNWATCHED) {
    const send = commands[name].bind(redis);
    commands[name] = (...args) => {
      const sent = send(...args);
      sent.catch(() => {});
      return sent;
    };
  }
  commands.quit = async () => redis.disconnect();
}

export interface SharedStore {
  readonly persistence: Persistence;
  readonly emitter: Emitter;
  queueLength(clientId: string): Promise<number>;
  /** Client ids with kept subscriptions, of all gateways. */
  clients(): Promise<string[]>;
  /** Whether all connections are up. */
  ready(): boolean;
  close(): void;
}

export interface SharedOptions {
  readonly url: string;
  /** Seconds that queued messages are kept in Redis, 0 = for ever. */
  readonly keepSeconds: number;
  /** A connection has gone. */
  readonly onLost: () => void;
  /** All connections are up again. */
  readonly onReady: () => void;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly mono: () => number;
}

/** Throws BROKER-ENGINE when a package is missing or Redis does not answer. */
export async function openShared(options: SharedOptions): Promise<SharedStore> {
  const packages = loadRedis();
  const log = limitLog(options.log, options.mono, 1000);
  const connections: Redis[] = [];
  let up = 0;
  const open = (): Redis => {
    const redis = new packages.redis(options.url, {
      lazyConnect: true,
      enableOfflineQueue: false,
      connectTimeout: CONNECT_MS,
      commandTimeout: COMMAND_MS,
      maxRetriesPerRequest: 0,
      retryStrategy: (times: number) => Math.min(RECONNECT_MOST_MS, times * 100),
    });
    let ready = false;
    redis.on('error', (error) => log('error', 'BRK-REDIS', { error: errorText(error) }));
    redis.on('ready', () => {
      if (ready) return;
      up++;
      ready = true;
      if (up === CONNECTIONS) options.onReady();
    });
    redis.on('close', () => {
      if (!ready) return;
      up--;
      ready = false;
      options.onLost();
    });
    guard(redis);
    connections.push(redis);
    return redis;
  };
  const [conn, pubConn, subConn] = [open(), open(), open()];
  const close = (): void => {
    for (const redis of connections) redis.disconnect();
  };
  try {
    await Promise.all(connections.map((redis) => redis.connect()));
  } catch (error) {
    close();
    throw new GatewayError('BROKER-ENGINE', `Redis does not answer: ${errorText(error)}`, error);
  }
  options.metrics.read(REDIS_METRICS.connections, () => up);
  const { keepSeconds } = options;
  const emitter = packages.emitter({ pubConn, subConn, matchEmptyLevels: true, concurrency: 0 });
  // Each connection's errors are told above.
  emitter.state?.on('error', () => {});
  return {
    persistence: packages.persistence({
      conn,
      // As an index of Redis: all of it. Queues are bounded where they are filled (relay.ts).
      maxSessionDelivery: -1,
      packetTTL: () => keepSeconds,
    }),
    emitter,
    // The key of aedes-persistence-redis for the queue of a session.
    queueLength: (clientId) => conn.llen(`outgoing:${encodeURIComponent(clientId)}`),
    // The key of aedes-persistence-redis for its clients.
    clients: () => conn.smembers('clients'),
    ready: () => up === CONNECTIONS,
    close,
  };
}

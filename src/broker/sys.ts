// The $SYS tree: the names mosquitto users know, NanoMQ's client status events, bridges. Published by the gateway
// itself, retained, at an interval (0 = off). Built by broker/base.ts; clients cannot write below $SYS
// whatever their rights say (auth/).
import { getHeapStatistics } from 'node:v8';
import type { Timer } from '../base/clock.ts';
import { Publication } from '../mqtt/message.ts';
import type { Core } from '../session/session.ts';
import type { BrokerEvent } from './broker.ts';

export interface SysOptions {
  readonly version: string;
  /** Milliseconds; 0 = nothing is published. */
  readonly intervalMs: number;
  /** More values: below $SYS/, name -> text. */
  readonly more: () => Iterable<[string, string]>;
}

const LOAD_MINUTES = [1, 5, 15] as const;

/** A counter as a moving average for a minute, mosquitto's load figures. */
class Load {
  private last = 0;
  private readonly values: number[] = LOAD_MINUTES.map(() => 0);

  update(total: number, intervalMs: number): readonly number[] {
    const perMinute = ((total - this.last) * 60_000) / intervalMs;
    this.last = total;
    LOAD_MINUTES.forEach((minutes, i) => {
      const weight = Math.exp(-intervalMs / (minutes * 60_000));
      this.values[i] = this.values[i] * weight + perMinute * (1 - weight);
    });
    return this.values;
  }
}

export class SysTree {
  private readonly core: Core;
  private readonly options: SysOptions;
  private readonly sessions: () => { total: number; connected: number };
  private readonly startedMs: number;
  private readonly last = new Map<string, string>();
  private readonly loads = new Map<string, Load>();
  private intervalMs: number;
  private timer: Timer | null = null;
  private maximum = 0;

  constructor(core: Core, options: SysOptions, sessions: () => { total: number; connected: number }) {
    this.core = core;
    this.options = options;
    this.sessions = sessions;
    this.intervalMs = options.intervalMs;
    this.startedMs = core.clock.mono();
  }

  start(): void {
    if (this.intervalMs === 0) return;
    this.publishAll();
    this.timer = this.core.clock.every(this.intervalMs, () => this.publishAll());
  }

  /** Goes on at another interval; at 0 what has been published is cleared. */
  setInterval(intervalMs: number): void {
    if (intervalMs === this.intervalMs) return;
    this.stop();
    this.intervalMs = intervalMs;
    if (intervalMs === 0) this.clear();
    this.start();
  }

  stop(): void {
    this.timer?.cancel();
    this.timer = null;
  }

  /** $SYS/brokers/client_status/<clientid>: JSON, not retained, in NanoMQ's form. */
  clientStatus(event: BrokerEvent): void {
    if (this.intervalMs === 0) return;
    if (event.kind !== 'connected' && event.kind !== 'disconnected') return;
    this.publishClients();
    const { client } = event;
    const common = { username: client.username ?? '', ts: this.core.clock.now(), client_id: client.clientId };
    const address = client.remote.replace(/:\d+$/, '');
    const body =
      event.kind === 'connected'
        ? {
            status: 'online',
            ...common,
            proto_name: client.version === 3 ? 'MQIsdp' : 'MQTT',
            keepalive: client.keepAlive,
            return_code: '0',
            proto_ver: client.version,
            clean_start: client.cleanStart ? 1 : 0,
            IPv4: address,
          }
        : { status: 'offline', ...common, reason_code: String(event.reasonCode), IPv4: address };
    // A client id with wildcards or slashes could not be a topic level.
    if (/[+#/\0]/.test(client.clientId)) return;
    this.publish(`$SYS/brokers/client_status/${client.clientId}`, JSON.stringify(body), false);
  }

  private publishAll(): void {
    const { core } = this;
    const { stats, delivery, router } = core;
    core.turn.enter();
    const set = (name: string, value: string | number): void => this.set(`$SYS/broker/${name}`, String(value));
    this.publishClients();
    set('version', `tidegate version ${this.options.version}`);
    set('uptime', `${Math.floor((core.clock.mono() - this.startedMs) / 1000)} seconds`);
    set('clients/expired', stats.expiredSessions);
    set('messages/received', stats.received);
    set('messages/sent', delivery.sent);
    set('messages/stored', router.retainedCount + delivery.queuedMessages);
    set('store/messages/count', router.retainedCount + delivery.queuedMessages);
    set('store/messages/bytes', router.retainedBytes + delivery.queuedBytes);
    set('retained messages/count', router.retainedCount);
    set('subscriptions/count', router.subscriptionCount + router.sharedCount);
    set('shared_subscriptions/count', router.sharedCount);
    set('publish/messages/received', stats.received);
    set('publish/messages/sent', delivery.sent);
    set('publish/messages/dropped', dropped(core));
    set('publish/bytes/received', stats.receivedBytes);
    set('publish/bytes/sent', delivery.sentBytes);
    set('bytes/received', stats.bytesIn);
    set('bytes/sent', delivery.sentBytes);
    set('heap/current', getHeapStatistics().used_heap_size);
    this.load('messages/received', stats.received);
    this.load('messages/sent', delivery.sent);
    this.load('publish/received', stats.received);
    this.load('publish/sent', delivery.sent);
    this.load('bytes/received', stats.bytesIn);
    this.load('bytes/sent', delivery.sentBytes);
    this.load('connections', stats.connects);
    for (const [name, value] of this.options.more()) this.set(`$SYS/${name}`, value);
    core.turn.leave();
  }

  /** The counts of clients are kept current: who subscribes sees itself. */
  private publishClients(): void {
    const { total, connected } = this.sessions();
    this.maximum = Math.max(this.maximum, connected);
    const set = (name: string, value: number): void => this.set(`$SYS/broker/${name}`, String(value));
    set('clients/total', total);
    set('clients/connected', connected);
    set('clients/active', connected);
    set('clients/disconnected', total - connected);
    set('clients/inactive', total - connected);
    set('clients/maximum', this.maximum);
  }

  private load(name: string, total: number): void {
    let load = this.loads.get(name);
    if (load === undefined) {
      load = new Load();
      this.loads.set(name, load);
    }
    const values = load.update(total, this.intervalMs);
    for (const [i, minutes] of LOAD_MINUTES.entries())
      this.set(`$SYS/broker/load/${name}/${minutes}min`, values[i].toFixed(2));
  }

  private set(topic: string, value: string): void {
    if (this.last.get(topic) === value) return;
    this.last.set(topic, value);
    this.publish(topic, value, true);
  }

  private clear(): void {
    this.core.turn.enter();
    for (const topic of this.last.keys()) this.publish(topic, '', true);
    this.last.clear();
    this.core.turn.leave();
  }

  private publish(topic: string, value: string, retain: boolean): void {
    const publication = new Publication({ kind: 'server', clientId: '', username: null, bridge: null });
    publication.topic = topic;
    publication.retain = retain;
    publication.buffer = Buffer.from(value);
    publication.payloadEnd = publication.buffer.length;
    this.core.router.publish(publication, this.core.router.route(topic));
    this.core.router.stats.received--;
  }
}

/** Everything the outbound half has dropped, whatever the reason. */
export function dropped(core: Core): number {
  const d = core.delivery;
  return (
    d.droppedQueueFull +
    d.droppedSlow +
    d.droppedOffline +
    d.droppedTooLarge +
    d.droppedExpired +
    d.droppedForbidden +
    d.droppedByHook +
    d.refusedStore
  );
}

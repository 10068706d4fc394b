// What becomes of a message at QoS 1 and 2, and of one for other gateways: it is queued for the sessions that are kept,
// told to the other gateways, then delivered, in the order of publishing [MQTT-4.6.0-5]; only then its publisher is
// answered. Built by engine.ts. Queues are bounded here: the persistence of aedes has no bound of its own.
import { errorText } from '../../base/errors.ts';
import { type Log, limitLog } from '../../base/log.ts';
import type { DeliveryStats, OutboxLimits } from '../../delivery/delivery.ts';
import type { Hold, Message } from '../../mqtt/message.ts';
import type { Qos } from '../../mqtt/packet.ts';
import { IMPLEMENTATION_SPECIFIC_ERROR } from '../../mqtt/reason.ts';
import type { Aedes, AedesPacket, AedesSubscription } from './parts.ts';
import type { Later } from './router.ts';
import type { AedesSession } from './session.ts';

export interface RelayParts {
  readonly aedes: Aedes;
  readonly stats: DeliveryStats;
  readonly limits: () => OutboxLimits;
  readonly session: (clientId: string) => AedesSession | undefined;
  /** Messages in the stored queue of a session, wherever it was filled. */
  readonly queueLength: (clientId: string) => number | Promise<number>;
  /** Whether other gateways share the broker. */
  readonly shared: boolean;
  /** Whether this one knows all there is to know of them. */
  readonly inStep: () => boolean;
  readonly log: Log;
  readonly mono: () => number;
}

export interface Entry {
  readonly packet: AedesPacket;
  readonly message: Message;
  readonly later: readonly Later[];
  readonly hold: Hold | null;
  /** It came from another gateway, which has queued it. */
  readonly foreign: boolean;
  /** What is retained for its topic has changed. */
  readonly retained: AedesPacket | null;
  /** Sessions whose queue was full. */
  full: Set<string> | null;
  state: 'working' | 'ready' | 'failed';
}

const NO_COUNTERS = [0, 0, 0] as const;

export class Relay {
  /** Messages not told to other gateways because Redis was away. */
  unshared = 0;
  private entries: Entry[] = [];
  private first = 0;
  private readonly parts: RelayParts;
  private readonly log: Log;

  constructor(parts: RelayParts) {
    this.parts = parts;
    this.log = limitLog(parts.log, parts.mono, 1000);
  }

  push(entry: Entry): void {
    const { stats } = this.parts;
    entry.hold?.add();
    stats.queuedBytes += entry.message.bytes;
    this.entries.push(entry);
    this.work(entry).then(
      () => this.settle(entry, 'ready'),
      (error: unknown) => {
        this.log('error', 'BRK-SHARE', { error: errorText(error) });
        this.settle(entry, 'failed');
      },
    );
  }

  private settle(entry: Entry, state: Entry['state']): void {
    entry.state = state;
    const { entries } = this;
    while (this.first < entries.length && entries[this.first].state !== 'working') {
      const next = entries[this.first++];
      this.parts.stats.queuedBytes -= next.message.bytes;
      if (next.state === 'ready') this.deliver(next);
      next.hold?.done(next.state === 'ready' ? 0 : IMPLEMENTATION_SPECIFIC_ERROR);
    }
    if (this.first === entries.length || this.first > 1024) {
      this.entries = entries.slice(this.first);
      this.first = 0;
    }
  }

  private async work(entry: Entry): Promise<void> {
    if (entry.foreign) return;
    const { aedes, shared, inStep } = this.parts;
    const { packet, retained } = entry;
    if (shared && packet.qos > 0 && !inStep()) throw new Error('not in step with the other gateways');
    if (shared && retained !== null) await aedes.persistence.storeRetained(retained);
    if (packet.qos > 0) await this.enqueue(entry);
    if (!shared) return;
    await new Promise<void>((resolve, reject) => {
      aedes.mq.emit(packet, (error) => {
        if (error === undefined || error === null) resolve();
        else {
          this.unshared++;
          reject(error);
        }
      });
    });
  }

  /** One copy for each kept session, at the QoS it asked for. */
  private async enqueue(entry: Entry): Promise<void> {
    const { aedes } = this.parts;
    const { packet } = entry;
    const found = await aedes.persistence.subscriptionsByTopic(packet.topic);
    if (found.length === 0) return;
    const best = new Map<string, AedesSubscription>();
    for (const subscription of found) {
      const { clientId } = subscription;
      if (clientId === undefined) continue;
      // A filter that starts with a wildcard does not match $-topics [MQTT-4.7.2-1].
      if (packet.topic.startsWith('$') && /^[+#]/.test(subscription.topic)) continue;
      const before = best.get(clientId);
      if (before === undefined || before.qos < subscription.qos) best.set(clientId, subscription);
    }
    const groups: AedesSubscription[][] = [[], [], []];
    for (const [clientId, subscription] of best) {
      const session = this.parts.session(clientId);
      if (session?.bridge === true && packet.clientId === clientId) continue;
      if (session !== undefined && !session.mayReceive(packet.topic)) continue;
      if (!(await this.room(clientId, session))) {
        (entry.full ??= new Set()).add(clientId);
        continue;
      }
      if (session !== undefined) session.stored++;
      groups[Math.min(subscription.qos, packet.qos)].push(subscription);
    }
    for (const qos of [1, 2] as const) {
      if (groups[qos].length === 0) continue;
      await aedes.persistence.outgoingEnqueueCombi(groups[qos], this.copy(packet, qos));
    }
  }

  private room(clientId: string, session: AedesSession | undefined): boolean | Promise<boolean> {
    const { queueLength, inflight } = this.parts.limits();
    if (queueLength === 0) return true;
    const judge = (length: number): boolean => {
      if (length < queueLength + inflight) return true;
      this.parts.stats.droppedQueueFull++;
      session?.drop('queue-full');
      return false;
    };
    const length = this.parts.queueLength(clientId);
    return typeof length === 'number' ? judge(length) : length.then(judge);
  }

  private deliver(entry: Entry): void {
    const copies: (AedesPacket | null)[] = [null, null, null];
    for (const { session, qos } of entry.later) {
      if (session.client === null || entry.full?.has(session.clientId)) continue;
      copies[qos] ??= this.copy(entry.packet, qos);
      session.send(copies[qos]);
    }
  }

  /** Each QoS is a packet of its own: what is queued under one number has one QoS. */
  private copy(packet: AedesPacket, qos: Qos): AedesPacket {
    const brokerCounter = (packet.counters ?? NO_COUNTERS)[qos];
    const { topic, payload, brokerId } = packet;
    const made: AedesPacket = {
      cmd: 'publish',
      topic,
      payload,
      qos,
      retain: false,
      dup: false,
      brokerId,
      brokerCounter: brokerCounter > 0 ? brokerCounter : packet.brokerCounter,
    };
    if (packet.clientId !== undefined) made.clientId = packet.clientId;
    return made;
  }
}

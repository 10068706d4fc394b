// Records what is published on the topics of `record`: a receiver of the broker that gathers messages and hands them
// to the archive a few times a second. Built by gateway/archive.ts. Holds up nobody: what the archive does not take in
// time waits here up to a bound in bytes; beyond it messages are counted as missed, by metric and log.
import type { Clock, Timer } from '../base/clock.ts';
import type { Ledger } from '../base/ledger.ts';
import { type Log, limitLog } from '../base/log.ts';
import type { Cell, Metrics } from '../base/metrics.ts';
import type { Broker, LocalClient, LocalReceiver, LocalSubscription } from '../broker/broker.ts';
import type { Publication } from '../mqtt/message.ts';
import { matches } from '../mqtt/topic.ts';
import type { Archive } from './archive.ts';
import type { RecordBatch } from './protocol.ts';

const FLUSH_MS = 250;
/** A batch this large goes at once. */
const BATCH_BYTES = 1 << 20;
const BATCH_MESSAGES = 5000;
/** What may wait while the archive does not take it. */
const WAITING_BYTES = 16 << 20;
/** Counted for each message beside its payload. */
const MESSAGE_BYTES = 200;
const WARN_MS = 60_000;
/** Longer texts of publishers and properties are cut. */
const EXTRA_BYTES = 16_384;
const NAME_CHARACTERS = 256;

const RECORDED = {
  name: 'tidegate_recorded_messages_total',
  text: 'Messages written to the recording',
  type: 'counter',
  unit: 'items',
} as const;
const MISSED = {
  name: 'tidegate_recording_missed_messages_total',
  text: 'Messages that should have been recorded and were not: the disk was full or too slow',
  type: 'counter',
  unit: 'items',
} as const;

export interface RecorderParts {
  readonly broker: Pick<Broker, 'attach'>;
  readonly archive: Archive;
  readonly clock: Clock;
  readonly ledger: Ledger;
  readonly log: Log;
  readonly metrics: Metrics;
}

/** One filter. A message that an earlier one takes too comes by that one only. */
class FilterReceiver implements LocalReceiver {
  private readonly take: (publication: Publication) => void;
  private readonly earlier: readonly string[];
  private lastTopic = '';
  private lastTaken = false;

  constructor(take: (publication: Publication) => void, earlier: readonly string[]) {
    this.take = take;
    this.earlier = earlier;
  }

  receive(publication: Publication): void {
    if (this.earlier.length === 0 || !this.taken(publication.topic)) this.take(publication);
  }

  private taken(topic: string): boolean {
    if (topic !== this.lastTopic) {
      this.lastTopic = topic;
      this.lastTaken = this.earlier.some((filter) => matches(filter, topic));
    }
    return this.lastTaken;
  }
}

/** Messages that are gathered. */
class Gathering {
  readonly times: number[] = [];
  readonly topics: string[] = [];
  readonly flags: number[] = [];
  readonly ends: number[] = [];
  readonly extras: string[] = [];
  cost = 0;
  private payloads: Buffer = Buffer.allocUnsafe(16_384);
  private bytes = 0;

  get count(): number {
    return this.topics.length;
  }

  add(time: number, publication: Publication, extra: string, cost: number): void {
    const { buffer, payloadStart, payloadEnd } = publication;
    const size = payloadEnd - payloadStart;
    if (this.bytes + size > this.payloads.length) {
      const larger = Buffer.allocUnsafeSlow(Math.max(this.payloads.length * 2, this.bytes + size));
      larger.set(this.payloads.subarray(0, this.bytes));
      this.payloads = larger;
    }
    this.payloads.set(buffer.subarray(payloadStart, payloadEnd), this.bytes);
    this.bytes += size;
    this.times.push(time);
    this.topics.push(publication.topic);
    this.flags.push(publication.qos | (publication.retain ? 4 : 0));
    this.ends.push(this.bytes);
    this.extras.push(extra);
    this.cost += cost;
  }

  batch(): RecordBatch {
    return {
      times: Float64Array.from(this.times),
      topics: this.topics,
      flags: Uint8Array.from(this.flags),
      ends: Uint32Array.from(this.ends),
      payloads: this.payloads.subarray(0, this.bytes),
      extras: this.extras,
    };
  }
}

export class Recorder {
  private readonly parts: RecorderParts;
  private readonly warn: Log;
  private readonly recorded: Cell;
  private readonly missed: Cell;
  private readonly client: LocalClient;
  private subscriptions: LocalSubscription[] = [];
  private timer: Timer | null = null;
  private gathering = new Gathering();
  /** Batches that are on their way or failed, oldest first. */
  private readonly queue: Gathering[] = [];
  private waitingBytes = 0;
  private writing: Promise<void> | null = null;
  private lastExtra = '';
  private lastClientId: string | null = null;
  private lastUsername: string | null = null;

  constructor(parts: RecorderParts) {
    this.parts = parts;
    this.warn = limitLog(parts.log, () => parts.clock.mono(), WARN_MS);
    this.recorded = parts.metrics.cell(RECORDED);
    this.missed = parts.metrics.cell(MISSED);
    const options = { clientId: 'tidegate-record', username: null, kind: 'api', bridge: null, trusted: true } as const;
    this.client = parts.broker.attach(options);
  }

  get missedMessages(): number {
    return this.missed.value;
  }

  /** Records these topics from now on. */
  record(topics: readonly string[]): void {
    for (const subscription of this.subscriptions.splice(0)) this.client.unsubscribe(subscription);
    for (const [i, topicFilter] of topics.entries()) {
      const receiver = new FilterReceiver((publication) => this.take(publication), topics.slice(0, i));
      const subscription = { topicFilter, qos: 0, receiver, retainHandling: 2 } as const;
      this.subscriptions.push(subscription);
      this.client.subscribe(subscription);
    }
    this.timer ??= this.parts.clock.every(FLUSH_MS, () => this.flush());
  }

  /** Writes what is there, as far as the time reaches. */
  async stop(deadlineMs: number): Promise<void> {
    this.timer?.cancel();
    this.client.close();
    this.flush();
    const end = new Promise<void>((resolve) => this.parts.clock.after(deadlineMs, resolve));
    await Promise.race([this.writing ?? Promise.resolve(), end]);
    const left = this.queue.reduce((sum, { count }) => sum + count, 0);
    if (left > 0) this.miss(left);
  }

  // ---- inside

  private take(publication: Publication): void {
    const extra = this.extraOf(publication);
    const size = publication.payloadEnd - publication.payloadStart;
    const cost = size + extra.length + publication.topic.length + MESSAGE_BYTES;
    // A message that is larger than the bound by itself is taken while nothing else waits.
    if (this.waitingBytes > 0 && this.waitingBytes + cost > WAITING_BYTES) {
      this.miss(1);
      return;
    }
    this.waitingBytes += cost;
    this.parts.ledger.add('recording', cost);
    this.gathering.add(this.parts.clock.now(), publication, extra, cost);
    const { gathering } = this;
    if (gathering.cost >= BATCH_BYTES || gathering.count >= BATCH_MESSAGES) this.flush();
  }

  private miss(count: number): void {
    this.missed.value += count;
    this.warn('error', 'REC-MISSED', { missed: this.missed.value });
  }

  private flush(): void {
    if (this.gathering.count > 0) {
      this.queue.push(this.gathering);
      this.gathering = new Gathering();
    }
    if (this.writing === null && this.queue.length > 0)
      this.writing = this.drain().finally(() => {
        this.writing = null;
      });
  }

  /** One batch after the other; what is not taken stays first in the queue. */
  private async drain(): Promise<void> {
    for (let next = this.queue[0]; next !== undefined; next = this.queue[0]) {
      try {
        await this.parts.archive.write({ what: 'messages', batch: next.batch() });
      } catch {
        // The archive has logged it and is asked again by the next flush.
        return;
      }
      this.queue.shift();
      this.recorded.value += next.count;
      this.waitingBytes -= next.cost;
      this.parts.ledger.add('recording', -next.cost);
    }
  }

  /** JSON of publisher and properties; most messages of a publisher have the same. */
  private extraOf({ origin, properties }: Publication): string {
    const { clientId, username } = origin;
    if (properties === null && clientId === this.lastClientId && username === this.lastUsername) return this.lastExtra;
    const from = clientId.slice(0, NAME_CHARACTERS);
    const who = username === null ? { from } : { from, username: username.slice(0, NAME_CHARACTERS) };
    if (properties !== null) {
      const { contentType, payloadFormatIndicator, responseTopic, correlationData, userProperties } = properties;
      const known = {
        ...who,
        content_type: contentType,
        payload_format_indicator: payloadFormatIndicator,
        response_topic: responseTopic,
        correlation_data: correlationData === undefined ? undefined : Buffer.from(correlationData).toString('base64'),
        user_properties: userProperties,
      };
      const text = JSON.stringify(known);
      return text.length <= EXTRA_BYTES ? text : JSON.stringify({ ...who, properties_cut: true });
    }
    this.lastClientId = clientId;
    this.lastUsername = username;
    this.lastExtra = JSON.stringify(who);
    return this.lastExtra;
  }
}

// transparent = true: what local clients subscribe to is subscribed to at the remote broker as well.
// Made by fetch.ts. Compares what is wanted with what is there, at most once in a while, whatever happened in between.
import type { Clock, Timer } from '../../base/clock.ts';
import type { Broker } from '../../broker/broker.ts';
import type { Qos } from '../../mqtt/packet.ts';
import { isShared, matches } from '../../mqtt/topic.ts';

/** Subscribing and unsubscribing clients cause one look in so many milliseconds. */
const EVERY_MS = 500;

export interface FilterSink {
  subscribe(topicFilter: string, qos: Qos): void;
  unsubscribe(topicFilter: string): void;
}

export class Transparent {
  private readonly broker: Pick<Broker, 'onEvent' | 'subscriptions'>;
  private readonly clock: Clock;
  private readonly forget: () => void;
  private readonly known = new Map<string, Qos>();
  private sink: FilterSink | null = null;
  private timer: Timer | null = null;

  constructor(broker: Pick<Broker, 'onEvent' | 'subscriptions'>, clock: Clock) {
    this.broker = broker;
    this.clock = clock;
    this.forget = broker.onEvent((event) => {
      if (event.kind !== 'refused' && event.kind !== 'dropped') this.soon();
    });
  }

  /** A connection is open: it is told everything. */
  attach(sink: FilterSink): void {
    this.sink = sink;
    this.known.clear();
    this.look();
  }

  detach(): void {
    this.sink = null;
  }

  /** Whether a local client has asked for a topic. */
  wants(topic: string): boolean {
    for (const topicFilter of this.known.keys()) if (matches(topicFilter, topic)) return true;
    return false;
  }

  close(): void {
    this.forget();
    this.timer?.cancel();
    this.timer = null;
    this.sink = null;
  }

  private soon(): void {
    if (this.timer !== null || this.sink === null) return;
    this.timer = this.clock.after(EVERY_MS, () => {
      this.timer = null;
      this.look();
    });
  }

  private look(): void {
    const { sink, known } = this;
    if (sink === null) return;
    const wanted = new Map<string, Qos>();
    for (const { topicFilter, qos } of this.broker.subscriptions()) {
      // Which member of a shared group gets a message is decided here; local names of the gateway mean nothing there.
      if (isShared(topicFilter) || topicFilter.startsWith('$SYS')) continue;
      const before = wanted.get(topicFilter);
      if (before === undefined || before < qos) wanted.set(topicFilter, qos);
    }
    for (const topicFilter of [...known.keys()]) {
      if (wanted.has(topicFilter)) continue;
      known.delete(topicFilter);
      sink.unsubscribe(topicFilter);
    }
    for (const [topicFilter, qos] of wanted) {
      if (known.get(topicFilter) === qos) continue;
      known.set(topicFilter, qos);
      sink.subscribe(topicFilter, qos);
    }
  }
}

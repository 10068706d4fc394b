// The beginning of an exchange: the sessions that are needed at once are opened, their answers are waited for, the
// client gets one CONNACK for all. Made by exchange.ts.
//
//   begin() --> reached() of each --> up() or away() of each --> onOpen(CONNACK), once
//
// Sources: MQTT 5.0 sections 3.1.2.4 (sessions), 3.2.
import type { ConnackPacket, ConnectPacket } from '../../mqtt/packet.ts';
import type { ProxyOptions } from '../proxy.ts';
import type { Deliveries } from './deliveries.ts';
import type { Exchanges } from './exchanges.ts';
import { mergeConnacks, outlives } from './greeting.ts';
import type { Leg } from './leg.ts';
import type { Legs } from './legs.ts';
import type { TopicTable } from './table.ts';

export interface OpeningParts {
  readonly connect: ConnectPacket;
  readonly options: ProxyOptions;
  readonly table: TopicTable;
  readonly legs: Legs;
  readonly deliveries: Deliveries;
  readonly exchanges: Exchanges;
  /** Under which the proxy remembers the client. */
  readonly key: string;
  readonly onOpen: (connack: ConnackPacket) => void;
}

export class Opening {
  private readonly parts: OpeningParts;
  /** Answers of the sessions that are waited for; null = it is away, undefined = not yet. */
  private readonly answers = new Map<Leg, ConnackPacket | null | undefined>();
  /** Servers that are there and have not been sent CONNECT. */
  private readonly ready = new Set<Leg>();
  private toldPresent = false;

  constructor(parts: OpeningParts) {
    this.parts = parts;
  }

  begin(): void {
    const { connect, legs, table } = this.parts;
    const first = new Set([0]);
    // A session may be there already, or has to be there when the client comes again.
    if (!connect.cleanStart || outlives(connect)) for (const index of table.upstreams.keys()) first.add(index);
    if (legs.willIndex >= 0) first.add(legs.willIndex);
    const made = legs.prepare(first);
    for (const leg of made) this.answers.set(leg, undefined);
    for (const leg of made) leg.open();
  }

  /** A server has been reached; false = it gets CONNECT with the others. */
  reached(leg: Leg): boolean {
    if (this.parts.options.topicRouting.lost !== 'close') return true;
    // A session that would be given up at once because another server is away is not begun.
    this.ready.add(leg);
    if (this.ready.size < this.answers.size) return false;
    for (const one of this.ready) one.greet();
    return false;
  }

  /** A server has accepted. */
  up(leg: Leg, answer: ConnackPacket): void {
    this.answers.set(leg, answer);
    this.openWhenAll();
  }

  /** A server is away; the client begins without it. */
  away(leg: Leg): void {
    if (!this.answers.has(leg)) return;
    this.answers.set(leg, null);
    this.openWhenAll();
  }

  /** Whether the client believes that it has a session there which nobody has seen. */
  presumed(leg: Leg): boolean {
    return this.toldPresent && this.answers.get(leg) === null;
  }

  /** Deliveries of QoS 2 that the client may know under other identifiers than the servers; after the last answer. */
  recall(): void {
    const { connect, deliveries, exchanges, key, table } = this.parts;
    const remembered = exchanges.recall(key, table.upstreams);
    if (connect.cleanStart) return;
    const there = new Set<number>();
    for (const [leg, answer] of this.answers)
      if (answer === null || answer?.sessionPresent === true) there.add(leg.index);
    deliveries.restore(remembered.filter(({ upstream }) => there.has(upstream)));
  }

  private openWhenAll(): void {
    const answers = [...this.answers.values()];
    const [home] = answers;
    if (!answers.every((answer) => answer !== undefined) || !home) return;
    const { exchanges, legs, onOpen, options } = this.parts;
    const known = legs.missing.map((upstream) => exchanges.known(upstream));
    const merged = mergeConnacks(home, answers, known, options.topicRouting.maxPacketBytes);
    this.toldPresent = merged.sessionPresent;
    onOpen(merged);
  }
}

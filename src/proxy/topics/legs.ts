// The sessions of one client with servers, one for each upstream of its table, made when they are first needed. Made by
// exchange.ts. Knows which upstream publishes the client's will. Source: MQTT 5.0 section 3.1.
import type { ConnectPacket } from '../../mqtt/packet.ts';
import type { Connection } from '../../transport/transport.ts';
import type { Entrance } from '../entrance.ts';
import type { Facts } from '../facts.ts';
import type { ProxyOptions } from '../proxy.ts';
import { connectFor } from './greeting.ts';
import type { Held } from './held.ts';
import { Leg, type LegOwner } from './leg.ts';
import type { Loan } from './loan.ts';
import type { TopicRules, TopicTable } from './table.ts';

export interface LegsParts {
  readonly home: Entrance;
  readonly options: ProxyOptions;
  readonly topics: TopicRules;
  readonly table: TopicTable;
  readonly client: Connection;
  readonly facts: Facts;
  readonly connect: ConnectPacket;
  readonly held: Held;
  readonly loan: Loan;
  readonly owner: LegOwner;
  /** There is no such pool (any more). */
  readonly onNoPool: (upstream: string) => void;
}

export class Legs {
  /** Addresses that were dialled. */
  readonly tried: string[] = [];
  private readonly parts: LegsParts;
  private readonly byIndex: (Leg | null)[];

  constructor(parts: LegsParts) {
    this.parts = parts;
    this.byIndex = parts.table.upstreams.map(() => null);
  }

  /** Those that exist. */
  get all(): readonly Leg[] {
    return this.byIndex.filter((leg) => leg !== null);
  }

  /** Names of upstreams that have none yet. */
  get missing(): string[] {
    return this.parts.table.upstreams.filter((_, index) => this.byIndex[index] === null);
  }

  /** That of the route. */
  get home(): Leg | null {
    return this.byIndex[0];
  }

  /** The session with an upstream, opened when it is not; null = the client has as many as it may have, or no pool. */
  at(index: number): Leg | null {
    const leg = this.byIndex[index] ?? this.make(index);
    leg?.open();
    return leg;
  }

  /** Those for these upstreams, not opened yet; what is more than the client may have is left out. */
  prepare(indexes: ReadonlySet<number>): Leg[] {
    const made: Leg[] = [];
    for (const index of indexes) {
      const leg = this.make(index);
      if (leg === null) break;
      made.push(leg);
    }
    return made;
  }

  /** Index of the upstream where the will is published, -1 without a will. */
  get willIndex(): number {
    const { connect, table } = this.parts;
    return connect.will === null ? -1 : table.owner(Buffer.from(connect.will.topicName));
  }

  /** Goes on with what was put off. */
  go(): void {
    for (const leg of this.byIndex) leg?.go();
  }

  private make(index: number): Leg | null {
    const { connect, facts, home, onNoPool, options, table, topics } = this.parts;
    if (this.all.length >= options.topicRouting.maxSessions) return null;
    const upstream = table.upstreams[index];
    const pool = home.pool(upstream);
    if (pool === undefined) {
      onNoPool(upstream);
      return null;
    }
    const template = topics.clientIds.get(upstream);
    // All clients without an id would share the one that the template makes of nothing.
    const ownId = connect.clientId === '' || template === undefined || index === 0;
    const leg = new Leg({
      ...this.parts,
      index,
      pool,
      proxy: home.parts,
      sessions: home.cells.topics.sessions,
      onShortage: () => home.outOfDescriptors(),
      tried: this.tried,
      connect: connectFor(connect, {
        home: index === 0,
        clientId: ownId ? connect.clientId : template.fill(facts),
        will: this.willIndex === index,
        maxPacketBytes: options.topicRouting.maxPacketBytes,
      }),
    });
    this.byIndex[index] = leg;
    return leg;
  }
}

// What the parts of one client's exchange share: its servers, the way to the client, the counters. Made by exchange.ts.
import type { Cell } from '../../base/metrics.ts';
import type { Version } from '../../mqtt/packet.ts';
import { NOT_AUTHORIZED, QUOTA_EXCEEDED, UNSPECIFIED_ERROR } from '../../mqtt/reason.ts';
import type { ProxyOptions } from '../proxy.ts';
import type { Deliveries } from './deliveries.ts';
import type { Held } from './held.ts';
import type { Leg } from './leg.ts';
import type { TopicTable } from './table.ts';

/** Counters of a proxy with `topics`. */
export interface TopicCells {
  /** Sessions with servers that are open. */
  readonly sessions: Cell;
  /** Sessions that were lost while the client was there. */
  readonly lost: Cell;
  /** PUBLISH and SUBSCRIBE that no server was given. */
  readonly refused: Cell;
  /** Messages of a server on topics that belong to another upstream. */
  readonly foreign: Cell;
}

export interface Ends {
  readonly version: Version;
  readonly options: ProxyOptions;
  readonly table: TopicTable;
  readonly cells: TopicCells;
  readonly held: Held;
  readonly deliveries: Deliveries;
  /** The session with an upstream, opened when it is not; null = the client has as many as it may have. */
  leg(index: number): Leg | null;
  /** Those that exist. */
  legs(): readonly Leg[];
  /** Sends whole packets. */
  toClient(bytes: Buffer): void;
  /** Sends a range of a buffer that stays as it is. */
  passToClient(bytes: Buffer, start: number, end: number): void;
  /** Sends a range of a buffer that stays as it is; only to one that is ready. */
  passToServer(leg: Leg, bytes: Buffer, start: number, end: number): void;
  /** Before anything else is written to servers. */
  flushToServers(): void;
  /** Ends the client's connection because something is wrong. */
  close(code: number, reason: string): void;
  /** Ends it because one side wants so; servers get `farewell`, else they see a lost connection. */
  over(reason: string, farewell: Buffer | null): void;
}

/** Why an upstream takes nothing now, as a reason code of 5.0; 0 = it does, or it will soon. */
export function refusalOf(leg: Leg | null, lost: ProxyOptions['topicRouting']['lost']): number {
  if (leg === null) return QUOTA_EXCEEDED;
  if (leg.state === 'refused') return NOT_AUTHORIZED;
  if (leg.state === 'over' || (leg.state === 'down' && lost !== 'wait')) return UNSPECIFIED_ERROR;
  return 0;
}

// The metrics of bridges, declared once, and the counters of one rule.
// Called by the workers. Names, texts and types are what /metrics, REST and the console show.
import type { Cell, MetricSpec, Metrics } from '../base/metrics.ts';
import type { BridgeType, RuleView } from './bridge.ts';

export const BRIDGE_METRICS = {
  matched: {
    name: 'tidegate_bridge_matched_total',
    text: 'Messages that a rule took',
    type: 'counter',
    unit: 'messages',
  },
  forwarded: {
    name: 'tidegate_bridge_forwarded_total',
    text: 'Messages that a rule passed on to the other side',
    type: 'counter',
    unit: 'messages',
  },
  bytes: {
    name: 'tidegate_bridge_forwarded_bytes_total',
    text: 'Payload bytes that a rule passed on',
    type: 'counter',
    unit: 'bytes',
  },
  dropped: {
    name: 'tidegate_bridge_dropped_total',
    text: 'Messages that a rule took and did not pass on, by reason',
    type: 'counter',
    unit: 'messages',
  },
  unmatched: {
    name: 'tidegate_bridge_unmatched_total',
    text: 'Messages from the other side that no rule took',
    type: 'counter',
    unit: 'messages',
  },
  refused: {
    name: 'tidegate_bridge_peers_refused_total',
    text: 'SP peers closed for what they sent, by reason',
    type: 'counter',
    unit: 'connections',
  },
  queueDropped: {
    name: 'tidegate_bridge_queue_dropped_total',
    text: 'Messages dropped from the queues of slow SP peers',
    type: 'counter',
    unit: 'messages',
  },
  peers: { name: 'tidegate_bridge_peers', text: 'SP peers connected', type: 'gauge', unit: 'connections' },
  queued: {
    name: 'tidegate_bridge_queued_bytes',
    text: 'Bytes that wait for SP peers or the remote broker',
    type: 'gauge',
    unit: 'bytes',
  },
  queuedMessages: {
    name: 'tidegate_bridge_queued_messages',
    text: 'Messages that wait for the remote broker or its acknowledgement',
    type: 'gauge',
    unit: 'messages',
  },
  connected: {
    name: 'tidegate_bridge_connected',
    text: 'Whether the remote broker has let the bridge in (1) or not (0)',
    type: 'gauge',
    unit: 'none',
  },
  loops: {
    name: 'tidegate_bridge_loops_suspected_total',
    text: 'Messages that were forwarded so often within a second that they seem to go round in circles',
    type: 'counter',
    unit: 'messages',
  },
  connects: {
    name: 'tidegate_bridge_connects_total',
    text: 'Connections that the remote broker has accepted',
    type: 'counter',
    unit: 'connections',
  },
} as const satisfies Record<string, MetricSpec>;

/** Why a rule did not pass a message on. */
export type DropReason =
  | 'loop'
  | 'rate'
  | 'no-peer'
  | 'overflow'
  | 'stopped'
  | 'denied'
  | 'invalid-topic'
  | 'refused'
  | 'empty-payload'
  | 'payload-form'
  | 'missing-field'
  | 'no-response-topic'
  | 'timeout'
  | 'away'
  | 'slow'
  | 'queue-full'
  | 'store-full'
  | 'expired'
  | 'too-large'
  | 'refused-by-remote';

/** What each kind of rule may count: series are there from the start, as 0. */
export const DROPS = {
  /** MQTT to NNG. */
  out: ['loop', 'rate', 'no-peer', 'overflow', 'store-full', 'stopped'],
  /** NNG to MQTT. */
  in: ['rate', 'denied', 'invalid-topic', 'refused', 'empty-payload', 'payload-form', 'missing-field'],
  /** Requests to a local process. */
  ask: ['no-response-topic', 'timeout', 'stopped', 'queue-full', 'denied', 'invalid-topic', 'refused'],
  /** Requests of a local process. */
  answer: ['no-peer', 'refused'],
  /** To a remote broker. */
  forward: [
    ...(['loop', 'invalid-topic', 'missing-field', 'slow', 'away', 'queue-full', 'store-full', 'expired'] as const),
    ...(['too-large', 'refused-by-remote', 'stopped'] as const),
  ],
  /** From a remote broker. */
  fetch: ['loop', 'denied', 'refused', 'invalid-topic', 'missing-field'],
} as const satisfies Record<string, readonly DropReason[]>;

/** Counters of one rule; a rule at the same place of the same bridge goes on counting. */
export class RuleCounters {
  readonly matched: Cell;
  readonly forwarded: Cell;
  readonly bytes: Cell;
  private readonly metrics: Metrics;
  private readonly labels: { readonly bridge: string; readonly type: BridgeType; readonly rule: string };
  private readonly drops = new Map<DropReason, Cell>();

  /**
   * @param rule index in the configuration, or a word for what is no rule
   * @param reasons what it may count, a row of DROPS
   */
  constructor(metrics: Metrics, bridge: string, type: BridgeType, rule: string, reasons: readonly DropReason[]) {
    this.metrics = metrics;
    this.labels = { bridge, type, rule };
    this.matched = metrics.cell(BRIDGE_METRICS.matched, this.labels);
    this.forwarded = metrics.cell(BRIDGE_METRICS.forwarded, this.labels);
    this.bytes = metrics.cell(BRIDGE_METRICS.bytes, this.labels);
    for (const reason of reasons) this.cellOf(reason);
  }

  drop(reason: DropReason): void {
    const cell = this.drops.get(reason) ?? this.cellOf(reason);
    cell.value++;
  }

  view(index: number): RuleView {
    const dropped: Record<string, number> = {};
    for (const [reason, cell] of this.drops) if (cell.value > 0) dropped[reason] = cell.value;
    return { index, matched: this.matched.value, forwarded: this.forwarded.value, bytes: this.bytes.value, dropped };
  }

  private cellOf(reason: DropReason): Cell {
    const cell = this.metrics.cell(BRIDGE_METRICS.dropped, { ...this.labels, reason });
    this.drops.set(reason, cell);
    return cell;
  }
}

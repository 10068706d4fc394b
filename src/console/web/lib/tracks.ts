// What a bridge carries which way: its rules with their counters, whatever kind of bridge it is. Pure; used by the
// pictures of bridges.
import type { BridgeState, RuleCounters } from './types.ts';

/** out: from MQTT here to the peer or the remote broker; in: from there to MQTT here. */
export type Way = 'out' | 'in';

export interface Track {
  readonly way: Way;
  readonly counters: RuleCounters;
  /** Names the rule among all of all bridges. */
  readonly key: string;
}

/** Whether a bridge of this type has rules that send (`forwards`), and rules that receive (`subscription`). */
export function waysOf(type: string | null): readonly Way[] {
  if (type === 'req' || type === 'rep') return [];
  if (type === 'pub' || type === 'push') return ['out'];
  return type === 'sub' || type === 'pull' ? ['in'] : ['out', 'in'];
}

export function trackKey(bridge: Pick<BridgeState, 'kind' | 'type' | 'name'>, way: Way, index: number): string {
  return `${bridge.kind}/${bridge.type ?? ''}/${bridge.name}/${way}/${index}`;
}

/** All rules of a bridge: those that send are its `rules`, others stand beside them where it has both. */
export function tracksOf(bridge: BridgeState): Track[] {
  const ways = waysOf(bridge.type);
  const made = (way: Way, list: readonly RuleCounters[] | undefined): Track[] =>
    (list ?? []).map((counters) => ({ way, counters, key: trackKey(bridge, way, counters.index) }));
  if (ways.length === 1) return made(ways[0], bridge.rules);
  return [...made('out', bridge.rules), ...made('in', bridge.taking ?? bridge.remote?.fetching)];
}

/** What a bridge connects, and which way. */
export function directionOf({ kind, type }: Pick<BridgeState, 'kind' | 'type'>): string {
  if (kind === 'mqtt') return 'MQTT ↔ MQTT';
  const ways = waysOf(type);
  const arrow = ways.length !== 1 ? 'MQTT ↔ NNG' : ways[0] === 'out' ? 'MQTT → NNG' : 'NNG → MQTT';
  return type === 'pub' || type === 'sub' ? arrow : `${arrow} (${type ?? ''})`;
}

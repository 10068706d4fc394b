// The wiring of bridges: the supervisor with what NNG bridges and bridges to remote brokers are made of, and what $SYS
// and the log say of them. Called by gateway.ts. Nothing is dialled before Supervisor.start().
import type { Clock } from '../base/clock.ts';
import type { Log } from '../base/log.ts';
import type { Metrics } from '../base/metrics.ts';
import type { Turn } from '../base/turn.ts';
import type { BlockPool } from '../base/writer.ts';
import { MqttBridges } from '../bridge/mqtt/bridges.ts';
import { Spools } from '../bridge/nng/spool.ts';
import type { Taps } from '../bridge/nng/taps.ts';
import { Supervisor } from '../bridge/supervisor.ts';
import type { Engine } from '../broker/broker.ts';
import type { Config } from '../config/config.ts';
import { nngBridges } from '../config/nngbridges.ts';
import type { SpDriver } from '../sp/sp.ts';
import { bridgeOptions } from './options.ts';
import { remoteDialing } from './transports.ts';

export interface BridgingParts {
  readonly broker: Engine;
  readonly clock: Clock;
  readonly turn: Turn;
  readonly pool: BlockPool;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly taps: Taps;
  /** The SP sockets of the gateway itself. */
  readonly native: SpDriver;
  /** The limit that holds now, in bytes. */
  readonly maxPacketSize: () => number;
  readonly maxQueueBytes: () => number;
}

/** The bridges of `config`, not started. */
export function makeBridges(config: Config, parts: BridgingParts): Supervisor {
  const { broker, clock, turn, pool, log, metrics, taps, native, maxPacketSize, maxQueueBytes } = parts;
  const { journal, spools: kept, bridgeSessions: sessions } = broker;
  const names = config.bridges.mqtt.map((bridge) => bridge.name);
  const shared = { broker, clock, turn, log, metrics };
  const limits = { maxPacketSize, maxQueueBytes };
  const mqtt = new MqttBridges(
    { ...remoteDialing(clock), ...shared, ...limits, journal, spools: kept, sessions, pool },
    names,
  );
  const spools = new Spools(journal, clock, log, kept, nngBridges(config.bridges.nng));
  const retained: Engine['retained'] = (filter) => broker.retained(filter);
  const driver = (name: SpDriver['name']): SpDriver | Promise<SpDriver> =>
    name === 'native' ? native : foreignDriver(parts);
  return new Supervisor({ ...shared, retained, driver, spools, mqtt, taps }, bridgeOptions(config));
}

/** The C library's driver, loaded when a bridge first asks for it; a failure is that bridge's state. */
async function foreignDriver({ clock, turn }: BridgingParts): Promise<SpDriver> {
  const { nanomsgDriver } = await import('../sp/nanomsg.ts');
  return nanomsgDriver({ clock, turn });
}

/** What $SYS has of each bridge: name below $SYS and text. */
export function* bridgeValues(bridges: Supervisor): Generator<[string, string]> {
  for (const bridge of bridges.list()) {
    const base = `bridges/${bridge.type}/${bridge.name.replace(/[+#/\0]/g, '_')}`;
    yield [`${base}/state`, bridge.state];
    yield [`${base}/peers`, String(bridge.peers.length)];
    for (const rule of bridge.rules) {
      yield [`${base}/rules/${rule.index}/matched`, String(rule.matched)];
      yield [`${base}/rules/${rule.index}/forwarded`, String(rule.forwarded)];
    }
    yield [`${base}/unmatched`, String(bridge.unmatched)];
    yield [`${base}/dropped`, String(bridge.dropped)];
  }
}

/** The bridges that are on, by type; undefined where there are none. */
export function namesByType(bridges: Supervisor): Record<string, string[]> | undefined {
  const names: Record<string, string[]> = {};
  for (const { type, name, enabled } of bridges.list()) {
    if (!enabled) continue;
    names[type] ??= [];
    names[type].push(name);
  }
  return Object.keys(names).length === 0 ? undefined : names;
}

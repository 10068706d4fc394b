// Bridges to remote brokers for the supervisor: makes their workers, loading the code when the first one is made, and
// keeps the outbox of each and its end of the remote's session over its restarts. Built by gateway/bridging.ts. Knows
// what the journal has kept for bridges, and drops it when its bridge is gone.

import { BRIDGE_SESSION } from '../../mqtt/clientid.ts';
import type { Restored, RestoredSession, SpoolEntry } from '../../store/store.ts';
import type { BridgeWorker, MqttBridgeOptions } from '../bridge.ts';
import type { MqttWorkers } from '../nng/link.ts';
import type { Kept } from './bridge.ts';
import type { MqttParts } from './options.ts';

export interface MqttBridgesOptions extends MqttParts {
  /** What an earlier process has left in the journal. */
  readonly spools: Restored['spools'];
  /** The ends of sessions at remote brokers that it has left. */
  readonly sessions: readonly RestoredSession[];
  /** Bytes that may wait for one remote broker. */
  readonly maxQueueBytes: () => number;
}

/** What waits for the remote of a bridge, in the journal. */
const spoolName = (bridge: string): string => `mqtt:${bridge}`;
/** Which of it the remote has received. */
const marksName = (bridge: string): string => `mqtt-received:${bridge}`;
/** This end of the remote's session. */
const sessionKey = (bridge: string): string => `${BRIDGE_SESSION}mqtt:${bridge}`;

export class MqttBridges implements MqttWorkers {
  private readonly options: MqttBridgesOptions;
  private readonly kept = new Map<string, Kept>();
  private readonly spools: Map<string, readonly SpoolEntry[]>;
  private readonly sessions: Map<string, RestoredSession>;

  /** @param names of all bridges that are configured, enabled or not: what waits for others is dropped. */
  constructor(options: MqttBridgesOptions, names: readonly string[]) {
    const { log, journal } = options;
    this.options = options;
    this.spools = new Map(options.spools);
    this.sessions = new Map(options.sessions.map((one) => [one.session.clientId, one]));
    const spools = new Set(names.flatMap((name) => [spoolName(name), marksName(name)]));
    for (const [spool, entries] of this.spools) {
      if (!spool.startsWith('mqtt')) continue;
      const kept = spools.has(spool);
      if (spool.startsWith('mqtt:'))
        log(kept ? 'info' : 'warn', 'MQB-SPOOL', { bridge: spool.slice(5), messages: entries.length, kept });
      if (!kept) this.drop(spool);
    }
    const keys = new Set(names.map(sessionKey));
    for (const key of this.sessions.keys()) if (!keys.has(key)) journal.sessionDelete(key);
  }

  async make(options: MqttBridgeOptions): Promise<BridgeWorker> {
    const { MqttBridge } = await import('./bridge.ts');
    return new MqttBridge(options, this.options, await this.of(options.name));
  }

  forget(name: string): void {
    const kept = this.kept.get(name);
    this.kept.delete(name);
    const left = kept?.outbox.length ?? this.spools.get(spoolName(name))?.length ?? 0;
    if (left > 0) this.options.log('warn', 'MQB-DROPPED', { bridge: name, reason: 'removed', messages: left });
    if (kept !== undefined) {
      kept.outbox.clear();
      kept.session.forget();
      return;
    }
    this.drop(spoolName(name));
    this.drop(marksName(name));
    if (this.sessions.delete(sessionKey(name))) this.options.journal.sessionDelete(sessionKey(name));
  }

  private async of(bridge: string): Promise<Kept> {
    const known = this.kept.get(bridge);
    if (known !== undefined) return known;
    const { MqttOutbox } = await import('./outbox.ts');
    const { RemoteSession } = await import('./session.ts');
    const name = spoolName(bridge);
    const marks = marksName(bridge);
    const { journal, clock, log, maxQueueBytes } = this.options;
    const outbox = new MqttOutbox(
      { name, marks, journal, clock, maxBytes: maxQueueBytes() },
      this.spools.get(name) ?? [],
      this.spools.get(marks) ?? [],
    );
    this.spools.delete(name);
    this.spools.delete(marks);
    if (outbox.damaged > 0) log('error', 'MQB-SPOOL', { bridge, damaged: outbox.damaged });
    const session = new RemoteSession(sessionKey(bridge), journal, this.sessions.get(sessionKey(bridge)) ?? null);
    const kept = { outbox, session };
    this.kept.set(bridge, kept);
    return kept;
  }

  private drop(spool: string): void {
    this.spools.delete(spool);
    this.options.journal.spoolDelete(spool, Number.POSITIVE_INFINITY);
  }
}

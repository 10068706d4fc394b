// Bridges to remote brokers for the supervisor: makes their workers, loading the code when the first one is made, and keeps the outbox
// of each over its restarts. Built by gateway/gateway.ts. Knows what the journal has kept for bridges, and drops it when its bridge is gone.

import type { Restored } from '../../store/store.ts';
import type { BridgeWorker, MqttBridgeOptions } from '../bridge.ts';
import type { MqttWorkers } from '../nng/link.ts';
import type { MqttParts } from './options.ts';
import type { MqttOutbox } from './outbox.ts';

export interface MqttBridgesOptions extends MqttParts {
  /** What an earlier process has left in the journal. */
  readonly spools: Restored['spools'];
  /** Bytes that may wait for one remote broker. */
  readonly maxQueueBytes: () => number;
}

/** Of a bridge, in the journal. */
const spoolName = (bridge: string): string => `mqtt:${bridge}`;

export class MqttBridges implements MqttWorkers {
  private readonly options: MqttBridgesOptions;
  private readonly outboxes = new Map<string, MqttOutbox>();
  private readonly spools: Map<string, Restored['spools'] extends ReadonlyMap<string, infer T> ? T : never>;

  /** @param names of all bridges that are configured, enabled or not: what waits for others is dropped. */
  constructor(options: MqttBridgesOptions, names: readonly string[]) {
    this.options = options;
    this.spools = new Map(options.spools);
    const known = new Set(names.map(spoolName));
    for (const [spool, entries] of this.spools) {
      if (!spool.startsWith('mqtt:')) continue;
      const kept = known.has(spool);
      options.log(kept ? 'info' : 'warn', 'MQB-SPOOL', { bridge: spool.slice(5), messages: entries.length, kept });
      if (!kept) this.drop(spool);
    }
  }

  async make(options: MqttBridgeOptions): Promise<BridgeWorker> {
    const { MqttBridge } = await import('./bridge.ts');
    return new MqttBridge(options, this.options, await this.outboxOf(options.name));
  }

  forget(name: string): void {
    const outbox = this.outboxes.get(name);
    this.outboxes.delete(name);
    const left = outbox?.length ?? this.spools.get(spoolName(name))?.length ?? 0;
    if (left > 0) this.options.log('warn', 'MQB-DROPPED', { bridge: name, reason: 'removed', messages: left });
    if (outbox === undefined) this.drop(spoolName(name));
    else outbox.clear();
  }

  private async outboxOf(bridge: string): Promise<MqttOutbox> {
    const known = this.outboxes.get(bridge);
    if (known !== undefined) return known;
    const { MqttOutbox } = await import('./outbox.ts');
    const name = spoolName(bridge);
    const { journal, clock, log, maxQueueBytes } = this.options;
    const outbox = new MqttOutbox({ name, journal, clock, maxBytes: maxQueueBytes() }, this.spools.get(name) ?? []);
    this.spools.delete(name);
    if (outbox.damaged > 0) log('error', 'MQB-SPOOL', { bridge, damaged: outbox.damaged });
    this.outboxes.set(bridge, outbox);
    return outbox;
  }

  private drop(spool: string): void {
    this.spools.delete(spool);
    this.options.journal.spoolDelete(spool, Number.POSITIVE_INFINITY);
  }
}

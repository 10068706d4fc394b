// The broker of a gateway: which engine the configuration asks for, on which journal. Called once by gateway.ts at
// start. Code that only one engine needs is loaded for it. Starts nothing that outlives a failed start.
import type { AccessControl } from '../auth/chain.ts';
import { processCpuMs, type ResumedClock } from '../base/clock.ts';
import { GatewayError } from '../base/errors.ts';
import type { Ledger } from '../base/ledger.ts';
import type { Log } from '../base/log.ts';
import type { Metrics } from '../base/metrics.ts';
import type { Turn } from '../base/turn.ts';
import type { BlockPool } from '../base/writer.ts';
import type { EngineOptions } from '../broker/base.ts';
import type { Engine } from '../broker/broker.ts';
import { NativeBroker } from '../broker/native/engine.ts';
import type { Config } from '../config/config.ts';
import type { Policies } from '../policy/policy.ts';
import { memoryJournal } from '../store/memory.ts';
import type { Journal } from '../store/store.ts';
import { version } from '../version.ts';
import type { ProgramHooks } from './hooks.ts';
import { presets, sessionLimits } from './options.ts';
import { buildQuotas } from './policies.ts';

export interface EngineParts {
  readonly clock: ResumedClock;
  readonly turn: Turn;
  readonly pool: BlockPool;
  readonly ledger: Ledger;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly access: AccessControl;
  readonly policies: Policies | null;
  readonly hooks: ProgramHooks | null;
  /** What tracing adds to the native engine. */
  readonly traced?: Pick<EngineOptions, 'newRoutes' | 'sentFor'>;
  /** Further values below $SYS: name and text. */
  readonly sysValues: () => Iterable<[string, string]>;
}

/** The engine, started. Throws CFG-INVALID for hooks that the engine cannot ask. */
export async function startEngine(config: Config, parts: EngineParts): Promise<Engine> {
  const { clock, turn, pool, ledger, log, metrics, access, policies, hooks } = parts;
  const common = {
    clock,
    turn,
    pool,
    ledger,
    cpuMs: processCpuMs,
    log,
    metrics,
    limits: sessionLimits(config),
    localAccess: () => access.access(''),
    absentees: access.absentees,
    sys: { version, intervalMs: config.mqtt.sysIntervalMs, more: parts.sysValues },
  };
  let broker: Engine;
  if (config.broker.engine === 'aedes') {
    if (hooks?.alterFor) throw new GatewayError('CFG-INVALID', 'hooks: deliver needs broker.engine = native');
    const { AedesBroker } = await import('../broker/aedes/engine.ts');
    broker = new AedesBroker({ ...common, journal: memoryJournal(), redis: config.broker.redis });
  } else {
    const resumeTime = (steadyMs: number): void => clock.resume(steadyMs);
    const journal = await journalOf(config, parts);
    const quotas = await buildQuotas(config, metrics);
    const alterFor = hooks?.alterFor ?? null;
    const own = { journal, resumeTime, policies, quotas, alterFor };
    broker = new NativeBroker({ ...common, ...own, ...parts.traced });
  }
  await broker.start();
  broker.preset(presets(config));
  return broker;
}

async function journalOf(config: Config, { clock, log, metrics }: EngineParts): Promise<Journal> {
  if (!config.persistence.enable) return memoryJournal();
  const { sqliteJournal } = await import('../store/sqlite.ts');
  return sqliteJournal({ ...config.persistence, small: config.broker.profile === 'small', clock, log, metrics });
}

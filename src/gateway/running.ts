// The configuration of a running gateway: what holds now, and how another one comes into force (SIGHUP, REST) piece by
// piece. Made by gateway.ts. A configuration that is wrong changes nothing; what could not be applied is logged,
// counted and told. Users and rights come first and as one unit: whatever fails later, nobody keeps a right that was
// taken away.
import { dirname } from 'node:path';
import type { AccessControl } from '../auth/chain.ts';
import type { AuthOptions } from '../auth/options.ts';
import { errorText } from '../base/errors.ts';
import type { Log } from '../base/log.ts';
import type { Cell, Metrics } from '../base/metrics.ts';
import type { Supervisor } from '../bridge/supervisor.ts';
import type { Engine } from '../broker/broker.ts';
import type { Config, Loaded, LogConfig } from '../config/config.ts';
import { same, withNode } from '../config/keep.ts';
import { ConfigError, formatProblem } from '../config/problem.ts';
import { type Change, diffConfig } from '../config/reload.ts';
import { type BlockNode, textNode } from '../config/text/node.ts';
import type { ChangeResult, ConfigControl, JsonObject } from '../console/console.ts';
import type { Policies } from '../policy/policy.ts';
import type { AccountsService } from './accounts.ts';
import type { BridgesControl } from './bridges.ts';
import { KeptFile, type LoadKept, type Plan, type Planner } from './kept.ts';
import type { Listeners } from './listeners.ts';
import type { OnDemand } from './ondemand.ts';
import { authOptions, bridgeOptions, presets, sessionLimits } from './options.ts';
import { buildPolicies, buildQuotas } from './policies.ts';
import { checkRules, type RulesControl } from './rules.ts';

/** What exists of a gateway that runs. */
export interface Running {
  readonly access: AccessControl;
  readonly accounts: AccountsService;
  readonly broker: Engine;
  readonly bridges: Supervisor;
  readonly control: BridgesControl;
  readonly listeners: Listeners;
  readonly rules: RulesControl;
}

/** Something that was started and has to be stopped. */
export interface Part {
  readonly name: string;
  stop(deadlineMs: number): Promise<void>;
}

export interface RunningConfigParts {
  readonly log: Log;
  readonly metrics: Metrics;
  /**
   * Reads the configuration again, `set` on top, `kept` as LoadOptions has it. Throws like loadConfig, and for what
   * cannot run here.
   */
  readonly load: LoadKept;
  readonly relog: (log: LogConfig) => void;
  /** null while the gateway is not ready. */
  readonly running: () => Running | null;
  /** Parts that are loaded on demand take their sections. */
  readonly onDemand: () => Pick<OnDemand, 'applyWebhook' | 'applyProxies' | 'applyRecord'>;
  /** The console takes up renewed certificates and keys. */
  readonly renewHttp: () => Promise<void>;
}

type Values = ReadonlyMap<string, string | number | boolean>;

const OK = {
  name: 'tidegate_config_ok',
  text: '1 while the last reload of the configuration went through, 0 after one that failed or could not be applied in full',
  type: 'gauge',
  unit: 'none',
} as const;
const RELOADS = {
  name: 'tidegate_config_reloads_total',
  text: 'Reloads of the configuration by their outcome: applied, partly, refused',
  type: 'counter',
  unit: 'items',
} as const;

export class RunningConfig {
  loaded: Loaded;
  private readonly parts: RunningConfigParts;
  /** What the parts that take a restart were started with. */
  private readonly started: Loaded;
  private readonly ok: Cell;
  /** Keys set by REST, by name: on top of the file until the next start. */
  private set: ReadonlyMap<string, string> = new Map();
  private reloading: Promise<unknown> = Promise.resolve();
  private readonly kept: KeptFile;

  constructor(loaded: Loaded, parts: RunningConfigParts) {
    this.loaded = loaded;
    this.started = loaded;
    this.parts = parts;
    this.kept = new KeptFile(loaded.file === null ? null : (loaded.files[0] ?? null), parts.load, parts.log);
    this.ok = parts.metrics.cell(OK);
    for (const outcome of ['applied', 'partly', 'refused']) parts.metrics.cell(RELOADS, { outcome });
    this.ok.value = 1;
  }

  get config(): Config {
    return this.loaded.config;
  }

  /** Where files of this gateway may be kept beside its configuration; null: there is none. */
  get folder(): string | null {
    return this.kept.file === null ? null : dirname(this.kept.file);
  }

  /** Reads the file again and applies what differs, one reload after the other. Never rejects. */
  reload(): Promise<ChangeResult> {
    return this.inLine(() => this.reloadNow(this.set));
  }

  /**
   * Has a change written to tidegate.d and brought into force, in line with reloads. `what` is for the log. Never
   * rejects.
   */
  keep(what: string, planner: Planner): Promise<ChangeResult> {
    return this.inLine(() => this.kept.change(what, planner));
  }

  /** For REST and console. `keys` stays with the caller: the schema is loaded for it alone. */
  control(): Omit<ConfigControl, 'keys'> {
    return {
      current: () => this.loaded.config,
      view: () => this.loaded.masked as JsonObject,
      reload: () => this.reload(),
      set: (values, keep = false) =>
        keep
          ? this.keep([...values.keys()].join(' '), (tree, load) => this.planKeys(values, tree, load))
          : this.inLine(() => this.reloadNow(this.with(values), true)),
      keptFile: () => this.kept.file,
      check: (values) => {
        const next = this.loadNext(this.with(values));
        if (typeof next === 'string') return invalid(next);
        const problems = this.parts.running()?.rules.problems(next.config.rules) ?? [];
        return problems.length === 0 ? { ok: true } : invalid(problems.map(formatProblem).join('\n'));
      },
    };
  }

  // ---- inside

  private with(values: Values): ReadonlyMap<string, string> {
    const set = new Map(this.set);
    for (const [name, value] of values) set.set(name, String(value));
    return set;
  }

  /** Keys that are in the file need not be set any more. */
  private planKeys(values: Values, kept: BlockNode, load: LoadKept): Plan {
    let tree = kept;
    const words: string[] = [];
    const left = new Map(this.set);
    for (const [name, value] of values) {
      const text = String(value);
      tree = withNode(tree, name.split('.'), textNode(text, kept.at));
      words.push(`${name}=${text}`);
      left.delete(name);
    }
    return {
      tree,
      holds: (next, text) => same(next.tree, load(words, text).tree),
      apply: () => this.reloadNow(left, true),
    };
  }

  private inLine<T>(work: () => Promise<T>): Promise<T> {
    const next = this.reloading.then(work);
    this.reloading = next.catch(() => {});
    return next;
  }

  /** The configuration as it would be now, or what is wrong with it. */
  private loadNext(set: ReadonlyMap<string, string>): Loaded | string {
    try {
      return this.parts.load([...set].map(([name, value]) => `${name}=${value}`));
    } catch (error) {
      return textOf(error);
    }
  }

  /** What is to hold for topics and payloads, once rules and schemas are known to be right; or what is wrong. */
  private async policiesOf(config: Config): Promise<Policies | string | null> {
    try {
      await checkRules(config);
      return await buildPolicies(config, this.parts.metrics);
    } catch (error) {
      return textOf(error);
    }
  }

  private authOf(config: Config): AuthOptions | string {
    try {
      return authOptions(config, this.folder);
    } catch (error) {
      return textOf(error);
    }
  }

  private refused(error: string): ChangeResult {
    this.parts.log('error', 'GW-RELOAD-FAILED', { error });
    this.count('refused');
    return invalid(error);
  }

  private count(outcome: 'applied' | 'partly' | 'refused'): void {
    this.parts.metrics.cell(RELOADS, { outcome }).value++;
    this.ok.value = outcome === 'applied' ? 1 : 0;
  }

  /**
   * @param sparing bridges that were changed at run time stay as they are, unless what files say of bridges has changed
   */
  private async reloadNow(set: ReadonlyMap<string, string>, sparing = false): Promise<ChangeResult> {
    const running = this.parts.running();
    if (running === null) return this.refused('the gateway is not running');
    const next = this.loadNext(set);
    if (typeof next === 'string') return this.refused(next);
    const policies = await this.policiesOf(next.config);
    if (typeof policies === 'string') return this.refused(policies);
    const options = this.authOf(next.config);
    if (typeof options === 'string') return this.refused(options);
    const access = await running.access.reload(options);
    if (!access.ok) return this.refused(access.error.message);
    running.broker.accessChanged();
    running.broker.setPolicies?.(policies);
    running.accounts.renew();
    const clientsDropped = running.broker.dropRevoked(access.revoked);
    void running.broker.endSubscriptions((identity, filter) => running.access.deniesSubscription(identity, filter));
    const changes = diffConfig(this.loaded, next);
    this.loaded = next;
    this.set = set;
    const bridges = !sparing || changes.some((change) => change.part.startsWith('bridges.'));
    const failed = await this.apply(running, next, changes, bridges);
    const { usersAdded, usersRemoved, usersChanged } = access;
    const needRestart = diffConfig(this.started, next).filter((change) => change.restart);
    const report = {
      changed: changes.map(nameOf),
      usersAdded,
      usersRemoved,
      usersChanged,
      clientsDropped,
      needRestart: needRestart.map(nameOf),
      failed,
    };
    this.count(failed.length === 0 ? 'applied' : 'partly');
    this.parts.log(failed.length === 0 ? 'warn' : 'error', 'GW-RELOAD', report);
    return { ok: true, report };
  }

  /** Every part gets its section, whatever becomes of the others. Gives the names of what could not be applied. */
  private async apply(
    running: Running,
    next: Loaded,
    changes: readonly Change[],
    withBridges: boolean,
  ): Promise<string[]> {
    const { broker, bridges, control, listeners } = running;
    const { config } = next;
    const failed: string[] = [];
    const attempt = async (part: string, work: () => Promise<void>): Promise<void> => {
      try {
        await work();
      } catch (error) {
        failed.push(part);
        this.parts.log('error', 'GW-INTERNAL', { part, error: errorText(error) });
      }
    };
    if (changes.some((change) => change.part === 'quotas'))
      broker.setQuotas?.(await buildQuotas(config, this.parts.metrics));
    broker.setLimits(sessionLimits(config));
    broker.setSysInterval(config.mqtt.sysIntervalMs);
    broker.preset(presets(config));
    this.parts.relog(config.log);
    await attempt('listeners', async () => {
      const names = changes.filter((c) => c.part === 'listeners' && (c.rebind || c.kind !== 'changed'));
      const touched = new Set(names.map((change) => change.name ?? ''));
      if (touched.size > 0) {
        const closed = await listeners.apply(config.listeners, touched, config.mqtt.maxPacketSize);
        failed.push(...closed.map((name) => `listeners.${name}`));
      }
      failed.push(...(await listeners.reloadCertificates()).map((name) => `listeners.${name}: certificate`));
    });
    if (changes.some((change) => change.part === 'rules') || withBridges)
      await attempt('rules', () => running.rules.apply(config.rules, next.tree));
    if (withBridges) await attempt('bridges', () => bridges.apply(bridgeOptions(config)));
    if (changes.some((change) => change.part === 'webhook'))
      await attempt('webhook', () => this.parts.onDemand().applyWebhook(config));
    if (changes.some((change) => change.part === 'record'))
      await attempt('record', () => this.parts.onDemand().applyRecord(config));
    await attempt('http_server: certificate', () => this.parts.renewHttp());
    await attempt('proxy', async () => {
      failed.push(...(await this.parts.onDemand().applyProxies(config)).map((name) => `proxy.${name}`));
    });
    if (withBridges) control.take(next.tree, next.masked, config.bridges.nng.compat);
    return failed;
  }
}

function nameOf({ part, name }: Change): string {
  return name === null ? part : `${part}.${name}`;
}

function textOf(error: unknown): string {
  return error instanceof ConfigError ? error.problems.map(formatProblem).join('\n') : errorText(error);
}

function invalid(error: string): ChangeResult {
  return { ok: false, why: 'invalid', problems: [{ pointer: '', message: error }] };
}

// Bridges as REST, console and `ctl` see and change them: documents in, checked views out, secrets masked.
// Built by gateway.ts for console/. A change that is not valid changes nothing and says where in the document it is wrong.
import type { BridgeOptions, BridgeStatus, BridgeType } from './bridge/bridge.ts';
import { buildFrame, Extractor } from './bridge/rules.ts';
import type { ChangeOutcome, Supervisor } from './bridge/supervisor.ts';
import type { MqttBridgeConfig, NngBridgeConfig, NngCompat, Tree } from './config/config.ts';
import { type Read, readForward, readMqttBridge, readNng, readSubscription } from './config/documents.ts';
import type {
  BridgeControl,
  BridgeRef,
  BridgeView,
  ChangeResult,
  JsonObject,
  Trial,
  TrialResult,
} from './console/console.ts';
import { matches } from './mqtt/topic.ts';
import { mqttBridgeOptions } from './settings.ts';

interface Block {
  readonly tree: Tree;
  readonly masked: Tree;
}

const key = (type: BridgeType | null, name: string): string => `${type}:${name}`;

/** Which bridges a reference is about; null = none. */
function typeOf(ref: BridgeRef): BridgeType | null {
  return ref.kind === 'mqtt' ? 'mqtt' : ref.direction;
}

export class BridgesControl implements BridgeControl {
  private readonly supervisor: Supervisor;
  private readonly blocks = new Map<string, Block>();
  private compat: NngCompat = 'documented';

  constructor(supervisor: Supervisor) {
    this.supervisor = supervisor;
  }

  /** Takes the blocks of a configuration that was just loaded. */
  take(tree: Tree, masked: Tree, compat: NngCompat): void {
    this.compat = compat;
    this.blocks.clear();
    for (const type of ['pub', 'sub', 'push', 'pull', 'pair', 'mqtt'] as const) {
      const path = type === 'mqtt' ? ['bridges', 'mqtt'] : ['bridges', 'nng', type];
      const named = dig(tree, path);
      const shown = dig(masked, path);
      for (const [name, block] of Object.entries(named)) {
        this.blocks.set(key(type, name), { tree: block as Tree, masked: (shown[name] ?? {}) as Tree });
      }
    }
  }

  *list(): Iterable<BridgeView> {
    for (const status of this.supervisor.list()) yield this.view(status);
  }

  get(ref: BridgeRef): BridgeView | undefined {
    const type = typeOf(ref);
    if (type === null) return undefined;
    const status = this.supervisor.get(type, ref.name);
    return status === undefined ? undefined : this.view(status);
  }

  add(ref: BridgeRef, document: JsonObject): Promise<ChangeResult> {
    return this.put(ref, document, null, (options) => this.supervisor.add(options));
  }

  change(ref: BridgeRef, document: JsonObject): Promise<ChangeResult> {
    const current = this.blocks.get(key(typeOf(ref), ref.name))?.tree ?? null;
    return this.put(ref, document, current, (options) => this.supervisor.change(options));
  }

  async remove(ref: BridgeRef): Promise<ChangeResult> {
    const type = typeOf(ref);
    if (type === null) return { ok: false, why: 'missing' };
    const outcome = await this.supervisor.remove(type, ref.name);
    if (outcome === 'ok') this.blocks.delete(key(type, ref.name));
    return result(outcome);
  }

  async switch(ref: BridgeRef, on: boolean): Promise<ChangeResult> {
    const type = typeOf(ref);
    if (type === null) return { ok: false, why: 'missing' };
    return result(await this.supervisor.enable(type, ref.name, on));
  }

  test(trial: Trial): TrialResult {
    if (trial.direction === 'pub') {
      const read = readForward(trial.rule as Tree, this.compat);
      if (!read.ok) return { ok: false, problems: read.problems };
      const rule = read.value;
      if (!rule.enable) return { ok: true, matched: false, reason: 'the rule is not enabled' };
      if (!matches(rule.localTopic, trial.topic))
        return { ok: true, matched: false, reason: 'the topic does not match local_topic' };
      if (rule.retain === 'live' && trial.retain)
        return { ok: true, matched: false, reason: 'the rule takes live messages only' };
      return {
        ok: true,
        matched: true,
        direction: 'pub',
        frame: buildFrame(rule, this.compat, trial.topic, trial.payload),
      };
    }
    const read = readSubscription(trial.rule as Tree, this.compat);
    if (!read.ok) return { ok: false, problems: read.problems };
    if (!read.value.enable) return { ok: true, matched: false, reason: 'the rule is not enabled' };
    const extractor = new Extractor([read.value], this.compat);
    const found = extractor.extract(trial.frame, 0, trial.frame.length);
    if (found !== 'match' && found !== 'fallback') return { ok: true, matched: false, reason: found };
    const payload = trial.frame.subarray(extractor.payloadStart);
    const { qos, retain } = found === 'match' ? read.value : { qos: 0, retain: false };
    return { ok: true, matched: true, direction: 'sub', topic: extractor.topic, payload, qos, retain };
  }

  private async put(
    ref: BridgeRef,
    document: JsonObject,
    current: Tree | null,
    apply: (options: BridgeOptions) => Promise<ChangeOutcome>,
  ): Promise<ChangeResult> {
    const type = typeOf(ref);
    if (type === null) return { ok: false, why: 'missing' };
    const read = this.read(type, ref.name, document as Tree, current);
    if (!read.ok) return { ok: false, why: 'invalid', problems: read.problems };
    const outcome = await apply('protoVer' in read.value ? mqttBridgeOptions(read.value) : read.value);
    if (outcome === 'ok') this.blocks.set(key(type, ref.name), { tree: read.tree, masked: read.masked });
    return result(outcome);
  }

  private read(
    type: BridgeType,
    name: string,
    document: Tree,
    current: Tree | null,
  ): Read<NngBridgeConfig | MqttBridgeConfig> {
    if (type === 'mqtt') return readMqttBridge(name, document, current);
    return readNng(type, name, document, this.compat, current);
  }

  private view(status: BridgeStatus): BridgeView {
    const { options: _, type, name, enabled, state, lastError, ...rest } = status;
    return {
      kind: type === 'mqtt' ? 'mqtt' : 'nng',
      direction: type === 'mqtt' ? null : type,
      name,
      enabled,
      state,
      lastError,
      config: (this.blocks.get(key(type, name))?.masked ?? {}) as JsonObject,
      // Views are plain data; going through JSON makes that certain.
      status: JSON.parse(JSON.stringify(rest)) as JsonObject,
    };
  }
}

function result(outcome: ChangeOutcome): ChangeResult {
  return outcome === 'ok' ? { ok: true } : { ok: false, why: outcome };
}

function dig(tree: Tree, path: readonly string[]): Tree {
  let at: Tree = tree;
  for (const name of path) {
    const next = Object.hasOwn(at, name) ? at[name] : undefined;
    if (typeof next !== 'object' || next === null || Array.isArray(next)) return {};
    at = next as Tree;
  }
  return at;
}

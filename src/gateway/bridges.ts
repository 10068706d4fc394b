// Bridges as REST, console and `ctl` see and change them: documents in, checked views out, secrets masked. Built by
// gateway.ts; console/ asks it. A change that is not valid changes nothing and says where in the document it is wrong;
// one that is to be kept is written to tidegate.d (kept.ts) before it comes into force.
import type { BridgeOptions, BridgeStatus, BridgeType } from '../bridge/bridge.ts';
import { publishOf } from '../bridge/nng/incoming.ts';
import { buildFrame } from '../bridge/nng/outgoing.ts';
import { FALLBACK_TOPIC } from '../bridge/nng/rules.ts';
import type { ChangeOutcome, Supervisor } from '../bridge/supervisor.ts';
import type { MqttBridgeConfig, NngBridgeConfig, NngCompat } from '../config/bridges.ts';
import type { Loaded, Tree } from '../config/config.ts';
import { documentOf, type Read, readForward, readMqttBridge, readNng, readSubscription } from '../config/documents.ts';
import { difference, flagNode, isTree, same, valueAt, withNode, withoutNode } from '../config/keep.ts';
import { type BlockNode, blockNode } from '../config/text/node.ts';
import type {
  BridgeControl,
  BridgeRef,
  BridgeView,
  ChangeResult,
  JsonObject,
  ProbeRequest,
  ProbeResult,
  ProbeStep,
  Trial,
  TrialResult,
} from '../console/console.ts';
import { matches } from '../mqtt/topic.ts';
import type { Plan, Planner } from './kept.ts';
import { bridgeOptions, mqttBridgeOptions } from './options.ts';

interface Block {
  readonly tree: Tree;
  readonly masked: Tree;
  /** The document it was made from at run time; null: files say so. */
  readonly node: BlockNode | null;
}

/** Whoever writes changes that are to stay. */
export interface Keeper {
  keep(what: string, planner: Planner): Promise<ChangeResult>;
}

/** Where the block of a bridge stands. */
function pathOf(type: BridgeType, name: string): string[] {
  return type === 'mqtt' ? ['bridges', 'mqtt', name] : ['bridges', 'nng', type, name];
}

/** Tests of connections at once. */
const MOST_PROBES = 4;

const REMAINS = 'other files define this bridge, and a file can take nothing away: it is kept disabled';

const key = (type: BridgeType | null, name: string): string => `${type}:${name}`;

/** Which bridges a reference is about; null = none. */
function typeOf(ref: BridgeRef): BridgeType | null {
  return ref.kind === 'mqtt' ? 'mqtt' : ref.direction;
}

export class BridgesControl implements BridgeControl {
  private readonly supervisor: Supervisor;
  private readonly blocks = new Map<string, Block>();
  private readonly keeper: Keeper;
  private compat: NngCompat = 'documented';
  private probing = 0;

  constructor(supervisor: Supervisor, keeper: Keeper) {
    this.supervisor = supervisor;
    this.keeper = keeper;
  }

  /** Takes the blocks of a configuration that was just loaded. */
  take(tree: Tree, masked: Tree, compat: NngCompat): void {
    this.compat = compat;
    this.blocks.clear();
    for (const type of ['pub', 'sub', 'push', 'pull', 'pair', 'req', 'rep', 'mqtt'] as const) {
      const path = type === 'mqtt' ? ['bridges', 'mqtt'] : ['bridges', 'nng', type];
      const named = dig(tree, path);
      const shown = dig(masked, path);
      for (const [name, block] of Object.entries(named)) {
        this.blocks.set(key(type, name), { tree: block as Tree, masked: (shown[name] ?? {}) as Tree, node: null });
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

  add(ref: BridgeRef, document: JsonObject, keep = false): Promise<ChangeResult> {
    return this.put(ref, document, null, keep, (options) => this.supervisor.add(options));
  }

  change(ref: BridgeRef, document: JsonObject, keep = false): Promise<ChangeResult> {
    const current = this.blocks.get(key(typeOf(ref), ref.name))?.tree ?? null;
    return this.put(ref, document, current, keep, (options) => this.supervisor.change(options));
  }

  async remove(ref: BridgeRef, keep = false): Promise<ChangeResult> {
    const type = typeOf(ref);
    if (type === null) return { ok: false, why: 'missing' };
    const { name } = ref;
    if (!keep) return this.removeNow(type, name);
    return this.keeper.keep(`${type} ${name} removed`, (kept, load) => {
      if (this.supervisor.get(type, name) === undefined) return { ok: false, why: 'missing' };
      const path = pathOf(type, name);
      const before = valueAt(load([], '').tree, path);
      const tree = withoutNode(kept, path);
      if (!isTree(before)) {
        const holds = (next: Loaded): boolean => valueAt(next.tree, path) === undefined;
        return { tree, holds, apply: () => this.removeNow(type, name) };
      }
      return {
        tree: withNode(tree, [...path, 'enable'], flagNode(false)),
        holds: (next) => same(valueAt(next.tree, path), { ...before, enable: false }),
        apply: (next) => this.follow(type, name, next),
        note: REMAINS,
      };
    });
  }

  private async removeNow(type: BridgeType, name: string): Promise<ChangeResult> {
    const outcome = await this.supervisor.remove(type, name);
    if (outcome === 'ok') this.blocks.delete(key(type, name));
    return result(outcome);
  }

  async switch(ref: BridgeRef, on: boolean, keep = false): Promise<ChangeResult> {
    const type = typeOf(ref);
    if (type === null) return { ok: false, why: 'missing' };
    const { name } = ref;
    const apply = async (): Promise<ChangeResult> => result(await this.supervisor.enable(type, name, on));
    if (!keep) return apply();
    return this.keeper.keep(`${type} ${name} ${on ? 'enabled' : 'disabled'}`, (kept, load) => {
      const block = this.blocks.get(key(type, name));
      if (block === undefined) return { ok: false, why: 'missing' };
      const path = pathOf(type, name);
      const wanted = { ...block.tree, enable: on };
      const now = valueAt(load([]).tree, path);
      const inFiles = isTree(now) && same({ ...now, enable: on }, wanted);
      // A bridge that files do not know as it is now is kept as a whole.
      if (!inFiles && block.node !== null) {
        const node = withNode(block.node, ['enable'], flagNode(on));
        return { ...planBlock(path, node, wanted, kept, load([], '').tree), apply };
      }
      const tree = withNode(kept, [...path, 'enable'], flagNode(on));
      return { tree, holds: (next) => same(valueAt(next.tree, path), wanted), apply };
    });
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
        frame: buildFrame(rule, this.compat, { ...trial, qos: trial.qos < rule.qos ? trial.qos : rule.qos }),
      };
    }
    const read = readSubscription(trial.rule as Tree, this.compat);
    if (!read.ok) return { ok: false, problems: read.problems };
    if (!read.value.enable) return { ok: true, matched: false, reason: 'the rule is not enabled' };
    const made = publishOf(read.value, this.compat, trial.frame);
    if (typeof made === 'string') return { ok: true, matched: false, reason: made };
    const payload = made.bytes.subarray(made.start, made.end);
    const isFallback =
      this.compat === '0.25.5' && made.topic === FALLBACK_TOPIC && payload.length === trial.frame.length;
    const { qos, retain } = isFallback ? { qos: 0, retain: false } : read.value;
    const traceparent = made.properties?.userProperties?.[0]?.[1];
    const trace = traceparent === undefined ? {} : { traceparent };
    return { ok: true, matched: true, direction: 'sub', topic: made.topic, payload, qos, retain, ...trace };
  }

  async probe({ ref, document, publishTo }: ProbeRequest): Promise<ProbeResult> {
    const type = typeOf(ref);
    if (type === null) return { ok: false, why: 'missing' };
    const running = this.supervisor.get(type, ref.name) ?? null;
    let options = running?.options ?? null;
    if (document !== null) {
      const current = this.blocks.get(key(type, ref.name))?.tree ?? null;
      const read = this.read(type, ref.name, document as Tree, current);
      if (!read.ok) return { ok: false, why: 'invalid', problems: read.problems };
      options = 'protoVer' in read.value ? mqttBridgeOptions(read.value) : read.value;
    }
    if (options === null) return { ok: false, why: 'missing' };
    if (this.probing >= MOST_PROBES) return { ok: false, why: 'busy' };
    this.probing++;
    try {
      return { ok: true, steps: await probeBridge(options, running, publishTo) };
    } finally {
      this.probing--;
    }
  }

  private async put(
    ref: BridgeRef,
    document: JsonObject,
    current: Tree | null,
    keep: boolean,
    apply: (options: BridgeOptions) => Promise<ChangeOutcome>,
  ): Promise<ChangeResult> {
    const type = typeOf(ref);
    if (type === null) return { ok: false, why: 'missing' };
    const { name } = ref;
    const read = this.read(type, name, document as Tree, current);
    if (!read.ok) return { ok: false, why: 'invalid', problems: read.problems };
    const { tree, masked } = read;
    const node = read.node.kind === 'block' ? read.node : blockNode(read.node.at);
    const applyNow = async (): Promise<ChangeResult> => {
      const outcome = await apply('protoVer' in read.value ? mqttBridgeOptions(read.value) : read.value);
      if (outcome === 'ok') this.blocks.set(key(type, name), { tree, masked, node });
      return result(outcome);
    };
    if (!keep) return applyNow();
    const isNew = current === null;
    return this.keeper.keep(`${type} ${name} ${isNew ? 'added' : 'changed'}`, (kept, load) => {
      const isThere = this.supervisor.get(type, name) !== undefined;
      if (isThere === isNew) return { ok: false, why: isNew ? 'exists' : 'missing' };
      return { ...planBlock(pathOf(type, name), node, tree, kept, load([], '').tree), apply: applyNow };
    });
  }

  /** Makes a bridge that runs what a configuration says. */
  private async follow(type: BridgeType, name: string, next: Loaded): Promise<ChangeResult> {
    const options = bridgeOptions(next.config).find((one) => one.type === type && one.name === name);
    if (options === undefined) return { ok: false, why: 'missing' };
    const outcome = await this.supervisor.change(options);
    const path = pathOf(type, name);
    const tree = valueAt(next.tree, path);
    const masked = valueAt(next.masked, path);
    if (outcome === 'ok' && isTree(tree) && isTree(masked))
      this.blocks.set(key(type, name), { tree, masked, node: null });
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
    const config = this.blocks.get(key(type, name))?.masked ?? {};
    return {
      kind: type === 'mqtt' ? 'mqtt' : 'nng',
      direction: type === 'mqtt' ? null : type,
      name,
      enabled,
      state,
      lastError,
      config: config as JsonObject,
      document: documentOf(type, config) as JsonObject,
      // Views are plain data; going through JSON makes that certain.
      status: JSON.parse(JSON.stringify(rest)) as JsonObject,
    };
  }
}

/** Loaded when somebody tests. */
async function probeBridge(
  options: BridgeOptions,
  running: BridgeStatus | null,
  publishTo: string | null,
): Promise<readonly ProbeStep[]> {
  if (options.type === 'mqtt') return (await import('./probe.ts')).probeMqttBridge(options, publishTo);
  return (await import('./nngprobe.ts')).probeNngBridge(options, running);
}

/** @param base what files give without the one that is written */
function planBlock(
  path: readonly string[],
  node: BlockNode,
  wanted: Tree,
  kept: BlockNode,
  base: Tree,
): Pick<Plan, 'tree' | 'holds'> {
  const before = valueAt(base, path);
  const block = isTree(before) ? difference(node, wanted, before) : node;
  return {
    tree: block.fields.size === 0 ? withoutNode(kept, path) : withNode(kept, path, block),
    holds: (next) => same(valueAt(next.tree, path), wanted),
  };
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

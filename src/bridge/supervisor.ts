// Owns all bridges of a gateway, to NNG and to remote MQTT brokers: starts and stops them, adds, changes, switches and
// removes them while it runs. Built by gateway/gateway.ts, asked by REST, console and reload. Changes of one bridge are
// done one after another and never touch another bridge. A bridge that fails is a state, not an exception.
import { errorText, GatewayError } from '../base/errors.ts';
import type { Service } from '../base/service.ts';
import type { Publication } from '../mqtt/message.ts';
import type { Qos } from '../mqtt/packet.ts';
import type { BridgeOptions, BridgeStatus, BridgeType, BridgeWorker } from './bridge.ts';
import { NngBridge } from './nng/bridge.ts';
import type { BridgeParts } from './nng/link.ts';

/** How long a bridge that is given another worker may take to let messages leave that cannot wait for it. */
const CHANGE_DEADLINE_MS = 1000;
/** The same for one that is removed or disabled: the last that a healthy remote end gets. */
const REMOVE_DEADLINE_MS = 3000;

export type ChangeOutcome = 'ok' | 'missing' | 'exists';

interface Entry {
  options: BridgeOptions;
  /** null while disabled. */
  worker: BridgeWorker | null;
  /** The end of the line of changes. */
  busy: Promise<void>;
}

export class Supervisor implements Service {
  private readonly parts: BridgeParts;
  /** In configuration order: subscriptions are made in it. */
  private readonly entries = new Map<string, Entry>();
  private state: 'idle' | 'running' | 'stopped' = 'idle';

  constructor(parts: BridgeParts, bridges: readonly BridgeOptions[]) {
    this.parts = parts;
    for (const options of bridges) this.entries.set(keyOf(options), { options, worker: null, busy: Promise.resolve() });
  }

  /** Resolves when every listener has had its first try; dialers are not waited for. */
  async start(): Promise<void> {
    if (this.state !== 'idle') return;
    this.state = 'running';
    // Begun in order and not one after the other: a bridge that cannot bind delays nobody.
    await Promise.all([...this.entries.values()].map((entry) => this.run(entry)));
  }

  async stop(deadlineMs: number): Promise<void> {
    if (this.state === 'stopped') return;
    this.state = 'stopped';
    // First nothing comes in any more: what one bridge brings in another one may have to take out.
    for (const { worker } of this.entries.values()) worker?.quiet();
    await Promise.all(
      [...this.entries.values()].map((entry) =>
        this.inLine(entry, async () => {
          const { worker } = entry;
          entry.worker = null;
          worker?.leave();
          await worker?.stop(deadlineMs, false);
        }),
      ),
    );
  }

  list(): BridgeStatus[] {
    return [...this.entries.values()].map(statusOf);
  }

  get(type: BridgeType, name: string): BridgeStatus | undefined {
    const entry = this.entries.get(`${type}:${name}`);
    return entry === undefined ? undefined : statusOf(entry);
  }

  /** Sends a message through the NNG bridge of this name; false where none that sends is running. */
  inject(name: string, publication: Publication, qos: Qos): boolean {
    for (const type of ['pub', 'push', 'pair'] as const) {
      const worker = this.entries.get(`${type}:${name}`)?.worker;
      if (worker instanceof NngBridge && worker.inject(publication, qos)) return true;
    }
    return false;
  }

  /** Makes a new bridge and starts it if it is enabled. */
  async add(options: BridgeOptions): Promise<ChangeOutcome> {
    const key = keyOf(options);
    if (this.entries.has(key)) return 'exists';
    const entry: Entry = { options, worker: null, busy: Promise.resolve() };
    this.entries.set(key, entry);
    if (this.state === 'running') await this.run(entry);
    return 'ok';
  }

  /** Gives a bridge other options. Peers of endpoints that stay are kept where only rules or endpoints differ. */
  async change(options: BridgeOptions): Promise<ChangeOutcome> {
    const entry = this.entries.get(keyOf(options));
    if (entry === undefined) return 'missing';
    await this.inLine(entry, () => this.changeNow(entry, options));
    return 'ok';
  }

  async enable(type: BridgeType, name: string, on: boolean): Promise<ChangeOutcome> {
    const entry = this.entries.get(`${type}:${name}`);
    if (entry === undefined) return 'missing';
    await this.inLine(entry, () => this.changeNow(entry, { ...entry.options, enable: on }));
    return 'ok';
  }

  async remove(type: BridgeType, name: string): Promise<ChangeOutcome> {
    const key = `${type}:${name}`;
    const entry = this.entries.get(key);
    if (entry === undefined) return 'missing';
    this.entries.delete(key);
    await this.inLine(entry, async () => {
      const { worker } = entry;
      entry.worker = null;
      worker?.leave();
      await worker?.stop(REMOVE_DEADLINE_MS, false);
      // A bridge of that name may have been added meanwhile; its series are its own.
      if (this.entries.has(key)) return;
      if (type === 'mqtt') this.parts.mqtt?.forget(name);
      else this.parts.spools?.forget({ type, name });
      this.parts.metrics.drop({ bridge: name, type });
    });
    return 'ok';
  }

  /** Makes the bridges those of the list: what is the same goes on untouched. */
  async apply(bridges: readonly BridgeOptions[]): Promise<void> {
    const wanted = new Set(bridges.map(keyOf));
    const gone = [...this.entries.values()].filter((entry) => !wanted.has(keyOf(entry.options)));
    // First what goes: its addresses may be wanted again.
    await Promise.all(gone.map((entry) => this.remove(entry.options.type, entry.options.name)));
    await Promise.all(
      bridges.map((options) => (this.entries.has(keyOf(options)) ? this.change(options) : this.add(options))),
    );
  }

  private async changeNow(entry: Entry, options: BridgeOptions): Promise<void> {
    if (this.state === 'stopped') return;
    const before = entry.options;
    entry.options = options;
    if (this.state !== 'running' || same(before, options)) return;
    const { worker } = entry;
    if (worker !== null && options.enable && worker.change(options)) return;
    const next = options.enable ? await this.make(options) : null;
    // In one go: no message is taken by neither or by both.
    worker?.leave();
    next?.take();
    await worker?.stop(next === null ? REMOVE_DEADLINE_MS : CHANGE_DEADLINE_MS, next !== null);
    entry.worker = next;
    await next?.start();
  }

  private run(entry: Entry): Promise<void> {
    return this.inLine(entry, () => this.begin(entry));
  }

  private async begin(entry: Entry): Promise<void> {
    const { options } = entry;
    if (!options.enable || this.state !== 'running') return;
    const worker = await this.make(options);
    entry.worker = worker;
    worker.take();
    await worker.start();
  }

  private async make(options: BridgeOptions): Promise<BridgeWorker> {
    if (options.type !== 'mqtt') return new NngBridge(options, this.parts);
    if (this.parts.mqtt === undefined) throw new GatewayError('BRIDGE-NAME', 'no bridges to remote brokers here');
    return this.parts.mqtt.make(options);
  }

  /** Does `work` when earlier changes of the bridge are done. Never rejects: a failure is logged. */
  private inLine(entry: Entry, work: () => Promise<void>): Promise<void> {
    entry.busy = entry.busy.then(work).catch((error: unknown) => {
      const { name, type } = entry.options;
      const id = type === 'mqtt' ? 'MQB-STATE' : 'NNG-STATE';
      this.parts.log('error', id, { bridge: name, type, state: 'error', error: errorText(error) });
    });
    return entry.busy;
  }
}

function keyOf(options: BridgeOptions): string {
  return `${options.type}:${options.name}`;
}

/** Whether nothing that matters differs; positions in a file do not. */
function same(a: BridgeOptions, b: BridgeOptions): boolean {
  return plain(a) === plain(b);
}

function plain(options: BridgeOptions): string {
  return JSON.stringify(options, (key, value: unknown) => (key === 'source' ? undefined : value));
}

function statusOf(entry: Entry): BridgeStatus {
  if (entry.worker !== null) return entry.worker.status();
  const { options } = entry;
  return {
    type: options.type,
    name: options.name,
    enabled: options.enable,
    state: options.enable ? 'starting' : 'disabled',
    lastError: null,
    options,
    clientId: options.clientId ?? '',
    endpoints: [],
    peers: [],
    rules: [],
    refused: 0,
    unmatched: 0,
    dropped: 0,
  };
}

// A bridge to a remote MQTT broker: connects and stays connected, forwards what its rules take, publishes here what it
// fetches there. Made by the supervisor through bridges.ts, which keeps the outbox of the bridge over its restarts.
// Loaded only when there is one. Messages leave the outbox when the remote has acknowledged them; the remote gets its
// acknowledgement when a message is accepted here. Source: docs/mqtt-bridges.md; MQTT 5.0 and 3.1.1 chapter 4.
//
//   starting -> connected <-> retrying    tried again for ever, after at most backoff_max
//                         <-> error       refused by CONNACK, not trusted, broke the protocol: tried again as well
import { randomBytes } from 'node:crypto';
import { errorText } from '../../base/errors.ts';
import { type Log, limitLog } from '../../base/log.ts';
import type { Cell } from '../../base/metrics.ts';
import type { LocalClient } from '../../broker/broker.ts';
import type { Hold, Publication } from '../../mqtt/message.ts';
import type { AckPacket, ConnackPacket, Qos } from '../../mqtt/packet.ts';
import type { Properties } from '../../mqtt/property.ts';
import { QUOTA_EXCEEDED } from '../../mqtt/reason.ts';
import type { Connection } from '../../transport/transport.ts';
import {
  type BridgeOptions,
  type BridgeStatus,
  type BridgeWorker,
  deniedText,
  type MqttBridgeOptions,
} from '../bridge.ts';
import { BRIDGE_METRICS, RuleCounters } from '../counters.ts';
import { Condition } from './condition.ts';
import { connectPacket, sameConnection } from './connect.ts';
import { Fetcher, type Loops } from './fetch.ts';
import { type GuardUser, LOOP_PAUSE_MS, LoopGuard } from './guard.ts';
import { noteHere, noteThere } from './notice.ts';
import type { MqttParts } from './options.ts';
import type { MqttOutbox } from './outbox.ts';
import { type EndKind, Remote, type RemoteUser } from './remote.ts';
import { describeFetch, describeForward, type Forwarder, ForwardRule } from './rules.ts';
import { Servers, type ServersUser } from './servers.ts';
import type { RemoteSession } from './session.ts';
import type { HeldForward } from './trial.ts';
import { Via } from './via.ts';

const WARN_EVERY_MS = 1000;
/** Looks at the outbox while a stop waits for it. */
const DRAIN_MS = 20;
/** For DISCONNECT to leave. */
const GOODBYE_MS = 500;
/** What may be published here is asked of this user, with the bridge's client id. */
const USERNAME = 'mqtt_bridge';

/** What belongs to a bridge and outlives its workers: bridges.ts keeps it. */
export interface Kept {
  readonly outbox: MqttOutbox;
  readonly session: RemoteSession;
}

export class MqttBridge implements BridgeWorker, Forwarder, Loops, RemoteUser, GuardUser, ServersUser {
  options: MqttBridgeOptions;
  readonly clientId: string;
  private readonly parts: MqttParts;
  private readonly outbox: MqttOutbox;
  private readonly session: RemoteSession;
  private readonly log: Log;
  private readonly warn: Log;
  private readonly labels: { readonly bridge: string; readonly type: 'mqtt' };
  private readonly connects: Cell;
  private readonly servers: Servers;
  private client: LocalClient | null = null;
  private forwards: ForwardRule[] = [];
  private readonly fetcher: Fetcher;
  private readonly condition: Condition;
  private stopped = false;
  private remote: Remote | null = null;
  private openedMs = 0;
  private readonly via = new Via();
  private readonly guard: LoopGuard;
  private readonly loops: Cell;
  /** @param kept what outlives this worker */
  constructor(options: MqttBridgeOptions, parts: MqttParts, kept: Kept) {
    const { outbox, session } = kept;
    this.options = options;
    this.parts = parts;
    this.outbox = outbox;
    this.session = session;
    // 3.1 takes at most 23 characters.
    this.clientId = options.clientId || `tidegate-${randomBytes(4).toString('hex')}`;
    this.log = parts.log;
    this.warn = limitLog(parts.log, () => parts.clock.mono(), WARN_EVERY_MS);
    this.labels = { bridge: options.name, type: 'mqtt' };
    this.condition = new Condition(parts.log, this.labels);
    const { metrics } = parts;
    this.connects = metrics.cell(BRIDGE_METRICS.connects, this.labels);
    metrics.read(BRIDGE_METRICS.connected, () => (this.condition.state === 'connected' ? 1 : 0), this.labels);
    metrics.read(BRIDGE_METRICS.queuedMessages, () => outbox.length, this.labels);
    metrics.read(BRIDGE_METRICS.queued, () => outbox.bytes + (this.remote?.unsentBytes ?? 0), this.labels);
    this.loops = metrics.cell(BRIDGE_METRICS.loops, this.labels);
    // Where messages carry marks they cannot go round.
    this.guard = new LoopGuard(parts.clock, this, () => this.options.loopGuard && this.options.protoVer !== 5);
    this.servers = new Servers(options, parts, this);
    this.fetcher = new Fetcher(options, parts, this.warn, this);
  }

  take(): void {
    this.client = this.parts.broker.attach({
      clientId: this.clientId,
      username: USERNAME,
      kind: 'bridge',
      bridge: `mqtt:${this.options.name}`,
      trusted: false,
    });
    this.takeRules();
    this.fetcher.start(this.client);
  }

  async start(): Promise<void> {
    this.servers.dial();
  }

  change(options: BridgeOptions): boolean {
    if (options.type !== 'mqtt' || !sameConnection(this.options, options)) return false;
    this.leaveRules();
    this.options = options;
    this.takeRules();
    const { remote } = this;
    const { turn } = this.parts;
    turn.enter();
    this.fetcher.change(options, remote?.open === true ? remote : null);
    this.outbox.pump();
    turn.leave();
    return true;
  }

  leave(): void {
    this.leaveRules();
  }

  quiet(): void {
    this.remote?.quiet();
  }

  async stop(deadlineMs: number, replaced: boolean): Promise<void> {
    if (this.stopped) return;
    this.stopped = true;
    this.servers.stop();
    // What came is answered, but nothing more is taken: the remote keeps it.
    this.quiet();
    await this.drained(deadlineMs, replaced);
    const left = replaced ? 0 : this.outbox.length;
    if (this.remote?.open === true) this.note(false);
    this.remote?.close(GOODBYE_MS);
    this.outbox.trust();
    this.outbox.detach(true, false);
    this.remote = null;
    this.condition.state = 'disabled';
    this.fetcher.stop();
    this.client?.close();
    this.client = null;
    if (left > 0) this.log('warn', 'MQB-STATE', { ...this.labels, state: 'stopped', queued: left });
  }

  status(): BridgeStatus {
    const { options, outbox, remote } = this;
    const { state, lastError } = this.condition;
    const denied = this.client?.deniedTopic() ?? null;
    return {
      type: 'mqtt',
      name: options.name,
      enabled: options.enable,
      // The connection is well, but a rule waits.
      state: state !== 'connected' ? state : this.guard.pausing ? 'error' : denied === null ? 'connected' : 'denied',
      lastError: lastError ?? deniedText(denied),
      options,
      clientId: this.clientId,
      endpoints: this.servers.view(state, lastError, remote?.name ?? null),
      peers: [],
      rules: this.forwards.map((rule, index) => rule.counters.view(index)),
      refused: 0,
      unmatched: this.fetcher.unmatched.value,
      dropped: 0,
      remote: {
        fetching: this.fetcher.rules.map((rule, index) => ({ ...rule.counters.view(index), refused: rule.refused })),
        queued: outbox.length,
        queuedBytes: outbox.bytes,
        inflight: outbox.inflight,
        connects: this.connects.value,
      },
    };
  }

  // ---- local to remote

  get stores(): boolean {
    return this.parts.journal.durable;
  }

  crossed(properties: Properties | null): boolean {
    return properties !== null && this.options.loopGuard && this.via.crossed(properties);
  }

  /** With this bridge's mark, where the remote can carry it. */
  marked(properties: Properties | null): Properties | null {
    const { loopGuard, protoVer } = this.options;
    return loopGuard && protoVer === 5 ? this.via.marked(properties) : properties;
  }

  forward(publication: Publication, topic: string, qos: Qos, retain: boolean, rule: number): void {
    const { outbox } = this;
    const properties = this.marked(publication.properties);
    if (this.guard.pauses(rule)) {
      this.forwards[rule].counters.drop('loop');
      return;
    }
    if (this.guard.holds(publication, topic, qos, retain, rule)) return;
    if (qos === 0) {
      const { remote } = this;
      if (outbox.pass(publication, topic, retain, properties, rule)) return;
      const open = remote?.open === true;
      if (open ? !remote.room : !this.options.retryQos0) {
        this.forwards[rule].counters.drop(open ? 'slow' : 'away');
        return;
      }
    }
    const outcome = outbox.take(publication.message(), topic, qos, retain, rule, properties, publication);
    if (outcome === 'taken') {
      // The publisher's acknowledgement waits for the commit, unless the remote is quicker.
      if (qos > 0 && this.parts.journal.durable) publication.stored = true;
      return;
    }
    this.warn('warn', 'MQB-DROPPED', { ...this.labels, reason: outcome, queued: outbox.length, bytes: outbox.bytes });
    if (outcome !== 'store-full' || publication.qos === 0) return;
    const hold = publication.hold();
    hold.add();
    hold.done(QUOTA_EXCEEDED);
  }

  // ---- loops

  suspected(topic: string): void {
    this.loops.value++;
    this.warn('warn', 'MQB-LOOP', { ...this.labels, topic });
  }

  letGo({ message, topic, qos, retain, rule, hold }: HeldForward): void {
    const { turn, journal } = this.parts;
    turn.enter();
    let refused = false;
    if (qos === 0 && this.remote?.open !== true && !this.options.retryQos0) this.forwards[rule]?.counters.drop('away');
    else refused = this.outbox.take(message, topic, qos, retain, rule) === 'store-full';
    turn.leave();
    if (hold === null) return;
    // As for any message: the publisher's acknowledgement waits for the commit.
    if (qos > 0 && !refused && journal.durable) journal.barrier(hold);
    hold.done(refused ? QUOTA_EXCEEDED : 0);
  }

  paused(rule: number, topic: string, left: readonly HeldForward[]): void {
    this.condition.lastError = `loop: what forwards[${rule}] sends comes back; the rule waits`;
    this.log('error', 'MQB-LOOP-PAUSED', { ...this.labels, rule, topic, again_ms: LOOP_PAUSE_MS });
    for (const { hold } of left) {
      this.forwards[rule].counters.drop('loop');
      hold?.done();
    }
  }

  resumed(): void {
    if (this.condition.state === 'connected') this.condition.lastError = null;
  }

  // ---- the connection

  dialled(connection: Connection): void {
    const { options, parts } = this;
    const remote = new Remote(connection, options, parts, this.session, this);
    this.remote = remote;
    parts.turn.enter();
    try {
      remote.start(connectPacket(options, this.clientId, Remote.maxPacketBytes(options, parts)));
    } catch (error) {
      // A CONNECT that cannot be said in this version.
      remote.close(0);
      this.ended('refused', errorText(error));
    }
    parts.turn.leave();
  }

  undialled(state: 'retrying' | 'error', reason: string): void {
    this.failed(state, reason, false);
  }

  opened(_connack: ConnackPacket, present: boolean): void {
    const { remote } = this;
    if (remote === null) return;
    const resumed = this.session.opened(`${this.clientId} ${this.servers.current}`, present);
    this.openedMs = this.parts.clock.mono();
    this.connects.value++;
    this.condition.lastError = null;
    this.condition.enter('connected', { remote: remote.name, resumed, queued: this.outbox.length });
    this.fetcher.attach(remote, resumed);
    this.outbox.attach(remote, resumed);
    this.note(true);
    const { client } = this;
    if (client !== null) for (const rule of this.forwards) rule.takeStored(client);
  }

  /** Publishes the state of the bridge, here and there, where that is asked for. */
  private note(up: boolean): void {
    const { options, clientId, remote, parts } = this;
    parts.turn.enter();
    const there = noteThere(options, clientId, up);
    if (there !== null && remote?.open === true) remote.publish(there, 0, false);
    noteHere(options, clientId, this.client, up);
    parts.turn.leave();
  }

  acknowledged(type: AckPacket['type'], packetId: number, reasonCode: number): void {
    this.outbox.acknowledge(type, packetId, reasonCode);
  }

  ready(): void {
    if (this.remote?.open !== true) return;
    const { turn } = this.parts;
    turn.enter();
    this.outbox.pump();
    turn.leave();
  }

  waits(): boolean {
    return this.outbox.inflight > 0;
  }

  ended(kind: EndKind, reason: string): void {
    const wasOpen = this.condition.state === 'connected';
    this.remote = null;
    if (wasOpen) this.note(false);
    this.fetcher.detach();
    this.outbox.detach(this.options.retryQos0, kind === 'cut');
    // One that lets in and throws out again is no better than one that does not answer.
    const served = wasOpen && this.parts.clock.mono() - this.openedMs >= this.options.backoffMaxMs;
    this.failed(kind === 'lost' || kind === 'cut' ? 'retrying' : 'error', reason, served);
  }

  /** @param served the connection was good for a while */
  private failed(state: 'retrying' | 'error', reason: string, served: boolean): void {
    if (this.stopped) return;
    this.condition.lastError = reason;
    const server = this.servers.current;
    const waitMs = this.servers.again(served);
    this.condition.enter(state, { server, error: reason, again_ms: waitMs });
  }

  /**
   * Waits until the remote has acknowledged everything, or what it has been sent when another worker sends the rest.
   */
  private async drained(deadlineMs: number, replaced: boolean): Promise<void> {
    const { outbox, parts } = this;
    const { clock } = parts;
    const endMs = clock.mono() + Math.max(0, deadlineMs - GOODBYE_MS);
    if (replaced) outbox.hold();
    const left = (): number => (replaced ? outbox.inflight : outbox.length);
    while (this.remote?.open === true && left() + this.remote.unsentBytes + this.remote.unanswered > 0) {
      if (clock.mono() >= endMs) return;
      await new Promise<void>((resolve) => clock.after(DRAIN_MS, resolve));
    }
  }

  // ---- remote to local

  received(publication: Publication, identifiers: readonly number[] | null): number {
    return this.fetcher.received(publication, identifiers);
  }

  hold(): Hold | null {
    return this.fetcher.hold();
  }

  // ---- rules

  private takeRules(): void {
    const { client, options, outbox, parts } = this;
    const { name } = options;
    this.forwards = options.forwards.map((rule, i) => new ForwardRule(i, rule, name, this, parts.metrics));
    outbox.maxLength = options.maxSendQueueLen;
    outbox.maxInflight = options.maxInflight;
    outbox.tally.rules = this.forwards.map((rule) => rule.counters);
    // Made when there is something to count: a rule was taken away while its messages wait.
    outbox.tally.orphans = () => new RuleCounters(parts.metrics, name, 'mqtt', 'removed', []);
    for (const { subscription } of this.forwards) if (subscription.topicFilter !== '') client?.subscribe(subscription);
    this.log('info', 'MQB-RULES', {
      ...this.labels,
      clientid: this.clientId,
      forwards: options.forwards.map(describeForward),
      subscription: options.subscription.map(describeFetch),
    });
  }

  private leaveRules(): void {
    for (const { subscription } of this.forwards) this.client?.unsubscribe(subscription);
    this.guard.end();
  }
}

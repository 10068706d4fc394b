// One client with the servers of several upstreams, each for its topics: the sessions opened when they are needed, what
// they say made one. Made by relay.ts where the proxy has `topics`. Packets are dealt with by publishes.ts,
// requests.ts, arrivals.ts.
//
//   connecting --CONNACK of all that are needed at once--> open --> over
//
// Sources: MQTT 5.0 sections 3.1, 3.2, 3.14, 4.8, 4.13; docs/proxy.md says what users may rely on.
import { ProtocolError } from '../../base/errors.ts';
import { ackPacketId } from '../../codec/ack.ts';
import { type Frame, newFrame } from '../../codec/codec.ts';
import { decodeConnect, encodeConnack } from '../../codec/connect.ts';
import { readFrame } from '../../codec/frame.ts';
import { checkFrame } from '../../codec/packet.ts';
import { decodeDisconnect, decodePing, encodeDisconnect, encodePing } from '../../codec/session.ts';
import {
  AUTH,
  CONNACK,
  CONNECT,
  type ConnackPacket,
  type ConnectPacket,
  DISCONNECT,
  PINGREQ,
  PINGRESP,
  PUBACK,
  PUBCOMP,
  PUBLISH,
  PUBREC,
  PUBREL,
  type Qos,
  SUBACK,
  SUBSCRIBE,
  UNSUBACK,
  UNSUBSCRIBE,
} from '../../mqtt/packet.ts';
import {
  BAD_USER_NAME_OR_PASSWORD,
  DISCONNECT_WITH_WILL,
  KEEP_ALIVE_TIMEOUT,
  NOT_AUTHORIZED,
  PROTOCOL_ERROR,
  QUOTA_EXCEEDED,
  SERVER_BUSY,
  SERVER_SHUTTING_DOWN,
  SERVER_UNAVAILABLE,
  SESSION_TAKEN_OVER,
  UNSPECIFIED_ERROR,
} from '../../mqtt/reason.ts';
import type { Connection } from '../../transport/transport.ts';
import type { Status } from '../accesslog.ts';
import type { Entrance } from '../entrance.ts';
import type { Facts } from '../facts.ts';
import type { Guard } from '../guard.ts';
import type { Out } from '../packetstream.ts';
import type { Rules } from '../rules.ts';
import type { Counts } from '../tally.ts';
import { Arrivals } from './arrivals.ts';
import { Cutter } from './cutter.ts';
import { Deliveries } from './deliveries.ts';
import type { Ends, TopicCells } from './ends.ts';
import { connectFor, mergeConnacks, outlives } from './greeting.ts';
import { Held } from './held.ts';
import { Leg, type LegOwner } from './leg.ts';
import { Outlet } from './outlet.ts';
import { Publishes } from './publishes.ts';
import { Requests } from './requests.ts';
import { Run } from './run.ts';
import type { TopicRules, TopicTable } from './table.ts';

export interface ExchangeParts {
  readonly home: Entrance;
  readonly rules: Rules;
  readonly topics: TopicRules;
  readonly client: Connection;
  readonly facts: Facts;
  /** Upstream of the route. */
  readonly upstream: string;
  /** CONNECT as the upstream of the route gets it. */
  readonly connect: Buffer;
  /** Client id that the server got, null when it is the client's own. */
  readonly rewrittenId: string | null;
  /** Makes the filter of this client where it has one. */
  readonly guarding: (toServer: Out, toClient: Out, hold: (on: boolean) => void) => Guard | null;
  /** Called once, when it ends by itself. */
  readonly onOver: (status: Status, reason: string) => void;
}

export class Exchange implements Counts, Ends, LegOwner {
  /** Addresses that were dialled. */
  readonly tried: string[] = [];
  readonly version: ConnectPacket['version'];
  readonly options: Rules['options'];
  readonly table: TopicTable;
  readonly cells: TopicCells;
  readonly held: Held;
  readonly deliveries = new Deliveries();
  bytesIn = 0;
  private state: 'connecting' | 'open' | 'over' = 'connecting';
  private readonly parts: ExchangeParts;
  private readonly connect: ConnectPacket;
  private readonly key: string;
  private readonly sessions: (Leg | null)[];
  /** Answers of the sessions that are waited for; null = it is away, undefined = not yet. */
  private readonly answers = new Map<Leg, ConnackPacket | null | undefined>();
  /** Servers that are there and have not been sent CONNECT. */
  private readonly reached = new Set<Leg>();
  private readonly outlet: Outlet;
  private readonly cutter: Cutter;
  private readonly publishes: Publishes;
  private readonly requests: Requests;
  private readonly arrivals: Arrivals;
  private readonly upRun = new Run<Leg>((leg, bytes) => leg.pass(bytes));
  private readonly downRun = new Run<Outlet>((_, bytes) => this.out(bytes));
  private guard: Guard | null = null;
  private fullLegs = 0;
  private toldPresent = false;
  private waits = true;
  private guardHolds = false;
  private keepAliveMs: number;
  private paused = false;
  private heard = true;
  private heardMs = 0;
  private idleMark = 0;
  private idleSinceMs = 0;
  private onGone: (() => void) | null = null;
  private clientOpen = true;

  /** Throws ProtocolError for a CONNECT that cannot be taken apart. */
  constructor(parts: ExchangeParts) {
    const { home, rules, topics, client, upstream } = parts;
    const { topicRouting } = rules.options;
    this.parts = parts;
    this.options = rules.options;
    const frame = newFrame();
    readFrame(parts.connect, 0, parts.connect.length, frame, parts.connect.length);
    this.connect = decodeConnect(parts.connect, frame);
    this.version = this.connect.version;
    this.table = topics.table(upstream);
    this.cells = home.cells.topics;
    this.held = new Held(home.exchanges.budget, topicRouting.maxHeldBytes, topicRouting.memoryBytes);
    this.key = `${upstream}\0${this.connect.clientId}`;
    this.sessions = this.table.upstreams.map(() => null);
    this.keepAliveMs = this.connect.keepAlive * 1000;
    this.outlet = new Outlet(client, (full) => this.clientFull(full));
    this.cutter = new Cutter(
      topicRouting.maxPacketBytes,
      this.held,
      (bytes, taken) => this.fromClient(bytes, taken),
      () => this.clientChunkDone(),
    );
    this.publishes = new Publishes(this);
    this.requests = new Requests(this);
    this.arrivals = new Arrivals(this, this.connect.properties?.receiveMaximum ?? 65_535);
  }

  get bytesOut(): number {
    return this.outlet.sentBytes;
  }

  /** `bytes` is CONNECT and what was read behind it. */
  start(bytes: Buffer): void {
    const { client, guarding, home } = this.parts;
    this.heardMs = home.parts.clock.mono();
    this.idleSinceMs = this.heardMs;
    client.onEnd(() => this.clientGone('closed by client'));
    client.onClose(({ by }) => {
      this.clientOpen = false;
      this.onGone?.();
      this.clientGone(by === 'error' ? 'client connection lost' : 'closed by client');
    });
    this.guard = guarding(
      (out) => this.push(out),
      (out) => this.outlet.write(out),
      (on) => {
        this.guardHolds = on;
        this.regulate();
      },
    );
    if (this.version === 3 && this.connect.username?.includes('\ufffd') === true) {
      // 3.1 alone allows a user name that is no text; it does not survive being written again.
      this.refuse(BAD_USER_NAME_OR_PASSWORD, null);
      this.finish(400, 'username is not well-formed UTF-8', null);
      return;
    }
    this.openFirst();
    this.read(bytes);
    const lent = client.kind === 'memory' || client.kind === 'ws' || client.kind === 'wss';
    client.onData((chunk) => {
      this.bytesIn += chunk.length;
      this.heard = true;
      this.read(lent ? Buffer.from(chunk) : chunk);
    });
    this.regulate();
  }

  /** Ends it when the client has been silent for too long; called now and then. */
  sweep(nowMs: number): void {
    for (const leg of this.legs()) leg.sweep(nowMs);
    if (this.state !== 'open') return;
    // One that is not read from cannot be heard.
    if (this.heard || this.paused) {
      this.heard = false;
      this.heardMs = nowMs;
    }
    if (this.keepAliveMs > 0 && nowMs - this.heardMs >= this.keepAliveMs * 1.5) {
      this.close(KEEP_ALIVE_TIMEOUT, 'keep alive'); // [MQTT-3.1.2-22]
      return;
    }
    const { idleTimeoutMs } = this.options;
    const mark = this.bytesIn + this.bytesOut;
    if (mark !== this.idleMark) {
      this.idleMark = mark;
      this.idleSinceMs = nowMs;
    } else if (idleTimeoutMs !== null && idleTimeoutMs > 0 && nowMs - this.idleSinceMs >= idleTimeoutMs)
      this.close(UNSPECIFIED_ERROR, 'idle');
  }

  /** Ends all sides after what is under way. Resolves when the client is gone. */
  stop(): Promise<void> {
    this.leave(null);
    this.parts.client.end();
    return this.clientOpen
      ? new Promise((resolve) => {
          this.onGone = resolve;
        })
      : Promise.resolve();
  }

  destroy(): void {
    this.leave(null);
    for (const leg of this.legs()) leg.destroy();
    this.parts.client.destroy();
  }

  /** The same client has come again. */
  takenOver(): void {
    this.close(SESSION_TAKEN_OVER, 'taken over');
  }

  // ---- Ends

  leg(index: number): Leg | null {
    const known = this.sessions[index];
    if (known !== null) {
      known.open();
      return known;
    }
    if (this.legs().length >= this.options.topicRouting.maxSessions) return null;
    const made = this.makeLeg(index);
    made?.open();
    return made;
  }

  legs(): readonly Leg[] {
    return this.sessions.filter((leg) => leg !== null);
  }

  toClient(bytes: Buffer): void {
    this.downRun.flush();
    this.out(bytes);
  }

  passToClient(bytes: Buffer, start: number, end: number): void {
    this.downRun.add(this.outlet, bytes, start, end);
  }

  passToServer(leg: Leg, bytes: Buffer, start: number, end: number): void {
    this.upRun.add(leg, bytes, start, end);
  }

  flushToServers(): void {
    this.upRun.flush();
  }

  close(code: number, reason: string): void {
    if (this.state === 'over') return;
    if (this.state === 'connecting') this.refuse(code, null);
    else if (this.version === 5) this.sayGoodbye(code);
    this.finish(code === SESSION_TAKEN_OVER || code === KEEP_ALIVE_TIMEOUT ? 200 : statusOf(code), reason, null);
  }

  // ---- the client's side

  private read(chunk: Buffer): void {
    if (this.guard === null) this.push(chunk);
    else this.guard.fromClient(chunk);
  }

  private push(bytes: Buffer): void {
    if (this.state === 'over') return;
    this.guarded(() => {
      if (!this.cutter.push(bytes)) this.outOfMemory();
      if (this.state === 'connecting') this.regulate();
    });
  }

  private guarded(work: () => void): void {
    try {
      work();
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      this.upRun.flush();
      this.close(error.reasonCode, error.message);
    }
  }

  /** One packet of the client; false = the servers have not answered yet. */
  private fromClient(bytes: Buffer, frame: Frame): boolean {
    const { type } = frame;
    if (this.state === 'over') return true;
    if (type === CONNECT) {
      if (!this.waits) throw new ProtocolError(PROTOCOL_ERROR, 'CONNECT twice'); // [MQTT-3.1.0-2]
      this.waits = false;
      return true;
    }
    if (this.state === 'connecting') {
      if (type !== AUTH || this.version < 5) return false;
      this.sessions[0]?.pass(Buffer.from(bytes.subarray(frame.packetStart, frame.end)));
      return true;
    }
    checkFrame(this.version, frame, 'client');
    switch (type) {
      case PUBLISH:
        this.publishes.take(bytes, frame);
        return true;
      case PUBACK:
      case PUBREC:
      case PUBCOMP:
        this.arrivals.acknowledged(bytes, frame);
        return true;
      case PINGREQ:
        decodePing(frame);
        this.toClient(encodePing(PINGRESP)); // [MQTT-3.12.4-1]
        return true;
      default:
        this.upRun.flush();
        this.fromClientRarely(bytes, frame);
        return true;
    }
  }

  private fromClientRarely(bytes: Buffer, frame: Frame): void {
    const packet = (): Buffer => Buffer.from(bytes.subarray(frame.packetStart, frame.end));
    switch (frame.type) {
      case PUBREL: {
        const packetId = ackPacketId(bytes, frame);
        const leg = this.publishes.legOf(packetId);
        if (leg === null) this.requests.release(bytes, frame);
        else leg.release(packetId, packet());
        return;
      }
      case SUBSCRIBE:
        this.requests.subscribe(bytes, frame);
        return;
      case UNSUBSCRIBE:
        this.requests.unsubscribe(bytes, frame);
        return;
      case DISCONNECT: {
        const { reasonCode } = decodeDisconnect(bytes, frame, this.version, 'client');
        this.finish(
          200,
          reasonCode === DISCONNECT_WITH_WILL ? 'closed by client with will' : 'closed by client',
          packet(),
        );
        return;
      }
      default:
        this.sessions[0]?.acknowledge(packet());
    }
  }

  private clientChunkDone(): void {
    this.upRun.flush();
    if (this.state !== 'open') return;
    for (const leg of this.sessions) leg?.go();
  }

  private clientGone(reason: string): void {
    if (this.state === 'over') return;
    // What it has sent before is still handed on.
    this.finish(200, reason, null);
  }

  // ---- the servers' side

  legReached(leg: Leg): boolean {
    if (this.state !== 'connecting' || this.options.topicRouting.lost !== 'close') return true;
    // A session that would be given up at once because another server is away is not begun.
    this.reached.add(leg);
    if (this.reached.size < this.answers.size) return false;
    for (const one of this.reached) one.greet();
    return false;
  }

  legUp(leg: Leg, answer: ConnackPacket, again: boolean): void {
    if (this.state === 'over') return;
    if (this.version === 5) this.parts.home.exchanges.learn(this.table.upstreams[leg.index], answer.properties);
    this.parts.home.connackSeen(answer.reasonCode);
    if (this.outlet.isFull) leg.hold(true);
    if (this.state === 'connecting') {
      this.answers.set(leg, answer);
      this.answerWhenAll();
      return;
    }
    if (answer.sessionPresent || (!again && !(this.toldPresent && this.answers.get(leg) === null))) return;
    // The client has to know that a session is lost, and that nobody can say what became of its exchanges of QoS 2.
    if (leg.persistent || leg.hasQos2 || this.deliveries.hasQos2(leg.index)) {
      this.close(SERVER_BUSY, 'a server has lost the session');
      return;
    }
    this.deliveries.forget(leg.index);
    this.requests.again(leg);
  }

  legRefused(leg: Leg, answer: ConnackPacket): void {
    if (this.state === 'over') return;
    this.parts.home.connackSeen(answer.reasonCode);
    if (this.state === 'connecting') {
      this.refuse(answer.reasonCode, answer);
      this.finish(200, 'refused by server', null);
    } else if (this.options.topicRouting.lost === 'close') this.close(NOT_AUTHORIZED, 'refused by a server');
    else this.refuseAll(leg, NOT_AUTHORIZED);
  }

  legLost(leg: Leg, reason: string, broken: boolean): void {
    if (this.state === 'over') return;
    const { lost } = this.options.topicRouting;
    if (this.state === 'connecting') {
      if (leg.index === 0 || lost === 'close') {
        this.refuse(SERVER_UNAVAILABLE, null);
        this.finish(502, 'no server can be reached', null);
      } else if (this.answers.has(leg)) {
        this.answers.set(leg, null);
        this.answerWhenAll();
      }
      return;
    }
    this.cells.lost.value++;
    const upstream = this.table.upstreams[leg.index];
    this.parts.home.parts.log('debug', 'PXY-TOPICS-LOST', { proxy: this.options.name, upstream, reason });
    if (lost === 'close' || broken) {
      this.close(broken ? UNSPECIFIED_ERROR : SERVER_SHUTTING_DOWN, reason);
      return;
    }
    if (lost === 'refuse') this.refuseAll(leg, UNSPECIFIED_ERROR);
  }

  fromServer(leg: Leg, bytes: Buffer, frame: Frame): boolean {
    const { version } = this;
    checkFrame(version, frame, 'server');
    if (this.state === 'over') {
      this.afterwards(leg, bytes, frame);
      return true;
    }
    if (frame.type === AUTH) {
      if (leg.index === 0) this.fromHome(Buffer.from(bytes.subarray(frame.packetStart, frame.end)));
      return true;
    }
    if (this.state === 'connecting') return false;
    switch (frame.type) {
      case PUBLISH:
        return this.arrivals.publish(leg, bytes, frame);
      case PUBREL:
        this.arrivals.release(leg, bytes, frame);
        return true;
      case PUBACK:
      case PUBREC:
      case PUBCOMP:
        this.acknowledged(leg, bytes, frame);
        return true;
      case SUBACK:
      case UNSUBACK:
        this.requests.answered(leg, bytes, frame);
        return true;
      case PINGRESP:
        leg.ponged();
        return true;
      case DISCONNECT:
        this.disconnected(bytes, frame);
        return true;
      default:
        throw new ProtocolError(PROTOCOL_ERROR, 'CONNACK twice');
    }
  }

  chunkDone(): void {
    this.downRun.flush();
  }

  legFull(full: boolean): void {
    this.fullLegs += full ? 1 : -1;
    this.regulate();
  }

  outOfMemory(): void {
    this.close(QUOTA_EXCEEDED, 'too much memory');
  }

  private acknowledged(leg: Leg, bytes: Buffer, frame: Frame): void {
    const { type } = frame;
    const packetId = ackPacketId(bytes, frame);
    const code = this.version === 5 && frame.end - frame.bodyStart > 2 ? bytes[frame.bodyStart + 2] : 0;
    leg.acknowledged(type, packetId, code);
    if (type === PUBCOMP && this.requests.completed(leg, packetId, code)) return;
    if (type !== PUBREC || code >= 0x80) this.publishes.done(packetId);
    this.passToClient(bytes, frame.packetStart, frame.end);
  }

  /**
   * The client has gone; a server is still given what it sent, and gets the end of an exchange of QoS 2 if it asks for
   * it.
   */
  private afterwards(leg: Leg, bytes: Buffer, frame: Frame): void {
    const { type } = frame;
    if (type !== PUBACK && type !== PUBREC && type !== PUBCOMP) return;
    const code = frame.end - frame.bodyStart > 2 ? bytes[frame.bodyStart + 2] : 0;
    leg.acknowledged(type, ackPacketId(bytes, frame), code);
  }

  /** A server that only goes away is lost when its connection ends; what else it says is for the client. */
  private disconnected(bytes: Buffer, frame: Frame): void {
    const { reasonCode } = decodeDisconnect(bytes, frame, this.version, 'server');
    if (reasonCode === SERVER_SHUTTING_DOWN || reasonCode === SERVER_BUSY || reasonCode === 0) return;
    this.toClient(Buffer.from(bytes.subarray(frame.packetStart, frame.end)));
    this.finish(200, 'closed by server', null);
  }

  // ---- CONNACK

  private openFirst(): void {
    const { will, cleanStart } = this.connect;
    const first = new Set([0]);
    // A session may be there already, or has to be there when the client comes again.
    if (!cleanStart || outlives(this.connect)) for (const index of this.table.upstreams.keys()) first.add(index);
    if (will !== null) first.add(this.willOwner(will.topicName));
    for (const index of [...first].slice(0, this.options.topicRouting.maxSessions)) {
      const leg = this.makeLeg(index);
      if (leg === null) return;
      this.answers.set(leg, undefined);
    }
    for (const leg of this.answers.keys()) leg.open();
  }

  private willOwner(topicName: string): number {
    return this.table.owner(Buffer.from(topicName).toString('latin1'));
  }

  /** null = there is no such pool (any more), which ends the client. */
  private makeLeg(index: number): Leg | null {
    const { home, facts, client, topics } = this.parts;
    const { connect, options, table } = this;
    const upstream = table.upstreams[index];
    const pool = home.pool(upstream);
    if (pool === undefined) {
      this.close(SERVER_UNAVAILABLE, `no upstream ${upstream}`);
      return null;
    }
    const template = topics.clientIds.get(upstream);
    // All clients without an id would share the one that the template makes of nothing.
    const ownId = connect.clientId === '' || template === undefined || index === 0;
    const leg = new Leg({
      index,
      pool,
      proxy: home.parts,
      options,
      client,
      facts,
      held: this.held,
      owner: this,
      sessions: this.cells.sessions,
      onShortage: () => home.outOfDescriptors(),
      tried: this.tried,
      connect: connectFor(connect, {
        home: index === 0,
        clientId: ownId ? connect.clientId : template.fill(facts),
        will: connect.will !== null && this.willOwner(connect.will.topicName) === index,
        maxPacketBytes: options.topicRouting.maxPacketBytes,
      }),
    });
    this.sessions[index] = leg;
    return leg;
  }

  private answerWhenAll(): void {
    const answers = [...this.answers.values()];
    const [home] = answers;
    if (!answers.every((answer) => answer !== undefined) || !home) return;
    const { exchanges } = this.parts.home;
    const { topicRouting } = this.options;
    const others = this.table.upstreams.filter((_, index) => this.sessions[index] === null);
    const known = others.map((upstream) => exchanges.known(upstream));
    const merged = mergeConnacks(home, answers, known, topicRouting.maxPacketBytes);
    const { properties } = merged;
    if (this.connect.clientId !== '') exchanges.enter(this.key, this);
    this.recall();
    this.publishes.aliasMaximum = properties?.topicAliasMaximum ?? 0;
    if (this.version === 5) {
      this.publishes.receiveMaximum = properties?.receiveMaximum ?? 65_535;
      this.cutter.limit(properties?.maximumPacketSize ?? topicRouting.maxPacketBytes);
    } else this.cutter.limit(this.largestKnown());
    // [MQTT-3.2.2-21]
    if (properties?.serverKeepAlive !== undefined) this.keepAliveMs = properties.serverKeepAlive * 1000;
    if (this.parts.facts.clientId === '' && this.parts.rewrittenId !== null && properties !== null)
      properties.assignedClientIdentifier ??= this.parts.rewrittenId;
    this.toldPresent = merged.sessionPresent;
    this.state = 'open';
    this.fromHome(encodeConnack(this.version, merged));
    this.guarded(() => this.cutter.go());
    for (const leg of this.legs()) leg.go();
    this.regulate();
  }

  /** Before 5.0 nobody says what is too large; what servers have said to other clients still saves holding it. */
  private largestKnown(): number {
    const { exchanges } = this.parts.home;
    const { maxPacketBytes } = this.options.topicRouting;
    const limits = this.table.upstreams.map(
      (upstream) => exchanges.known(upstream).maximumPacketSize ?? maxPacketBytes,
    );
    return Math.min(maxPacketBytes, Math.max(...limits));
  }

  /** Deliveries of QoS 2 that the client may know under other identifiers than the servers. */
  private recall(): void {
    const remembered = this.parts.home.exchanges.recall(this.key, this.table.upstreams);
    if (this.connect.cleanStart) return;
    const there = new Set<number>();
    for (const [leg, answer] of this.answers)
      if (answer === null || answer?.sessionPresent === true) there.add(leg.index);
    this.deliveries.restore(remembered.filter(({ upstream }) => there.has(upstream)));
  }

  /** Through the filter, which waits for it. */
  private fromHome(bytes: Buffer): void {
    if (this.guard === null) this.toClient(bytes);
    else this.guard.fromServer(bytes);
  }

  private refuse(code: number, answer: ConnackPacket | null): void {
    const { options, version } = this;
    if (answer === null && options.reject !== 'connack') return;
    const refusal = {
      type: CONNACK,
      sessionPresent: false,
      reasonCode: code,
      properties: answer?.properties ?? null,
    } as const;
    this.outlet.write(encodeConnack(version, refusal));
  }

  // ---- the end

  private refuseAll(leg: Leg, code: number): void {
    for (const { first, packetId } of leg.takeBack()) {
      if (this.isOver()) return;
      if (first >> 4 === PUBLISH) this.publishes.refuse(((first >> 1) & 3) as Qos, packetId, code);
      else this.requests.failed(leg.index, packetId, code);
    }
  }

  private isOver(): boolean {
    return this.state === 'over';
  }

  private sayGoodbye(reasonCode: number): void {
    this.toClient(encodeDisconnect(5, { type: DISCONNECT, reasonCode, properties: null })); // [MQTT-4.13.1-1]
  }

  private finish(status: Status, reason: string, farewell: Buffer | null): void {
    if (this.state === 'over') return;
    this.leave(farewell);
    this.parts.client.end();
    this.parts.onOver(status, reason);
  }

  private leave(farewell: Buffer | null): void {
    if (this.state === 'over') return;
    this.upRun.flush();
    this.downRun.flush();
    this.state = 'over';
    this.cutter.stop();
    this.publishes.stop();
    this.requests.stop();
    const { exchanges } = this.parts.home;
    exchanges.leave(this.key, this);
    if (this.connect.clientId !== '' && outlives(this.connect))
      exchanges.remember(this.key, this.table.upstreams, this.deliveries.unfinished());
    for (const leg of this.legs()) {
      // What waits for a server that is away has no place to go any more.
      if (leg.state === 'down') this.cells.refused.value += leg.waitingCount;
      leg.finish(farewell);
    }
  }

  private clientFull(full: boolean): void {
    for (const leg of this.legs()) leg.hold(full);
  }

  private regulate(): void {
    if (this.state === 'over') return;
    const { client } = this.parts;
    this.paused = this.fullLegs > 0 || this.guardHolds || (this.state === 'connecting' && this.cutter.isBlocked);
    if (this.paused) client.pause();
    else client.resume();
  }

  private out(bytes: Buffer): void {
    if (this.guard === null || this.state === 'over') this.outlet.write(bytes);
    else this.guard.fromServer(bytes);
  }
}

function statusOf(code: number): Status {
  return code === NOT_AUTHORIZED ? 403 : code === SERVER_SHUTTING_DOWN ? 502 : 400;
}

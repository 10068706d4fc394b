// One client with the servers of several upstreams, each for its topics: what the client sends goes to the part that
// deals with it, what servers send too, until one side ends. Made by relay.ts where the proxy has `topics`.
//
//   PUBLISH:  client --> clientside.ts --> clientpackets.ts --> publishes.ts --> leg.ts --> server
//             server --> leg.ts --> serverpackets.ts --> arrivals.ts --> clientside.ts --> client
//
//   connecting --CONNACK of all that are needed at once (opening.ts)--> open --> over
//
// Sources: MQTT 5.0 sections 3.1, 3.2, 3.14, 4.8, 4.13; docs/proxy.md says what users may rely on.
import { ProtocolError } from '../../base/errors.ts';
import { type Frame, newFrame } from '../../codec/codec.ts';
import { decodeConnect, encodeConnack } from '../../codec/connect.ts';
import { readFrame } from '../../codec/frame.ts';
import { checkFrame } from '../../codec/packet.ts';
import { encodeDisconnect } from '../../codec/session.ts';
import { AUTH, CONNACK, CONNECT, type ConnackPacket, type ConnectPacket, DISCONNECT } from '../../mqtt/packet.ts';
import {
  BAD_USER_NAME_OR_PASSWORD,
  KEEP_ALIVE_TIMEOUT,
  NOT_AUTHORIZED,
  PROTOCOL_ERROR,
  QUOTA_EXCEEDED,
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
import { Attendance } from './attendance.ts';
import { ClientPackets, copyOf } from './clientpackets.ts';
import { ClientSide } from './clientside.ts';
import { Deliveries } from './deliveries.ts';
import type { Ends, TopicCells } from './ends.ts';
import { outlives } from './greeting.ts';
import { Held } from './held.ts';
import type { Leg, LegOwner } from './leg.ts';
import { Legs } from './legs.ts';
import { Loan } from './loan.ts';
import { Opening } from './opening.ts';
import { Publishes } from './publishes.ts';
import { Requests } from './requests.ts';
import { Run } from './run.ts';
import { ServerPackets } from './serverpackets.ts';
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
  readonly version: ConnectPacket['version'];
  readonly options: Rules['options'];
  readonly table: TopicTable;
  readonly cells: TopicCells;
  readonly held: Held;
  readonly deliveries = new Deliveries();
  private state: 'connecting' | 'open' | 'over' = 'connecting';
  private readonly parts: ExchangeParts;
  private readonly connect: ConnectPacket;
  private readonly key: string;
  private readonly loan: Loan;
  private readonly client: ClientSide;
  private readonly sessions: Legs;
  private readonly opening: Opening;
  private readonly attendance: Attendance;
  private readonly publishes: Publishes;
  private readonly requests: Requests;
  private readonly clientPackets: ClientPackets;
  private readonly serverPackets: ServerPackets;
  private readonly upRun = new Run<Leg>((leg, bytes) => leg.pass(bytes));
  private waitsForConnect = true;

  /** Throws ProtocolError for a CONNECT that cannot be taken apart. */
  constructor(parts: ExchangeParts) {
    const { home, rules, topics, upstream } = parts;
    const { options } = rules;
    const { topicRouting } = options;
    this.parts = parts;
    this.options = options;
    const frame = newFrame();
    readFrame(parts.connect, 0, parts.connect.length, frame, parts.connect.length);
    const connect = decodeConnect(parts.connect, frame);
    this.connect = connect;
    this.version = connect.version;
    this.table = topics.table(upstream);
    this.cells = home.cells.topics;
    this.held = new Held(home.exchanges.budget, topicRouting.maxHeldBytes, topicRouting.memoryBytes);
    this.key = `${upstream}\0${connect.clientId}`;
    this.loan = new Loan(home.parts.transports.buffers);
    const { held, loan, table, deliveries, key } = this;
    this.client = this.makeClientSide();
    const onNoPool = (name: string): void => this.close(SERVER_UNAVAILABLE, `no upstream ${name}`);
    this.sessions = new Legs({ ...parts, options, table, connect, held, loan, owner: this, onNoPool });
    const onOpen = (connack: ConnackPacket): void => this.open(connack);
    const { exchanges } = home;
    this.opening = new Opening({ connect, options, table, legs: this.sessions, deliveries, exchanges, key, onOpen });
    const publishes = new Publishes(this);
    const requests = new Requests(this);
    const arrivals = new Arrivals(this, connect.properties?.receiveMaximum ?? 65_535);
    this.publishes = publishes;
    this.requests = requests;
    this.attendance = new Attendance({
      ends: this,
      home,
      opening: this.opening,
      publishes,
      requests,
      isConnecting: () => this.state === 'connecting',
      isOver: () => this.state === 'over',
      turnAway: (status, reason, code, answer) => {
        if (code !== 0) this.refuse(code, answer);
        this.finish(status, reason, null);
      },
    });
    this.clientPackets = new ClientPackets(this, publishes, requests, arrivals);
    this.serverPackets = new ServerPackets(this, publishes, requests, arrivals);
  }

  private makeClientSide(): ClientSide {
    const { client, guarding, home } = this.parts;
    return new ClientSide({
      client,
      guarding,
      held: this.held,
      loan: this.loan,
      maxPacketBytes: this.options.topicRouting.maxPacketBytes,
      keepAliveMs: this.connect.keepAlive * 1000,
      idleTimeoutMs: this.options.idleTimeoutMs ?? 0,
      nowMs: home.parts.clock.mono(),
      take: (bytes, frame) => this.fromClient(bytes, frame),
      onDone: () => this.clientChunkDone(),
      onFull: (full) => {
        for (const leg of this.legs()) leg.hold(full);
      },
      onBroken: (error) => {
        this.upRun.flush();
        this.close(error.reasonCode, error.message);
      },
      // What it has sent before is still handed on.
      onGone: (reason) => this.finish(200, reason, null),
    });
  }

  get bytesIn(): number {
    return this.client.bytesIn;
  }

  get bytesOut(): number {
    return this.client.bytesOut;
  }

  /** Addresses that were dialled. */
  get tried(): readonly string[] {
    return this.sessions.tried;
  }

  /** `bytes` is CONNECT and what was read behind it. */
  start(bytes: Buffer): void {
    this.client.attach();
    if (this.version === 3 && this.connect.username?.includes('\ufffd') === true) {
      // 3.1 alone allows a user name that is no text; it does not survive being written again.
      this.refuse(BAD_USER_NAME_OR_PASSWORD, null);
      this.finish(400, 'username is not well-formed UTF-8', null);
      return;
    }
    this.opening.begin();
    this.client.begin(bytes);
  }

  /** Ends it when the client has been silent for too long; called now and then. */
  sweep(nowMs: number): void {
    for (const leg of this.legs()) leg.sweep(nowMs);
    if (this.state !== 'open') return;
    const silence = this.client.sweep(nowMs);
    if (silence !== null) this.close(silence === 'idle' ? UNSPECIFIED_ERROR : KEEP_ALIVE_TIMEOUT, silence);
  }

  /** Ends all sides after what is under way. Resolves when the client is gone. */
  stop(): Promise<void> {
    this.leave(null);
    return this.client.end();
  }

  destroy(): void {
    this.leave(null);
    for (const leg of this.legs()) leg.destroy();
    this.client.destroy();
  }

  /** The same client has come again. */
  takenOver(): void {
    this.close(SESSION_TAKEN_OVER, 'taken over');
  }

  // ---- Ends

  leg(index: number): Leg | null {
    return this.sessions.at(index);
  }

  legs(): readonly Leg[] {
    return this.sessions.all;
  }

  toClient(bytes: Buffer): void {
    this.client.send(bytes);
  }

  passToClient(bytes: Buffer, start: number, end: number): void {
    this.client.pass(bytes, start, end);
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
    // [MQTT-4.13.1-1]
    else if (this.version === 5)
      this.toClient(encodeDisconnect(5, { type: DISCONNECT, reasonCode: code, properties: null }));
    this.finish(code === SESSION_TAKEN_OVER || code === KEEP_ALIVE_TIMEOUT ? 200 : statusOf(code), reason, null);
  }

  over(reason: string, farewell: Buffer | null): void {
    this.finish(200, reason, farewell);
  }

  // ---- packets of the client

  /** One packet of the client; false = the servers have not answered yet. */
  private fromClient(bytes: Buffer, frame: Frame): boolean {
    if (this.state === 'open') this.clientPackets.take(bytes, frame);
    else if (this.state === 'connecting') return this.beforeConnack(bytes, frame);
    return true;
  }

  /** CONNECT, which every server gets in its own form, and answers of the client to AUTH packets. */
  private beforeConnack(bytes: Buffer, frame: Frame): boolean {
    if (frame.type === CONNECT && this.waitsForConnect) {
      this.waitsForConnect = false;
      return true;
    }
    if (frame.type === CONNECT) throw new ProtocolError(PROTOCOL_ERROR, 'CONNECT twice'); // [MQTT-3.1.0-2]
    if (frame.type !== AUTH || this.version < 5) return false;
    this.sessions.home?.pass(copyOf(bytes, frame));
    return true;
  }

  private clientChunkDone(): void {
    this.upRun.flush();
    if (this.state === 'open') this.sessions.go();
  }

  // ---- packets of servers

  fromServer(leg: Leg, bytes: Buffer, frame: Frame): boolean {
    const { serverPackets } = this;
    checkFrame(this.version, frame, 'server');
    if (this.state === 'connecting') return serverPackets.early(leg, bytes, frame);
    if (this.state === 'open') return serverPackets.take(leg, bytes, frame);
    serverPackets.late(leg, bytes, frame);
    return true;
  }

  chunkDone(): void {
    this.client.flush();
  }

  // ---- servers that come and go

  legReached(leg: Leg): boolean {
    return this.state !== 'connecting' || this.opening.reached(leg);
  }

  legUp(leg: Leg, answer: ConnackPacket, again: boolean): void {
    if (this.state === 'over') return;
    if (this.client.isFull) leg.hold(true);
    this.attendance.up(leg, answer, again);
  }

  legRefused(leg: Leg, answer: ConnackPacket): void {
    if (this.state !== 'over') this.attendance.refused(leg, answer);
  }

  legLost(leg: Leg, reason: string, broken: boolean): void {
    if (this.state !== 'over') this.attendance.lost(leg, reason, broken);
  }

  legFull(full: boolean): void {
    this.client.serverFull(full);
  }

  outOfMemory(): void {
    this.close(QUOTA_EXCEEDED, 'too much memory');
  }

  // ---- CONNACK

  /** All servers that are needed at once have answered. */
  private open(connack: ConnackPacket): void {
    const { client, connect, publishes } = this;
    const { maxPacketBytes } = this.options.topicRouting;
    const { properties } = connack;
    const { exchanges } = this.parts.home;
    // The client's older connection ends here, and leaves what it has under way.
    if (connect.clientId !== '') exchanges.enter(this.key, this);
    this.opening.recall();
    publishes.aliasMaximum = properties?.topicAliasMaximum ?? 0;
    if (this.version === 5) publishes.receiveMaximum = properties?.receiveMaximum ?? 65_535;
    // [MQTT-3.2.2-21]
    if (properties?.serverKeepAlive !== undefined) client.silence.keepAliveMs = properties.serverKeepAlive * 1000;
    if (this.parts.facts.clientId === '' && this.parts.rewrittenId !== null && properties !== null)
      properties.assignedClientIdentifier ??= this.parts.rewrittenId;
    this.state = 'open';
    this.toClient(encodeConnack(this.version, connack));
    client.go(this.version === 5 ? (properties?.maximumPacketSize ?? maxPacketBytes) : this.largestKnown());
    this.sessions.go();
  }

  /** Before 5.0 nobody says what is too large; what servers have said to other clients still saves holding it. */
  private largestKnown(): number {
    const { exchanges } = this.parts.home;
    const { maxPacketBytes } = this.options.topicRouting;
    const limits = this.table.upstreams.map((name) => exchanges.known(name).maximumPacketSize ?? maxPacketBytes);
    return Math.min(maxPacketBytes, Math.max(...limits));
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
    this.client.answer(encodeConnack(version, refusal));
  }

  // ---- the end

  private finish(status: Status, reason: string, farewell: Buffer | null): void {
    if (this.state === 'over') return;
    this.leave(farewell);
    void this.client.end();
    this.parts.onOver(status, reason);
  }

  private leave(farewell: Buffer | null): void {
    if (this.state === 'over') return;
    this.upRun.flush();
    this.client.leave();
    this.state = 'over';
    this.publishes.stop();
    this.requests.stop();
    const { exchanges } = this.parts.home;
    exchanges.leave(this.key, this);
    if (this.connect.clientId !== '' && outlives(this.connect))
      exchanges.remember(this.key, this.table.upstreams, this.deliveries.unfinished());
    for (const leg of this.legs()) {
      // What waits for a server that is away has no place to go any more.
      if (leg.state === 'down') this.cells.refused.value += leg.backlog.waitingCount;
      leg.finish(farewell);
    }
  }
}

function statusOf(code: number): Status {
  return code === NOT_AUTHORIZED ? 403 : code === SERVER_SHUTTING_DOWN ? 502 : 400;
}

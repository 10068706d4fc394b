// The session of one client with one server of several: dialled when first needed, greeted with the client's CONNECT,
// opened again when it is lost and the options say so. Made by exchange.ts, which decides what goes in and what becomes
// of what comes out.
//
//   idle --open()--> dialing --reached--> greeting --CONNACK 0--> open --lost--> down --after a while--> dialing
//                       '----not reached----> down      '--CONNACK > 0--> refused          finish(): drained, then over
//
// Sources: MQTT 5.0 sections 3.1.2.10 (keep alive), 4.4 (what is sent again), 4.9 (Receive Maximum).
import type { Timer } from '../../base/clock.ts';
import { ProtocolError } from '../../base/errors.ts';
import type { Cell } from '../../base/metrics.ts';
import type { Frame } from '../../codec/codec.ts';
import { decodeConnack, encodeConnect } from '../../codec/connect.ts';
import { encodePing } from '../../codec/session.ts';
import { AUTH, CONNACK, type ConnackPacket, type ConnectPacket, PINGREQ } from '../../mqtt/packet.ts';
import { PROTOCOL_ERROR, QUOTA_EXCEEDED } from '../../mqtt/reason.ts';
import type { Connection } from '../../transport/transport.ts';
import { Dialing } from '../dialing.ts';
import type { Facts } from '../facts.ts';
import type { Pool } from '../pool.ts';
import type { ProxyOptions, ProxyParts } from '../proxy.ts';
import { Backlog, ID_COUNT } from './backlog.ts';
import { Cutter } from './cutter.ts';
import { outlives } from './greeting.ts';
import type { Held } from './held.ts';
import type { Loan } from './loan.ts';
import { Outlet } from './outlet.ts';
import { Pings } from './pings.ts';
import { Retries } from './retries.ts';

export interface LegOwner {
  /** The server has been reached; false = greet() will say when it gets CONNECT. */
  legReached(leg: Leg): boolean;
  /** CONNACK with code 0; `again` = it is not the first one. */
  legUp(leg: Leg, answer: ConnackPacket, again: boolean): void;
  /** CONNACK with another one: there will be no session. */
  legRefused(leg: Leg, answer: ConnackPacket): void;
  /** No session, or none any more; `broken` = it makes no sense to try again. */
  legLost(leg: Leg, reason: string, broken: boolean): void;
  /** One packet of the server; false = not now, go() says when. */
  fromServer(leg: Leg, bytes: Buffer, frame: Frame): boolean;
  /** All packets of a chunk have been given. */
  chunkDone(): void;
  /** The server takes no more for now, or does again. */
  legFull(full: boolean): void;
  /** There is no memory for what this client needs. */
  outOfMemory(): void;
}

export interface LegParts {
  /** Index of the upstream in the table. */
  readonly index: number;
  readonly pool: Pool;
  readonly proxy: ProxyParts;
  readonly options: ProxyOptions;
  readonly client: Connection;
  readonly facts: Facts;
  readonly connect: ConnectPacket;
  readonly held: Held;
  readonly loan: Loan;
  readonly owner: LegOwner;
  /** This process has no file descriptors left. */
  readonly onShortage: () => void;
  /** Gauge of open sessions. */
  readonly sessions: Cell;
  /** Addresses that were dialled, for the access log. */
  readonly tried: string[];
}

export type LegState = 'idle' | 'dialing' | 'greeting' | 'open' | 'down' | 'refused' | 'over';

export class Leg {
  state: LegState = 'idle';
  readonly index: number;
  /** What it has to be given, and what it has not acknowledged. */
  readonly backlog: Backlog;
  /** Largest packet that the server takes. */
  maxPacketBytes = 268_435_460;
  /** The server has read CONNECT and closed without CONNACK. */
  closedUnanswered = false;
  private readonly parts: LegParts;
  private dialing: Dialing | null = null;
  private server: Connection | null = null;
  private outlet: Outlet | null = null;
  private cutter: Cutter | null = null;
  /** Gives the server back to its pool. */
  private giveBack: (() => void) | null = null;
  private timer: Timer | null = null;

  private readonly pings = new Pings();
  private greeted = false;
  /** The exchange has ended with this DISCONNECT, or without one (null). */
  private farewell: Buffer | null | undefined = undefined;
  private readonly retries = new Retries();
  /** The client takes nothing more; a packet of this server has to wait for the client. */
  private clientFull = false;
  private waitsForClient = false;

  constructor(parts: LegParts) {
    this.parts = parts;
    this.index = parts.index;
    this.backlog = new Backlog(parts.held, parts.options.topicRouting.lost === 'wait', (full) =>
      parts.owner.legFull(full),
    );
  }

  /** Whether the server keeps the session without a connection. */
  get persistent(): boolean {
    return outlives(this.parts.connect);
  }

  /** Dials, unless that is done or under way. */
  open(): void {
    if (this.state !== 'idle') return;
    this.state = 'dialing';
    void this.dial();
  }

  // ---- to the server

  /** Sends bytes of one or more packets that need no answer and may be lost with the connection; only where isReady. */
  pass(bytes: Buffer): void {
    this.pings.sent();
    this.outlet?.write(bytes);
  }

  /** Nothing waits: what is passed now keeps its place. */
  get isReady(): boolean {
    return this.state === 'open' && this.backlog.waitingCount === 0;
  }

  /** The same for a packet with this first byte, which the backlog has to note unless it is of QoS 0. */
  takes(first: number): boolean {
    return this.isReady && !this.backlog.mustWait(first);
  }

  /** An acknowledgement: it has no place in the order of messages, and none in another connection. */
  acknowledge(bytes: Buffer): void {
    if (this.state === 'open') this.pass(bytes);
  }

  /** Takes a whole packet of the client; `packetId` 0 for QoS 0. False = there is no memory for it. */
  send(bytes: Buffer, packetId: number): boolean {
    return this.takes(bytes[0]) ? this.transmit(bytes, packetId) : this.backlog.put(bytes, packetId);
  }

  /** PUBREL of the client. */
  release(packetId: number, bytes: Buffer): void {
    this.backlog.release(packetId);
    this.acknowledge(bytes);
  }

  /** What the server has acknowledged. */
  acknowledged(type: number, packetId: number, code: number): void {
    const { backlog } = this;
    backlog.acknowledged(type, packetId, code);
    if (backlog.waitingCount > 0) this.drain();
  }

  /** Stops the server while the client takes nothing more. */
  hold(on: boolean): void {
    this.clientFull = on;
    this.regulate();
  }

  /** Goes on with what fromServer() has put off. */
  go(): void {
    const { cutter } = this;
    if (cutter === null || !cutter.isBlocked) return;
    this.waitsForClient = false;
    this.guarded(() => cutter.go());
    this.regulate();
  }

  // ---- the end

  /** Ends it after what waits has been sent; with `farewell`, else as if the connection were lost. */
  finish(farewell: Buffer | null): void {
    const onItsWay = this.state === 'dialing' || this.state === 'greeting';
    if (this.state !== 'open' && !(onItsWay && this.backlog.waitingCount > 0)) {
      this.destroy();
      return;
    }
    this.timer?.cancel();
    this.timer = this.parts.proxy.clock.after(this.parts.options.connectTimeoutMs, () => this.destroy());
    this.farewell = farewell;
    this.hold(false);
    if (this.state === 'open') this.drain();
  }

  /** Closes it at once. */
  destroy(): void {
    if (this.state === 'over') return;
    this.timer?.cancel();
    this.dialing?.giveUp();
    this.leave();
    this.backlog.drop();
    this.state = 'over';
  }

  /**
   * Called now and then: PINGREQ where the client's own packets go elsewhere, and the end of a server that does not
   * answer.
   */
  sweep(nowMs: number): void {
    if (this.state !== 'open') return;
    const due = this.pings.due(nowMs);
    if (due === 'ping') this.outlet?.write(encodePing(PINGREQ));
    else if (due === 'dead') this.lost('the server does not answer', false);
  }

  ponged(): void {
    this.pings.answered();
  }

  // ---- inside

  /** Never rejects. */
  private async dial(): Promise<void> {
    const { pool, client, proxy, facts, options, tried } = this.parts;
    const dialing = new Dialing(pool, client, proxy.clock);
    this.dialing = dialing;
    const reached = await dialing.reach(facts, options);
    this.dialing = null;
    if (dialing.outOfDescriptors) this.parts.onShortage();
    for (const address of dialing.tried) if (tried.at(-1) !== address) tried.push(address);
    if (this.state !== 'dialing') {
      reached?.server.destroy();
      reached?.release();
      return;
    }
    if (reached === null) {
      this.lost('no server can be reached', false);
      return;
    }
    this.giveBack = reached.release;
    this.server = reached.server;
    if (this.parts.owner.legReached(this)) this.greet();
  }

  /** Sends CONNECT to the server that has been reached. */
  greet(): void {
    const { connect, held, loan, options, owner, proxy } = this.parts;
    const { server } = this;
    if (server === null || this.state !== 'dialing') return;
    this.state = 'greeting';
    const outlet: Outlet = new Outlet(server, loan, (full) => {
      if (this.outlet === outlet) owner.legFull(full);
    });
    this.outlet = outlet;
    const cutter = new Cutter(
      options.topicRouting.maxPacketBytes,
      held,
      (bytes, frame) => this.packet(bytes, frame),
      () => owner.chunkDone(),
    );
    this.cutter = cutter;
    this.waitsForClient = false;
    const here = (): boolean => this.server === server;
    server.onEnd(() => here() && this.closed());
    server.onClose(({ by }) => {
      if (!here()) return;
      if (by === 'error') this.lost('server connection lost', false);
      else this.closed();
    });
    loan.read(server, (chunk) => {
      if (!here()) return;
      this.guarded(() => cutter.push(chunk));
      if (cutter.isBlocked) loan.kept = true;
    });
    this.timer = proxy.clock.after(options.connectTimeoutMs, () => this.lost('no CONNACK in time', false));
    // Before 5.0 a session is cleaned again each time, or never.
    const again = this.greeted && this.persistent;
    outlet.write(encodeConnect(again ? { ...connect, cleanStart: false } : connect));
  }

  private guarded(work: () => void): void {
    try {
      work();
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      if (error.reasonCode === QUOTA_EXCEEDED) this.parts.owner.outOfMemory();
      else this.lost(`server: ${error.message}`, true);
    }
  }

  private packet(bytes: Buffer, frame: Frame): boolean {
    const { owner, connect } = this.parts;
    if (this.state === 'greeting') {
      if (frame.type === AUTH && connect.version === 5) return owner.fromServer(this, bytes, frame);
      this.greeting(bytes, frame);
      return true;
    }
    // The exchange has ended: acknowledgements still make room for what waits.
    const taken = owner.fromServer(this, bytes, frame);
    if (!taken) {
      this.waitsForClient = true;
      this.regulate();
    }
    return taken;
  }

  private regulate(): void {
    if (this.clientFull || this.waitsForClient) this.server?.pause();
    else this.server?.resume();
  }

  private greeting(bytes: Buffer, frame: Frame): void {
    const { owner, connect, proxy } = this.parts;
    if (frame.type !== CONNACK) throw new ProtocolError(PROTOCOL_ERROR, 'no CONNACK');
    const answer = decodeConnack(bytes, frame, connect.version);
    this.timer?.cancel();
    if (answer.reasonCode !== 0) {
      this.leave();
      this.state = 'refused';
      owner.legRefused(this, answer);
      return;
    }
    const again = this.greeted;
    this.greeted = true;
    this.state = 'open';
    const nowMs = proxy.clock.mono();
    this.retries.opened(nowMs);
    this.backlog.receiveMaximum = answer.properties?.receiveMaximum ?? ID_COUNT;
    this.maxPacketBytes = answer.properties?.maximumPacketSize ?? 268_435_460;
    this.pings.begin((answer.properties?.serverKeepAlive ?? connect.keepAlive) * 1000, nowMs);
    this.parts.sessions.value++;
    owner.legUp(this, answer, again);
    if (this.state !== 'open') return;
    for (const bytes of this.backlog.again(connect.version)) this.pass(bytes);
    this.drain();
    this.backlog.settle();
  }

  private transmit(bytes: Buffer, packetId: number): boolean {
    if (packetId !== 0 && !this.backlog.note(bytes, packetId)) return false;
    this.pass(bytes);
    return true;
  }

  private drain(): void {
    while (this.state === 'open') {
      const next = this.backlog.next();
      if (next === null) break;
      // The memory has just been given back.
      this.transmit(next.bytes, next.packetId);
    }
    if (this.farewell === undefined || this.state !== 'open') return;
    if (this.backlog.waitingCount > 0) return;
    const { server, farewell } = this;
    if (farewell !== null) this.outlet?.write(farewell);
    this.timer?.cancel();
    this.leave(server);
    this.backlog.drop();
    this.state = 'over';
  }

  private closed(): void {
    this.closedUnanswered = this.state === 'greeting';
    this.lost('closed by server', false);
  }

  private lost(reason: string, broken: boolean): void {
    const { clock } = this.parts.proxy;
    const wasOpen = this.state === 'open';
    this.timer?.cancel();
    this.leave();
    if (this.farewell !== undefined) {
      this.destroy();
      return;
    }
    this.state = 'down';
    const pointless = wasOpen && this.retries.lost(clock.mono());
    this.parts.owner.legLost(this, reason, broken || pointless);
    if ((this.state as LegState) !== 'down') return;
    this.timer = clock.after(this.retries.nextMs(), () => {
      this.state = 'dialing';
      void this.dial();
    });
  }

  /** Lets go of the connection; with `server` after what is under way, else at once. */
  private leave(ending: Connection | null = null): void {
    const { server, giveBack, outlet } = this;
    if (this.state === 'open') this.parts.sessions.value--;
    this.server = null;
    this.giveBack = null;
    this.outlet = null;
    this.cutter?.stop();
    this.cutter = null;
    if (outlet?.isFull) this.parts.owner.legFull(false);
    this.backlog.settle();
    if (ending === null) server?.destroy();
    else ending.end();
    giveBack?.();
  }
}

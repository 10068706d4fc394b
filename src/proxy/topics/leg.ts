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
import { encodeAck } from '../../codec/ack.ts';
import type { Frame } from '../../codec/codec.ts';
import { decodeConnack, encodeConnect } from '../../codec/connect.ts';
import { encodePing } from '../../codec/session.ts';
import {
  AUTH,
  CONNACK,
  type ConnackPacket,
  type ConnectPacket,
  PINGREQ,
  PUBACK,
  PUBCOMP,
  PUBLISH,
  PUBREC,
  PUBREL,
} from '../../mqtt/packet.ts';
import { PROTOCOL_ERROR } from '../../mqtt/reason.ts';
import type { Connection } from '../../transport/transport.ts';
import { Dialing } from '../dialing.ts';
import type { Facts } from '../facts.ts';
import type { Peer } from '../peer.ts';
import type { Pool } from '../pool.ts';
import type { ProxyOptions, ProxyParts } from '../proxy.ts';
import { Cutter } from './cutter.ts';
import { outlives } from './greeting.ts';
import type { Held } from './held.ts';
import { Outlet } from './outlet.ts';

const RETRY_FIRST_MS = 500;
const RETRY_MOST_MS = 10_000;
/** Ended this soon after CONNACK, this often in a row: the server does not want what this client sends. */
const SHORT_MS = 2000;
const SHORT_COUNT = 3;
const DUP = 8;
/** First byte without DUP and RETAIN. */
const QOS_2_PUBLISH = (PUBLISH << 4) | 4;
const ID_COUNT = 65_535;

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
  readonly owner: LegOwner;
  /** This process has no file descriptors left. */
  readonly onShortage: () => void;
  /** Gauge of open sessions. */
  readonly sessions: Cell;
  /** Addresses that were dialled, for the access log. */
  readonly tried: string[];
}

interface Waiting {
  readonly bytes: Buffer;
  /** 0 = QoS 0. */
  readonly packetId: number;
}

export type LegState = 'idle' | 'dialing' | 'greeting' | 'open' | 'down' | 'refused' | 'over';

export class Leg {
  state: LegState = 'idle';
  readonly index: number;
  /** Largest packet that the server takes. */
  maxPacketBytes = 268_435_460;
  /** Code of the refusal. */
  refusal = 0;
  private readonly parts: LegParts;
  private readonly keepsCopies: boolean;
  private dialing: Dialing | null = null;
  private server: Connection | null = null;
  private outlet: Outlet | null = null;
  private cutter: Cutter | null = null;
  private peer: Peer | null = null;
  private timer: Timer | null = null;
  private queue: Waiting[] = [];
  /** PUBLISH above QoS 0, SUBSCRIBE and UNSUBSCRIBE on their way: a copy, or the first byte where none is kept. */
  private sent = new Map<number, Buffer | number>();
  /** QoS 2 exchanges past PUBREC; true = the client has sent PUBREL. */
  private readonly releasing = new Map<number, boolean>();
  private publishing = 0;
  private receiveMaximum = ID_COUNT;
  private greeted = false;
  /** The exchange has ended with this DISCONNECT, or without one (null). */
  private farewell: Buffer | null | undefined = undefined;
  private retryMs = RETRY_FIRST_MS;
  private upSinceMs = 0;
  private shortCount = 0;
  private keepAliveMs: number;
  private wrote = false;
  private wroteMs = 0;
  private pingMs = -1;
  /** The client takes nothing more; a packet of this server has to wait for the client. */
  private clientFull = false;
  private waitsForClient = false;
  bytesIn = 0;

  constructor(parts: LegParts) {
    this.parts = parts;
    this.index = parts.index;
    this.keepsCopies = parts.options.topicRouting.lost === 'wait';
    this.keepAliveMs = parts.connect.keepAlive * 1000;
  }

  /** Whether the server keeps the session without a connection. */
  get persistent(): boolean {
    return outlives(this.parts.connect);
  }

  get hasQos2(): boolean {
    if (this.releasing.size > 0) return true;
    for (const one of this.sent.values()) if ((firstOf(one) & 0xf6) === QOS_2_PUBLISH) return true;
    return false;
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
    this.wrote = true;
    this.outlet?.write(bytes);
  }

  /** Nothing waits: what is passed now keeps its place. */
  get isReady(): boolean {
    return this.state === 'open' && this.queue.length === 0;
  }

  /** The same for a packet with this first byte, which note() has to be told of unless it is of QoS 0. */
  takes(first: number): boolean {
    return this.isReady && !this.mustWait(first);
  }

  /** A packet with an identifier is about to be passed. False = there is no memory for it. */
  note(bytes: Buffer, packetId: number): boolean {
    const { held } = this.parts;
    if (this.keepsCopies && !held.take(bytes.length)) return false;
    const before = this.sent.get(packetId);
    if (typeof before === 'object') held.give(before.length);
    if (before === undefined && bytes[0] >> 4 === PUBLISH && !this.releasing.has(packetId)) this.publishing++;
    this.sent.set(packetId, this.keepsCopies ? Buffer.from(bytes) : bytes[0]);
    return true;
  }

  /** An acknowledgement: it has no place in the order of messages, and none in another connection. */
  acknowledge(bytes: Buffer): void {
    if (this.state === 'open') this.pass(bytes);
  }

  /** Takes a whole packet of the client; `packetId` 0 for QoS 0. False = there is no memory for it. */
  send(bytes: Buffer, packetId: number): boolean {
    if (this.takes(bytes[0])) return this.transmit(bytes, packetId);
    if (!this.parts.held.take(bytes.length)) return false;
    // A copy: a chunk of many packets would be kept for one of them.
    this.queue.push({ bytes: Buffer.from(bytes), packetId });
    return true;
  }

  /** PUBREL of the client. */
  release(packetId: number, bytes: Buffer): void {
    if (!this.releasing.has(packetId)) this.publishing++;
    this.releasing.set(packetId, true);
    this.acknowledge(bytes);
  }

  /** What the server has acknowledged. */
  acknowledged(type: number, packetId: number, code: number): void {
    const sent = this.sent.get(packetId);
    if (sent !== undefined) {
      this.sent.delete(packetId);
      if (typeof sent === 'object') this.parts.held.give(sent.length);
    }
    if (type === PUBREC && code < 0x80) this.releasing.set(packetId, false);
    else if (type === PUBCOMP) {
      if (this.releasing.delete(packetId)) this.publishing--;
    } else if (sent !== undefined && (type === PUBACK || type === PUBREC)) this.publishing--;
    if (this.queue.length > 0) this.drain();
  }

  /** Packets that wait for the server. */
  get waitingCount(): number {
    return this.queue.length;
  }

  /** What the server was not given, or may not have got: taken out, to be refused. */
  takeBack(): readonly { readonly first: number; readonly packetId: number }[] {
    const list = [...this.sent].map(([packetId, one]) => ({ first: firstOf(one), packetId }));
    for (const { bytes, packetId } of this.queue) list.push({ first: bytes[0], packetId });
    this.drop();
    return list;
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
    this.guarded(() => this.pushed(cutter.go()));
    this.regulate();
  }

  // ---- the end

  /** Ends it after what waits has been sent; with `farewell`, else as if the connection were lost. */
  finish(farewell: Buffer | null): void {
    const onItsWay = this.state === 'dialing' || this.state === 'greeting';
    if (this.state !== 'open' && !(onItsWay && this.queue.length > 0)) {
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
    this.drop();
    this.state = 'over';
  }

  /**
   * Called now and then: PINGREQ where the client's own packets go elsewhere, and the end of a server that does not
   * answer.
   */
  sweep(nowMs: number): void {
    if (this.state !== 'open' || this.keepAliveMs === 0) return;
    if (this.wrote) {
      this.wrote = false;
      this.wroteMs = nowMs;
    }
    if (this.pingMs >= 0 && nowMs - this.pingMs >= this.keepAliveMs) {
      this.lost('the server does not answer', false);
      return;
    }
    if (this.pingMs >= 0 || nowMs - this.wroteMs < this.keepAliveMs * 0.7) return;
    this.pingMs = nowMs;
    this.wroteMs = nowMs;
    this.outlet?.write(encodePing(PINGREQ));
  }

  ponged(): void {
    this.pingMs = -1;
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
      if (reached !== null) pool.release(reached.peer);
      return;
    }
    if (reached === null) {
      this.lost('no server can be reached', false);
      return;
    }
    this.peer = reached.peer;
    this.server = reached.server;
    if (this.parts.owner.legReached(this)) this.greet();
  }

  /** Sends CONNECT to the server that has been reached. */
  greet(): void {
    const { connect, held, options, owner, proxy } = this.parts;
    const { server } = this;
    if (server === null || this.state !== 'dialing') return;
    this.state = 'greeting';
    const outlet: Outlet = new Outlet(server, (full) => {
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
    const lent = server.kind === 'memory' || server.kind === 'ws' || server.kind === 'wss';
    const here = (): boolean => this.server === server;
    server.onEnd(() => here() && this.lost('closed by server', false));
    server.onClose(
      ({ by }) => here() && this.lost(by === 'error' ? 'server connection lost' : 'closed by server', false),
    );
    server.onData((chunk) => {
      if (!here()) return;
      this.bytesIn += chunk.length;
      this.guarded(() => this.pushed(cutter.push(lent ? Buffer.from(chunk) : chunk)));
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
      this.lost(`server: ${error.message}`, true);
    }
  }

  private pushed(kept: boolean): void {
    if (!kept) this.parts.owner.outOfMemory();
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
      this.refusal = answer.reasonCode;
      this.leave();
      this.state = 'refused';
      owner.legRefused(this, answer);
      return;
    }
    const again = this.greeted;
    this.greeted = true;
    this.state = 'open';
    this.upSinceMs = proxy.clock.mono();
    this.wroteMs = this.upSinceMs;
    this.pingMs = -1;
    this.receiveMaximum = answer.properties?.receiveMaximum ?? ID_COUNT;
    this.maxPacketBytes = answer.properties?.maximumPacketSize ?? 268_435_460;
    this.keepAliveMs = (answer.properties?.serverKeepAlive ?? connect.keepAlive) * 1000;
    this.parts.sessions.value++;
    owner.legUp(this, answer, again);
    if (this.state !== 'open') return;
    this.sendAgain();
    this.drain();
  }

  /** What the server has not acknowledged, in its order [MQTT-4.4.0-1]. */
  private sendAgain(): void {
    const { version } = this.parts.connect;
    for (const one of this.sent.values()) {
      if (typeof one === 'number') continue;
      const copy = Buffer.from(one);
      if (copy[0] >> 4 === PUBLISH) copy[0] |= DUP;
      this.pass(copy);
    }
    for (const [packetId, released] of this.releasing) if (released) this.pass(encodeAck(version, PUBREL, packetId));
  }

  private mustWait(first: number): boolean {
    return first >> 4 === PUBLISH && (first & 6) !== 0 && this.publishing >= this.receiveMaximum; // [MQTT-3.3.4-9]
  }

  private transmit(bytes: Buffer, packetId: number): boolean {
    if (packetId !== 0 && !this.note(bytes, packetId)) return false;
    this.pass(bytes);
    return true;
  }

  private drain(): void {
    let count = 0;
    const { queue, parts } = this;
    while (this.state === 'open' && count < queue.length && !this.mustWait(queue[count].bytes[0])) {
      const { bytes, packetId } = queue[count++];
      parts.held.give(bytes.length);
      // The memory has just been given back.
      this.transmit(bytes, packetId);
    }
    if (count > 0) this.queue = queue.slice(count);
    if (this.farewell === undefined || this.state !== 'open') return;
    if (this.queue.length > 0) return;
    const { server, farewell } = this;
    if (farewell !== null) this.outlet?.write(farewell);
    this.timer?.cancel();
    this.leave(server);
    this.drop();
    this.state = 'over';
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
    const short = wasOpen && clock.mono() - this.upSinceMs < SHORT_MS;
    this.shortCount = short ? this.shortCount + 1 : wasOpen ? 0 : this.shortCount;
    if (wasOpen && !short) this.retryMs = RETRY_FIRST_MS;
    this.parts.owner.legLost(this, reason, broken || this.shortCount >= SHORT_COUNT);
    if ((this.state as LegState) !== 'down') return;
    this.timer = clock.after(this.retryMs, () => {
      this.retryMs = Math.min(this.retryMs * 2, RETRY_MOST_MS);
      this.state = 'dialing';
      void this.dial();
    });
  }

  /** Lets go of the connection; with `server` after what is under way, else at once. */
  private leave(ending: Connection | null = null): void {
    const { server, peer, outlet } = this;
    if (this.state === 'open') this.parts.sessions.value--;
    this.server = null;
    this.peer = null;
    this.outlet = null;
    this.cutter?.stop();
    this.cutter = null;
    if (outlet?.isFull) this.parts.owner.legFull(false);
    if (ending === null) server?.destroy();
    else ending.end();
    if (peer !== null) this.parts.pool.release(peer);
  }

  /** Gives up what waits and what is under way. */
  private drop(): void {
    const { held } = this.parts;
    for (const { bytes } of this.queue) held.give(bytes.length);
    for (const one of this.sent.values()) {
      if (typeof one === 'object') held.give(one.length);
      if (firstOf(one) >> 4 === PUBLISH) this.publishing--;
    }
    this.queue = [];
    this.sent = new Map();
  }
}

function firstOf(sent: Buffer | number): number {
  return typeof sent === 'number' ? sent : sent[0];
}

// What stands between a connection and aedes: reads CONNECT itself, bounded in bytes and time, refuses versions aedes
// does not speak, and from then on lets through whole packets of bounded size only. To aedes it is a Duplex. Built by
// engine.ts for each connection. Sources: MQTT 3.1.1 section 3.1 and 3.2, MQTT 5.0 section 3.1.2.2 (the refusal of
// version 5).
import { Duplex } from 'node:stream';
import type { Identity } from '../../auth/auth.ts';
import type { Clock, Timer } from '../../base/clock.ts';
import { errorText } from '../../base/errors.ts';
import type { ConnectPacket } from '../../mqtt/packet.ts';
import type { Refusal } from '../../session/checks.ts';
import { encodeRefused } from '../../session/connack.ts';
import { readFirstPacket } from '../../session/firstpacket.ts';
import type { SessionLimits } from '../../session/session.ts';
import type { Connection } from '../../transport/transport.ts';
import type { ListenerContext } from '../broker.ts';
import { Guard } from './guard.ts';
import type { AedesSession } from './session.ts';

const NOTHING = Buffer.alloc(0);
/** What a peer that is sent away gets to take its last bytes. */
const GRACE_MS = 1000;

export interface FrontOptions {
  readonly connection: Connection;
  readonly listener: ListenerContext;
  readonly clock: Clock;
  readonly limits: () => SessionLimits;
  /** A CONNECT has come and is well-formed: a refusal, or null and the front is handed to aedes by then. */
  readonly onConnect: (front: Front, packet: ConnectPacket) => Refusal | null;
  readonly onBytes: (count: number) => void;
  /** Called once. `why` is empty when the peer has just gone. */
  readonly onGone: (front: Front, why: string) => void;
}

/** An acknowledgement that waits for what it acknowledges, in the order of the packets [MQTT-4.6.0-2]. */
interface Ack {
  error: Error | null;
  ready: boolean;
  readonly settle: (error: Error | null) => void;
}

export class Front extends Duplex {
  readonly connection: Connection;
  readonly listener: ListenerContext;
  /** Known once authenticated. */
  identity: Identity | null = null;
  connect: ConnectPacket | null = null;
  session: AedesSession | null = null;
  /** Resolves when what came before has been judged; null = nothing waits. */
  judging: Promise<void> | null = null;
  why = '';
  private readonly options: FrontOptions;
  private readonly guard = new Guard();
  private head: Buffer = NOTHING;
  private timer: Timer | null = null;
  private paused = false;
  /** aedes takes no more for now. */
  private full = false;
  private heardMs = 0;
  /** Silence after which the connection is closed; 0 = never. */
  private silenceMs = 0;
  private readonly acks: Ack[] = [];
  private over = false;

  constructor(options: FrontOptions) {
    super({ allowHalfOpen: true, emitClose: true, writableHighWaterMark: 65_536 });
    this.options = options;
    this.connection = options.connection;
    this.listener = options.listener;
    this.on('error', () => {});
  }

  start(): void {
    const { connection, clock, listener } = this.options;
    if (listener.connectTimeoutMs > 0)
      this.timer = clock.after(listener.connectTimeoutMs, () => this.refuse('no CONNECT in time'));
    connection.onClose(() => this.destroy());
    connection.onEnd(() => {
      if (this.connect === null) this.destroy();
      else this.push(null);
    });
    connection.onData((chunk) => this.receive(chunk));
  }

  /** Bytes that wait for the peer. */
  get unsent(): number {
    return this.writableLength + this.connection.queuedBytes;
  }

  /** Ends the connection; what has been written still goes out. */
  refuse(why: string): void {
    if (this.why === '') this.why = why;
    this.destroy();
  }

  /**
   * Gives back the function that settles this acknowledgement; `settle` is called when those before it have been
   * settled.
   */
  acknowledge(settle: (error: Error | null) => void): (error: Error | null) => void {
    const ack: Ack = { error: null, ready: false, settle };
    this.acks.push(ack);
    const most = this.options.limits().maxAwaitingRel;
    if (most > 0 && this.acks.length >= most) this.hold();
    return (error) => {
      ack.error = error;
      ack.ready = true;
      while (this.acks.length > 0 && this.acks[0].ready) {
        const first = this.acks.shift();
        first?.settle(first.error);
      }
      if (this.acks.length <= most / 2) this.go();
    };
  }

  hold(): void {
    if (this.paused) return;
    this.paused = true;
    this.connection.pause();
  }

  go(): void {
    if (!this.paused) return;
    this.paused = false;
    this.heardMs = this.options.clock.mono();
    this.connection.resume();
  }

  // ---- the Duplex that aedes sees

  override _read(): void {
    if (this.full) this.heardMs = this.options.clock.mono();
    this.full = false;
    if (!this.paused) this.connection.resume();
  }

  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    this.connection.write(chunk, done);
  }

  override _writev(chunks: { chunk: Buffer }[], done: () => void): void {
    this.connection.write(Buffer.concat(chunks.map(({ chunk }) => chunk)), done);
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    if (!this.over) {
      this.over = true;
      this.timer?.cancel();
      this.head = NOTHING;
      if (this.why === '' && error !== null) this.why = errorText(error);
      this.options.onGone(this, this.why);
      this.connection.end(GRACE_MS);
    }
    done(null);
  }

  // ---- inside

  /** Called about once a second: closes what was silent for too long. What is not read at the moment is not silent. */
  check(nowMs: number): void {
    if (this.over || this.paused || this.full || this.silenceMs === 0) return;
    if (nowMs - this.heardMs > this.silenceMs) this.refuse('keep alive timeout'); // [MQTT-3.1.2-24]
  }

  /** The gateway itself was away: silence before now proves nothing. */
  excuse(nowMs: number): void {
    this.heardMs = nowMs;
  }

  private receive(chunk: Buffer): void {
    if (this.over) return;
    this.heardMs = this.options.clock.mono();
    this.options.onBytes(chunk.length);
    if (this.connect === null) {
      this.readConnect(chunk);
      return;
    }
    const wrong = this.guard.check(chunk, this.options.limits().maxPacketSize);
    if (wrong !== null) {
      this.refuse(wrong);
      return;
    }
    const { kind } = this.connection;
    // Chunks of these are buffers of their own (transport/transport.ts); others are valid only now.
    const kept = kind === 'tcp' || kind === 'tls' || kind === 'unix' ? chunk : Buffer.from(chunk);
    if (this.push(kept)) return;
    this.full = true;
    this.connection.pause();
  }

  private readConnect(chunk: Buffer): void {
    this.head = this.head.length === 0 ? Buffer.from(chunk) : Buffer.concat([this.head, chunk]);
    const { head } = this;
    // The first byte decides, and no more than a CONNECT may have is ever kept.
    const first = readFirstPacket(head, this.options.limits().maxConnectSize);
    if (first.kind === 'more') return;
    if (first.kind === 'refused') {
      if (first.answer !== null) this.connection.write(first.answer, () => {});
      this.refuse(first.why);
      return;
    }
    const { packet } = first;
    const wrong = this.guard.check(head.subarray(first.end), this.options.limits().maxPacketSize);
    if (wrong !== null) {
      this.refuse(wrong);
      return;
    }
    this.timer?.cancel();
    this.connect = packet;
    this.head = NOTHING;
    const refusal = this.options.onConnect(this, packet);
    if (refusal !== null) {
      this.sendAway(packet, refusal);
      return;
    }
    this.silenceMs = packet.keepAlive * 1000 * this.options.limits().keepaliveMultiplier;
    withoutKeepAlive(head);
    this.push(head);
  }

  /** CONNACK with the code, then the end. */
  sendAway(packet: ConnectPacket, refusal: Refusal): void {
    const answer = encodeRefused(packet.version, refusal);
    if (answer.length > 0) this.connection.write(answer, () => {});
    this.refuse(refusal.why);
  }
}

/**
 * Takes the keep alive out of a CONNECT: aedes would judge silence by timers of its own, before it has read what is
 * waiting.
 */
function withoutKeepAlive(head: Buffer): void {
  let at = 1;
  while (head[at] > 127) at++;
  // Behind the length: name (2 bytes of length), protocol level, flags, keep alive (3.1.1 section 3.1.2).
  at += 1 + 2 + head.readUInt16BE(at + 1) + 2;
  head.writeUInt16BE(0, at);
}

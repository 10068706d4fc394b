// One peer of a native socket: greeting, frames in, frames out with a bounded queue for a peer that reads slowly. Made
// by native.ts for every connection of its endpoints. Knows no patterns: what a message means is the socket's matter
// (protocols/). Fast path: a message goes straight into the writer's block. Only while the peer does not take what the
// writer holds, messages wait in the queue, where they can still be dropped; so a reader that stopped finds the newest
// `sendBuffer` bytes (or the oldest, by policy).
import type { Timer } from '../base/clock.ts';
import type { Flushable } from '../base/turn.ts';
import { copyWords, WordView } from '../base/words.ts';
import { copyBytes, Writer } from '../base/writer.ts';
import {
  encodeGreeting,
  type FrameFault,
  FrameReader,
  GreetingReader,
  IPC_HEADER_BYTES,
  TCP_HEADER_BYTES,
  writeFrameHeader,
} from '../codec/sp.ts';
import type { CloseReason, Connection } from '../transport/transport.ts';
import { CountingSink } from './countingsink.ts';
import { FrameQueue } from './framequeue.ts';
import { appendFrames } from './frames.ts';
import { MessageWriter } from './messagewriter.ts';
import type { Peer, PipeView } from './pattern.ts';
import type { Framing, PipeContext } from './pipeowner.ts';

/** A peer that has not said who it is by then is closed (nng waits as long). */
const GREETING_TIMEOUT_MS = 10_000;
/** A peer that stops in the middle of a frame, without a byte in this time, is closed. */
const FRAME_TIMEOUT_MS = 30_000;
/**
 * What the writer and the transport hold for a peer before messages begin to wait: enough to keep any link busy between
 * two turns.
 */
const WINDOW_BYTES = 262_144;
/** And what one turn may bring beyond that to a peer that had taken everything, where it shows only afterwards. */
const TURN_BYTES = 1_048_576;
/** Hop counts that pair1 lets pass (nng: NNG_OPT_MAXTTL is 8). */
const MAX_HOPS = 8;

const ignore = (): void => {};

export class Pipe implements Peer, Flushable {
  readonly id: number;
  readonly url: string;
  readonly since: number;
  dirty = false;
  state: 'greeting' | 'up' | 'ending' | 'closed' = 'greeting';
  messagesSent = 0;
  messagesReceived = 0;
  dropped = 0;
  private readonly connection: Connection;
  private readonly context: PipeContext;
  private readonly framing: Framing;
  /** Bytes of frame header and protocol header before each body. */
  private readonly overhead: number;
  private readonly hopBytes: 0 | 4;
  private readonly window: number;
  /** For streams; null for message framing. */
  private readonly writer: Writer | null;
  /** For message framing; null for streams. */
  private readonly messages: MessageWriter | null;
  private readonly queue: FrameQueue;
  private readonly greeting: GreetingReader;
  private readonly reader: FrameReader;
  private readonly target = new WordView();
  private greetingTimer: Timer | null = null;
  /** Runs while a frame is under way. */
  private frameTimer: Timer | null = null;
  private chunks = 0;
  private paused = false;
  /** Bytes of all messages that were ever sent here, and how many of them the transport has taken. */
  private sentBytes = 0;
  private takenBytes = 0;
  /** The turn in which the window was exceeded last, and by how much it may be there. */
  private overTurn = -1;
  private overBytes = 0;
  /**
   * drop_newest: the queue was full and has not been empty since. Dropping goes on, so that a slow peer has one gap and
   * not many.
   */
  private dropping = false;
  private closing = '';

  constructor(id: number, url: string, connection: Connection, framing: Framing, context: PipeContext) {
    this.id = id;
    this.url = url;
    this.connection = connection;
    this.context = context;
    this.framing = framing;
    this.since = context.clock.now();
    const { row } = context;
    this.hopBytes = row.hops ? 4 : 0;
    this.overhead = (framing === 'ipc' ? IPC_HEADER_BYTES : TCP_HEADER_BYTES) + this.hopBytes;
    this.window = Math.min(WINDOW_BYTES, context.options.sendBuffer);
    const whole = framing === 'message';
    const sink = new CountingSink(connection, (bytes, error) => this.took(bytes, error));
    this.writer = whole ? null : new Writer(context.turn, context.pool, sink, () => this.roomMade());
    this.messages = whole ? new MessageWriter(connection, this.hopBytes, (bytes, e) => this.confirmed(bytes, e)) : null;
    this.queue = new FrameQueue(context.pool, framing === 'ipc' ? 1 : 0);
    this.greeting = new GreetingReader(row.peer);
    const { recvMaxSize } = context.options;
    this.reader = new FrameReader(
      framing === 'ipc',
      recvMaxSize > 0 ? recvMaxSize + row.headerBytes : 0,
      (bytes, start, end) => this.received(bytes, start, end),
      // A protocol's own header has to be looked at in each message.
      this.hopBytes > 0
        ? null
        : (bytes, start, length, stride, count) => this.receivedRun(bytes, start, length, stride, count),
      context.claim,
    );
  }

  get remote(): string {
    return this.connection.remote;
  }

  /** Bytes that wait here for this peer; what the kernel has taken does not count. */
  get queuedBytes(): number {
    return this.queue.bytes + this.unconfirmed();
  }

  /** What there is to see, now: without what hangs on a pipe. */
  view(): PipeView {
    const { id, url, remote, since, queuedBytes, messagesSent, messagesReceived, dropped } = this;
    return { id, url, remote, since, queuedBytes, messagesSent, messagesReceived, dropped };
  }

  /** Greets and begins to read. */
  start(): void {
    const { connection, context } = this;
    connection.onClose((reason) => this.closed(reason));
    if (this.framing === 'message') {
      // The subprotocol has said it all: sp-websocket-mapping has no greeting.
      connection.onData((chunk) => this.whole(chunk));
      this.up();
      return;
    }
    const { place } = context;
    const take = (buffer: Buffer, bytes: number): void => this.chunk(buffer.subarray(0, bytes));
    if (connection.fill?.({ place: () => place, take }) !== true) connection.onData((chunk) => this.chunk(chunk));
    this.greetingTimer = context.clock.after(GREETING_TIMEOUT_MS, () => this.refuse('greeting-timeout'));
    connection.write(encodeGreeting(context.row.number), ignore);
  }

  /** Where the last message ends in all that was sent here: what settled() asks about. */
  get position(): number {
    return this.sentBytes;
  }

  /** What became of everything up to `position`. */
  settled(position: number): 'waiting' | 'taken' | 'lost' {
    if (position <= this.takenBytes) return 'taken';
    return this.state === 'closed' ? 'lost' : 'waiting';
  }

  /** Whether a body of `bytes` would go out now: nothing waits before it, and the transport has not much left to do. */
  takes(bytes: number): boolean {
    if (this.queue.frames > 0) return false;
    return this.unconfirmed() === 0 || this.hasRoom(bytes + this.overhead, 0);
  }

  /** Whether a body of `bytes` would be queued or sent rather than dropped. */
  fits(bytes: number): boolean {
    return this.queue.frames === 0 || this.queue.bytes + bytes + this.overhead <= this.context.options.sendBuffer;
  }

  /** Sends head + body[start, end), or lets it wait, or drops by the socket's policy. Copies before it returns. */
  send(head: Uint8Array, body: Uint8Array, start: number, end: number): void {
    const total = this.overhead + head.length + end - start;
    const { writer, messages } = this;
    this.sentBytes += total;
    if (this.queue.frames === 0) {
      if (writer !== null) {
        if (writer.queuedBytes === 0 || this.hasRoom(total, TURN_BYTES)) {
          writer.reserve(total);
          this.put(writer.block, writer.at, head, body, start, end);
          writer.advance(total);
          this.messagesSent++;
          return;
        }
      } else if (messages !== null && (messages.pendingBytes === 0 || this.hasRoom(total, TURN_BYTES))) {
        messages.send(head, body, start, end);
        this.messagesSent++;
        return;
      }
    }
    this.enqueue(total, head, body, start, end);
  }

  /**
   * Sends messages from index `from` on that can leave at once, without waiting in the queue; returns the index of the
   * first that cannot. Nothing where messages are kept whole or have a header of their own.
   */
  sendReady(head: Uint8Array, source: Uint8Array, spans: Int32Array, from: number, count: number): number {
    const { writer } = this;
    if (writer === null || this.hopBytes > 0 || this.queue.frames > 0) return from;
    let next = from;
    for (;;) {
      const before = writer.queuedBytes;
      next = appendFrames(writer, this.window, this.framing === 'ipc', head, source, spans, next, count);
      const { queuedBytes } = writer;
      this.sentBytes += queuedBytes - before;
      if (next === count) break;
      // As in hasRoom().
      writer.flush();
      if (writer.queuedBytes === queuedBytes) break;
    }
    this.messagesSent += next - from;
    return next;
  }

  /** Lets queued messages leave, then ends the connection. The socket destroys it when that takes too long. */
  finish(): void {
    if (this.state === 'greeting') this.destroy('stopped');
    if (this.state !== 'up') return;
    this.state = 'ending';
    this.closing = 'stopped';
    this.flush();
  }

  /** Closes at once. */
  destroy(reason: string): void {
    if (this.state === 'closed') return;
    if (this.closing === '') this.closing = reason;
    this.connection.destroy();
  }

  /** Closes a peer for what it sent. */
  refuse(reason: string, size?: number): void {
    if (this.state === 'closed' || this.closing !== '') return;
    this.closing = reason;
    this.context.owner.pipeRefused(this, reason, size);
    this.connection.destroy();
  }

  pause(): void {
    this.paused = true;
    this.connection.pause();
  }

  resume(): void {
    this.paused = false;
    this.connection.resume();
  }

  /** Moves waiting messages on; called by the turn after the transport has taken bytes. */
  flush(): void {
    if (this.state === 'closed') return;
    const { queue, writer, messages } = this;
    if (writer !== null) {
      if (queue.frames > 0) this.messagesSent += queue.moveTo(writer, this.window);
    } else if (messages !== null) {
      for (; queue.frames > 0 && messages.pendingBytes < this.window; this.messagesSent++)
        messages.write(queue.takeBody());
    }
    if (this.state === 'up') this.context.owner.pipeRoom();
    else if (this.state === 'ending' && queue.frames === 0) {
      writer?.flush();
      this.connection.end();
    }
  }

  /** @param error set when the bytes went down with the connection */
  private took(bytes: number, error: unknown): void {
    if (error !== undefined && error !== null) return;
    // A connection that was closed here takes nothing either, unless it was let finish.
    if (this.state !== 'closed' && (this.closing === '' || this.state === 'ending')) this.takenBytes += bytes;
  }

  /** A message that was written whole has left, or has not. */
  private confirmed(bytes: number, error: unknown): void {
    this.took(bytes, error);
    this.roomMade();
  }

  /**
   * Whether `bytes` more fit what the writer and the transport may hold. The system is given what there is before the
   * answer is no: only a peer that does not read fills the queue, however much comes in one turn. `turnBytes` is what
   * one turn may bring beyond the window where that shows only afterwards: none, where other peers could have it.
   */
  private hasRoom(bytes: number, turnBytes: number): boolean {
    const { connection, context, messages, window, writer } = this;
    if (writer === null) return Math.min(messages?.pendingBytes ?? 0, connection.queuedBytes) + bytes <= window;
    if (writer.queuedBytes + bytes <= window) return true;
    if (connection.offers === true) {
      writer.flush();
      return writer.queuedBytes + bytes <= window;
    }
    // What such a transport takes shows when the turn is over.
    if (this.overTurn !== context.turn.number) {
      this.overTurn = context.turn.number;
      this.overBytes = connection.queuedBytes === 0 ? TURN_BYTES : 0;
    }
    return writer.queuedBytes + bytes <= window + Math.min(this.overBytes, turnBytes);
  }

  private unconfirmed(): number {
    return this.writer?.queuedBytes ?? this.messages?.pendingBytes ?? 0;
  }

  private roomMade(): void {
    // Not here and now: this runs inside the writer's own flush.
    if (this.queue.frames > 0 || this.state === 'ending' || this.context.owner.waiting) this.context.turn.touch(this);
  }

  private put(target: Buffer, at: number, head: Uint8Array, body: Uint8Array, start: number, end: number): void {
    const bytes = end - start;
    at = writeFrameHeader(target, at, this.hopBytes + head.length + bytes, this.framing === 'ipc');
    if (this.hopBytes > 0) at = target.writeUInt32BE(1, at);
    copyBytes(head, 0, target, at, head.length);
    copyWords(body, this.context.source, start, target, this.target, at + head.length, bytes);
  }

  private enqueue(total: number, head: Uint8Array, body: Uint8Array, start: number, end: number): void {
    const { queue } = this;
    const { sendBuffer, overflow } = this.context.options;
    if (queue.frames === 0) this.dropping = false;
    else if (this.dropping || queue.bytes + total > sendBuffer) {
      if (overflow !== 'drop_oldest') {
        this.dropping = true;
        this.takenBytes += total;
        this.countDrops(1);
        return;
      }
      let count = 0;
      const before = queue.bytes;
      for (; queue.frames > 0 && queue.bytes + total > sendBuffer; count++) queue.dropHead();
      this.takenBytes += before - queue.bytes;
      this.countDrops(count);
    }
    queue.reserve(total);
    if (queue.block !== null) this.put(queue.block, queue.at, head, body, start, end);
    queue.commit(total);
  }

  private countDrops(count: number): void {
    this.dropped += count;
    this.context.owner.pipeDropped(count);
  }

  private up(): void {
    this.greetingTimer?.cancel();
    this.greetingTimer = null;
    this.state = 'up';
    this.context.owner.pipeUp(this);
  }

  private chunk(chunk: Buffer): void {
    let at = 0;
    if (this.state === 'greeting') {
      const had = this.greeting.have;
      const result = this.greeting.push(chunk, 0);
      if (result === 'more') return;
      if (result !== 'ok') {
        this.refuse(result);
        return;
      }
      at = this.greeting.have - had;
      this.up();
    }
    if (this.state !== 'up' || this.closing !== '') return;
    const { turn } = this.context;
    turn.enter();
    const fault = this.reader.push(chunk, at);
    turn.leave();
    if (fault !== null) this.fault(fault);
    else {
      this.chunks++;
      if (this.frameTimer === null && this.reader.midFrame) this.watchFrame();
    }
  }

  /** Nobody may hold memory by a frame that never ends; who is not read is not blamed. */
  private watchFrame(): void {
    const seen = this.chunks;
    this.frameTimer = this.context.clock.after(FRAME_TIMEOUT_MS, () => {
      this.frameTimer = null;
      if (this.state === 'closed' || !this.reader.midFrame) return;
      if (this.chunks === seen && !this.paused) this.refuse('frame-timeout');
      else this.watchFrame();
    });
  }

  private whole(chunk: Buffer): void {
    const { options, row, turn } = this.context;
    if (this.state !== 'up' || this.closing !== '') return;
    if (options.recvMaxSize > 0 && chunk.length > options.recvMaxSize + row.headerBytes) {
      this.refuse('too-large', chunk.length);
      return;
    }
    turn.enter();
    this.received(chunk, 0, chunk.length);
    turn.leave();
  }

  private fault(fault: FrameFault): void {
    if (fault === 'too-large') this.refuse(fault, this.reader.refusedBytes - this.context.row.headerBytes);
    else this.refuse(fault);
  }

  private received(bytes: Uint8Array, start: number, end: number): boolean {
    if (this.hopBytes > 0) {
      // nng closes for a header that is cut or whose upper bytes are set, and drops what has come too far.
      if (end - start < 4 || bytes[start] !== 0 || bytes[start + 1] !== 0 || bytes[start + 2] !== 0) {
        this.refuse('bad-frame');
        return false;
      }
      const hops = bytes[start + 3];
      start += 4;
      if (hops > MAX_HOPS) {
        this.countDrops(1);
        return true;
      }
    }
    this.messagesReceived++;
    this.context.owner.pipeMessage(this, bytes, start, end);
    return this.state === 'up' && this.closing === '';
  }

  private receivedRun(bytes: Uint8Array, start: number, length: number, stride: number, count: number): boolean {
    if (this.context.owner.pipeRun(this, bytes, start, length, stride, count)) {
      this.messagesReceived += count;
      return this.state === 'up' && this.closing === '';
    }
    for (let i = 0, at = start; i < count; i++, at += stride) if (!this.received(bytes, at, at + length)) return false;
    return true;
  }

  private closed(reason: CloseReason): void {
    const lost = this.queue.frames;
    this.greetingTimer?.cancel();
    this.frameTimer?.cancel();
    this.reader.close();
    this.state = 'closed';
    this.writer?.close();
    this.queue.clear();
    if (lost > 0) this.countDrops(lost);
    this.context.owner.pipeDown(this, this.closing !== '' ? this.closing : (reason.error ?? `closed by ${reason.by}`));
  }
}

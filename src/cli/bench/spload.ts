// Both sides of a load over SP: a pub0 (or pair0) socket that sends prebuilt blocks of frames,
// and a sub0 (or pair0) socket that counts them by their length.
// Used by run.ts. Both dial; frames are `prefix + payload` one way and anything that ends in the payload the other way.
import { ProtocolError } from '../../base/errors.ts';
import {
  encodeGreeting,
  GREETING_BYTES,
  GreetingReader,
  IPC_HEADER_BYTES,
  readLength,
  TCP_HEADER_BYTES,
  writeFrameHeader,
} from '../../codec/sp.ts';
import { Block } from './block.ts';
import {
  BLOCK_BYTES,
  blockCount,
  type LoadEvents,
  type LoadOptions,
  type Publisher,
  type SpTarget,
  type Subscriber,
} from './load.ts';
import { type Latency, Meter } from './meter.ts';
import { makePayload, nowUs } from './payload.ts';
import { Wire, type WireUser } from './wire.ts';

/** Protocol numbers on the wire (sp.ts). */
const PUB0 = 0x20;
const SUB0 = 0x21;
const PAIR0 = 0x10;
const READ_BYTES = 262_144;

/** Greets, then hands frames to its subclass. */
abstract class SpWire implements WireUser {
  readonly ready: Promise<void>;
  protected readonly wire: Wire;
  protected readonly target: SpTarget;
  private readonly greeting: GreetingReader;
  private greeted = false;
  private becomeReady: () => void = () => {};

  constructor(target: SpTarget, own: number, peer: number, bufferBytes: number) {
    this.target = target;
    this.greeting = new GreetingReader(peer);
    this.ready = new Promise((resolve) => {
      this.becomeReady = resolve;
    });
    this.wire = new Wire(target.address, bufferBytes, this);
    this.wire.write(encodeGreeting(own));
  }

  abstract lost(why: string): void;
  protected abstract frames(buffer: Buffer, start: number, end: number): number;

  close(): void {
    this.wire.close();
  }

  consume(buffer: Buffer, start: number, end: number): number {
    if (this.greeted) return this.frames(buffer, start, end);
    if (end - start < GREETING_BYTES) return start;
    const result = this.greeting.push(buffer.subarray(start, start + GREETING_BYTES), 0);
    if (result !== 'ok') throw new ProtocolError(0x82, `SP greeting: ${result}`);
    this.greeted = true;
    this.becomeReady();
    return this.frames(buffer, start + GREETING_BYTES, end);
  }
}

/** What stands before the payload of frame `n`: {topic} in it is the number of a topic, in one width. */
function prefixOf({ framePrefix, topics }: LoadOptions, n: number): string {
  const width = String(Math.max(0, topics - 1)).length;
  return framePrefix.replaceAll('{topic}', String(n % topics).padStart(width, '0'));
}

export class SpPublisher extends SpWire implements Publisher {
  readonly blockCount: number;
  sent = 0;
  acknowledged = 0;
  private readonly blocks: Block[] = [];
  private readonly written: (() => void)[] = [];
  private next = 0;
  private readonly events: LoadEvents;

  constructor(options: LoadOptions, target: SpTarget, index: number, events: LoadEvents) {
    super(target, options.pair ? PAIR0 : PUB0, options.pair ? PAIR0 : SUB0, BLOCK_BYTES);
    this.events = events;
    const payload = makePayload(options.size, index);
    const frame = (n: number): Buffer => {
      const body = Buffer.concat([Buffer.from(prefixOf(options, n)), payload]);
      const header = Buffer.alloc(target.ipc ? IPC_HEADER_BYTES : TCP_HEADER_BYTES);
      writeFrameHeader(header, 0, body.length, target.ipc);
      return Buffer.concat([header, body]);
    };
    const { length } = frame(0);
    this.blockCount = blockCount(length, options.window, options.rate);
    for (let b = 0; b < 8; b++) {
      const frames = Array.from({ length: this.blockCount }, (_, i) => frame(b * this.blockCount + i));
      const block = new Block(frames, length - options.size);
      this.blocks.push(block);
      this.written.push(() => {
        this.acknowledged += block.pending;
        block.pending = 0;
        this.events.progress();
      });
    }
  }

  free(): boolean {
    return this.blocks[this.next].pending === 0;
  }

  send(count: number, timeUs: number): void {
    const block = this.blocks[this.next];
    block.pending = count;
    this.wire.write(block.fill(count, timeUs, this.sent), this.written[this.next]);
    this.sent += count;
    this.next = (this.next + 1) % this.blocks.length;
  }

  lost(why: string): void {
    this.events.failed(`SP publisher: ${why}`);
  }

  protected frames(_buffer: Buffer, _start: number, end: number): number {
    // What the other side sends does not matter: the load goes one way.
    return end;
  }
}

export class SpSubscriber extends SpWire implements Subscriber {
  readonly meter: Meter;
  private readonly events: LoadEvents;
  private readonly size: number;
  private readonly checkAll: boolean;
  /** Bytes of each frame with its header, known from the first one. */
  private stride = 0;

  constructor(options: LoadOptions, target: SpTarget, latency: Latency, events: LoadEvents) {
    super(target, options.pair ? PAIR0 : SUB0, options.pair ? PAIR0 : PUB0, READ_BYTES);
    this.events = events;
    this.size = options.size;
    this.checkAll = options.checkAll;
    this.meter = new Meter(options.publishers, latency, options.checkAll);
  }

  /** SP knows no sessions. */
  forget(): Promise<void> {
    return Promise.resolve();
  }

  lost(why: string): void {
    this.events.failed(`SP subscriber: ${why}`);
  }

  protected frames(buffer: Buffer, start: number, end: number): number {
    const { meter, size } = this;
    const timeUs = nowUs();
    const headerBytes = this.target.ipc ? IPC_HEADER_BYTES : TCP_HEADER_BYTES;
    const before = meter.received;
    let at = start;
    while (end - at >= headerBytes) {
      const bytes = readLength(buffer, at + headerBytes - 8) + headerBytes;
      if (bytes > size + 66_000 || bytes < size + headerBytes)
        throw new ProtocolError(0x82, `a frame of ${bytes} bytes is not ours`);
      if (end - at < bytes) break;
      const count = bytes === this.stride && !this.checkAll ? Math.floor((end - at) / bytes) : 1;
      this.stride = bytes;
      const last = at + (count - 1) * bytes;
      const fits =
        meter.look(buffer, at + bytes - size, timeUs) &&
        (count === 1 || meter.look(buffer, last + bytes - size, timeUs));
      if (!fits) throw new ProtocolError(0x82, 'a frame that is not ours');
      meter.received += count;
      at = last + bytes;
    }
    if (meter.received !== before) this.events.progress();
    return at;
  }
}

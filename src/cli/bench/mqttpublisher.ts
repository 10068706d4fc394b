// An MQTT publisher of the load generator: CONNECT, then prebuilt blocks of PUBLISH packets, and the books on their
// acknowledgements. Used by run.ts. Packet ids are fixed in each block; a block is used again when all its messages are
// acknowledged [MQTT-2.2.1-3].
import { ProtocolError } from '../../base/errors.ts';
import { writeAck } from '../../codec/ack.ts';
import { newFrame } from '../../codec/codec.ts';
import { decodeConnack, encodeConnect } from '../../codec/connect.ts';
import { readFrame } from '../../codec/frame.ts';
import { encodePublish } from '../../codec/publish.ts';
import { CONNACK, CONNECT, DISCONNECT, PUBACK, PUBCOMP, PUBREC, PUBREL } from '../../mqtt/packet.ts';
import { Block } from './block.ts';
import { BLOCK_BYTES, blockCount, type LoadEvents, type LoadOptions, type Publisher } from './load.ts';
import { makePayload } from './payload.ts';
import { Wire } from './wire.ts';

/** Acknowledgements and CONNACK are short; a broker that sends more to a publisher is not understood. */
const MAX_PACKET = 65_536;

/** Seconds that a durable session of MQTT 5.0 may be left behind by a run that was killed. */
const SESSION_EXPIRY = 3600;

/** The CONNECT of a load client; `cleanStart` false goes on with its session and keeps it. */
export function connectPacket(options: LoadOptions, clientId: string, cleanStart = true): Buffer {
  return encodeConnect({
    type: CONNECT,
    version: options.version,
    bridge: false,
    clientId,
    cleanStart,
    keepAlive: 0,
    username: options.username,
    password: options.password === null ? null : Buffer.from(options.password),
    will: null,
    properties: cleanStart || options.version !== 5 ? null : { sessionExpiryInterval: SESSION_EXPIRY },
  });
}

/** Topic of message `n`: numbers have one width, so that all packets have one size. */
export function topicOf(options: LoadOptions, n: number): string {
  const width = String(Math.max(0, options.topics - 1)).length;
  return options.topicPrefix + String(n % options.topics).padStart(width, '0');
}

export class MqttPublisher implements Publisher {
  readonly ready: Promise<void>;
  blockCount = 1;
  sent = 0;
  acknowledged = 0;
  private blocks: Block[] = [];
  private next = 0;
  private readonly written: (() => void)[] = [];
  private readonly wire: Wire;
  private readonly options: LoadOptions;
  private readonly events: LoadEvents;
  private readonly index: number;
  private readonly frame = newFrame();
  private becomeReady: () => void = () => {};
  private connected = false;

  constructor(options: LoadOptions, index: number, clientId: string, events: LoadEvents) {
    this.options = options;
    this.events = events;
    this.index = index;
    this.ready = new Promise((resolve) => {
      this.becomeReady = resolve;
    });
    this.wire = new Wire(options.broker, BLOCK_BYTES, this);
    this.wire.write(connectPacket(options, clientId));
  }

  free(): boolean {
    return this.blocks[this.next].pending === 0;
  }

  send(count: number, timeUs: number): void {
    const block = this.blocks[this.next];
    block.pending = count;
    const bytes = block.fill(count, timeUs, this.sent);
    this.sent += count;
    if (this.options.qos === 0) this.wire.write(bytes, this.written[this.next]);
    else this.wire.write(bytes);
    this.next = (this.next + 1) % this.blocks.length;
  }

  close(): void {
    this.wire.close();
  }

  lost(why: string): void {
    this.events.failed(`publisher ${this.index}: ${why}`);
  }

  consume(buffer: Buffer, start: number, end: number): number {
    let at = start;
    const before = this.acknowledged;
    let release: Buffer | null = null;
    let releaseBytes = 0;
    while (readFrame(buffer, at, end, this.frame, MAX_PACKET) === 1) {
      const { type, bodyStart } = this.frame;
      if (type === PUBACK || type === PUBCOMP) this.done((buffer[bodyStart] << 8) | buffer[bodyStart + 1], buffer);
      else if (type === PUBREC) {
        if (this.refused(buffer)) this.done((buffer[bodyStart] << 8) | buffer[bodyStart + 1], buffer);
        else {
          release ??= Buffer.allocUnsafe(end - start);
          writeAck(release, releaseBytes, PUBREL, (buffer[bodyStart] << 8) | buffer[bodyStart + 1]);
          releaseBytes += 4;
        }
      } else this.control(buffer, type);
      at = this.frame.end;
    }
    if (release !== null) this.wire.write(release.subarray(0, releaseBytes));
    if (this.acknowledged !== before) this.events.progress();
    return at;
  }

  /** A reason code of 0x80 and above in PUBACK, PUBREC or PUBCOMP (5.0). */
  private refused(buffer: Buffer): boolean {
    return this.frame.end - this.frame.bodyStart > 2 && buffer[this.frame.bodyStart + 2] >= 0x80;
  }

  private done(packetId: number, buffer: Buffer): void {
    if (this.refused(buffer)) {
      const code = buffer[this.frame.bodyStart + 2];
      throw new ProtocolError(code, `the broker refused a message: 0x${code.toString(16)}`);
    }
    const block = this.blocks[Math.floor((packetId - 1) / this.blockCount)];
    if (block === undefined || block.pending === 0)
      throw new ProtocolError(0x82, `unexpected acknowledgement ${packetId}`);
    block.pending--;
    this.acknowledged++;
  }

  private control(buffer: Buffer, type: number): void {
    if (type === CONNACK && !this.connected) {
      const { reasonCode, properties } = decodeConnack(buffer, this.frame, this.options.version);
      if (reasonCode !== 0) throw new ProtocolError(reasonCode, `connection refused: code ${reasonCode}`);
      this.connected = true;
      this.build(properties?.receiveMaximum ?? 65_535);
      this.becomeReady();
    } else if (type === DISCONNECT) {
      const code = this.frame.end > this.frame.bodyStart ? buffer[this.frame.bodyStart] : 0;
      throw new ProtocolError(code, `the broker disconnected: 0x${code.toString(16)}`);
    } else throw new ProtocolError(0x82, `unexpected packet of type ${type}`);
  }

  /** Builds the blocks; with QoS 1 and 2 all of them together hold no more than the broker takes [MQTT-3.3.4-7]. */
  private build(receiveMaximum: number): void {
    const { qos, version, size, window, rate, publishers } = this.options;
    const payload = makePayload(size, this.index);
    const message = (n: number, packetId: number): Buffer =>
      encodePublish(version, {
        topic: topicOf(this.options, n + this.index),
        payload,
        qos,
        retain: false,
        dup: false,
        packetId,
        properties: null,
      });
    const limit = qos === 0 ? window / publishers : Math.min(this.options.inflight, receiveMaximum, window);
    const bytes = message(0, 1).length;
    this.blockCount = blockCount(bytes, limit, rate / publishers);
    const blocks = qos === 0 ? 8 : Math.max(1, Math.floor(limit / this.blockCount));
    for (let b = 0; b < blocks; b++) {
      const first = b * this.blockCount;
      const messages: Buffer[] = [];
      for (let i = 0; i < this.blockCount; i++) messages.push(message(first + i, first + i + 1));
      const block = new Block(messages, bytes - size);
      this.blocks.push(block);
      this.written.push(() => {
        this.acknowledged += block.pending;
        block.pending = 0;
        this.events.progress();
      });
    }
  }
}

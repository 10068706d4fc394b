// The lower bound of this runtime: the least that a broker in TypeScript can do, with the gateway's own reading and writing
// and nothing else. Run by run.ts, or by hand:
//   npx tsx test/bench/bare.ts PORT
// It answers CONNECT, SUBSCRIBE and PINGREQ, acknowledges QoS 1 and 2 and copies every PUBLISH to every subscriber: no
// topics, no rights, no sessions, no limits. What lies between it and the gateway is what MQTT costs; what lies between
// it and such a loop in C is the runtime.
import net from 'node:net';
import { SHARE_BYTES } from '../../src/base/sharedbytes.ts';
import { Slab } from '../../src/base/slab.ts';
import { Turn } from '../../src/base/turn.ts';
import { BlockPool, Writer } from '../../src/base/writer.ts';
import { Assembler } from '../../src/codec/assembler.ts';
import { newFrame } from '../../src/codec/codec.ts';
import { readFrame } from '../../src/codec/frame.ts';
import { IntakeBuffer, LARGE_BYTES } from '../../src/session/intake.ts';
import { peerOf, StreamConnection } from '../../src/transport/stream.ts';

const turn = new Turn();
const pool = new BlockPool();
const slab = new Slab(turn.source);
const intake = new IntakeBuffer();
const frame = newFrame();
const subscribers: Peer[] = [];

/** The 5.0 form of an answer has properties or a reason more. */
const CONNACK = [Buffer.from([0x20, 2, 0, 0]), Buffer.from([0x20, 3, 0, 0, 0])];
const PINGRESP = Buffer.from([0xd0, 0]);

class Peer {
  readonly writer: Writer;
  private readonly assembler = new Assembler(slab.spare);
  private five = 0;
  private packetId = 0;

  constructor(connection: StreamConnection) {
    this.writer = new Writer(turn, pool, connection);
    connection.onClose(() => {
      const at = subscribers.indexOf(this);
      if (at >= 0) subscribers.splice(at, 1);
      this.writer.close();
    });
    this.assembler.direct = true;
    const filled = connection.fill({ place: () => this.place(), take: (buffer, bytes) => this.take(buffer, bytes) });
    if (!filled) throw new Error('this Node.js cannot read to a given place');
  }

  private place(): Buffer {
    const { region, lastBytes } = this.assembler;
    return region ?? (lastBytes < LARGE_BYTES ? intake.whole : intake.head);
  }

  private take(buffer: Buffer, bytes: number): void {
    const { assembler } = this;
    turn.enter();
    let at = 0;
    if (buffer === assembler.region) {
      assembler.filled(bytes);
      at = bytes;
    } else if (assembler.active) at = assembler.feed(buffer, 0, bytes, frame, Number.POSITIVE_INFINITY);
    if (assembler.complete) {
      const packet = assembler.take();
      this.packets(packet.bytes, 0, packet.bytes.length, packet.bytes.length < SHARE_BYTES ? null : packet);
      packet.handled();
    }
    at = this.packets(buffer, at, bytes, null);
    if (at < bytes) assembler.feed(buffer, at, bytes, frame, Number.POSITIVE_INFINITY);
    turn.leave();
  }

  private packets(buffer: Buffer, start: number, end: number, shared: Parameters<Writer['refer']>[0] | null): number {
    let at = start;
    // QoS 0 packets in a row go on in one piece.
    let runAt = start;
    while (at < end && readFrame(buffer, at, end, frame, Number.POSITIVE_INFINITY) === 1) {
      const quiet = frame.type === 3 && (frame.flags & 6) === 0;
      if (!quiet) {
        this.pass(buffer, runAt, at, shared);
        this.packet(buffer, at, shared);
        runAt = frame.end;
      }
      at = frame.end;
    }
    this.pass(buffer, runAt, at, shared);
    return at;
  }

  private pass(buffer: Buffer, start: number, end: number, shared: Parameters<Writer['refer']>[0] | null): void {
    if (end === start) return;
    for (const { writer } of subscribers) {
      if (shared === null) writer.spread(buffer, start, end);
      else writer.refer(shared, start, end);
    }
  }

  private packet(buffer: Buffer, at: number, shared: Parameters<Writer['refer']>[0] | null): void {
    const { bodyStart, end, type } = frame;
    if (type === 3) this.publish(buffer, at, shared);
    else if (type === 1) {
      this.five = buffer[bodyStart + 6] === 5 ? 1 : 0;
      this.answer(CONNACK[this.five]);
    } else if (type === 8) {
      const id = [buffer[bodyStart], buffer[bodyStart + 1]];
      this.answer(Buffer.from([0x90, 3 + this.five, ...id, ...(this.five > 0 ? [0] : []), buffer[end - 1] & 3]));
      if (!subscribers.includes(this)) subscribers.push(this);
    } else if (type === 5) this.acknowledge(0x62, buffer, bodyStart);
    else if (type === 6) this.acknowledge(0x70, buffer, bodyStart);
    else if (type === 12) this.answer(PINGRESP);
  }

  private publish(buffer: Buffer, at: number, shared: Parameters<Writer['refer']>[0] | null): void {
    const { bodyStart, end } = frame;
    const idAt = bodyStart + 2 + ((buffer[bodyStart] << 8) | buffer[bodyStart + 1]);
    this.acknowledge((frame.flags & 6) === 2 ? 0x40 : 0x50, buffer, idAt);
    const copied = shared === null ? end : idAt + 2;
    for (const peer of subscribers) {
      const { writer } = peer;
      peer.packetId = peer.packetId === 65_535 ? 1 : peer.packetId + 1;
      writer.append(buffer, at, copied);
      const to = writer.at - copied + idAt;
      writer.block[to] = peer.packetId >> 8;
      writer.block[to + 1] = peer.packetId & 255;
      if (shared !== null) writer.refer(shared, copied, end);
    }
  }

  private acknowledge(type: number, buffer: Buffer, idAt: number): void {
    const { writer } = this;
    writer.reserve(4);
    const { block, at } = writer;
    block[at] = type;
    block[at + 1] = 2;
    block[at + 2] = buffer[idAt];
    block[at + 3] = buffer[idAt + 1];
    writer.advance(4);
  }

  private answer(bytes: Buffer): void {
    this.writer.append(bytes, 0, bytes.length);
  }
}

net
  .createServer({ allowHalfOpen: true, noDelay: true }, (socket) => {
    new Peer(new StreamConnection('tcp', socket, peerOf(socket)));
  })
  .listen(Number(process.argv[2]), '127.0.0.1');

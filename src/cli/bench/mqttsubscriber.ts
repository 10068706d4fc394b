// An MQTT subscriber of the load generator. All messages have one size, so whole runs of them are counted by their
// length; the first and the last of a run are looked at (order, latency, and that they are messages at all), or all of
// them when asked. Used by run.ts. QoS 1 and 2 are acknowledged with one write for each chunk read.
import { ProtocolError } from '../../base/errors.ts';
import { writeAck } from '../../codec/ack.ts';
import { newFrame } from '../../codec/codec.ts';
import { decodeConnack } from '../../codec/connect.ts';
import { readFrame } from '../../codec/frame.ts';
import { decodeSuback, encodeSubscribe } from '../../codec/subscribe.ts';
import { CONNACK, PUBACK, PUBCOMP, PUBLISH, PUBREC, PUBREL, SUBACK, SUBSCRIBE } from '../../mqtt/packet.ts';
import type { LoadEvents, LoadOptions, Subscriber } from './load.ts';
import { type Latency, Meter } from './meter.ts';
import { connectPacket } from './mqttpublisher.ts';
import { nowUs } from './payload.ts';
import { Wire } from './wire.ts';

const READ_BYTES = 262_144;
/** Enough for the CONNACK that a session ends with. */
const FORGET_BYTES = 1024;

export class MqttSubscriber implements Subscriber {
  readonly ready: Promise<void>;
  readonly meter: Meter;
  private readonly wire: Wire;
  private readonly options: LoadOptions;
  private readonly events: LoadEvents;
  private readonly index: number;
  private readonly clientId: string;
  private readonly maxPacket: number;
  private readonly frame = newFrame();
  private becomeReady: () => void = () => {};
  /** Bytes of each PUBLISH, known from the first one. */
  private stride = 0;
  /** Offset of the packet id in a PUBLISH above QoS 0. */
  private idAt = 0;
  private acks: Buffer = Buffer.alloc(0);
  private ackBytes = 0;

  constructor(options: LoadOptions, index: number, clientId: string, latency: Latency, events: LoadEvents) {
    this.options = options;
    this.events = events;
    this.index = index;
    this.clientId = clientId;
    this.maxPacket = options.size + 66_000;
    this.meter = new Meter(options.publishers, latency, options.checkAll);
    this.ready = new Promise((resolve) => {
      this.becomeReady = resolve;
    });
    this.wire = new Wire(options.broker, READ_BYTES, this);
    this.wire.write(connectPacket(options, clientId, !options.durable));
  }

  close(): void {
    this.wire.close();
  }

  forget(): Promise<void> {
    if (!this.options.durable) return Promise.resolve();
    return new Promise((resolve) => {
      const wire = new Wire(this.options.broker, FORGET_BYTES, {
        consume: (_, __, end) => {
          wire.close();
          resolve();
          return end;
        },
        lost: () => resolve(),
      });
      wire.write(connectPacket(this.options, this.clientId));
    });
  }

  lost(why: string): void {
    this.events.failed(`subscriber ${this.index}: ${why}`);
  }

  consume(buffer: Buffer, start: number, end: number): number {
    const before = this.meter.received;
    const timeUs = nowUs();
    let at = start;
    for (;;) {
      const next = this.run(buffer, at, end, timeUs);
      if (next > at) {
        at = next;
        continue;
      }
      if (readFrame(buffer, at, end, this.frame, this.maxPacket) === 0) break;
      this.packet(buffer, timeUs);
      at = this.frame.end;
    }
    if (this.ackBytes > 0) {
      this.wire.write(this.acks.subarray(0, this.ackBytes));
      this.acks = Buffer.alloc(0);
      this.ackBytes = 0;
    }
    if (this.meter.received !== before) this.events.progress();
    return at;
  }

  /**
   * Takes as many equal packets in a row as there are; returns the offset behind them, `at` when the next is something
   * else.
   */
  private run(buffer: Buffer, at: number, end: number, timeUs: number): number {
    const { stride, meter } = this;
    if (stride === 0) return at;
    const count = Math.floor((end - at) / stride);
    if (count === 0 || buffer[at] >> 4 !== PUBLISH) return at;
    const payloadAt = stride - this.options.size;
    if (this.options.subscriptionQos > 0) return this.acknowledgedRun(buffer, at, count, timeUs);
    const last = at + (count - 1) * stride;
    if (buffer[last] >> 4 !== PUBLISH) return at;
    if (this.options.checkAll) {
      for (let i = 0; i < count; i++) if (!meter.look(buffer, at + i * stride + payloadAt, timeUs)) return at;
    } else if (
      !meter.look(buffer, at + payloadAt, timeUs) ||
      (count > 1 && !meter.look(buffer, last + payloadAt, timeUs))
    ) {
      return at;
    }
    meter.received += count;
    return last + stride;
  }

  private acknowledgedRun(buffer: Buffer, at: number, count: number, timeUs: number): number {
    const { stride, meter, idAt, options } = this;
    const payloadAt = stride - options.size;
    for (let i = 0; i < count; i++) {
      if (buffer[at] >> 4 !== PUBLISH) break;
      const sample = options.checkAll || i === 0 || i === count - 1;
      if (sample && !meter.look(buffer, at + payloadAt, timeUs)) break;
      const qos = (buffer[at] >> 1) & 3;
      // The broker lowers the QoS to the publisher's: then the packet is shorter and no run.
      this.acknowledge(qos === 1 ? PUBACK : PUBREC, (buffer[at + idAt] << 8) | buffer[at + idAt + 1]);
      meter.received++;
      at += stride;
    }
    return at;
  }

  private acknowledge(type: number, packetId: number): void {
    if (this.acks.length - this.ackBytes < 4) {
      const larger = Buffer.allocUnsafe(Math.max(4096, this.acks.length * 2));
      this.acks.copy(larger, 0, 0, this.ackBytes);
      this.acks = larger;
    }
    writeAck(this.acks, this.ackBytes, type, packetId);
    this.ackBytes += 4;
  }

  private packet(buffer: Buffer, timeUs: number): void {
    const { type, flags, packetStart, bodyStart, end } = this.frame;
    if (type === PUBLISH) {
      const qos = (flags >> 1) & 3;
      const topicBytes = (buffer[bodyStart] << 8) | buffer[bodyStart + 1];
      if (!this.meter.look(buffer, end - this.options.size, timeUs))
        throw new ProtocolError(0x82, 'a message that is not ours');
      this.meter.received++;
      if (qos > 0) {
        this.idAt = bodyStart + 2 + topicBytes - packetStart;
        this.acknowledge(
          qos === 1 ? PUBACK : PUBREC,
          (buffer[bodyStart + 2 + topicBytes] << 8) | buffer[bodyStart + 3 + topicBytes],
        );
      }
      // Only packets of the QoS asked for make runs.
      if (qos === this.options.subscriptionQos) this.stride = end - packetStart;
    } else if (type === PUBREL) this.acknowledge(PUBCOMP, (buffer[bodyStart] << 8) | buffer[bodyStart + 1]);
    else this.control(buffer, type);
  }

  private control(buffer: Buffer, type: number): void {
    const { version, topicFilter, subscriptionQos } = this.options;
    if (type === CONNACK) {
      const { reasonCode } = decodeConnack(buffer, this.frame, version);
      if (reasonCode !== 0) throw new ProtocolError(reasonCode, `connection refused: code ${reasonCode}`);
      const subscription = {
        topicFilter,
        qos: subscriptionQos,
        noLocal: false,
        retainAsPublished: false,
        retainHandling: 2,
      } as const;
      this.wire.write(
        encodeSubscribe(version, { type: SUBSCRIBE, packetId: 1, subscriptions: [subscription], properties: null }),
      );
    } else if (type === SUBACK) {
      const [code] = decodeSuback(buffer, this.frame, version).reasonCodes;
      if (code > 2) throw new ProtocolError(code, `subscription refused: 0x${code.toString(16)}`);
      this.becomeReady();
    } else throw new ProtocolError(0x82, `unexpected packet of type ${type}`);
  }
}

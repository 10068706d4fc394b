// What a remote broker is answered to its QoS 1 and 2 messages: in the order they came [MQTT-4.6.0-2] [MQTT-4.6.0-3],
// and only after each was accepted here. Used by remote.ts. While too many wait, nothing more is read.
import { InOrder, type Settled } from '../../base/inorder.ts';
import type { Writer } from '../../base/writer.ts';
import { ACK_BYTES, encodeAck, writeAck } from '../../codec/ack.ts';
import type { Hold } from '../../mqtt/message.ts';
import type { AckPacket, Version } from '../../mqtt/packet.ts';

interface Pending extends Settled {
  readonly type: AckPacket['type'];
  readonly packetId: number;
  readonly reasonCode: number;
}

export interface AcksOptions {
  readonly version: Version;
  /** Messages that may wait; 0 = no limit. */
  readonly most: number;
  /** Reading stops (true) or goes on (false). */
  readonly pause: (paused: boolean) => void;
  /**
   * A message is not stored: it must not be acknowledged, so that the remote keeps it.
   * `refused`: somebody has not taken it; else it is in memory, and is stored when that is possible.
   */
  readonly unkept: (packetId: number, reasonCode: number, refused: boolean) => void;
}

export class RemoteAcks {
  paused = false;
  private readonly writer: Writer;
  private readonly options: AcksOptions;
  private readonly pending = new InOrder<Pending>(({ type, packetId, reasonCode }) =>
    this.write(type, packetId, reasonCode),
  );

  constructor(writer: Writer, options: AcksOptions) {
    this.writer = writer;
    this.options = options;
  }

  /** Messages that have no answer yet. */
  get length(): number {
    return this.pending.length;
  }

  /** Answers when `hold` is done and all earlier ones are answered. */
  answer(type: AckPacket['type'], packetId: number, reasonCode: number, hold: Hold | null): void {
    if (hold === null && this.pending.length === 0) {
      this.write(type, packetId, reasonCode);
      return;
    }
    const pending: Pending = { type, packetId, reasonCode, settled: hold === null };
    this.pending.push(pending);
    hold?.whenDone((code) => {
      if (code >= 0x80) {
        this.options.unkept(packetId, code, hold.refused);
        return;
      }
      this.pending.settle(pending);
      if (this.pending.length * 2 <= this.options.most) this.pause(false);
    });
    const { most } = this.options;
    if (most > 0 && this.pending.length >= most) this.pause(true);
  }

  /** The four-byte form, at once: PUBREL has no turn to wait for. */
  send(type: AckPacket['type'], packetId: number): void {
    const { writer } = this;
    writer.reserve(ACK_BYTES);
    writeAck(writer.block, writer.at, type, packetId);
    writer.advance(ACK_BYTES);
  }

  /** The connection has gone: nothing is answered any more. */
  close(): void {
    this.pending.clear();
  }

  private pause(paused: boolean): void {
    if (this.paused === paused || this.writer.closed) return;
    this.paused = paused;
    this.options.pause(paused);
  }

  private write(type: AckPacket['type'], packetId: number, reasonCode: number): void {
    if (this.writer.closed) return;
    if (reasonCode === 0 || this.options.version < 5) this.send(type, packetId);
    else {
      const bytes = encodeAck(5, type, packetId, reasonCode);
      this.writer.append(bytes, 0, bytes.length);
    }
  }
}

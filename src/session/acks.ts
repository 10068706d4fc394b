// What a client is answered to its QoS 1 and 2 publishes: in the order they came [MQTT-4.6.0-2] [MQTT-4.6.0-3], and
// only after the message was accepted: routed, and durable or in a peer's queue where that is asked for. Used by
// publish.ts and served.ts.
import { InOrder, type Settled } from '../base/inorder.ts';
import type { Writer } from '../base/writer.ts';
import { ACK_BYTES, encodeAck, writeAck } from '../codec/ack.ts';
import type { Hold } from '../mqtt/message.ts';
import { type AckPacket, PUBACK, PUBCOMP, PUBREC, type Version } from '../mqtt/packet.ts';
import { PACKET_IDENTIFIER_NOT_FOUND, reasonText, SUCCESS } from '../mqtt/reason.ts';
import { CLIENT_HELD_BYTES, type Held } from './held.ts';

interface Waiting extends Settled {
  readonly type: AckPacket['type'];
  readonly packetId: number;
  readonly bytes: number;
  reasonCode: number;
  /** The failure is a refusal: the message was not taken. */
  refused: boolean;
}

/** Whose acknowledgements they are. */
export interface AckUser {
  /** The session goes on when the connection ends, and the client sends again what was not acknowledged. */
  readonly resumable: boolean;
  /** What the answer waits for has come, whether the connection is still there or not. */
  settled(type: AckPacket['type'], packetId: number, hold: Hold): void;
  /** The answer is about to be written. */
  answered(type: AckPacket['type'], packetId: number, reasonCode: number): void;
  /** A failure that cannot be told: the connection is closed instead. */
  failed(packetId: number, reasonCode: number): void;
}

export class Acks {
  private readonly waiting = new InOrder<Waiting>((entry) => this.leave(entry));
  private pubacks = 0;
  private bytes = 0;
  private readonly held: Held;
  private calm: (() => void) | null = null;
  private calmCount = 0;
  private readonly writer: Writer;
  private readonly version: Version;
  private readonly reasonStrings: boolean;
  private readonly user: AckUser;

  constructor(writer: Writer, version: Version, user: AckUser, reasonStrings: boolean, held: Held) {
    this.held = held;
    this.writer = writer;
    this.version = version;
    this.user = user;
    this.reasonStrings = reasonStrings;
  }

  /** Answers that wait for something. */
  get pending(): number {
    return this.waiting.length;
  }

  /** QoS 1 publishes that have no answer yet. */
  get unacknowledged(): number {
    return this.pubacks;
  }

  /**
   * Whether so much waits that no more should be read: `most` answers, too many bytes, or anything while all clients
   * hold too much.
   */
  crowded(most: number): boolean {
    const count = this.waiting.length;
    return count > 0 && (count >= most || this.bytes >= CLIENT_HELD_BYTES || this.held.exceeded);
  }

  /** Resolves when half of what crowded() has found is answered. */
  calmed(most: number): Promise<void> {
    this.calmCount = most >> 1;
    return new Promise((resolve) => {
      this.calm = resolve;
    });
  }

  /** Resolves when nothing waits any more, or at close(). */
  emptied(): Promise<void> {
    return this.waiting.length === 0 ? Promise.resolve() : this.calmed(0);
  }

  /**
   * Answers now, or when `hold` is done and all earlier ones are answered.
   * @param bytes what the message weighs while it waits
   */
  answer(type: AckPacket['type'], packetId: number, reasonCode: number, hold: Hold | null, bytes = 0): void {
    if (this.waiting.length === 0 && (hold === null || !hold.open)) {
      // A hold that is done already may have a bad end.
      const code = hold === null ? reasonCode : Math.max(reasonCode, hold.outcome);
      this.write(type, packetId, code, hold === null || hold.refused);
      return;
    }
    const entry: Waiting = { type, packetId, bytes, reasonCode, refused: true, settled: hold === null };
    this.waiting.push(entry);
    this.bytes += bytes;
    if (type === PUBACK) this.pubacks++;
    if (hold === null) return;
    this.held.bytes += bytes;
    hold.whenDone((held) => {
      this.held.bytes -= bytes;
      if (held > entry.reasonCode) entry.reasonCode = held;
      entry.refused = hold.refused;
      this.user.settled(type, packetId, hold);
      this.waiting.settle(entry);
      if (this.calm !== null) this.tellCalm();
    });
  }

  /** The connection has gone: nothing is answered any more. */
  close(): void {
    this.waiting.clear();
    const { calm } = this;
    this.calm = null;
    calm?.();
  }

  private leave(entry: Waiting): void {
    this.bytes -= entry.bytes;
    if (entry.type === PUBACK) this.pubacks--;
    this.write(entry.type, entry.packetId, entry.reasonCode, entry.refused);
  }

  private tellCalm(): void {
    const { calm, held } = this;
    const count = this.waiting.length;
    if (calm === null || count > this.calmCount || this.bytes > CLIENT_HELD_BYTES / 2) return;
    if (count > 0 && held.exceeded) return;
    this.calm = null;
    calm();
  }

  /**
   * A PUBREC with a failure would end an exchange of which the message is on its way already, and the client would send
   * it as another one: a client whose session goes on sends the same one again instead, and is answered when it is
   * stored [MQTT-4.4.0-1].
   */
  private mustComeAgain(type: AckPacket['type'], reasonCode: number): boolean {
    return type === PUBREC && reasonCode >= 0x80 && this.user.resumable;
  }

  private write(type: AckPacket['type'], packetId: number, reasonCode: number, refused: boolean): void {
    const writer = this.writer;
    if (writer.closed) return;
    if (fatal(type, reasonCode, this.version) || (!refused && this.mustComeAgain(type, reasonCode))) {
      this.user.failed(packetId, reasonCode);
      return;
    }
    this.user.answered(type, packetId, reasonCode);
    if (this.version === 5 && reasonCode !== SUCCESS) {
      const explained = this.reasonStrings && reasonCode >= 0x80;
      const packet = encodeAck(
        5,
        type,
        packetId,
        reasonCode,
        explained ? { reasonString: reasonText(reasonCode) } : null,
      );
      writer.append(packet, 0, packet.length);
      return;
    }
    writer.reserve(ACK_BYTES);
    writeAck(writer.block, writer.at, type, packetId);
    writer.advance(ACK_BYTES);
  }
}

/**
 * Whether a failure cannot be told: not at all before 5.0, and PUBCOMP knows none but an identifier that is not known.
 */
function fatal(type: AckPacket['type'], reasonCode: number, version: Version): boolean {
  if (reasonCode < 0x80 || (type === PUBCOMP && reasonCode === PACKET_IDENTIFIER_NOT_FOUND)) return false;
  return type === PUBCOMP || version < 5;
}

/** Whether this answer ends a publish's part in the Receive Maximum (MQTT 5.0 section 4.9). */
export function frees(type: AckPacket['type'], reasonCode: number): boolean {
  return type !== PUBREC || reasonCode >= 0x80;
}

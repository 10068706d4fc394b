// What one server of a client has still to be given, and what it has been given and has not acknowledged. Made by
// leg.ts, which sends. Order is kept; bytes count against the client's memory. Sources: MQTT 5.0 sections 4.3
// (exchanges), 4.4 (what is sent again), 4.9 (Receive Maximum).
import { encodeAck } from '../../codec/ack.ts';
import { PUBACK, PUBCOMP, PUBLISH, PUBREC, PUBREL, type Version } from '../../mqtt/packet.ts';
import type { Held } from './held.ts';

const DUP = 8;
/** First byte without DUP and RETAIN. */
const QOS_2_PUBLISH = (PUBLISH << 4) | 4;
export const ID_COUNT = 65_535;
const CROWDED_BYTES = 128 * 1024;

interface Waiting {
  readonly bytes: Buffer;
  /** 0 = QoS 0. */
  readonly packetId: number;
}

export class Backlog {
  /** Of the server: PUBLISH above QoS 0 that it takes at once. */
  receiveMaximum = ID_COUNT;
  private readonly held: Held;
  private readonly keepsCopies: boolean;
  private queue: Waiting[] = [];
  /** Bytes of packets that wait. */
  private waitingBytes = 0;
  /** Place in the queue of the first that waits. */
  private head = 0;
  /** PUBLISH above QoS 0, SUBSCRIBE and UNSUBSCRIBE on their way: a copy, or the first byte where none is kept. */
  private sent = new Map<number, Buffer | number>();
  /** QoS 2 exchanges past PUBREC; true = the client has sent PUBREL. */
  private readonly releasing = new Map<number, boolean>();
  private publishing = 0;
  private readonly onCrowded: (on: boolean) => void;
  /** The server is being reached for the first time; the client waits for it, rather than what it sends. */
  private first: 'opening' | 'crowded' | 'over' = 'opening';

  /**
   * `keepsCopies`: what was lost with a connection is sent again. `onCrowded` is called until settle(): with true where
   * so much waits that the client should, then once with false.
   */
  constructor(held: Held, keepsCopies: boolean, onCrowded: (on: boolean) => void) {
    this.held = held;
    this.keepsCopies = keepsCopies;
    this.onCrowded = onCrowded;
  }

  /** Packets that wait. */
  get waitingCount(): number {
    return this.queue.length - this.head;
  }

  get hasQos2(): boolean {
    if (this.releasing.size > 0) return true;
    for (const one of this.sent.values()) if ((firstOf(one) & 0xf6) === QOS_2_PUBLISH) return true;
    return false;
  }

  /** Whether a packet with this first byte has to wait for acknowledgements [MQTT-3.3.4-9]. */
  mustWait(first: number): boolean {
    return first >> 4 === PUBLISH && (first & 6) !== 0 && this.publishing >= this.receiveMaximum;
  }

  /** A packet with an identifier is about to be sent. False = there is no memory for it. */
  note(bytes: Buffer, packetId: number): boolean {
    const { held, sent, keepsCopies } = this;
    if (keepsCopies && !held.take(bytes.length)) return false;
    const before = sent.get(packetId);
    if (typeof before === 'object') held.give(before.length);
    if (before === undefined && bytes[0] >> 4 === PUBLISH && !this.releasing.has(packetId)) this.publishing++;
    sent.set(packetId, keepsCopies ? Buffer.from(bytes) : bytes[0]);
    return true;
  }

  /** A packet that cannot be sent now. False = there is no memory for it. */
  put(bytes: Buffer, packetId: number): boolean {
    if (!this.held.take(bytes.length)) return false;
    // A copy: a chunk of many packets would be kept for one of them.
    this.queue.push({ bytes: Buffer.from(bytes), packetId });
    this.waitingBytes += bytes.length;
    if (this.first === 'opening' && this.waitingBytes > CROWDED_BYTES) {
      this.first = 'crowded';
      this.onCrowded(true);
    }
    return true;
  }

  /** The server has been reached, or not. */
  settle(): void {
    const { first } = this;
    this.first = 'over';
    if (first === 'crowded') this.onCrowded(false);
  }

  /** The first that waits, taken out where it may be sent now; null = none may. */
  next(): Waiting | null {
    const { queue, head } = this;
    if (head === queue.length || this.mustWait(queue[head].bytes[0])) return null;
    const one = queue[head];
    this.head++;
    this.waitingBytes -= one.bytes.length;
    this.held.give(one.bytes.length);
    if (this.head * 2 >= queue.length) {
      this.queue = queue.slice(this.head);
      this.head = 0;
    }
    return one;
  }

  /** PUBREL of the client. */
  release(packetId: number): void {
    if (!this.releasing.has(packetId)) this.publishing++;
    this.releasing.set(packetId, true);
  }

  /** What the server has acknowledged. */
  acknowledged(type: number, packetId: number, code: number): void {
    const sent = this.sent.get(packetId);
    if (sent !== undefined) {
      this.sent.delete(packetId);
      if (typeof sent === 'object') this.held.give(sent.length);
    }
    if (type === PUBREC && code < 0x80) this.releasing.set(packetId, false);
    else if (type === PUBCOMP) {
      if (this.releasing.delete(packetId)) this.publishing--;
    } else if (sent !== undefined && (type === PUBACK || type === PUBREC)) this.publishing--;
  }

  /** What the server has not acknowledged, in its order, as it is sent again [MQTT-4.4.0-1]. */
  again(version: Version): Buffer[] {
    const list: Buffer[] = [];
    for (const one of this.sent.values()) {
      if (typeof one === 'number') continue;
      const copy = Buffer.from(one);
      if (copy[0] >> 4 === PUBLISH) copy[0] |= DUP;
      list.push(copy);
    }
    for (const [packetId, released] of this.releasing) if (released) list.push(encodeAck(version, PUBREL, packetId));
    return list;
  }

  /** What the server was not given, or may not have got: taken out, to be refused. */
  takeBack(): readonly { readonly first: number; readonly packetId: number }[] {
    const list = [...this.sent].map(([packetId, one]) => ({ first: firstOf(one), packetId }));
    for (const { bytes, packetId } of this.waiting) list.push({ first: bytes[0], packetId });
    this.drop();
    return list;
  }

  /** Gives up what waits and what is under way. */
  drop(): void {
    const { held } = this;
    held.give(this.waitingBytes);
    this.waitingBytes = 0;
    for (const one of this.sent.values()) {
      if (typeof one === 'object') held.give(one.length);
      if (firstOf(one) >> 4 === PUBLISH) this.publishing--;
    }
    this.queue = [];
    this.head = 0;
    this.sent = new Map();
  }

  private get waiting(): readonly Waiting[] {
    return this.queue.slice(this.head);
  }
}

function firstOf(sent: Buffer | number): number {
  return typeof sent === 'number' ? sent : sent[0];
}

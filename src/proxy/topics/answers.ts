// Answers of several servers that the client gets as one: SUBACK, UNSUBACK, and PUBCOMP for an identifier that nobody
// here knows. Made by requests.ts for each SUBSCRIBE, UNSUBSCRIBE and such PUBREL. Pure. Sources: MQTT 5.0 sections
// 3.9, 3.11, 3.7.
import { encodeAck } from '../../codec/ack.ts';
import { encodeSuback, encodeUnsuback } from '../../codec/subscribe.ts';
import { PUBCOMP, PUBREL, SUBACK, SUBSCRIBE, UNSUBACK, UNSUBSCRIBE, type Version } from '../../mqtt/packet.ts';
import { NO_SUBSCRIPTION_EXISTED, PACKET_IDENTIFIER_NOT_FOUND, SUCCESS } from '../../mqtt/reason.ts';

const FAILURES = 0x80;

export type Asked = typeof SUBSCRIBE | typeof UNSUBSCRIBE | typeof PUBREL;

/** One question to several servers. */
export class Answer {
  readonly type: Asked;
  private readonly packetId: number;
  /** Code of each filter so far, -1 = none. */
  private readonly codes: number[];
  /** Filters by upstream, as places in `codes`. */
  private readonly places: ReadonlyMap<number, readonly number[]>;
  private readonly left: Set<number>;

  constructor(type: Asked, packetId: number, count: number, places: ReadonlyMap<number, readonly number[]>) {
    this.type = type;
    this.packetId = packetId;
    this.codes = new Array<number>(count).fill(-1);
    this.places = places;
    this.left = new Set(places.keys());
  }

  /** All have answered. */
  get complete(): boolean {
    return this.left.size === 0;
  }

  /** Takes the answer of an upstream; `codes` in the order in which it was asked, a missing one is 0. */
  take(upstream: number, codes: readonly number[]): void {
    if (!this.left.delete(upstream)) return;
    for (const [i, place] of (this.places.get(upstream) ?? []).entries())
      this.codes[place] = this.worse(this.codes[place], codes[i] ?? SUCCESS);
  }

  /** An upstream will not answer. */
  fail(upstream: number, code: number): void {
    this.take(
      upstream,
      (this.places.get(upstream) ?? []).map(() => code),
    );
  }

  asks(upstream: number): boolean {
    return this.left.has(upstream);
  }

  encode(version: Version): Buffer {
    const { packetId } = this;
    const reasonCodes = this.codes.map((code) => Math.max(code, 0));
    switch (this.type) {
      case SUBSCRIBE:
        return encodeSuback(version, { type: SUBACK, packetId, reasonCodes, properties: null });
      case UNSUBSCRIBE:
        return encodeUnsuback(version, { type: UNSUBACK, packetId, reasonCodes, properties: null });
      default:
        return encodeAck(version, PUBCOMP, packetId, reasonCodes[0]);
    }
  }

  private worse(one: number, other: number): number {
    if (one < 0) return other;
    // One who has known it is enough.
    if (this.type === PUBREL) return Math.min(one, other);
    if (one >= FAILURES || other >= FAILURES) return Math.max(one, other);
    if (this.type === UNSUBSCRIBE) return one === NO_SUBSCRIPTION_EXISTED ? other : one;
    return Math.min(one, other);
  }
}

/** What a client is told that releases what no server has. */
export function unknownRelease(version: Version, packetId: number): Buffer {
  return encodeAck(version, PUBCOMP, packetId, PACKET_IDENTIFIER_NOT_FOUND);
}

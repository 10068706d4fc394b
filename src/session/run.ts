// A run: QoS 0 PUBLISH packets that lie one behind the other in a chunk and go to the same targets, handed on as one
// piece. Used by publish.ts, one per connection. Looks only for where the run ends and counts by topic; whatever is
// unusual (cut, malformed, long, not known, not allowed) ends it and is left to the reader. Layout: codec/publish.ts.
// Allocates nothing.
import type { Frame } from '../codec/codec.ts';
import type { PublishScan } from '../codec/publish.ts';
import type { KnownTopic, Route, TopicCount } from '../router/router.ts';
import type { NamedTopics } from './named.ts';

/** Routes that are found within one run. */
const ROUTES_FOUND = 8;

export class Run {
  count = 0;
  /** Bytes of the longest packet. */
  longest = 0;
  /** Several topics are in it. */
  mixed = false;
  private readonly names: NamedTopics;
  private readonly five: boolean;
  /** Routes that had to be found. */
  private found = 0;
  private topic: KnownTopic | null = null;
  private counts: TopicCount | null = null;
  /** Messages and payload bytes that `counts` has not got yet. */
  private messages = 0;
  private payloadBytes = 0;

  constructor(names: NamedTopics, five: boolean) {
    this.names = names;
    this.five = five;
  }

  /**
   * Finds the packets behind the one in `frame`, which is without properties and on `topic`, that go by the same
   * `route`, null when they are denied. Returns the end of the run; the counts of its topics are then raised.
   */
  extend(
    buffer: Buffer,
    frame: Frame,
    scan: PublishScan,
    end: number,
    maxBytes: number,
    topic: KnownTopic,
    route: Route | null,
  ): number {
    const first = buffer[frame.packetStart];
    const versionBytes = this.five ? 1 : 0;
    let topicAt = scan.topicStart;
    let topicBytes = scan.topicEnd - topicAt;
    let at = frame.end;
    let count = 1;
    let longest = at - frame.packetStart;
    this.begin(topic, route, at - scan.payloadStart);
    while (at + 1 < end && buffer[at] === first) {
      let o = at + 1;
      let byte = buffer[o++];
      let length = byte & 127;
      if (byte > 127) {
        byte = buffer[o++];
        if (byte === undefined || byte === 0 || byte > 127) break;
        length |= byte << 7;
      }
      const next = o + length;
      if (next > end || length < 3 || (maxBytes > 0 && next - at > maxBytes)) break;
      const nameBytes = (buffer[o] << 8) | buffer[o + 1];
      o += 2;
      const payloadAt = o + nameBytes + versionBytes;
      if (nameBytes === 0 || payloadAt > next || (versionBytes > 0 && buffer[payloadAt - 1] !== 0)) break;
      // Topics mostly differ at their end.
      let i = nameBytes - 1;
      if (nameBytes === topicBytes) while (i >= 0 && buffer[o + i] === buffer[topicAt + i]) i--;
      if (i >= 0) {
        if (!this.turnTo(buffer, o, o + nameBytes, route)) break;
        topicBytes = nameBytes;
      }
      topicAt = o;
      this.messages++;
      this.payloadBytes += next - payloadAt;
      if (next - at > longest) longest = next - at;
      at = next;
      count++;
    }
    this.count = count;
    this.longest = longest;
    this.settle();
    this.names.topic = this.topic;
    return at;
  }

  private begin(topic: KnownTopic, route: Route | null, payloadBytes: number): void {
    this.topic = topic;
    this.mixed = false;
    this.found = 0;
    this.counts = route === null ? null : route.count;
    this.messages = 1;
    this.payloadBytes = payloadBytes;
  }

  /** Goes on with another topic; false when it does not belong to the run. */
  private turnTo(buffer: Buffer, start: number, end: number, route: Route | null): boolean {
    const { names, topic } = this;
    // What is denied goes on only with the same topic, and what a shared subscription divides too.
    if (topic === null || route === null || route.groups.length > 0) return false;
    const other = names.next(buffer, start, end, topic);
    if (other === null) return false;
    // To find many routes is work for several turns, not for one run.
    if (!names.hasRoute(other) && ++this.found > ROUTES_FOUND) return false;
    const { targets, groups, count } = names.route(other);
    if (targets !== route.targets || groups.length > 0) return false;
    this.settle();
    this.topic = other;
    this.counts = count;
    this.mixed = true;
    return true;
  }

  private settle(): void {
    const { counts } = this;
    if (counts === null) return;
    counts.messages += this.messages;
    counts.bytes += this.payloadBytes;
    this.messages = 0;
    this.payloadBytes = 0;
  }
}

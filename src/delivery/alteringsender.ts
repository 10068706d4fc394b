// The packets that go to a client whose messages are altered: the mount point is taken off each topic, and a hook of
// the embedding program may put another payload in, or leave the message out. Made by outbox.ts in the place of a
// Sender, only for such clients. What is outside of the mount point is not for this client and is not sent.
import type { Clock } from '../base/clock.ts';
import type { Publication } from '../mqtt/message.ts';
import type { Qos } from '../mqtt/packet.ts';
import type { Alter, Peer } from './delivery.ts';
import type { Tally } from './tally.ts';
import { TracedSender } from './tracedsender.ts';

export class AlteringSender extends TracedSender {
  private readonly mount: string;
  private readonly alter: Alter | null;
  private readonly losses: Tally;

  constructor(peer: Peer, topicAliases: number, clock: Clock, tally: Tally) {
    super(peer, topicAliases, clock, tally);
    this.mount = peer.mount ?? '';
    this.alter = peer.alter ?? null;
    this.losses = tally;
  }

  /** No packet goes out as it came in. */
  override run(): boolean {
    return false;
  }

  override publish(
    publication: Publication,
    qos: Qos,
    retain: boolean,
    dup: boolean,
    packetId: number,
    identifiers: readonly number[] | null,
  ): boolean {
    const { topic, topicUtf8, packetStart } = publication;
    const { mount } = this;
    if (mount !== '') {
      if (topic.length <= mount.length || !topic.startsWith(mount)) {
        this.losses.forbidden();
        return false;
      }
      publication.topic = topic.slice(mount.length);
      publication.topicUtf8 = null;
      publication.packetStart = -1;
    }
    const sent = this.altered(publication, qos, retain, dup, packetId, identifiers);
    // For this packet alone: others get the message as it is.
    publication.topic = topic;
    publication.topicUtf8 = topicUtf8;
    publication.packetStart = packetStart;
    return sent;
  }

  private altered(
    publication: Publication,
    qos: Qos,
    retain: boolean,
    dup: boolean,
    packetId: number,
    identifiers: readonly number[] | null,
  ): boolean {
    const found = this.alter === null ? null : this.alter(publication, qos, retain);
    if (found === null) return super.publish(publication, qos, retain, dup, packetId, identifiers);
    if (found === false) {
      this.losses.byHook();
      return false;
    }
    const { buffer, payloadStart, payloadEnd, properties, shared } = publication;
    publication.buffer = found.payload;
    publication.payloadStart = 0;
    publication.payloadEnd = found.payload.length;
    publication.properties = found.properties;
    publication.shared = null;
    publication.packetStart = -1;
    const sent = super.publish(publication, qos, retain, dup, packetId, identifiers);
    publication.buffer = buffer;
    publication.payloadStart = payloadStart;
    publication.payloadEnd = payloadEnd;
    publication.properties = properties;
    publication.shared = shared;
    return sent;
  }
}

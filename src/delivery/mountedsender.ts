// The packets that go to a client below a mount point: as sender.ts writes them, with the mount point taken off each
// topic. Made by outbox.ts in the place of a Sender. What is on another topic is not for this client and is not sent.
import type { Clock } from '../base/clock.ts';
import type { Publication } from '../mqtt/message.ts';
import type { Qos } from '../mqtt/packet.ts';
import type { Peer } from './delivery.ts';
import { Sender } from './sender.ts';
import type { Tally } from './tally.ts';

export class MountedSender extends Sender {
  private readonly mount: string;
  private readonly losses: Tally;

  constructor(peer: Peer, topicAliases: number, clock: Clock, tally: Tally) {
    super(peer, topicAliases, clock, tally);
    this.mount = peer.mount ?? '';
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
    if (topic.length <= mount.length || !topic.startsWith(mount)) {
      this.losses.forbidden();
      return false;
    }
    // For this packet alone: others get the topic as it is.
    publication.topic = topic.slice(mount.length);
    publication.topicUtf8 = null;
    publication.packetStart = -1;
    const sent = super.publish(publication, qos, retain, dup, packetId, identifiers);
    publication.topic = topic;
    publication.topicUtf8 = topicUtf8;
    publication.packetStart = packetStart;
    return sent;
  }
}

// The packets that go to a client whose deliveries are watched: tells of each message that was written for the first
// time. Made by outbox.ts in the place of a Sender, only where somebody wants to know. A run of packets goes out as it
// came: none of them is traced.
import type { Clock } from '../base/clock.ts';
import type { Publication } from '../mqtt/message.ts';
import type { Qos } from '../mqtt/packet.ts';
import type { Peer, Sent } from './delivery.ts';
import { Sender } from './sender.ts';
import type { Tally } from './tally.ts';

export class TracedSender extends Sender {
  private readonly onSent: Sent | null;

  constructor(peer: Peer, topicAliases: number, clock: Clock, tally: Tally) {
    super(peer, topicAliases, clock, tally);
    this.onSent = peer.sent ?? null;
  }

  override publish(
    publication: Publication,
    qos: Qos,
    retain: boolean,
    dup: boolean,
    packetId: number,
    identifiers: readonly number[] | null,
  ): boolean {
    const sent = super.publish(publication, qos, retain, dup, packetId, identifiers);
    if (sent && !dup) this.onSent?.(publication, qos, retain);
    return sent;
  }
}

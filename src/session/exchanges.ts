// The receiving half of QoS 2: which packet ids of a session stand for a message that has come and is not released yet
// (MQTT 5.0 and 3.1.1 section 4.3.3). One per connection; publish.ts begins exchanges, served.ts passes PUBREL, acks.ts
// says how the messages fared. An identifier is remembered only with its message: a refusal frees it, whatever has
// become of the connection that brought it.
import type { Hold, Publication } from '../mqtt/message.ts';
import { type AckPacket, PUBCOMP, PUBREC, type Version } from '../mqtt/packet.ts';
import { PACKET_IDENTIFIER_NOT_FOUND, SUCCESS } from '../mqtt/reason.ts';
import { type Acks, type AckUser, frees } from './acks.ts';
import type { Core } from './session.ts';
import type { Session } from './state.ts';
import { EXCHANGE_BYTES } from './weight.ts';

export class Exchanges implements AckUser {
  /**
   * Those of this connection, which count in the Receive Maximum: those of an earlier one do not (MQTT 5.0 section
   * 4.9).
   */
  open = 0;
  readonly failed: () => void;
  private readonly core: Core;
  private readonly session: Session;
  private readonly version: Version;

  /** @param failed closes the connection because a failure cannot be told in another way */
  constructor(core: Core, session: Session, version: Version, failed: () => void) {
    this.core = core;
    this.session = session;
    this.version = version;
    this.failed = failed;
  }

  has(packetId: number): boolean {
    return this.session.inbound.has(packetId);
  }

  /**
   * Remembers the identifier of a message that was just routed: behind it, so that neither is ever stored without the
   * other.
   */
  begin(packetId: number, publication: Publication): void {
    this.session.inbound.set(packetId, null);
    this.core.ledger.add('sessions', EXCHANGE_BYTES);
    this.open++;
    if (!this.session.outbox.durable) return;
    this.core.journal.inboundPut(this.session.clientId, packetId);
    publication.stored = true;
  }

  /** What the message of an exchange that was begun waits for. */
  await(packetId: number, hold: Hold | null): void {
    if (hold?.open === true && this.has(packetId)) this.session.inbound.set(packetId, hold);
  }

  /**
   * The same message again: it is acknowledged again and not delivered again [MQTT-4.3.3-10]. Gives what the answer
   * waits for.
   */
  again(packetId: number, publication: Publication): Hold | null {
    const { journal, stats } = this.core;
    const { session } = this;
    stats.duplicatesQos2++;
    const first = session.inbound.get(packetId) ?? null;
    // A refusal that is still to come is one of this answer too.
    if (first !== null || !session.outbox.durable) return first;
    // It may still have to go to the disk, after a failure that closed the connection.
    journal.inboundPut(session.clientId, packetId);
    journal.barrier(publication.hold());
    return publication.held;
  }

  /** PUBREL: the client will not send that packet id again for the same message [MQTT-4.3.3-11]. */
  release(packetId: number, publication: Publication, acks: Acks): void {
    const { session } = this;
    const { journal } = this.core;
    const known = session.inbound.delete(packetId);
    const reasonCode = known || this.version < 5 ? SUCCESS : PACKET_IDENTIFIER_NOT_FOUND;
    if (known && this.open > 0) this.open--;
    if (known) this.core.ledger.add('sessions', -EXCHANGE_BYTES);
    if (!session.outbox.durable) {
      acks.answer(PUBCOMP, packetId, reasonCode, null);
      return;
    }
    publication.reset();
    const hold = publication.hold();
    // An identifier that is not known may have been released on a connection that has gone before that was stored.
    if (known) {
      journal.inboundDelete(session.clientId, packetId);
      journal.barrier(hold);
    } else journal.barrierAll(hold);
    acks.answer(PUBCOMP, packetId, reasonCode, hold);
  }

  // ---- from acks.ts

  get resumable(): boolean {
    return this.session.outbox.resumable;
  }

  settled(type: AckPacket['type'], packetId: number, hold: Hold): void {
    const { inbound } = this.session;
    // The identifier may stand for another message by now.
    if (type !== PUBREC || inbound.get(packetId) !== hold) return;
    if (hold.refused) this.forget(packetId);
    else inbound.set(packetId, null);
  }

  /** PUBREC with a failure ends the exchange: the packet id is free again. */
  answered(type: AckPacket['type'], packetId: number, reasonCode: number): void {
    if (type === PUBREC && frees(type, reasonCode) && this.has(packetId)) this.forget(packetId);
  }

  private forget(packetId: number): void {
    const { session } = this;
    if (session.inbound.delete(packetId)) this.core.ledger.add('sessions', -EXCHANGE_BYTES);
    if (this.open > 0) this.open--;
    if (session.outbox.durable) this.core.journal.inboundDelete(session.clientId, packetId);
  }
}

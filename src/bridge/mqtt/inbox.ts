// Messages of a remote broker, from the decoded PUBLISH to the answer: topic aliases resolved, QoS 2 taken once
// [MQTT-4.3.3-10], acknowledged when accepted here. Made by remote.ts for each connection. Knows no packet's bytes and
// no rules: whether a message is taken is the user's answer.
import { ProtocolError } from '../../base/errors.ts';
import type { Hold, Publication } from '../../mqtt/message.ts';
import { PUBACK, PUBREC } from '../../mqtt/packet.ts';
import type { Properties } from '../../mqtt/property.ts';
import { PROTOCOL_ERROR, TOPIC_ALIAS_INVALID } from '../../mqtt/reason.ts';
import { isTopicName } from '../../mqtt/topic.ts';
import type { RemoteAcks } from './acks.ts';
import type { RemoteSession } from './session.ts';

/** Who takes the messages. */
export interface Receiving {
  /**
   * A message of the remote; a reason code of 0x80 and above refuses it for good. The publication is valid during the
   * call.
   */
  received(publication: Publication, identifiers: readonly number[] | null): number;
  /** What the acknowledgement of the message just received waits for. */
  hold(): Hold | null;
}

export class RemoteInbox {
  /** Takes no more messages of the remote: without an acknowledgement they stay there. */
  deaf = false;
  private readonly session: RemoteSession;
  private readonly acks: RemoteAcks;
  private readonly user: Receiving;
  private readonly aliasMaximum: number;
  private readonly aliases: string[] = [];

  /** @param aliasMaximum the Topic Alias Maximum that the remote was told */
  constructor(session: RemoteSession, acks: RemoteAcks, user: Receiving, aliasMaximum: number) {
    this.session = session;
    this.acks = acks;
    this.user = user;
    this.aliasMaximum = aliasMaximum;
  }

  /** Throws ProtocolError for an alias or a topic that may not be. */
  message(publication: Publication): void {
    if (this.deaf) return;
    const { qos, packetId } = publication;
    let identifiers: readonly number[] | null = null;
    const { properties } = publication;
    if (properties !== null) {
      identifiers = properties.subscriptionIdentifiers ?? null;
      publication.topic = this.topicOf(publication.topic, properties.topicAlias);
      publication.properties = ownProperties(properties);
      const { responseTopic } = properties;
      if (responseTopic !== undefined && !isTopicName(responseTopic))
        throw new ProtocolError(PROTOCOL_ERROR, 'Response Topic with wildcard'); // [MQTT-3.3.2-14]
    }
    if (!isTopicName(publication.topic)) throw new ProtocolError(PROTOCOL_ERROR, 'PUBLISH without a topic name');
    const { session } = this;
    if (qos === 2 && session.has(packetId)) {
      // Sent again: acknowledged again, not published again [MQTT-4.3.3-10].
      this.acks.answer(PUBREC, packetId, 0, session.again(packetId));
      return;
    }
    if (qos === 2) {
      this.exactlyOnce(publication, identifiers);
      return;
    }
    const code = this.user.received(publication, identifiers);
    if (qos === 1) this.acks.answer(PUBACK, packetId, code, this.user.hold());
  }

  private exactlyOnce(publication: Publication, identifiers: readonly number[] | null): void {
    const { session, user } = this;
    const { packetId } = publication;
    // One message for the journal, whatever rules it matches: it is never stored without its identifier.
    session.gather(true);
    try {
      const code = user.received(publication, identifiers);
      const hold = user.hold();
      this.acks.answer(PUBREC, packetId, code, code < 0x80 ? session.received(packetId, hold) : hold);
    } finally {
      session.gather(false);
    }
  }

  private topicOf(topic: string, alias: number | undefined): string {
    if (alias === undefined) return topic;
    if (alias > this.aliasMaximum)
      throw new ProtocolError(TOPIC_ALIAS_INVALID, `topic alias ${alias} is above the maximum`);
    if (topic !== '') {
      this.aliases[alias] = topic;
      return topic;
    }
    return this.aliases[alias] ?? '';
  }
}

/** Properties that belong to the message and not to its way here; null when there are none. */
function ownProperties(properties: Properties): Properties | null {
  const { topicAlias: _alias, subscriptionIdentifiers: _identifiers, ...own } = properties;
  return Object.keys(own).length === 0 ? null : own;
}

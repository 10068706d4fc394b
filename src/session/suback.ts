// SUBACK and UNSUBACK: when they leave and what they say (MQTT 5.0 sections 3.9 and 3.11, 3.1.1 sections 3.9 and 3.11).
// One per client, made by served.ts. What a session keeps is acknowledged when it is stored; what
// could not be stored is taken back, and the answer says so.
import { encodeSuback, encodeUnsuback } from '../codec/subscribe.ts';
import { Hold } from '../mqtt/message.ts';
import { SUBACK, UNSUBACK, type UnsubscribePacket, type Version } from '../mqtt/packet.ts';
import type { Properties } from '../mqtt/property.ts';
import { QUOTA_EXCEEDED, reasonText } from '../mqtt/reason.ts';
import type { ClientPolicy } from '../policy/policy.ts';
import type { Core } from './session.ts';
import type { Session } from './state.ts';
import { type Subscribed, type Unsubscribed, unsubscribe } from './subscribe.ts';

/** The connection that is answered; it may have gone by then. */
export interface Answered {
  isOpen(): boolean;
  send(packet: Buffer): void;
  disconnect(reasonCode: number, why: string): void;
}

export class SubscriptionAnswers {
  private readonly core: Core;
  private readonly session: Session;
  private readonly version: Version;
  private readonly client: Answered;
  private readonly reasonStrings: boolean;

  /** @param reasonStrings the client takes them */
  constructor(core: Core, session: Session, version: Version, client: Answered, reasonStrings: boolean) {
    this.core = core;
    this.session = session;
    this.version = version;
    this.client = client;
    this.reasonStrings = reasonStrings;
  }

  /** Answers a SUBSCRIBE; stored messages of the new subscriptions follow. */
  granted(packetId: number, granted: Subscribed): void {
    if (!granted.stored) {
      this.suback(packetId, granted);
      return;
    }
    const { session } = this;
    session.unsettled++;
    const hold = new Hold();
    this.core.journal.barrier(hold);
    hold.whenDone((code) => {
      session.unsettled--;
      // Granted is what a restart would find: anything else is taken back.
      if (code >= 0x80) granted.takeBack();
      this.suback(packetId, granted);
    });
  }

  /** Carries out an UNSUBSCRIBE and answers it; gives what to wait for when that takes several turns. */
  end(packet: UnsubscribePacket, policy: ClientPolicy | null): Promise<void> | null {
    const { packetId } = packet;
    const result = unsubscribe(this.core, this.session, packet, () => this.client.isOpen(), policy);
    if (!(result instanceof Promise)) {
      this.ended(packetId, result);
      return null;
    }
    return result.then((ended) => {
      if (ended !== null) this.ended(packetId, ended);
    });
  }

  private ended(packetId: number, { reasonCodes, stored, takeBack }: Unsubscribed): void {
    if (!stored) {
      this.unsuback(packetId, reasonCodes);
      return;
    }
    const hold = new Hold();
    this.core.journal.barrier(hold);
    hold.whenDone((code) => {
      if (code >= 0x80) {
        takeBack();
        // Before 5.0 an UNSUBACK cannot say that it failed.
        if (this.version < 5) {
          if (this.client.isOpen())
            this.client.disconnect(QUOTA_EXCEEDED, 'the end of a subscription could not be stored');
          return;
        }
      }
      this.unsuback(packetId, reasonCodes);
    });
  }

  private suback(packetId: number, { reasonCodes, afterAnswer }: Subscribed): void {
    const properties = this.explain(reasonCodes);
    this.client.send(encodeSuback(this.version, { type: SUBACK, packetId, reasonCodes, properties }));
    if (this.client.isOpen()) afterAnswer();
  }

  private unsuback(packetId: number, reasonCodes: number[]): void {
    const properties = this.explain(reasonCodes);
    this.client.send(encodeUnsuback(this.version, { type: UNSUBACK, packetId, reasonCodes, properties }));
  }

  /** A reason string for the first failure, where the client wants one and it fits [MQTT-3.1.2-29]. */
  private explain(reasonCodes: readonly number[]): Properties | null {
    const failure = this.reasonStrings ? reasonCodes.find((code) => code >= 0x80) : undefined;
    return failure === undefined ? null : { reasonString: reasonText(failure) };
  }
}

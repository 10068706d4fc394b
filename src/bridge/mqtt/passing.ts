// A message of QoS 0 on its way to a remote broker, which is not kept: one object for all of them. Made by outbox.ts.
import type { Publication } from '../../mqtt/message.ts';
import type { Properties } from '../../mqtt/property.ts';
import type { Outgoing } from './outmessage.ts';

export class Passing implements Outgoing {
  topic = '';
  payload: Uint8Array = new Uint8Array(0);
  readonly qos = 0;
  retain = false;
  properties: Properties | null = null;
  expiresAt = 0;

  /** The payload is a view: it holds until the publication is over. */
  load(publication: Publication, topic: string, retain: boolean, properties: Properties | null): void {
    this.topic = topic;
    this.payload = publication.payload();
    this.retain = retain;
    this.properties = properties;
    this.expiresAt = publication.expiresAt;
  }
}

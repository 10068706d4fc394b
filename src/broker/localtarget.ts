// One subscription of a client inside the process as the router sees it. Made by local.ts, one for each subscription.
// Copies nothing: a receiver that keeps a message takes its own copy.
import type { Receiver, Target } from '../delivery/delivery.ts';
import type { Publication } from '../mqtt/message.ts';
import type { LocalOptions, LocalSubscription } from './broker.ts';

/** Bridges need no read right: their rules come from the operator. */
export class LocalTarget implements Receiver {
  readonly clientId: string;
  readonly local: string;
  readonly online = true;
  readonly ready = true;
  private readonly subscription: LocalSubscription;

  constructor({ clientId, bridge }: LocalOptions, subscription: LocalSubscription) {
    this.clientId = clientId;
    this.local = bridge ?? clientId;
    this.subscription = subscription;
  }

  get stores(): boolean {
    return this.subscription.receiver.stores === true;
  }

  get control(): boolean {
    return this.subscription.receiver.control === true;
  }

  mayReceive(): boolean {
    return true;
  }

  deliver(publication: Publication, target: Target): void {
    this.subscription.receiver.receive(publication, publication.qos < target.qos ? publication.qos : target.qos);
  }

  deliverRun(publication: Publication, _target: Target, start: number, end: number): void {
    const { receiver } = this.subscription;
    if (receiver.receiveRun !== undefined && publication.names === null) {
      receiver.receiveRun(publication, start, end);
      return;
    }
    for (let at = start; at < end; ) {
      at = publication.step(at);
      receiver.receive(publication, 0);
    }
  }
}

// SUBSCRIBE and UNSUBSCRIBE under way at a remote broker: their packet ids, who waits for which answer, and a turn for
// those that are too many. Used by remote.ts. Packet ids are those above PUBLISH_IDS, so that they never meet those of
// messages [MQTT-2.2.1-3].
import { Fifo } from '../../base/queue.ts';
import { PUBLISH_IDS } from './outmessage.ts';

const LAST_ID = 65_535;
/** Without an answer; there are 535 packet ids. */
const MOST = 256;

/** Sends the packet with this packet id. */
type Send = (packetId: number) => void;
type Done = (reasonCode: number) => void;

export class Requests {
  private readonly underway = new Map<number, Done>();
  private readonly waiting = new Fifo<{ readonly send: Send; readonly done: Done }>();
  private last = PUBLISH_IDS;

  /** @param done called with the reason code of the answer, 0 for one without */
  ask(send: Send, done: Done): void {
    if (this.underway.size >= MOST) {
      this.waiting.push({ send, done });
      return;
    }
    do this.last = this.last >= LAST_ID ? PUBLISH_IDS + 1 : this.last + 1;
    while (this.underway.has(this.last));
    this.underway.set(this.last, done);
    send(this.last);
  }

  answered(packetId: number, reasonCode: number): void {
    const done = this.underway.get(packetId);
    if (done === undefined) return;
    this.underway.delete(packetId);
    done(reasonCode);
    const next = this.waiting.shift();
    if (next !== undefined) this.ask(next.send, next.done);
  }

  clear(): void {
    this.underway.clear();
    this.waiting.clear();
  }
}

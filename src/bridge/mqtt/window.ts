// How many messages may be open at a remote broker, QoS 1 and 2 together: what it tells (5.0: Receive Maximum), what
// the user has set, and where it cannot tell, what it bears. Used by outbox.ts. mosquitto allows 20 by default; beyond
// it drops messages, acknowledges some of them and closes the connection. So a remote before 5.0 gets fewer, and half
// of that when it closes a new connection in the middle of exchanges. Sources: MQTT 5.0 sections 3.3.4 and 4.9;
// mosquitto.conf(5), max_inflight_messages.

/** For a remote that cannot tell: fewer than mosquitto's limit. */
const UNTOLD = 19;
/** Acknowledgements without such an end until one more may be open; doubled by every such end. */
const CALM = 500;
const MOST_CALM = 64_000;
/** A connection that lived longer has ended for another reason. */
const SOON_MS = 10_000;

export class Window {
  size = UNTOLD;
  private most = UNTOLD;
  private told = false;
  private calm = CALM;
  private acknowledged = 0;

  /**
   * A connection is open.
   * @param receiveMaximum of the remote, null = it cannot tell
   * @param maxInflight of the user, 0 = none
   */
  open(receiveMaximum: number | null, maxInflight: number): void {
    const before = this.most;
    this.told = receiveMaximum !== null;
    this.most = receiveMaximum ?? (maxInflight > 0 ? maxInflight : UNTOLD);
    if (maxInflight > 0) this.most = Math.min(this.most, maxInflight);
    if (this.told || this.most !== before) this.size = this.most;
  }

  /** Whether the remote may not bear as many as it is sent. */
  get untold(): boolean {
    return !this.told;
  }

  /**
   * The connection has ended in the middle of exchanges, this long after it began: soon after, their number may be the
   * reason.
   */
  cut(livedMs: number): void {
    if (this.told || livedMs >= SOON_MS) return;
    this.size = Math.max(1, this.size >> 1);
    this.calm = Math.min(MOST_CALM, this.calm * 2);
    this.acknowledged = 0;
  }

  /** A message was acknowledged. */
  done(): void {
    if (this.size >= this.most || ++this.acknowledged < this.calm) return;
    this.acknowledged = 0;
    this.size++;
  }
}

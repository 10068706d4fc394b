// When a server of several gets PINGREQ: the client's own packets may all go to the others. Made by leg.ts. Counts
// times alone, sends nothing. Source: MQTT 5.0 section 3.1.2.10.

export class Pings {
  /** 0 = the client has no keep alive. */
  private keepAliveMs = 0;
  private wrote = false;
  private wroteMs = 0;
  /** When PINGREQ went that is not answered, -1 = none. */
  private pingMs = -1;

  /** A session has begun. */
  begin(keepAliveMs: number, nowMs: number): void {
    this.keepAliveMs = keepAliveMs;
    this.wroteMs = nowMs;
    this.pingMs = -1;
  }

  /** Something was sent to the server. */
  sent(): void {
    this.wrote = true;
  }

  answered(): void {
    this.pingMs = -1;
  }

  /** Asked now and then: it is time for PINGREQ, or the server has not answered the last one. */
  due(nowMs: number): 'ping' | 'dead' | null {
    const { keepAliveMs } = this;
    if (keepAliveMs === 0) return null;
    if (this.wrote) {
      this.wrote = false;
      this.wroteMs = nowMs;
    }
    if (this.pingMs >= 0) return nowMs - this.pingMs >= keepAliveMs ? 'dead' : null;
    if (nowMs - this.wroteMs < keepAliveMs * 0.7) return null;
    this.pingMs = nowMs;
    this.wroteMs = nowMs;
    return 'ping';
  }
}

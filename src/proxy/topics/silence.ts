// When a client of an exchange has been silent for too long. Made by clientside.ts. Counts times alone. Source: MQTT
// 5.0 section 3.1.2.10.

export class Silence {
  /** 0 = no keep alive. */
  keepAliveMs: number;
  private readonly idleTimeoutMs: number;
  private spoke = true;
  private heardMs: number;
  private mark = 0;
  private movedMs: number;

  /** `idleTimeoutMs` 0 = never idle. */
  constructor(keepAliveMs: number, idleTimeoutMs: number, nowMs: number) {
    this.keepAliveMs = keepAliveMs;
    this.idleTimeoutMs = idleTimeoutMs;
    this.heardMs = nowMs;
    this.movedMs = nowMs;
  }

  /** The client has sent something. */
  heard(): void {
    this.spoke = true;
  }

  /**
   * Asked now and then: why it is to end. `moved` grows with every byte, either way; one that is not read from cannot
   * be heard.
   */
  verdict(nowMs: number, moved: number, isRead: boolean): 'keep alive' | 'idle' | null {
    if (this.spoke || !isRead) {
      this.spoke = false;
      this.heardMs = nowMs;
    }
    const { keepAliveMs, idleTimeoutMs } = this;
    if (keepAliveMs > 0 && nowMs - this.heardMs >= keepAliveMs * 1.5) return 'keep alive'; // [MQTT-3.1.2-22]
    if (moved !== this.mark) {
      this.mark = moved;
      this.movedMs = nowMs;
      return null;
    }
    return idleTimeoutMs > 0 && nowMs - this.movedMs >= idleTimeoutMs ? 'idle' : null;
  }
}

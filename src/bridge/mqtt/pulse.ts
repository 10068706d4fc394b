// Whether a connection to a remote broker is alive: when PINGREQ is due, and when silence after it means that nobody is
// there. Used by remote.ts, which looks once a tick; between looks it only sets flags, so that nothing is spent on a
// message. Sources: MQTT 5.0 sections 3.1.2.10, 3.12; 3.1.1 the same.

export interface PulseOptions {
  /** 0 = no keep alive. */
  readonly keepAliveMs: number;
  /** Without an acknowledgement for so long the remote is asked. */
  readonly progressMs: number;
  /** Time to say anything after that. */
  readonly answerMs: number;
}

/** Of the keep alive: the packet has to get there before it has passed. */
const PART = 0.75;

export class Pulse {
  keepAliveMs: number;
  /** Set since the last look: something was sent, something came, an acknowledgement came. */
  spoke = false;
  heard = false;
  progress = false;
  private readonly options: PulseOptions;
  private spokeMs: number;
  private heardMs: number;
  private progressMs: number;
  /** When the question was asked that is not answered yet; -1 = none. */
  private askedMs = -1;

  constructor(options: PulseOptions, nowMs: number) {
    this.options = options;
    this.keepAliveMs = options.keepAliveMs;
    this.spokeMs = nowMs;
    this.heardMs = nowMs;
    this.progressMs = nowMs;
  }

  /** @param waits whether something that was sent is not acknowledged */
  look(nowMs: number, waits: boolean): 'alive' | 'ask' | 'dead' {
    if (this.spoke) this.spokeMs = nowMs;
    if (this.heard) this.heardMs = nowMs;
    if (this.progress || !waits) this.progressMs = nowMs;
    const heard = this.heard;
    this.spoke = false;
    this.heard = false;
    this.progress = false;
    if (this.askedMs >= 0) {
      if (heard) this.askedMs = -1;
      else return nowMs - this.askedMs >= this.options.answerMs ? 'dead' : 'alive';
    }
    // Either side's silence counts [MQTT-3.1.2-20].
    const silentMs = nowMs - Math.min(this.spokeMs, this.heardMs);
    const due = this.keepAliveMs > 0 && silentMs >= this.keepAliveMs * PART;
    const stuck = waits && nowMs - this.progressMs >= this.options.progressMs;
    if (!due && !stuck) return 'alive';
    this.askedMs = nowMs;
    this.progressMs = nowMs;
    return 'ask';
  }
}

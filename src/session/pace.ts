// Time on the event loop for work that one client's input leads to: a client that has used its share goes on behind
// everybody else. One Pace for a broker; asked by reader.ts between packets and by subscribe.ts between filters. Work
// that goes on later gets one round of the loop after the other, all such clients together no more than ROUND_MS of
// each, so that the sockets of the others are read in between.
import { Fifo } from '../base/queue.ts';

/** What one client may use in a row. */
export const SLICE_MS = 4;
/** What those who go on may use together before sockets are read again. */
const ROUND_MS = 8;

export class Pace {
  /** Times that a client's work was put off. */
  putOff = 0;
  private readonly waiting = new Fifo<() => void>();
  private readonly mono: () => number;
  private readonly cpuMs: () => number;
  private beganCpuMs = 0;
  private scheduled = false;

  /**
   * @param mono milliseconds, see Clock
   * @param cpuMs processor time of this process: on a busy machine the time that others had is not the client's
   */
  constructor(mono: () => number, cpuMs: () => number = mono) {
    this.mono = mono;
    this.cpuMs = cpuMs;
  }

  /**
   * A slice begins: gives when it is over at the earliest. Slices are worked on one after the other, without a break.
   */
  begin(): number {
    this.beganCpuMs = this.cpuMs();
    return this.mono() + SLICE_MS;
  }

  /** Whether the slice is over. Dearer than a look at the clock: to be asked when begin()'s time has come. */
  get spent(): boolean {
    return this.cpuMs() - this.beganCpuMs >= SLICE_MS;
  }

  isOver(endMs: number): boolean {
    return this.mono() >= endMs && this.spent;
  }

  /** Resolves when it is this client's turn again. */
  turn(): Promise<void> {
    this.putOff++;
    return new Promise((resolve) => {
      this.waiting.push(resolve);
      this.schedule();
    });
  }

  /** As turn(), with a callback. */
  later(go: () => void): void {
    this.putOff++;
    this.waiting.push(go);
    this.schedule();
  }

  private schedule(): void {
    if (this.scheduled) return;
    this.scheduled = true;
    setImmediate(() => void this.round());
  }

  private async round(): Promise<void> {
    const endMs = this.mono() + ROUND_MS;
    for (let left = this.waiting.length; left > 0 && this.mono() < endMs; left--) {
      this.waiting.shift()?.();
      // What a promise leads to happens here, within the measured time.
      await Promise.resolve();
      await Promise.resolve();
    }
    this.scheduled = false;
    if (this.waiting.length > 0) this.schedule();
  }
}

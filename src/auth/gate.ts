// A bounded number of slow things at once, the rest waiting in a bounded line. Used for password hashes and HTTP requests,
// so that a storm of connections costs a known share of the machine. A full line refuses at once: nobody waits unseen.

export class Gate {
  private readonly slots: number;
  private readonly room: number;
  private busy = 0;
  private readonly waiting: (() => void)[] = [];
  private head = 0;

  /** @param slots run at once; @param room may wait. */
  constructor(slots: number, room: number) {
    this.slots = slots;
    this.room = room;
  }

  /** Runs `job` when a slot is free; null when the line is full. The promise rejects only if the job does. */
  run<T>(job: () => Promise<T>): Promise<T> | null {
    if (this.busy < this.slots) {
      this.busy++;
      return this.hold(job);
    }
    if (this.waiting.length - this.head >= this.room) return null;
    return new Promise<void>((go) => this.waiting.push(go)).then(() => this.hold(job));
  }

  private async hold<T>(job: () => Promise<T>): Promise<T> {
    try {
      return await job();
    } finally {
      this.release();
    }
  }

  /** Hands the slot to who has waited longest; it is free only when nobody waits. */
  private release(): void {
    if (this.head === this.waiting.length) {
      this.busy--;
      return;
    }
    const go = this.waiting[this.head++];
    // Amortised: the consumed front is cut off when it is the larger half.
    if (this.head * 2 > this.waiting.length) {
      this.waiting.splice(0, this.head);
      this.head = 0;
    }
    go();
  }
}

// A bounded number of slow things at once, the rest waiting in bounded lines. Used for password hashes and HTTP
// requests, so that a storm of connections costs a known share of the machine. Each asker (an address, a client) has a
// line of its own and the lines take turns: who asks for much waits for his own work. Work for a connection that has
// gone is dropped when its turn comes. Nobody waits unseen.
import { Fifo } from '../base/queue.ts';

/** For whom a job is done. */
export interface Asker {
  /** Whose line it waits in: an address, a client id. */
  readonly key: string;
  /** Whether nobody needs the answer any more. */
  readonly gone?: () => boolean;
}

interface Waiting {
  readonly asker: Asker;
  /** false: there is no turn for it. */
  readonly go: (turn: boolean) => void;
}

export class Gate {
  private readonly slots: number;
  private readonly room: number;
  private busy = 0;
  private waiting = 0;
  /** Lines with somebody in them; the first is the next to have its turn. */
  private readonly lines = new Map<string, Fifo<Waiting>>();

  /** @param slots run at once; @param room may wait. */
  constructor(slots: number, room: number) {
    this.slots = slots;
    this.room = room;
  }

  /**
   * Runs `job` when it is its turn. null when all lines together are full and nobody waits with more in line. Resolves
   * with null when the asker has gone, or had to make room for somebody with less in line. Rejects only if the job
   * does.
   */
  run<T>(job: () => Promise<T>, asker: Asker): Promise<T | null> | null {
    if (this.busy < this.slots) {
      this.busy++;
      return this.hold(job);
    }
    if (this.waiting >= this.room && !this.makeRoom(asker.key)) return null;
    return new Promise<boolean>((go) => this.enter({ asker, go })).then((turn) => (turn ? this.hold(job) : null));
  }

  private enter(waiting: Waiting): void {
    const { key } = waiting.asker;
    let line = this.lines.get(key);
    if (line === undefined) {
      line = new Fifo();
      this.lines.set(key, line);
    }
    line.push(waiting);
    this.waiting++;
  }

  /** The longest line gives up its oldest place, unless it is this asker's own. O(lines), only when all are full. */
  private makeRoom(key: string): boolean {
    let longest: Fifo<Waiting> | null = null;
    let of = '';
    for (const [name, line] of this.lines) {
      if (longest !== null && line.length <= longest.length) continue;
      longest = line;
      of = name;
    }
    if (longest === null || of === key || longest.length <= (this.lines.get(key)?.length ?? 0) + 1) return false;
    this.take(of, longest)?.go(false);
    return true;
  }

  private take(key: string, line: Fifo<Waiting>): Waiting | undefined {
    const first = line.shift();
    this.waiting--;
    if (line.length === 0) this.lines.delete(key);
    return first;
  }

  private async hold<T>(job: () => Promise<T>): Promise<T> {
    try {
      return await job();
    } finally {
      this.release();
    }
  }

  /** Hands the slot to the next line that has somebody who still waits; it is free only when nobody does. */
  private release(): void {
    for (const [key, line] of this.lines) {
      const next = this.take(key, line);
      // This line's next turn is behind all others.
      if (line.length > 0) {
        this.lines.delete(key);
        this.lines.set(key, line);
      }
      if (next === undefined) continue;
      if (next.asker.gone?.() === true) {
        next.go(false);
        continue;
      }
      next.go(true);
      return;
    }
    this.busy--;
  }
}

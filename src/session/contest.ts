// Two programs that share a client id throw each other off for ever, and their users blame the broker. Told once a minute, by name.
// Asked by connect.ts at every takeover. Remembers a bounded number of client ids, long ones by their hash.
import { boundedKey } from '../base/brief.ts';
import { Fifo } from '../base/queue.ts';

/** Takeovers of one client id within this time belong together. */
const WINDOW_MS = 60_000;
/** So many of them are no chance any more. */
const SUSPICIOUS = 3;
/** Client ids watched; the oldest is forgotten for a new one. */
const WATCHED = 1000;

interface Contest {
  sinceMs: number;
  count: number;
  told: boolean;
}

export class Contests {
  private readonly contests = new Map<string, Contest>();
  private readonly order = new Fifo<string>();

  /** Notes a takeover; gives how many there were within a minute when that is worth a word, else 0. */
  note(clientId: string, nowMs: number): number {
    const key = boundedKey(clientId);
    let contest = this.contests.get(key);
    if (contest === undefined) {
      if (this.contests.size >= WATCHED) this.contests.delete(this.order.shift() ?? '');
      contest = { sinceMs: nowMs, count: 0, told: false };
      this.contests.set(key, contest);
      this.order.push(key);
    } else if (nowMs - contest.sinceMs > WINDOW_MS) {
      contest.sinceMs = nowMs;
      contest.count = 0;
      contest.told = false;
    }
    contest.count++;
    if (contest.told || contest.count < SUSPICIOUS) return 0;
    contest.told = true;
    return contest.count;
  }
}

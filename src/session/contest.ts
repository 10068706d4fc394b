// Two programs that share a client id throw each other off for ever, and their users blame the broker. Told once a
// minute, by name. Also told: client ids that belong to another user. Asked by connect.ts at every takeover. Remembers
// a bounded number of client ids, long ones by their hash.
import { boundedKey } from '../base/brief.ts';
import type { Fields, Log } from '../base/log.ts';
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

/** Refusals of client ids that are another user's are told one by one this often, and counted in between. */
const FOREIGN_MS = 10_000;

export class Contests {
  private readonly contests = new Map<string, Contest>();
  private readonly order = new Fifo<string>();

  private foreignMs = Number.NEGATIVE_INFINITY;
  private foreignCount = 0;

  /**
   * Tells of a client that came with a client id whose session is another user's; a storm of them is one line now and
   * then.
   */
  foreign(log: Log, nowMs: number, fields: Fields): void {
    this.foreignCount++;
    if (nowMs - this.foreignMs < FOREIGN_MS) return;
    log('warn', 'SES-FOREIGN', { ...fields, refused: this.foreignCount });
    this.foreignMs = nowMs;
    this.foreignCount = 0;
  }

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

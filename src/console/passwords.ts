// Compares the passwords people send with those that are configured, plain or hashed. Called by access.ts. Hashing is
// slow on purpose, so what strangers can make it cost is bounded: two at a time, a short queue, and a right password
// that was checked is remembered (as a keyed digest, in memory only) until the user changes.
import { createHmac, randomBytes } from 'node:crypto';
import type { MatchesHash, WebUser } from './console.ts';
import { sameText } from './login.ts';

/** argon2id takes 46 MB each. */
const AT_ONCE = 2;
/** Longest queue: at 5 ms (pbkdf2) to 100 ms (argon2id) each a second or two. */
const MOST_WAITING = 32;
/** Right passwords that are remembered. */
const MOST_KNOWN = 256;

/** busy: too many passwords are being compared. */
export type Found = WebUser | 'none' | 'busy';

export class Passwords {
  private readonly matchesHash: MatchesHash;
  private readonly pepper = randomBytes(32);
  private readonly known = new Set<string>();
  private running = 0;
  private readonly waiting: (() => void)[] = [];

  constructor(matchesHash: MatchesHash = async () => false) {
    this.matchesHash = matchesHash;
  }

  /** The user of these credentials. `stop` is asked after waiting: whether it is too late to look. */
  async find(
    users: readonly WebUser[],
    username: string,
    password: string,
    stop: () => boolean = () => false,
  ): Promise<Found> {
    let plain: WebUser | null = null;
    let hashed: WebUser | null = null;
    // Every user is compared, so that the time does not tell which names exist.
    for (const user of users) {
      const sameName = sameText(user.username, username);
      if (user.hashed === true) {
        if (sameName) hashed = user;
      } else if (sameText(user.password, password) && sameName && user.password !== '') plain = user;
    }
    if (plain !== null) return plain;
    // An unknown name costs as much as a wrong password.
    const compared = hashed ?? users.find((user) => user.hashed === true);
    if (compared === undefined) return 'none';
    const key = this.digest(compared, password);
    if (hashed !== null && this.known.has(key)) return hashed;
    if (!(await this.enter())) return 'busy';
    try {
      if (stop()) return 'none';
      const right = await this.matchesHash(compared.password, password);
      if (!right || hashed === null) return 'none';
      this.remember(key);
      return hashed;
    } catch {
      return 'none';
    } finally {
      this.leave();
    }
  }

  private digest({ username, password }: WebUser, given: string): string {
    return createHmac('sha256', this.pepper)
      .update(JSON.stringify([username, password, given]))
      .digest('base64');
  }

  private remember(key: string): void {
    for (const oldest of this.known) {
      if (this.known.size < MOST_KNOWN) break;
      this.known.delete(oldest);
    }
    this.known.add(key);
  }

  private async enter(): Promise<boolean> {
    if (this.running < AT_ONCE) {
      this.running++;
      return true;
    }
    if (this.waiting.length >= MOST_WAITING) return false;
    await new Promise<void>((resolve) => this.waiting.push(resolve));
    return true;
  }

  /** Whoever waits longest takes the place over. */
  private leave(): void {
    const next = this.waiting.shift();
    if (next === undefined) this.running--;
    else next();
  }
}

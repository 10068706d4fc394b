// Bounds on what clients together may make a gateway keep: sessions, subscriptions, retained messages; and what the
// store refuses. Whatever is refused is counted by its bound and told at most every ten seconds. Used by subscribe.ts;
// asked at CONNECT and, for retained messages, by router/. Refuses nothing itself.
import { brief } from '../base/brief.ts';
import { type Log, limitLog } from '../base/log.ts';

/** What was refused for lack of room. */
export type Cap =
  | 'sessions'
  | 'subscriptions'
  | 'retained'
  | 'store'
  | 'memory'
  | 'matching'
  | 'exclusive'
  | 'delayed'
  | 'quota';

const TELL_MS = 10_000;
/** Characters of a name in the log. */
const SHOWN = 256;

export class Caps {
  /** Refusals so far, by what was full. */
  readonly counts: Record<Cap, number> = {
    sessions: 0,
    subscriptions: 0,
    retained: 0,
    store: 0,
    memory: 0,
    matching: 0,
    exclusive: 0,
    delayed: 0,
    quota: 0,
  };
  private readonly logs: Record<Cap, Log>;

  /** @param mono milliseconds, see Clock */
  constructor(log: Log, mono: () => number) {
    const limited = (): Log => limitLog(log, mono, TELL_MS);
    this.logs = {
      sessions: limited(),
      subscriptions: limited(),
      retained: limited(),
      store: limited(),
      memory: limited(),
      matching: limited(),
      exclusive: limited(),
      delayed: limited(),
      quota: limited(),
    };
  }

  /** Something was refused. */
  refused(cap: Cap, clientId: string, topic: string | null = null): void {
    this.counts[cap]++;
    const named = { clientId: brief(clientId, SHOWN) };
    this.logs[cap](
      'warn',
      'SES-LIMIT',
      topic === null ? { limit: cap, ...named } : { limit: cap, ...named, topic: brief(topic, SHOWN) },
    );
  }
}

// The last log lines in memory, for the console and the event stream: bounded, and only lines that the log itself
// takes. Wraps the Log that every stage gets. Built by gateway/gateway.ts when http_server is configured.
import { brief } from './brief.ts';
import type { Fields, Level, Log } from './log.ts';
import { ALWAYS, MESSAGES, type MsgId } from './messages.ts';

export interface TailLine {
  /** Wall-clock milliseconds. */
  readonly time: number;
  readonly level: Level;
  readonly msgid: MsgId;
  readonly text: string;
  readonly fields: Fields;
}

const LINES = 1000;
/** Characters of one text in a line. */
const TEXT_CHARACTERS = 1024;
const LEVELS: readonly Level[] = ['trace', 'debug', 'info', 'warn', 'error', 'fatal'];

export class LogTail {
  /** Lines below it are not kept. */
  level: Level;
  private readonly lines: TailLine[] = [];
  private readonly followers = new Set<(line: TailLine) => void>();
  private readonly now: () => number;

  constructor(level: Level, now: () => number) {
    this.level = level;
    this.now = now;
  }

  /** The log to hand out instead of `log`. */
  wrap(log: Log): Log {
    return (level, msgid, fields) => {
      log(level, msgid, fields);
      if (LEVELS.indexOf(level) < LEVELS.indexOf(this.level) && !ALWAYS.has(msgid)) return;
      const line: TailLine = { time: this.now(), level, msgid, text: MESSAGES[msgid], fields: short(fields) };
      if (this.lines.push(line) > LINES) this.lines.shift();
      for (const follower of this.followers) follower(line);
    };
  }

  /** Newest last. */
  recent(limit: number): readonly TailLine[] {
    return this.lines.slice(-limit);
  }

  /** Calls `handler` for each new line until the returned function is called. */
  follow(handler: (line: TailLine) => void): () => void {
    this.followers.add(handler);
    return () => this.followers.delete(handler);
  }
}

/** Fields whose texts are bounded: names from outside may be 64 KB each. */
function short(fields: Fields | undefined): Fields {
  if (fields === undefined) return {};
  const out: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(fields))
    out[key] = typeof value === 'string' ? brief(value, TEXT_CHARACTERS) : value;
  return out;
}

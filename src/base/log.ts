// The seam to logging: level, stable id, fields. Stages get a Log; only the outermost layer knows pino.
// Logged at seams and on state changes, never per message.
import type { MsgId } from './messages.ts';

export type Level = 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'fatal';
export type Fields = Readonly<Record<string, unknown>>;

/** Writes one line. Fields must hold no payload and no secret; text from outside is escaped by the writer. */
export type Log = (level: Level, id: MsgId, fields?: Fields) => void;

export const nullLog: Log = () => {};

/**
 * At most one call per `periodMs` goes through; the next one that does carries how many were held back as `suppressed`.
 */
export function limitLog(log: Log, mono: () => number, periodMs: number): Log {
  let nextMs = 0;
  let suppressed = 0;
  return (level, id, fields) => {
    const nowMs = mono();
    if (nowMs < nextMs) {
      suppressed++;
      return;
    }
    nextMs = nowMs + periodMs;
    log(level, id, suppressed > 0 ? { ...fields, suppressed } : fields);
    suppressed = 0;
  };
}

/** Lines of one id in a window that are written; further ones are counted. */
const LINES = 100;
const WINDOW_MS = 10_000;

/**
 * A log in which lines of the given ids come `LINES` in ten seconds at most, each id by itself: what any stranger can
 * cause must not fill a disk. That lines are left out is told once a window, and their number with the next line.
 */
export function budgetLog(log: Log, mono: () => number, ids: ReadonlySet<MsgId>): Log {
  const windows = new Map<MsgId, { untilMs: number; lines: number; suppressed: number }>();
  return (level, id, fields) => {
    if (!ids.has(id)) {
      log(level, id, fields);
      return;
    }
    const nowMs = mono();
    let window = windows.get(id);
    if (window === undefined) {
      window = { untilMs: nowMs + WINDOW_MS, lines: 0, suppressed: 0 };
      windows.set(id, window);
    } else if (nowMs >= window.untilMs) {
      window.untilMs = nowMs + WINDOW_MS;
      window.lines = 0;
    }
    if (window.lines >= LINES) {
      if (window.suppressed++ === 0) log(level, 'GW-LOG-LIMIT', { id, lines: LINES, seconds: WINDOW_MS / 1000 });
      return;
    }
    window.lines++;
    log(level, id, window.suppressed > 0 ? { ...fields, suppressed: window.suppressed } : fields);
    window.suppressed = 0;
  };
}

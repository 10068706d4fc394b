// The seam to logging: level, stable id, fields. Stages get a Log; only the outermost layer knows pino.
// Logged at seams and on state changes, never per message.
import type { MsgId } from './messages.ts';

export type Level = 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'fatal';
export type Fields = Readonly<Record<string, unknown>>;

/** Writes one line. Fields must hold no payload and no secret; text from outside is escaped by the writer. */
export type Log = (level: Level, id: MsgId, fields?: Fields) => void;

export const nullLog: Log = () => {};

/** At most one call per `periodMs` goes through; the next one that does carries how many were held back as `suppressed`. */
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

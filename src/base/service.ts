// What everything long-lived looks like: constructors assign, start() acts, stop() undoes in reverse.

export interface Service {
  start(): Promise<void>;
  /** Ends within `deadlineMs`, gracefully if that suffices. Safe to call twice. */
  stop(deadlineMs: number): Promise<void>;
}

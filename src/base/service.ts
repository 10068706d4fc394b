// What everything long-lived looks like: constructors assign, start() acts, stop() undoes in reverse.
// Obeyed by the gateway and what it starts; a part that is only stopped is a Part of gateway/running.ts.

export interface Service {
  start(): Promise<void>;
  /** Ends within `deadlineMs`, gracefully if that suffices. Safe to call twice. */
  stop(deadlineMs: number): Promise<void>;
}

// Answers that stay open (event streams): ended when their reader would not be let in any more. Used by app.ts. A user
// who is removed, or has another password or role, sees nothing after a few seconds, whatever he had open before.
import type { ServerResponse } from 'node:http';
import type { Clock, Timer } from '../base/clock.ts';

/** How long somebody who lost his right may go on reading. */
const LOOK_MS = 2000;

export class OpenStreams {
  private readonly clock: Clock;
  private readonly streams = new Map<ServerResponse, () => boolean>();
  private timer: Timer | null = null;

  constructor(clock: Clock) {
    this.clock = clock;
  }

  /** @param mayRead asked again and again while the response is open */
  watch(response: ServerResponse, mayRead: () => boolean): void {
    this.streams.set(response, mayRead);
    response.once('close', () => this.forget(response));
    this.timer ??= this.clock.every(LOOK_MS, () => this.look());
  }

  private look(): void {
    for (const [response, mayRead] of this.streams) if (!mayRead()) response.end();
  }

  private forget(response: ServerResponse): void {
    this.streams.delete(response);
    if (this.streams.size > 0) return;
    this.timer?.cancel();
    this.timer = null;
  }
}

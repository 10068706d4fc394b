// A start of the store that is under way: collects the packs the writer thread reads, until it has answered in one way
// or another. Made by commit.ts for each attempt. Decides nothing: what a damaged file means is the caller's matter.
import type { Pack } from './restore.ts';
import { Restorer } from './restore.ts';

/** What a start found. */
export interface Found {
  readonly restorer: Restorer;
  /** The steady time now; null: nothing is stored, and there is no room for a file. */
  readonly steadyMs: number | null;
}

export class Opening {
  /** What was read, or null when the file is damaged. */
  readonly answer: Promise<Found | null>;
  private readonly restorer = new Restorer();
  private resolve: (found: Found | null) => void = () => {};
  private reject: (error: unknown) => void = () => {};

  constructor() {
    this.answer = new Promise((resolve, reject) => {
      this.resolve = resolve;
      this.reject = reject;
    });
  }

  add(pack: Pack): void {
    this.restorer.add(pack);
  }

  loaded(steadyMs: number): void {
    this.resolve({ restorer: this.restorer, steadyMs });
  }

  /** There is no file, and no room for one. */
  nothing(): void {
    this.resolve({ restorer: this.restorer, steadyMs: null });
  }

  damaged(): void {
    this.resolve(null);
  }

  fail(error: unknown): void {
    this.reject(error);
  }
}

// What an import has to tell: what is changed or left out, what is refused because security would be weaker, what is
// wrong. Filled by the imports in config/mosquitto/ and config/nanomq/, given out by config/converting.ts. Holds no
// values that may be secret.
import type { Position, Problem } from './problem.ts';

/** Lines about one import, in the order they were found. */
export class Report {
  /** Carried over with another meaning, or left out: each with its consequence. */
  readonly changes: Problem[] = [];
  /** What would weaken security; nothing is written unless that is asked for. */
  readonly refused: Problem[] = [];
  /** The same, where asking does not help. */
  readonly impossible: Problem[] = [];
  /** What the other broker does not start with either, and has no plain meaning. */
  readonly wrong: Problem[] = [];
  private readonly needless: { at: Position; key: string }[] = [];

  change(at: Position, key: string, message: string): void {
    this.changes.push({ at, key, message });
  }

  /** @param consequence what holds without it */
  refuse(at: Position, key: string, consequence: string): void {
    this.refused.push({ at, key, message: `cannot be carried over: ${consequence}` });
  }

  never(at: Position, key: string, message: string): void {
    this.impossible.push({ at, key, message });
  }

  invalid(at: Position, key: string, message: string): void {
    this.wrong.push({ at, key, message });
  }

  /** Makes no difference to any client. */
  cosmetic(at: Position, key: string): void {
    this.needless.push({ at, key });
  }

  /** All lines to print; one for everything cosmetic. */
  lines(): Problem[] {
    return [...this.changes, ...this.cosmetics()];
  }

  private cosmetics(): Problem[] {
    if (this.needless.length === 0) return [];
    const names = [...new Set(this.needless.map(({ key }) => key))];
    const message = `left out, no client sees a difference: ${names.join(', ')}`;
    return [{ at: this.needless[0].at, key: 'needless here', message }];
  }
}

// What a fuzz target is: test/fuzz/<decoder>.ts exports one as `target`; test/fuzz/run.ts runs them for as long as it is told.
import type { Random } from './random.ts';

export interface FuzzTarget {
  /** One input, made from `random` alone; throws when the decoder does what it must not. */
  once(random: Random): void | Promise<void>;
}

// Configured features that this version does not run yet: one row each, deleted when the feature arrives.
// `tidegate check` prints them as warnings, `tidegate start` refuses with CFG-NOT-BUILT, unless a row only warns.
// Called by cli/check.ts and gateway/gateway.ts. Data and predicates over Config, nothing else.
import type { Config } from './config.ts';
import type { Position, Problem } from './problem.ts';

export interface MissingFeature extends Problem {
  /** Such a configuration starts all the same: NanoMQ's files start unchanged. */
  readonly warnOnly: boolean;
}

interface Row {
  readonly key: string;
  readonly text: string;
  readonly warnOnly?: boolean;
  /** Where it is asked for; empty = it is not. */
  readonly used: (config: Config) => readonly Position[];
}

const ROWS: readonly Row[] = [];

/** What the configuration asks for in vain, in the order of the table. */
export function missingFeatures(config: Config): MissingFeature[] {
  return ROWS.flatMap(({ key, text, warnOnly = false, used }) =>
    used(config).map((at) => ({ at, key, message: text, warnOnly })),
  );
}

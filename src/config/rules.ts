// The effective configuration of the rules, as config.ts hands it out. Made by config/build/rules.ts; read by
// gateway/rules.ts. Types alone. Keys, their types and texts stand in config/schema/rules.ts.
import type { Position } from './problem.ts';
import type { Effective } from './schema/effective.ts';
import type { ValueOf } from './schema/key.ts';
import type { RULE } from './schema/rules.ts';

export type RuleConfig = Effective<ValueOf<typeof RULE>> & {
  readonly name: string;
  /** NanoMQ's SQL: what is missing is left out or false, and no error. */
  readonly lenient: boolean;
  /** Where the keys with expressions and topics were written. */
  readonly places: Readonly<Record<string, Position>>;
  readonly source: Position;
};

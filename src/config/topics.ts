// The effective configuration of topics, payload checks and quotas, as config.ts hands it out. Made by
// config/build/topics.ts, handed on by config.ts. Types alone. Keys, their types and texts stand in
// config/schema/topics.ts.
import type { Position } from './problem.ts';
import type { Effective } from './schema/effective.ts';
import type { ValueOf } from './schema/key.ts';
import type { QUOTAS } from './schema/quotas.ts';
import type { TOPICS, VALIDATION } from './schema/topics.ts';

export type TopicsConfig = Effective<ValueOf<typeof TOPICS>>;

export type ValidationConfig = Effective<ValueOf<(typeof VALIDATION)['item']>> & {
  readonly name: string;
  /** Where its schema was written. */
  readonly source: Position;
};

export type QuotaConfig = Effective<ValueOf<(typeof QUOTAS)['item']>> & { readonly name: string };

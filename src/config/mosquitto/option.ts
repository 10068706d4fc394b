// What a row of the tables of mosquitto.conf says: where a setting belongs, how its value is read, what becomes of it
// here. The tables (general.ts, listener.ts, bridge.ts) are the one place that knows all options; read.ts obeys them
// and scripts/moving.ts makes docs/from-mosquitto.md of them.

/** Whose setting it is: a listener's security stands for all listeners unless per_listener_settings is on. */
export type Scope = 'global' | 'listener' | 'security' | 'bridge' | 'plugin' | 'structure';

/**
 * carried: means the same here. changed: carried, with a difference that is told. lost: left out, the consequence is
 * told. cosmetic: left out, no client sees a difference. refused: without it security would be weaker.
 */
export type Verdict = 'carried' | 'changed' | 'lost' | 'cosmetic' | 'refused';

export interface Option {
  readonly key: string;
  /** Older names of the same. */
  readonly aliases?: readonly string[];
  readonly scope: Scope;
  /** text: the rest of the line; words: read by whoever builds with it. */
  readonly kind: 'flag' | 'int' | 'text' | 'words';
  readonly verdict: Verdict;
  /** What it becomes here. */
  readonly to?: string;
  /** For changed: the difference. For lost and refused: what holds without it. For others: a remark, or ''. */
  readonly text: string;
  /** The value that says what holds anyway: nothing is told about it. */
  readonly harmless?: string;
  /** Numbers that mosquitto takes. */
  readonly min?: number;
  readonly max?: number;
  /** Not in 2.0. */
  readonly since?: '2.1';
}

type More = Omit<Option, 'key' | 'scope' | 'kind' | 'verdict' | 'text'>;

/** Rows of one scope, in short: verdict(key, kind, text, more). */
export function rows(scope: Scope) {
  const row =
    (verdict: Verdict) =>
    (key: string, kind: Option['kind'], text: string, more: More = {}): Option => ({
      key,
      scope,
      kind,
      verdict,
      text,
      ...more,
    });
  return {
    carried: row('carried'),
    changed: row('changed'),
    lost: row('lost'),
    cosmetic: row('cosmetic'),
    refused: row('refused'),
  };
}

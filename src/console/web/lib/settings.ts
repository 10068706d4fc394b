// The effective configuration beside its defaults, key by key. Pure; used by the configuration page and its tests.

export interface KeyInfo {
  readonly key: string;
  readonly type: string;
  readonly text: string;
  readonly default?: unknown;
  readonly unit: string | null;
  readonly restart: boolean;
  readonly secret: boolean;
}

export interface Setting {
  /** As it can be set: "mqtt.max_packet_size". */
  readonly path: string;
  readonly section: string;
  readonly value: unknown;
  /** null: the schema does not know it. */
  readonly info: KeyInfo | null;
  readonly differs: boolean;
}

/**
 * Keys of the schema by pattern: names that users choose are `*`, and may be left out where a block stands for itself.
 */
export class KeyBook {
  private readonly exact = new Map<string, KeyInfo>();

  constructor(keys: readonly KeyInfo[]) {
    for (const info of keys) this.exact.set(info.key, info);
  }

  find(path: readonly string[]): KeyInfo | null {
    const direct = this.exact.get(path.join('.'));
    if (direct !== undefined) return direct;
    for (let i = 1; i < path.length; i++) {
      const named = this.exact.get([...path.slice(0, i), '*', ...path.slice(i + 1)].join('.'));
      if (named !== undefined) return named;
      const unnamed = this.exact.get([...path.slice(0, i), '*', ...path.slice(i)].join('.'));
      if (unnamed !== undefined) return unnamed;
    }
    return null;
  }
}

function isBlock(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

export function equal(a: unknown, b: unknown): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}

/** Every value of the tree, blocks opened, lists kept whole. */
export function settings(tree: Readonly<Record<string, unknown>>, book: KeyBook): Setting[] {
  const found: Setting[] = [];
  const walk = (value: unknown, path: readonly string[]): void => {
    const info = book.find(path);
    if (info === null && isBlock(value)) {
      for (const [name, member] of Object.entries(value)) walk(member, [...path, name]);
      return;
    }
    // A block that is off, and keys that only other files have, tell nothing.
    if (info === null && value === null) return;
    const known = info !== null && 'default' in info;
    found.push({
      path: path.join('.'),
      section: path[0] ?? '',
      value,
      info,
      differs: known ? !equal(info.default, value) : true,
    });
  };
  walk(tree, []);
  return found;
}

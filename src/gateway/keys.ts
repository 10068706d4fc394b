// The configuration's schema as a flat list of keys, for the console. Given to console/ by console.ts; called only when
// somebody asks. Defaults are shown in the form that `check --print` shows values in, so that both can be compared.
import type { Fields, Key } from '../config/schema/key.ts';
import { SECTIONS } from '../config/schema/schema.ts';
import { DEFAULTS, Sink } from '../config/sink.ts';
import type { ConfigKey, Json } from '../console/console.ts';

function shownDefault(key: Key<unknown>): Json | undefined {
  const sink = new Sink();
  const value = key.missing(DEFAULTS, '', sink);
  if (value === undefined || sink.problems.length > 0) return undefined;
  return key.show(value, true) as Json | undefined;
}

function walk(fields: Fields, prefix: string, found: ConfigKey[]): void {
  for (const [name, key] of Object.entries(fields)) {
    if (key.doc.ignored !== true) add(key, prefix === '' ? name : `${prefix}.${name}`, found);
  }
}

function add(key: Key<unknown>, path: string, found: ConfigKey[]): void {
  const { inside } = key;
  if (inside?.kind === 'fields') walk(inside.fields, path, found);
  else if (inside?.kind === 'named') add(inside.item, `${path}.*`, found);
  else if (inside?.kind === 'list' && inside.item.inside?.kind === 'fields') add(inside.item, `${path}.[]`, found);
  else {
    const { type, text, unit = null, restart = false, secret = false } = key.doc;
    const fallback = shownDefault(key);
    found.push({
      key: path,
      type,
      text,
      unit,
      restart,
      secret,
      ...(fallback === undefined ? {} : { default: fallback }),
    });
  }
}

/** Every key that holds a value, in the order of the reference. */
export function configKeys(): readonly ConfigKey[] {
  const found: ConfigKey[] = [];
  walk(SECTIONS, '', found);
  return found;
}

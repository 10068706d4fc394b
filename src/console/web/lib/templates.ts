// Messages that somebody publishes again and again, kept by name in the browser. Used by pages/publish.tsx.
import { remember, remembered } from './store.ts';

/** The fields of the form, as they are typed. */
export type Template = Readonly<Record<string, string>>;

const KEY = 'publish.templates';
const MOST = 50;

/** What is kept; anything of another shape is left out. */
export function templates(): ReadonlyMap<string, Template> {
  const found = new Map<string, Template>();
  try {
    const kept: unknown = JSON.parse(remembered(KEY, '{}'));
    if (typeof kept !== 'object' || kept === null) return found;
    for (const [name, fields] of Object.entries(kept))
      if (
        typeof fields === 'object' &&
        fields !== null &&
        Object.values(fields).every((one) => typeof one === 'string')
      )
        found.set(name, fields as Template);
  } catch {
    // What cannot be read is not there.
  }
  return found;
}

function keep(all: ReadonlyMap<string, Template>): void {
  remember(KEY, JSON.stringify(Object.fromEntries([...all].slice(-MOST))));
}

export function keepTemplate(name: string, fields: Template): void {
  keep(new Map([...templates(), [name, fields]]));
}

export function dropTemplate(name: string): void {
  const all = new Map(templates());
  all.delete(name);
  keep(all);
}

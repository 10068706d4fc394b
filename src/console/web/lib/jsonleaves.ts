// The single values of a JSON document by their paths, to show what has changed and to draw numbers. Pure.

export interface Leaf {
  /** "a.b.0"; "" = the document itself. */
  readonly path: string;
  readonly value: string | number | boolean | null;
}

const MOST_LEAVES = 100;
const DEEPEST = 12;

/** null: the text is no JSON. */
export function leavesOf(text: string): Leaf[] | null {
  let document: unknown;
  try {
    document = JSON.parse(text);
  } catch {
    return null;
  }
  const leaves: Leaf[] = [];
  const walk = (value: unknown, path: string, depth: number): void => {
    if (leaves.length >= MOST_LEAVES || depth > DEEPEST) return;
    if (typeof value === 'object' && value !== null)
      for (const [key, inner] of Object.entries(value)) walk(inner, path === '' ? key : `${path}.${key}`, depth + 1);
    else leaves.push({ path, value: value as Leaf['value'] });
  };
  walk(document, '', 0);
  return leaves;
}

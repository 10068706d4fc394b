// The request target: checked before any router sees it. Called by app.ts. A path that is not plain is refused, never
// repaired. Source: RFC 3986 sections 2.1 (escapes) and 3.3 (path), RFC 9112 section 3.2.1 (origin form).

export interface Target {
  /** As sent, still escaped. */
  readonly path: string;
  /** Decoded once; for looking up pages. */
  readonly decoded: string;
  /** Without the question mark, still escaped. */
  readonly query: string;
}

/** null: not origin form, bad escapes, control characters, a backslash, an empty or dot segment. */
export function readTarget(url: string): Target | null {
  const mark = url.indexOf('?');
  const path = mark < 0 ? url : url.slice(0, mark);
  const query = mark < 0 ? '' : url.slice(mark + 1);
  if (!path.startsWith('/') || path.includes('\\') || path.includes('//')) return null;
  let decoded: string;
  try {
    decoded = decodeURIComponent(path);
    decodeURIComponent(query);
  } catch {
    return null;
  }
  // Dot segments in any spelling: a path is compared as it stands, so one with dots is a mistake or an attack.
  for (const segment of path.split('/')) {
    const plain = decodeURIComponent(segment);
    if (plain === '.' || plain === '..' || plain.includes('\0')) return null;
  }
  return { path, decoded, query };
}

/** The parameters of a query; a name that comes twice or an unknown one is returned as the problem. */
export function readQuery(query: string, known: ReadonlySet<string>): ReadonlyMap<string, string> | string {
  const found = new Map<string, string>();
  if (query === '') return found;
  for (const [name, value] of new URLSearchParams(query)) {
    if (!known.has(name)) return `there is no ${name}`;
    if (found.has(name)) return `${name} comes twice`;
    found.set(name, value);
  }
  return found;
}

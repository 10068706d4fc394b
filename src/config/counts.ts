// Counted repetitions of a regular expression written out: `a{2,3}` becomes `a?aa`. V8's linear engine runs no count
// above 16, and none inside another above that; written out it runs them in the same bounded time. Used by pattern.ts.
// Pure. A group keeps its number and name: only the last copy captures, which is the one whose text a count would have
// captured.

/**
 * Copies of all counts of a pattern together: each is a state of the engine, and time is states by length of the text.
 */
const MOST_COPIES = 512;

const ESCAPE = /\\(?:u\{[0-9a-fA-F]+\}|u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|c[a-zA-Z]|[pPk](?:\{[^}]*\}|<[^>]*>)|[\s\S])/y;
const COUNT = /\{(\d{1,6})(?:(,)(\d{0,6}))?\}(\??)/y;
const SIMPLE = /[*+?]\??/y;

/** The pattern without counts, or null where they come to too much. `source` compiles without the linear engine. */
export function writeOut(source: string): string | null {
  const reader = { source, at: 0, copies: 0 };
  const out = alternatives(reader);
  return out === null || reader.at < source.length ? null : out;
}

interface Reader {
  readonly source: string;
  at: number;
  copies: number;
}

/** Up to the end, or the parenthesis that closes the group. */
function alternatives(reader: Reader): string | null {
  let out = '';
  while (reader.at < reader.source.length && reader.source[reader.at] !== ')') {
    if (reader.source[reader.at] === '|') {
      out += '|';
      reader.at++;
      continue;
    }
    const copiesBefore = reader.copies;
    const atom = readAtom(reader);
    if (atom === null) return null;
    const repeated = repetition(reader, atom, reader.copies - copiesBefore);
    if (repeated === null) return null;
    out += repeated;
  }
  return out;
}

/** One character, escape, class or group. */
function readAtom(reader: Reader): string | null {
  const { source, at } = reader;
  if (source[at] === '(') {
    const opening = /^\((?:\?(?::|=|!|<=|<!|<[^>]*>))?/.exec(source.slice(at))?.[0] ?? '(';
    reader.at += opening.length;
    const inside = alternatives(reader);
    if (inside === null || source[reader.at] !== ')') return null;
    reader.at++;
    return `${opening}${inside})`;
  }
  if (source[at] === '[') {
    for (reader.at++; source[reader.at] !== ']'; ) {
      if (reader.at >= source.length) return null;
      reader.at += source[reader.at] === '\\' ? 2 : 1;
    }
    reader.at++;
    return source.slice(at, reader.at);
  }
  const escaped = source[at] === '\\' ? found(ESCAPE, source, at)?.[0] : undefined;
  const atom = escaped ?? source[at];
  reader.at += atom.length;
  return atom;
}

function found(pattern: RegExp, source: string, at: number): RegExpExecArray | null {
  pattern.lastIndex = at;
  return pattern.exec(source);
}

/** The atom with what follows it, a count written out. @param inner copies that it holds already */
function repetition(reader: Reader, atom: string, inner: number): string | null {
  const simple = found(SIMPLE, reader.source, reader.at)?.[0];
  if (simple !== undefined) {
    reader.at += simple.length;
    return atom + simple;
  }
  const count = found(COUNT, reader.source, reader.at);
  if (count === null) return atom;
  reader.at += count[0].length;
  const [, low, comma, high, lazy] = count;
  const least = Number(low);
  const most = comma === undefined ? least : high === '' ? Number.POSITIVE_INFINITY : Number(high);
  const times = most === Number.POSITIVE_INFINITY ? Math.max(1, least) : most;
  reader.copies += times * Math.max(1, inner) - inner;
  if (reader.copies > MOST_COPIES) return null;
  return copies(atom, least, most, lazy);
}

function copies(atom: string, least: number, most: number, lazy: string): string {
  const plain = withoutCapture(atom);
  if (most === 0) return '(?:)';
  if (most === Number.POSITIVE_INFINITY)
    return least === 0 ? `${atom}*${lazy}` : `${plain.repeat(least - 1)}${atom}+${lazy}`;
  const optional = `${plain}?${lazy}`;
  if (least === 0) return `(?:${optional.repeat(most - 1)}${atom})?${lazy}`;
  return `${optional.repeat(most - least)}${plain.repeat(least - 1)}${atom}`;
}

/** The same with groups that capture nothing. */
function withoutCapture(atom: string): string {
  if (!atom.includes('(')) return atom;
  let out = '';
  let inClass = false;
  for (let at = 0; at < atom.length; ) {
    const escaped = atom[at] === '\\' ? found(ESCAPE, atom, at)?.[0] : undefined;
    if (escaped !== undefined) {
      out += escaped;
      at += escaped.length;
      continue;
    }
    if (atom[at] === '[') inClass = true;
    else if (atom[at] === ']') inClass = false;
    const group = atom[at] === '(' && !inClass ? /^\((?:\?<[^=!>][^>]*>|(?!\?))/.exec(atom.slice(at))?.[0] : undefined;
    out += group === undefined ? atom[at] : '(?:';
    at += group?.length ?? 1;
  }
  return out;
}

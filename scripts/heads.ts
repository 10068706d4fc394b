// Checks what the heads of files in src/ say about other files: every file they name is there, and every "called by
// X.ts", "made by X.ts" or "used by folder/" is backed by an import. Called by layers.ts. Pure. A head is the block of
// // lines a file opens with.
import path from 'node:path';

/** What the check needs of one file of src/. */
export interface Headed {
  /** Path below src/. */
  readonly file: string;
  readonly source: string;
  /** Paths below src/ of all imports: values, types and lazy ones. */
  readonly targets: readonly string[];
}

export interface HeadBreach {
  readonly file: string;
  readonly line: number;
  readonly text: string;
}

/** Verbs whose "by" names importers. "Asked by" is for calls through an interface of a seam, which no import shows. */
const CLAIM =
  /\b(?:[Cc]alled|[Uu]sed|[Mm]ade|[Bb]uilt|[Rr]ead|[Oo]pened|[Oo]wned|[Ll]oaded|[Ss]tarted)(?: (?:only|once|whole|at [a-z-]+))* by ([^.;:()]*?)(?=[;:()]|\. |\.$|$| with |,? (?:and )?\w+ by |, (?:which|who|loaded|not|never|when|and nothing|for|whose)\b)/g;
/** A file or a folder with a slash at its end. */
const NAME = /(?:[a-z0-9]+\/)*[a-z0-9]+~ts\b|(?:[a-z0-9]+\/)+(?![\w*])/g;

/** The head without the map of a folder, which is made from other heads. */
function headOf(source: string): { readonly line: number; readonly text: string }[] {
  const lines = source.split('\n');
  const head: { line: number; text: string }[] = [];
  for (let i = lines[0]?.startsWith('#!') ? 1 : 0; lines[i]?.startsWith('//'); i++) {
    if (lines[i].startsWith('// Map (made by')) break;
    head.push({ line: i + 1, text: lines[i].slice(2).trim() });
  }
  return head;
}

/** The file of src/ that a name in the head of `from` means, or null. */
export function fileNamed(name: string, from: string, files: ReadonlySet<string>): string | null {
  for (let folder = path.posix.dirname(from); ; folder = path.posix.dirname(folder)) {
    const candidate = path.posix.join(folder, name);
    if (files.has(candidate)) return candidate;
    if (folder === '.') break;
  }
  return null;
}

/**
 * All breaches in `modules`. `others` are files outside src/ that heads may name (tests, scripts), as paths of the
 * project.
 */
export function checkHeads(modules: readonly Headed[], others: ReadonlySet<string> = new Set()): HeadBreach[] {
  const files = new Set(modules.map((m) => m.file));
  const importers = new Map<string, Set<string>>();
  for (const { file, targets } of modules)
    for (const target of targets) importers.set(target, (importers.get(target) ?? new Set()).add(file));
  const found: HeadBreach[] = [];
  for (const { file, source } of modules) {
    const head = headOf(source);
    for (const { line, text } of head) {
      for (const [name] of text.matchAll(/(?<![\w./*-])(?:[a-z0-9]+\/)*[a-z0-9]+\.ts\b/g)) {
        if (fileNamed(name, file, files) === null && !others.has(name))
          found.push({ file, line, text: `names ${name}, which is not there` });
      }
    }
    const joined = head
      .map(({ text }) => text)
      .join(' ')
      .replaceAll('.ts', '~ts');
    const mine = importers.get(file) ?? new Set<string>();
    for (const [, list] of joined.matchAll(CLAIM)) {
      for (const [raw] of list.matchAll(NAME)) {
        const name = raw.replaceAll('~ts', '.ts');
        if (!isBacked(name, file, files, mine))
          found.push({ file, line: 1, text: `is said to be used by ${name}, which does not import it` });
      }
    }
  }
  return found;
}

function isBacked(name: string, file: string, files: ReadonlySet<string>, importers: ReadonlySet<string>): boolean {
  if (name.startsWith('test/') || name.startsWith('scripts/')) return true;
  if (name.endsWith('/')) {
    for (const importer of importers) if (importer.startsWith(name) || importer.includes(`/${name}`)) return true;
    return false;
  }
  const named = fileNamed(name, file, files);
  return named === null || importers.has(named);
}

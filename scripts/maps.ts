// Writes the map of each folder of src/ into its seam file (folder/folder.ts): one line a file, taken from the first
// sentence of its head, so that both say the same. Run by `make docs`; with --check, as in `make check`, it fails when
// a map is out of date.
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

const WIDTH = 120;
const OPEN = '// Map (made by `make docs`):';

/** The first lines of a file that are comments, without their marks. */
function headOf(source: string): string[] {
  const lines = source.split('\n');
  const end = lines.findIndex((line) => !line.startsWith('//'));
  return lines.slice(0, end < 0 ? lines.length : end).map((line) => line.slice(2).trim());
}

/**
 * What a file is, in at most `room` characters: its first sentence, cut where a clause ends. Throws when even that is
 * too long.
 */
export function phraseOf(source: string, room: number): string {
  const paragraph = headOf(source);
  const blank = paragraph.indexOf('');
  const text = paragraph
    .slice(0, blank < 0 ? paragraph.length : blank)
    .join(' ')
    .replace(/ ~?!?\[MQTT-[\d.]+-\d+\]/g, '');
  const sentence = text.match(/^.*?(?=\.(?:\s|$)|$)/)?.[0] ?? '';
  if (sentence === '') throw new Error('has no head');
  if (sentence.length <= room) return sentence;
  const ends = [...sentence.matchAll(/: |; |, (?!and |or )| \(/g)]
    .map((end) => end.index)
    .filter((at) => at > 3 && at <= room);
  const open = (at: number): boolean =>
    sentence.slice(0, at).split('(').length > sentence.slice(0, at).split(')').length;
  const and = sentence.indexOf(', and ');
  const at = ends.filter((end) => !open(end)).at(-1) ?? (and > 0 && and <= room ? and : undefined);
  if (at === undefined)
    throw new Error(`opens with a sentence that has no clause of at most ${room} characters: ${sentence}`);
  return sentence.slice(0, at);
}

/** `seam` with the map of `files` (path below the folder to source) at the end of its head. */
export function withMap(seam: string, files: ReadonlyMap<string, string>): string {
  const names = [...files.keys()].sort((a, b) => depth(a) - depth(b) || (a < b ? -1 : 1));
  const column = Math.max(...names.map((name) => name.length)) + 2;
  const rows = names.map((name) => {
    try {
      return `//   ${name.padEnd(column)}${phraseOf(files.get(name) ?? '', WIDTH - 5 - column)}`;
    } catch (error) {
      throw new Error(`${name} ${(error as Error).message}`);
    }
  });
  const lines = seam.split('\n');
  let end = lines.findIndex((line) => !line.startsWith('//'));
  if (end < 0) end = lines.length;
  const old = lines.indexOf(OPEN);
  const keep = old >= 0 && old < end ? old : end;
  const head = lines.slice(0, keep);
  while (head.at(-1) === '//') head.pop();
  return [...head, ...(head.length > 0 ? ['//'] : []), OPEN, ...rows, ...lines.slice(end)].join('\n');
}

function depth(name: string): number {
  return name.split('/').length;
}

function sourcesBelow(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .map((name) => name.split(path.sep).join('/'))
    .filter((name) => /(?<!\.d)\.tsx?$/.test(name) && !name.startsWith('web/'))
    .sort();
}

function main(check: boolean): void {
  const src = path.join(path.dirname(path.dirname(fileURLToPath(import.meta.url))), 'src');
  const folders = readdirSync(src, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map((entry) => entry.name);
  const seams = folders.map((name): [string, string] => [name, `${name}.ts`]);
  seams.push(['console/web', 'main.tsx']);
  for (const [folder, seam] of seams) {
    const file = path.join(src, folder, seam);
    const where = `src/${folder}/${seam}`;
    try {
      const old = existsSync(file) ? readFileSync(file, 'utf8') : '';
      if (old === '') throw new Error('is missing: a folder opens with a file of its name');
      const others = sourcesBelow(path.join(src, folder)).filter((name) => name !== seam);
      const fresh = withMap(
        old,
        new Map(others.map((name) => [name, readFileSync(path.join(src, folder, name), 'utf8')])),
      );
      if (fresh === old) continue;
      if (check) throw new Error('has a map that is out of date: make docs');
      writeFileSync(file, fresh);
    } catch (error) {
      console.error(`${where} ${(error as Error).message}`);
      process.exitCode = 1;
    }
  }
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href)
  main(process.argv.includes('--check'));

// The mosquitto password file: `username:hash` lines. Called by realms.ts at start and reload; read whole before it
// replaces anything. Strict as mosquitto 2.1: a line that is no user stops the load and is named by file and line,
// never by its content. Comment lines begin with # in the first column; lines without a colon (blank ones too) are
// passed over, as mosquitto does.
import { type PasswordHash, parseHash } from '../base/passwordhash.ts';
import { lineError, readTextFile, type TextFile, trim } from './textfile.ts';

export interface PasswordEntry {
  readonly hash: PasswordHash;
  /** The hash as written: two files give a user the same password when these are equal. */
  readonly encoded: string;
  readonly line: number;
}

export interface PasswordFile {
  readonly path: string;
  readonly users: ReadonlyMap<string, PasswordEntry>;
  readonly mode: number;
}

/** A string cannot be longer on the wire (MQTT 5.0 section 1.5.4). */
const LONGEST_NAME_BYTES = 65535;

/** The two fields of a line: runs of colons are one separator, anything behind the second field is left out. */
function fields(line: string): [name: string, hash: string] {
  const parts = line.split(':').filter((part) => part !== '');
  return [trim(parts[0] ?? ''), trim(parts[1] ?? '')];
}

/** Reads the lines of a password file; throws AUTH-SOURCE with file and line for the first that is wrong. */
export function parsePasswordFile(file: TextFile): PasswordFile {
  const users = new Map<string, PasswordEntry>();
  for (let i = 0; i < file.lines.length; i++) {
    const text = file.lines[i];
    if (text.startsWith('#') || !text.includes(':')) continue;
    const line = i + 1;
    const [name, encoded] = fields(text);
    if (text.startsWith(':') || name === '') throw lineError(file.path, line, 'no user name');
    if (encoded === '') throw lineError(file.path, line, 'no password hash');
    if (Buffer.byteLength(name) > LONGEST_NAME_BYTES) throw lineError(file.path, line, 'the user name is too long');
    const hash = parseHash(encoded);
    if (typeof hash === 'string') throw lineError(file.path, line, hash);
    const twin = users.get(name);
    if (twin !== undefined) throw lineError(file.path, line, `the user of line ${twin.line} again`);
    users.set(name, { hash, encoded, line });
  }
  return { path: file.path, users, mode: file.mode };
}

/** Reads a password file from disk; throws AUTH-SOURCE naming path and line. */
export async function loadPasswordFile(path: string): Promise<PasswordFile> {
  return parsePasswordFile(await readTextFile(path));
}

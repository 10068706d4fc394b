// `tidegate passwd`: edits a password file in mosquitto's format, or one of SCRAM keys. Called through cli.ts. Whatever
// it does not edit keeps every byte: comments, blank lines, order, line ends, mode and owner. The file changes in one
// step (a new file is renamed over it) or not at all. $7$ entries get a 12-byte salt, which mosquitto 1.6, 2.0 and 2.1
// all read. Never prints a password or hash.
import { randomBytes } from 'node:crypto';
import { type FileHandle, open, realpath, rename, stat, unlink } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { Command } from 'commander';
import { DEFAULT_ITERATIONS, loadArgon2, makeArgon2, makePbkdf2 } from '../auth/hash.ts';
import { DEFAULT_SCRAM_ITERATIONS, METHOD, makeScram } from '../auth/scram.ts';
import { trim } from '../auth/textfile.ts';
import { GatewayError } from '../base/errors.ts';
import { looksHashed, MOST_ITERATIONS, parseHash } from '../base/passwordhash.ts';
import { systemErrorText } from '../base/systemerror.ts';
import type { Context, Io } from './cli.ts';
import { askPassword } from './secret.ts';
import { usage } from './usage.ts';

const HASHES = ['pbkdf2', 'argon2id', 'scram-sha-256'] as const;
type HashKind = (typeof HASHES)[number];

export interface PasswdOptions {
  readonly file: string;
  readonly user: string | null;
  readonly password: string | null;
  /** -c: make the file; it must not be there unless `force`. */
  readonly create: boolean;
  readonly force: boolean;
  /** -b: the password is on the command line. */
  readonly batch: boolean;
  /** -D: take the user out. */
  readonly remove: boolean;
  /** -U: hash the plain passwords of the file. */
  readonly upgrade: boolean;
  /** scram-sha-256 makes lines for auth.scram_file, a file of its own. */
  readonly hash: HashKind;
  readonly iterations: number | null;
}

const LONGEST_NAME_BYTES = 65535;
/** What mosquitto makes, readable for its owner alone. */
const NEW_MODE = 0o600;

function failed(text: string, cause?: unknown): GatewayError {
  return new GatewayError('CLI-FAILED', text, cause);
}

function checkUsage(options: PasswdOptions): void {
  const { create, force, batch, remove, upgrade, user, password, hash, iterations } = options;
  if (Number(create) + Number(remove) + Number(upgrade) > 1) throw usage('-c, -D and -U exclude each other');
  if (remove && batch) throw usage('-D takes no password, so no -b');
  if (force && !create) throw usage('--force goes with -c');
  if (upgrade !== (user === null)) throw usage(upgrade ? '-U takes only a file' : 'a user is missing');
  if (batch !== (password !== null))
    throw usage(batch ? '-b needs a password' : 'a password on the command line needs -b');
  const least = hash === 'pbkdf2' ? 1 : DEFAULT_SCRAM_ITERATIONS;
  if (iterations !== null && (hash === 'argon2id' || iterations < least || iterations > MOST_ITERATIONS)) {
    throw usage(
      `-I takes iterations: 1 to ${MOST_ITERATIONS} of pbkdf2, from ${DEFAULT_SCRAM_ITERATIONS} of scram-sha-256`,
    );
  }
  if (upgrade && hash === 'scram-sha-256') throw usage('-U hashes the passwords of a password file');
  if (user !== null) checkName(user);
}

/** What the file format cannot hold or MQTT cannot carry. */
function checkName(user: string): void {
  if (user === '' || user !== trim(user)) throw usage('a user name is not empty and has no blanks around it');
  if (user.includes(':')) throw usage('a user name holds no colon');
  if (user.startsWith('#')) throw usage('a user name does not begin with #, that is a comment in the file');
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
  if (/[\u0000-\u001f\u007f-\u009f]/.test(user)) throw usage('a user name holds no control characters');
  if (Buffer.byteLength(user) > LONGEST_NAME_BYTES) throw usage('the user name is too long');
}

/** The file as bytes in a string of Latin-1, one character a byte, so that nothing is lost whatever its encoding. */
interface Content {
  /** Where the bytes are: behind symbolic links. */
  readonly path: string;
  readonly text: string;
  readonly mode: number;
  readonly owner: { readonly uid: number; readonly gid: number } | null;
}

async function readContent(options: PasswdOptions): Promise<Content> {
  let handle: FileHandle;
  try {
    handle = await open(options.file, 'r');
  } catch (error) {
    const missing = error instanceof Error && 'code' in error && error.code === 'ENOENT';
    if (!missing || !options.create) {
      const hint = missing && options.user !== null && !options.remove ? ', -c makes it' : '';
      throw failed(`${options.file}: ${systemErrorText(error)}${hint}`, error);
    }
    return { path: options.file, text: '', mode: NEW_MODE, owner: null };
  }
  try {
    const found = await handle.stat();
    if (!found.isFile()) throw failed(`${options.file}: not a regular file`);
    if (options.create && !options.force) throw failed(`${options.file}: there already; --force replaces it`);
    const text = options.create ? '' : (await handle.readFile()).toString('latin1');
    const path = await realpath(options.file);
    return {
      path,
      text,
      mode: options.create ? NEW_MODE : found.mode & 0o7777,
      owner: { uid: found.uid, gid: found.gid },
    };
  } finally {
    await handle.close();
  }
}

async function unchanged(content: Content, options: PasswdOptions): Promise<boolean> {
  if (options.create) return true;
  const now = await readContent(options);
  return now.text === content.text && now.path === content.path;
}

/** Replaces the file in one step: a complete, synced new one is renamed over it. */
async function writeContent(content: Content, text: string, options: PasswdOptions): Promise<void> {
  const temporary = `${content.path}.${randomBytes(6).toString('hex')}.new`;
  const handle = await open(temporary, 'wx', NEW_MODE).catch((error: unknown) => {
    throw failed(`${dirname(content.path)}: ${systemErrorText(error)}`, error);
  });
  try {
    try {
      await handle.writeFile(Buffer.from(text, 'latin1'));
      await keepOwner(handle, content);
      await handle.chmod(content.mode);
      await handle.sync();
    } finally {
      await handle.close();
    }
    if (!(await unchanged(content, options))) throw failed(`${options.file}: changed by somebody else meanwhile`);
    await rename(temporary, content.path);
  } catch (error) {
    await unlink(temporary).catch(() => {});
    throw error instanceof GatewayError ? error : failed(`${content.path}: ${systemErrorText(error)}`, error);
  }
  await syncFolder(dirname(content.path));
}

async function keepOwner(handle: FileHandle, content: Content): Promise<void> {
  if (content.owner === null) return;
  const { uid, gid } = await handle.stat();
  if (uid !== content.owner.uid || gid !== content.owner.gid) await handle.chown(content.owner.uid, content.owner.gid);
}

/** Makes the rename durable; file systems that cannot sync a folder need not. */
async function syncFolder(path: string): Promise<void> {
  try {
    const handle = await open(path, 'r');
    await handle.sync().finally(() => handle.close());
  } catch {
    // The file itself is synced.
  }
}

/**
 * One line taken apart so that a field can be replaced and the rest stays: colons, blanks, ignored fields, carriage
 * return.
 */
interface Entry {
  readonly user: string;
  /** Up to the second field. */
  readonly head: string;
  /** The second field without the blanks around it. */
  readonly field: string;
  readonly tail: string;
}

function entryOf(line: string): Entry | null {
  if (line.startsWith('#')) return null;
  const parts = /^(:*([^:]+):+[\t-\r ]*)([^:]*)/.exec(line);
  if (parts === null) return null;
  const field = trim(parts[3]);
  return { user: trim(parts[2]), head: parts[1], field, tail: line.slice(parts[1].length + field.length) };
}

const BYTE_ORDER_MARK = '\u00ef\u00bb\u00bf';

/** Stored keys hold a colon: with `whole` everything behind the name is the field. */
function replaced(line: string, entry: Entry, hash: string, whole: boolean): string {
  if (!whole) return entry.head + hash + entry.tail;
  return `${entry.head}${hash}${line.endsWith('\r') ? '\r' : ''}`;
}

/**
 * Sets the hash of a user: in place where it stands, at the end where it does not. Further lines of the same user go.
 */
function setUser(text: string, user: string, hash: string, whole: boolean): string {
  let found = false;
  const lines: string[] = [];
  for (const line of text.split('\n')) {
    const entry = entryOf(line);
    if (entry === null || entry.user !== user) lines.push(line);
    else if (!found) lines.push(replaced(line, entry, hash, whole));
    if (entry?.user === user) found = true;
  }
  if (found) return lines.join('\n');
  const separator = text === '' || text.endsWith('\n') ? '' : '\n';
  return `${text}${separator}${user}:${hash}\n`;
}

function removeUser(text: string, user: string): string | null {
  const lines = text.split('\n');
  const kept = lines.filter((line) => entryOf(line)?.user !== user);
  return kept.length === lines.length ? null : kept.join('\n');
}

async function hashOf(options: PasswdOptions, password: Uint8Array): Promise<string> {
  if (password.length === 0) throw failed('an empty password would let nobody in');
  if (password.includes(0)) throw failed('a password holds no NUL character');
  if (options.hash === 'pbkdf2') return makePbkdf2(password, options.iterations ?? DEFAULT_ITERATIONS);
  if (options.hash === 'scram-sha-256') {
    return (await makeScram(password, options.iterations ?? DEFAULT_SCRAM_ITERATIONS)).text;
  }
  const argon2 = await loadArgon2();
  if (argon2 === null) throw failed('argon2id needs the package @node-rs/argon2, which is not installed');
  return makeArgon2(password, argon2);
}

/** Hashes every plain password; what is hashed, or looks like a damaged hash, stays. */
async function upgrade(content: Content, options: PasswdOptions, io: Io): Promise<string> {
  const lines = content.text.split('\n');
  let count = 0;
  for (let i = 0; i < lines.length; i++) {
    const entry = entryOf(lines[i]);
    if (entry === null) continue;
    if (looksHashed(entry.field)) {
      const wrong = parseHash(entry.field);
      if (typeof wrong === 'string') io.stderr.write(`${options.file}:${i + 1}: left as it is: ${wrong}\n`);
      continue;
    }
    // A plain password may hold colons: everything behind the first one is meant.
    const password = trim(lines[i].slice(entry.head.length));
    if (password === '') throw failed(`${options.file}:${i + 1}: no password`);
    const end = lines[i].endsWith('\r') ? '\r' : '';
    lines[i] = entry.head + (await hashOf(options, Buffer.from(password, 'latin1'))) + end;
    count++;
  }
  io.stdout.write(`${count} ${count === 1 ? 'password' : 'passwords'} hashed\n`);
  return lines.join('\n');
}

/** A file holds entries of one kind: password_file or scram_file. */
function checkKind(content: Content, options: PasswdOptions): void {
  const scram = options.hash === 'scram-sha-256';
  for (const line of content.text.split('\n')) {
    const field = entryOf(line)?.field ?? '';
    if (scram ? looksHashed(field) : field.startsWith(`${METHOD}$`)) {
      throw failed(`${options.file}: holds ${scram ? 'password hashes' : 'SCRAM keys'}, these are files of their own`);
    }
  }
}

async function edited(content: Content, options: PasswdOptions, io: Io): Promise<string> {
  const user = options.user === null ? null : Buffer.from(options.user).toString('latin1');
  if (user === null) return upgrade(content, options, io);
  if (options.remove) {
    const text = removeUser(content.text, user);
    if (text === null) throw failed(`${options.file}: no such user`);
    return text;
  }
  checkKind(content, options);
  const password = options.password === null ? await askPassword(io) : Buffer.from(options.password);
  const mark = content.text.startsWith(BYTE_ORDER_MARK) ? BYTE_ORDER_MARK : '';
  return (
    mark +
    setUser(content.text.slice(mark.length), user, await hashOf(options, password), options.hash === 'scram-sha-256')
  );
}

/** Does one edit; 0 when it is done. Throws CLI-USAGE or CLI-FAILED and has changed nothing then. */
export async function passwd(options: PasswdOptions, io: Io): Promise<number> {
  checkUsage(options);
  const content = await readContent(options);
  const text = await edited(content, options, io);
  if (text !== content.text || options.create) await writeContent(content, text, options);
  const { mode } = await stat(options.file);
  if ((mode & 0o007) !== 0) io.stderr.write(`${options.file}: every user of this machine can read or change it\n`);
  return 0;
}

function numberOf(text: string): number {
  return /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN;
}

interface Flags {
  readonly c?: true;
  readonly force?: true;
  readonly b?: true;
  readonly D?: true;
  readonly U?: true;
  readonly H: string;
  readonly I?: string;
}

/** Adds the command to the program. */
export function registerPasswd(program: Command, context: Context): void {
  program
    .command('passwd')
    .description('edit a password file in the format of mosquitto')
    .argument('<file>')
    .argument('[user]')
    .argument('[password]', 'only with -b')
    .option('-c', 'make the file; it must not be there')
    .option('--force', 'with -c: replace a file that is there')
    .option('-b', 'take the password from the command line (others can see it there)')
    .option('-D', 'take the user out of the file')
    .option('-U', 'hash the plain passwords of the file')
    .option('-H <hash>', 'pbkdf2 or argon2id; scram-sha-256 for a file of auth.scram_file', 'pbkdf2')
    .option('-I <iterations>', `of pbkdf2 (default: ${DEFAULT_ITERATIONS})`)
    .passThroughOptions()
    .action(async (file: string, user: string | undefined, password: string | undefined, flags: Flags) => {
      const hash = HASHES.find((one) => one === flags.H);
      if (hash === undefined) throw usage(`-H takes ${HASHES.join(', ')}`);
      const iterations = flags.I === undefined ? null : numberOf(flags.I);
      if (Number.isNaN(iterations)) throw usage('-I takes a whole number');
      const options: PasswdOptions = {
        file,
        user: user ?? null,
        password: password ?? null,
        create: flags.c === true,
        force: flags.force === true,
        batch: flags.b === true,
        remove: flags.D === true,
        upgrade: flags.U === true,
        hash,
        iterations,
      };
      context.exit(await passwd(options, context.io));
    });
}

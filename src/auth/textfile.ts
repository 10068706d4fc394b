// A file of users or rights as lines of text, read whole and bounded. Called by passwordfile.ts, aclfile.ts and
// scram.ts. It must never hand out part of a file: whatever cannot be read entirely is an error that names the path.

import { constants } from 'node:fs';
import { open } from 'node:fs/promises';
import { errorText, GatewayError } from '../base/errors.ts';

/** Some 300,000 users with the longest hashes, small enough to be read at once. */
const LARGEST_BYTES = 64 * 1024 * 1024;

export interface TextFile {
  readonly path: string;
  /** Without their line feeds; a carriage return before it stays. The last line may be empty. */
  readonly lines: readonly string[];
  /** Permission bits. */
  readonly mode: number;
}

/**
 * An error that names file and line, in the form editors understand. Never shows the line's text: it may hold a secret.
 */
export function lineError(path: string, line: number, text: string): GatewayError {
  return new GatewayError('AUTH-SOURCE', `${path}:${line}: ${text}`);
}

const WHY: ReadonlyMap<string, string> = new Map([
  ['ENOENT', 'no such file'],
  ['ENOTDIR', 'no such file'],
  ['EACCES', 'permission denied'],
  ['EPERM', 'permission denied'],
  ['ELOOP', 'too many symbolic links'],
]);

function fileError(path: string, error: unknown): GatewayError {
  if (error instanceof GatewayError) return error;
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  return new GatewayError('AUTH-SOURCE', `${path}: ${WHY.get(code) ?? errorText(error)}`, error);
}

async function readBytes(path: string): Promise<{ bytes: Buffer; mode: number }> {
  // Non-blocking, so that a named pipe does not hold up the start for ever. Symbolic links are followed: secrets are
  // mounted as such.
  const handle = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    const stat = await handle.stat();
    if (!stat.isFile()) throw new GatewayError('AUTH-SOURCE', `${path}: not a regular file`);
    if (stat.size > LARGEST_BYTES) {
      throw new GatewayError('AUTH-SOURCE', `${path}: larger than ${LARGEST_BYTES} bytes`);
    }
    return { bytes: await handle.readFile(), mode: stat.mode & 0o7777 };
  } finally {
    await handle.close();
  }
}

function lineOfBadText(path: string, bytes: Buffer): GatewayError {
  const strict = new TextDecoder('utf-8', { fatal: true });
  let line = 1;
  for (let start = 0; start <= bytes.length; line++) {
    const feed = bytes.indexOf(10, start);
    const end = feed < 0 ? bytes.length : feed;
    try {
      strict.decode(bytes.subarray(start, end));
    } catch {
      break;
    }
    start = end + 1;
  }
  return lineError(path, line, 'not UTF-8 text');
}

/** Splits the bytes of a file; throws AUTH-SOURCE with the line when they are no UTF-8 text or hold a NUL. */
export function textFile(path: string, bytes: Buffer, mode: number): TextFile {
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw lineOfBadText(path, bytes);
  }
  const lines = text.split('\n');
  if (text.includes('\0')) {
    throw lineError(path, lines.findIndex((line) => line.includes('\0')) + 1, 'holds a NUL character');
  }
  return { path, lines, mode };
}

/** Reads a whole file; throws AUTH-SOURCE naming the path (and line) when that is not possible. */
export async function readTextFile(path: string): Promise<TextFile> {
  try {
    const { bytes, mode } = await readBytes(path);
    return textFile(path, bytes, mode);
  } catch (error) {
    throw fileError(path, error);
  }
}

/**
 * What C calls white space: blank, \t, \n, \v, \f, \r. Nothing else is trimmed, so names may hold any other character.
 */
function isSpace(code: number): boolean {
  return code === 32 || (code >= 9 && code <= 13);
}

export function trimEnd(text: string): string {
  let end = text.length;
  while (end > 0 && isSpace(text.charCodeAt(end - 1))) end--;
  return end === text.length ? text : text.slice(0, end);
}

export function trim(text: string): string {
  let start = 0;
  while (start < text.length && isSpace(text.charCodeAt(start))) start++;
  return trimEnd(start === 0 ? text : text.slice(start));
}

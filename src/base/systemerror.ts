// What the operating system said, in words. Called by cli/, where one line on standard error is all there is, and by
// whatever listens; other logs and REST keep errorText(), whose technical form they can be searched for. Must not
// guess: a code that is not in the table stays as the system wrote it. Source: errno(3), getaddrinfo(3).
import { errorText } from './errors.ts';

const WORDS: ReadonlyMap<string, string> = new Map([
  ['ENOENT', 'no such file or folder'],
  ['ENOTDIR', 'no such file or folder'],
  ['EACCES', 'permission denied'],
  ['EPERM', 'permission denied'],
  ['EISDIR', 'this is a folder'],
  ['ELOOP', 'symbolic links in a circle'],
  ['ENOSPC', 'the disk is full'],
  ['EROFS', 'the file system is read-only'],
  ['ECONNREFUSED', 'connection refused'],
  ['ECONNRESET', 'the connection was reset'],
  ['EPIPE', 'the other side has closed the connection'],
  ['ETIMEDOUT', 'no answer in time'],
  ['EHOSTUNREACH', 'no way to this host'],
  ['ENETUNREACH', 'no way to this network'],
  ['EADDRNOTAVAIL', 'not an address of this machine'],
  ['ENOTFOUND', 'no such host name'],
  ['EAI_AGAIN', 'the name cannot be resolved now'],
]);

/** What differs for an address or a socket file that is to be listened at. */
const LISTENING: ReadonlyMap<string, string> = new Map([
  ['EADDRINUSE', 'address already in use'],
  ['EACCES', 'no permission'],
  ['ENOENT', 'no such folder'],
]);

function describe(error: unknown, special: ReadonlyMap<string, string> | null): string {
  const first: unknown = error instanceof AggregateError ? (error.errors[0] ?? error) : error;
  const code = first instanceof Error && 'code' in first ? String(first.code) : '';
  const words = special?.get(code) ?? WORDS.get(code);
  return words === undefined ? errorText(first) || code : `${words} (${code})`;
}

/** Why nobody can be listened for there, in words: "address already in use (EADDRINUSE)". */
export function listenErrorText(error: unknown): string {
  return describe(error, LISTENING);
}

/**
 * Why a file or a connection could not be had, in words, with the code of the system behind them: "no such file
 * (ENOENT)".
 */
export function systemErrorText(error: unknown): string {
  return describe(error, null);
}

// SP URLs: which transport, where, and what is wrong with one that cannot work.
// Called by the drivers, the supervisor and cli/. Pure: resolves no name and opens nothing.
// Sources: nng's URL forms (nng_tcp, nng_ipc, nng_abstract, nng_inproc, nng_tls, nng_ws).
import { GatewayError } from '../base/errors.ts';

export type SpUrl =
  | { readonly scheme: 'tcp' | 'tls+tcp'; readonly host: string; readonly port: number }
  | { readonly scheme: 'ws' | 'wss'; readonly host: string; readonly port: number; readonly path: string }
  | { readonly scheme: 'ipc'; readonly path: string }
  | { readonly scheme: 'abstract' | 'inproc' | 'program'; readonly name: string };

export const SCHEMES: readonly string[] = ['tcp', 'ipc', 'abstract', 'inproc', 'tls+tcp', 'ws', 'wss', 'program'];

/** sun_path has 108 bytes; a path needs its NUL, an abstract name the NUL in front. */
const LONGEST_UNIX_NAME = 107;
/** DNS names end at 253 characters, addresses long before. */
const LONGEST_HOST = 253;
const LONGEST_URL = 2048;

function wrong(url: string, why: string): GatewayError {
  return new GatewayError('SP-URL', `"${url.slice(0, 200)}": ${why}`);
}

/**
 * Reads an SP URL. "tcp://*:9900" gives the host "*": every address of this machine. Port 0 asks a listener for any
 * free one. Throws GatewayError SP-URL with what to write instead.
 */
export function parseSpUrl(url: string): SpUrl {
  const colon = url.indexOf('://');
  if (url.length > LONGEST_URL || colon <= 0) throw wrong(url, 'not of the form scheme://address');
  const scheme = url.slice(0, colon);
  const rest = url.slice(colon + 3);
  switch (scheme) {
    case 'tcp':
    case 'tls+tcp':
      return { scheme, ...hostPort(url, rest) };
    case 'ws':
    case 'wss': {
      const slash = rest.indexOf('/');
      const address = hostPort(url, slash < 0 ? rest : rest.slice(0, slash), scheme === 'ws' ? 80 : 443);
      const path = slash < 0 ? '/' : rest.slice(slash);
      for (const c of path)
        if (c <= ' ' || c > '~' || c === '#') throw wrong(url, 'the path holds a character that must be %-escaped');
      return { scheme, ...address, path };
    }
    case 'ipc':
      return { scheme, path: ipcPath(url, rest) };
    case 'abstract': {
      const name = decoded(url, rest);
      if (name === '' || Buffer.byteLength(name) > LONGEST_UNIX_NAME)
        throw wrong(url, 'the name must have 1 to 107 bytes');
      return { scheme, name };
    }
    case 'inproc':
    case 'program':
      if (rest === '' || rest.length > 128) throw wrong(url, 'the name must have 1 to 128 characters');
      return { scheme, name: rest };
    default:
      throw wrong(url, `unknown scheme "${scheme}", known are ${SCHEMES.join(', ')}`);
  }
}

function ipcPath(url: string, rest: string): string {
  if (!rest.startsWith('/')) {
    const hint = rest === '' ? 'ipc:///run/name.ipc' : `ipc:///absolute/path/${rest.split('/').at(-1)}`;
    throw wrong(url, `the path must be absolute: write three slashes, ${hint}`);
  }
  if (rest.includes('\0')) throw wrong(url, 'the path holds a NUL');
  if (Buffer.byteLength(rest) > LONGEST_UNIX_NAME) throw wrong(url, 'the path is longer than 107 bytes');
  return rest;
}

function decoded(url: string, text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw wrong(url, 'a % is not followed by two hexadecimal digits of UTF-8');
  }
}

function hostPort(url: string, text: string, defaultPort = -1): { host: string; port: number } {
  const close = text.startsWith('[') ? text.indexOf(']') : -1;
  if (text.startsWith('[') && close < 0) throw wrong(url, 'a bracket is not closed');
  const host = close > 0 ? text.slice(1, close) : text.split(':', 1)[0];
  const after = close > 0 ? text.slice(close + 1) : text.slice(host.length);
  if (close < 0 && text.indexOf(':') !== text.lastIndexOf(':'))
    throw wrong(url, 'an IPv6 address needs brackets, [::1]');
  if (host === '' || host.length > LONGEST_HOST) throw wrong(url, 'there is no host (write * for every address)');
  for (const c of host)
    if (c <= ' ' || c > '~' || c === '/' || c === '@') throw wrong(url, 'the host holds a character that no name has');
  if (after === '' && defaultPort >= 0) return { host, port: defaultPort };
  const digits = after.slice(1);
  const port = Number(digits);
  if (after[0] !== ':' || !/^[0-9]{1,5}$/.test(digits) || port > 65535)
    throw wrong(url, 'there is no port between 0 and 65535');
  return { host, port };
}

/** The URL of a listener with the port it really has. */
export function withPort(url: string, port: number): string {
  const parsed = parseSpUrl(url);
  if (!('port' in parsed)) return url;
  const host = parsed.host.includes(':') ? `[${parsed.host}]` : parsed.host;
  return `${parsed.scheme}://${host}:${port}${'path' in parsed ? parsed.path : ''}`;
}

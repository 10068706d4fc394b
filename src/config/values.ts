// The small languages inside values: sizes, durations, addresses, URLs, topic filters. Called by config/schema/keys.ts,
// schema*.ts and build*.ts. A function parse...() gives the value or null, a function check...() what is wrong or null.
// Messages here never repeat a value, which might be a secret. Pure. Sources: MQTT 5.0 section 4.7 (filters); NanoMQ's
// units (1024, `m` is minutes).
import { isIP } from 'node:net';

const SIZE = /^(\d{1,15}(?:\.\d{1,6})?)\s*(b|kb?|kib|mb?|mib|gb?|gib)?$/i;
const DURATION = /^(\d{1,15}(?:\.\d{1,6})?)\s*(ms|s|m|h|d)?$/;
const UNIT_MS: ReadonlyMap<string, number> = new Map([
  ['ms', 1],
  ['s', 1000],
  ['m', 60_000],
  ['h', 3_600_000],
  ['d', 86_400_000],
]);

/** "8MB", "512 KB", "1048576" -> bytes; null when it is no size. */
export function parseSize(text: string): number | null {
  const found = SIZE.exec(text.trim());
  if (found === null) return null;
  const power = 'bkmg'.indexOf((found[2] ?? 'b')[0].toLowerCase());
  const bytes = Number(found[1]) * 1024 ** power;
  return Number.isSafeInteger(bytes) ? bytes : null;
}

/** "500ms", "5 s", "10m", "2d", "7" -> milliseconds; a bare number is in `unit`. Null when it is no duration. */
export function parseDuration(text: string, unit: 's' | 'ms'): number | null {
  const found = DURATION.exec(text.trim());
  if (found === null) return null;
  const ms = Number(found[1]) * (UNIT_MS.get(found[2] ?? unit) ?? Number.NaN);
  return Number.isSafeInteger(ms) ? ms : null;
}

/** Bytes as one would write them: 8388608 -> "8MB". */
export function formatSize(bytes: number): string {
  const units = ['', 'KB', 'MB', 'GB'];
  let i = 0;
  while (i < 3 && bytes > 0 && bytes % 1024 === 0) {
    bytes /= 1024;
    i++;
  }
  return `${bytes}${units[i]}`;
}

/** Milliseconds as one would write them: 60000 -> "1m", 250 -> "250ms". */
export function formatDuration(ms: number): string {
  if (ms === 0) return '0s';
  for (const unit of ['d', 'h', 'm', 's']) {
    const length = UNIT_MS.get(unit) ?? 1;
    if (ms % length === 0) return `${ms / length}${unit}`;
  }
  return `${ms}ms`;
}

export interface Address {
  /** Without brackets; "0.0.0.0" for `*`. */
  readonly host: string;
  readonly port: number;
  /** From the first slash on, "" without one. */
  readonly path: string;
}

const ADDRESS = /^(?:\[([0-9a-fA-F:.%a-zA-Z0-9]{2,60})\]|([^\s:/[\]@]{0,253})):(\d{1,9})(\/\S{0,1000})?$/;

/** "host:port", "[::1]:port", "*:port", with "/path" -> its pieces, or what is wrong with it. */
export function parseAddress(text: string): Address | string {
  const found = ADDRESS.exec(text);
  if (found === null) return 'host:port expected, as in "127.0.0.1:1883" or "[::1]:1883"';
  const port = Number(found[3]);
  if (port > 65535) return 'the port must be 0 to 65535';
  const name = found[1] ?? found[2];
  return { host: name === '*' || name === '' ? '0.0.0.0' : name, port, path: found[4] ?? '' };
}

/** What is wrong with an address or network such as 10.0.0.0/8. */
export function checkNetwork(text: string): string | null {
  const [address, bits, ...more] = text.split('/');
  const family = isIP(address);
  const fits = bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= (family === 6 ? 128 : 32));
  return family !== 0 && fits && more.length === 0 ? null : 'an address or network expected, such as 10.0.0.0/8';
}

/** Whether only this machine can reach the address. */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127(?:\.\d{1,3}){3}$/.test(host);
}

/** sockaddr_un.sun_path holds 108 bytes with its end mark (unix(7)). */
const MAX_SOCKET_PATH = 107;

export function checkSocketPath(path: string): string | null {
  if (!path.startsWith('/')) return 'an absolute path is required';
  if (path.includes('\0')) return 'the path contains a NUL';
  return Buffer.byteLength(path) > MAX_SOCKET_PATH ? `the path is longer than ${MAX_SOCKET_PATH} bytes` : null;
}

const NNG_SCHEMES =
  'tcp://host:port, ipc:///path, abstract://name, inproc://name, tls+tcp://host:port, ws:// or wss://';

/** What is wrong with the URL of an SP socket. */
export function checkNngUrl(url: string): string | null {
  const found = /^([a-z0-9+.-]{1,20}):\/\/(.*)$/s.exec(url);
  if (found === null) return `a URL expected: ${NNG_SCHEMES}`;
  const [, scheme, rest] = found;
  switch (scheme) {
    case 'tcp':
    case 'tls+tcp':
    case 'ws':
    case 'wss': {
      const address = parseAddress(rest);
      if (typeof address === 'string') return `${scheme}://host:port expected; ${address}`;
      if (address.path !== '' && !scheme.startsWith('ws')) return `nothing may follow the port of a ${scheme} URL`;
      return null;
    }
    case 'ipc': {
      const wrong = checkSocketPath(rest);
      return wrong === null ? null : `${wrong}, as in ipc:///run/tidegate/name.ipc`;
    }
    case 'abstract':
    case 'inproc':
    case 'program':
      if (rest === '') return `${scheme}://name expected`;
      return Buffer.byteLength(rest) > MAX_SOCKET_PATH ? `the name is longer than ${MAX_SOCKET_PATH} bytes` : null;
    case 'unix':
      return 'unknown scheme unix://; write ipc:///path';
    default:
      return `unknown scheme ${scheme}://; known are ${NNG_SCHEMES}`;
  }
}

export function nngScheme(url: string): string {
  return url.slice(0, url.indexOf('://'));
}

/** What is wrong with a Topic Filter [MQTT-4.7.1-1] [MQTT-4.7.1-2] [MQTT-4.7.3-1]. */
export function checkTopicFilter(filter: string): string | null {
  const levels = filter.split('/');
  for (let i = 0; i < levels.length; i++) {
    const level = levels[i];
    if (level.length < 2) {
      if (level === '#' && i < levels.length - 1) return '"#" may only be the last level of a topic filter';
      continue;
    }
    if (level.includes('#') || level.includes('+')) return '"#" and "+" must be the only character of their level';
  }
  return checkTopicText(filter);
}

/** What is wrong with a Topic Name [MQTT-4.7.1-1] [MQTT-4.7.3-1]. */
export function checkTopicName(topic: string): string | null {
  return /[#+]/.test(topic) ? 'a topic to publish to cannot contain "#" or "+"' : checkTopicText(topic);
}

function checkTopicText(topic: string): string | null {
  if (topic === '') return 'a topic cannot be empty';
  if (topic.includes('\0')) return 'a topic cannot contain a NUL'; // [MQTT-4.7.3-2]
  return Buffer.byteLength(topic) > 65535 ? 'a topic cannot be longer than 65,535 bytes' : null; // [MQTT-4.7.3-3]
}

/** Whether some topic matches both filters. O(levels of the shorter one). */
export function filtersMeet(a: string, b: string): boolean {
  const x = a.split('/');
  const y = b.split('/');
  if (x[0].startsWith('$') !== y[0].startsWith('$')) return false;
  for (let i = 0; i < Math.max(x.length, y.length); i++) {
    if (x[i] === '#' || y[i] === '#') return true;
    if (x[i] === undefined || y[i] === undefined) return (x[i] ?? y[i]) === '#';
    if (x[i] !== '+' && y[i] !== '+' && x[i] !== y[i]) return false;
  }
  return true;
}

/** The closest of `words`, if it is close enough to be meant. */
export function nearest(word: string, words: Iterable<string>): string | null {
  let best: string | null = null;
  let bestDistance = (word.length < 4 ? 1 : Math.max(2, Math.floor(word.length / 3))) + 1;
  if (word.length > 64) return null;
  for (const candidate of words) {
    if (Math.abs(candidate.length - word.length) >= bestDistance) continue;
    const d = distance(word.toLowerCase(), candidate);
    if (d < bestDistance) {
      best = candidate;
      bestDistance = d;
    }
  }
  return best;
}

/**
 * Edits from one word to the other; two neighbours swapped are one edit (optimal string alignment). O(length squared).
 */
function distance(a: string, b: string): number {
  const rows: number[][] = [Array.from({ length: b.length + 1 }, (_, j) => j)];
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const change = a[i - 1] === b[j - 1] ? 0 : 1;
      row[j] = Math.min(rows[i - 1][j] + 1, row[j - 1] + 1, rows[i - 1][j - 1] + change);
      const swapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      if (swapped) row[j] = Math.min(row[j], rows[i - 2][j - 2] + 1);
    }
    rows.push(row);
  }
  return rows[a.length][b.length];
}

/** The text of a URL with the password in it hidden: redis://user:***@host. */
export function maskUrl(url: string): string {
  return url
    .replace(/^([a-z0-9+.-]*:\/\/)([^/@]*):[^/]*@/i, '$1$2:***@')
    .replace(/^([a-z0-9+.-]*:\/\/)([^/:@]*)@/i, '$1***@');
}

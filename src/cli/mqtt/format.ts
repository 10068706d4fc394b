// How `tidegate sub` shows a message: the payload, topic and payload (-v), or a format of %-codes (-F) as in
// mosquitto_sub(1). Called by sub.ts. A format is compiled once; unknown codes are CLI-USAGE. Payloads are bytes and
// stay bytes, except on a terminal, where control characters of a message are shown as text: what others publish must
// not steer the terminal.
import type { IPublishPacket } from 'mqtt';
import { GatewayError } from '../../base/errors.ts';

type Piece = (packet: IPublishPacket, timeMs: number) => string | Buffer;

function payloadOf(packet: IPublishPacket): Buffer {
  return typeof packet.payload === 'string' ? Buffer.from(packet.payload) : packet.payload;
}

function two(n: number): string {
  return String(n).padStart(2, '0');
}

/** Local time with the offset, 2020-05-06T22:12:00.000000+0100. */
function isoTime(timeMs: number): string {
  const date = new Date(timeMs);
  const minutes = -date.getTimezoneOffset();
  const sign = minutes < 0 ? '-' : '+';
  const offset = `${sign}${two(Math.floor(Math.abs(minutes) / 60))}${two(Math.abs(minutes) % 60)}`;
  const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  const time = `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
  return `${day}T${time}.${String(date.getMilliseconds()).padStart(3, '0')}000${offset}`;
}

function userPairs(packet: IPublishPacket): [string, string][] {
  const pairs: [string, string][] = [];
  for (const [name, values] of Object.entries(packet.properties?.userProperties ?? {})) {
    for (const value of Array.isArray(values) ? values : [values]) pairs.push([name, value]);
  }
  return pairs;
}

function text(value: unknown): string {
  return value === undefined || value === null ? '' : String(value);
}

/** The whole message as one JSON object; `parsed` puts a payload that is JSON in as such. */
function json(packet: IPublishPacket, timeMs: number, parsed: boolean, pretty: boolean): string {
  const payload = payloadOf(packet).toString('utf8');
  const { properties } = packet;
  const shown: Record<string, unknown> = {
    tst: isoTime(timeMs),
    topic: packet.topic,
    qos: packet.qos,
    retain: packet.retain ? 1 : 0,
    payloadlen: payloadOf(packet).length,
  };
  if (packet.qos > 0) shown.mid = packet.messageId;
  if (properties !== undefined) {
    shown.properties = {
      'payload-format-indicator':
        properties.payloadFormatIndicator === undefined ? undefined : Number(properties.payloadFormatIndicator),
      'message-expiry-interval': properties.messageExpiryInterval,
      'content-type': properties.contentType,
      'response-topic': properties.responseTopic,
      'correlation-data': properties.correlationData?.toString('utf8'),
      'subscription-identifier': properties.subscriptionIdentifier,
      'topic-alias': properties.topicAlias,
      'user-properties': properties.userProperties,
    };
  }
  shown.payload = payload;
  if (parsed) {
    try {
      shown.payload = JSON.parse(payload);
    } catch {
      throw new GatewayError('CLI-FAILED', `a payload on ${JSON.stringify(packet.topic)} is not JSON`);
    }
  }
  return JSON.stringify(shown, null, pretty ? 2 : undefined);
}

const CODES: ReadonlyMap<string, Piece> = new Map<string, Piece>([
  ['%', () => '%'],
  ['A', (packet) => text(packet.properties?.topicAlias)],
  ['C', (packet) => text(packet.properties?.contentType)],
  ['D', (packet) => packet.properties?.correlationData ?? ''],
  ['E', (packet) => text(packet.properties?.messageExpiryInterval)],
  [
    'F',
    (packet) =>
      packet.properties?.payloadFormatIndicator === undefined
        ? ''
        : String(Number(packet.properties.payloadFormatIndicator)),
  ],
  ['I', (_packet, timeMs) => isoTime(timeMs).slice(0, 19) + isoTime(timeMs).slice(-5)],
  ['l', (packet) => String(payloadOf(packet).length)],
  ['m', (packet) => text(packet.messageId)],
  [
    'P',
    (packet) =>
      userPairs(packet)
        .map(([name, value]) => `${name}:${value}`)
        .join(' '),
  ],
  ['p', (packet) => payloadOf(packet)],
  ['q', (packet) => String(packet.qos)],
  ['R', (packet) => text(packet.properties?.responseTopic)],
  ['r', (packet) => (packet.retain ? '1' : '0')],
  ['S', (packet) => text(packet.properties?.subscriptionIdentifier)],
  ['t', (packet) => packet.topic],
  ['U', (_packet, timeMs) => `${Math.floor(timeMs / 1000)}.${String(timeMs % 1000).padStart(3, '0')}000000`],
  ['x', (packet) => payloadOf(packet).toString('hex')],
  ['X', (packet) => payloadOf(packet).toString('hex').toUpperCase()],
]);

/** strftime codes behind @, in local time. */
const TIME_CODES: ReadonlyMap<string, (date: Date) => string> = new Map<string, (date: Date) => string>([
  ['@', () => '@'],
  ['Y', (date) => String(date.getFullYear())],
  ['m', (date) => two(date.getMonth() + 1)],
  ['d', (date) => two(date.getDate())],
  ['H', (date) => two(date.getHours())],
  ['M', (date) => two(date.getMinutes())],
  ['S', (date) => two(date.getSeconds())],
  ['s', (date) => String(Math.floor(date.getTime() / 1000))],
  ['N', (date) => `${String(date.getMilliseconds()).padStart(3, '0')}000000`],
  ['F', (date) => `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`],
  ['T', (date) => `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`],
]);

const ESCAPES: ReadonlyMap<string, string> = new Map([
  ['0', '\0'],
  ['a', '\u0007'],
  ['e', '\u001b'],
  ['n', '\n'],
  ['r', '\r'],
  ['t', '\t'],
  ['v', '\v'],
  ['\\', '\\'],
]);

function wrong(format: string, at: number): GatewayError {
  return new GatewayError('CLI-USAGE', `-F: unknown code at character ${at + 1} of ${JSON.stringify(format)}`);
}

/** The pieces of a format, in order. Throws CLI-USAGE. */
function compile(format: string, pretty: boolean): Piece[] {
  const pieces: Piece[] = [];
  for (let at = 0; at < format.length; at++) {
    const c = format[at];
    if (c === '\\') {
      const plain = ESCAPES.get(format[++at]);
      if (plain === undefined) throw wrong(format, at);
      pieces.push(() => plain);
    } else if (c === '@') {
      const code = format[++at];
      const time = TIME_CODES.get(code);
      if (time === undefined) throw wrong(format, at - 1);
      pieces.push((_packet, timeMs) => time(new Date(timeMs)));
    } else if (c !== '%') {
      pieces.push(() => c);
    } else if (format[at + 1] === 'j' || format[at + 1] === 'J') {
      const parsed = format[++at] === 'J';
      pieces.push((packet, timeMs) => json(packet, timeMs, parsed, pretty));
    } else {
      const piece = CODES.get(format[++at]);
      if (piece === undefined) throw wrong(format, at - 1);
      pieces.push(piece);
    }
  }
  return pieces;
}

export interface FormatOptions {
  /** null: the payload alone, or with -v the topic before it. */
  readonly format: string | null;
  readonly verbose: boolean;
  readonly pretty: boolean;
  /** No line end behind each message. */
  readonly noEnd: boolean;
  /** Standard output is a terminal. */
  readonly tty: boolean;
}

/** All control characters but tab and line feed. */
function printable(bytes: Buffer): string {
  let shown = '';
  for (const c of bytes.toString('utf8')) {
    const code = c.codePointAt(0) ?? 0;
    const control =
      (code < 32 && code !== 9 && code !== 10) ||
      (code > 126 && code < 160) ||
      (code >= 0x202a && code <= 0x202e) ||
      (code >= 0x2066 && code <= 0x2069);
    shown += control ? `\\x${code.toString(16).padStart(2, '0')}` : c;
  }
  return shown;
}

/** Makes the function that turns a message into what is printed. Throws CLI-USAGE for a wrong format. */
export function formatter(options: FormatOptions): (packet: IPublishPacket, timeMs: number) => Buffer {
  const pieces = compile(options.format ?? (options.verbose ? '%t %p' : '%p'), options.pretty);
  return (packet, timeMs) => {
    const parts: Buffer[] = [];
    for (const piece of pieces) {
      const part = piece(packet, timeMs);
      parts.push(typeof part === 'string' ? Buffer.from(part) : part);
    }
    if (!options.noEnd) parts.push(Buffer.from('\n'));
    const bytes = Buffer.concat(parts);
    return options.tty ? Buffer.from(printable(bytes)) : bytes;
  };
}

// One configured request of auth.http_auth: its template, the request filled for a client, and sending it. Used by
// http.ts. Every value is encoded for the form it goes into, so that no field of a client can add a parameter or
// header. Never throws when sending: an answer, a refusal, or 'source-down'. The body of an answer is not read beyond
// what keeps the connection usable.
import {
  type ClientRequest,
  Agent as HttpAgent,
  request as httpRequest,
  type IncomingMessage,
  validateHeaderName,
  validateHeaderValue,
} from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import type { Socket } from 'node:net';
import type { Clock, Timer } from '../base/clock.ts';
import { errorText, GatewayError } from '../base/errors.ts';

export interface RequestOptions {
  readonly url: string;
  readonly method: 'post' | 'get';
  readonly headers: readonly (readonly [string, string])[];
  /** Name and value; values with %u %c %a %P %p %C %d %t %m %A %r, and %% for a percent sign. */
  readonly params: readonly (readonly [string, string])[];
}

/** What stands for the letters of the placeholders. */
export type Fields = Readonly<
  Record<'u' | 'c' | 'a' | 'P' | 'p' | 'C' | 'd' | 't' | 'm' | 'A' | 'r', string | Uint8Array>
>;

export type Outcome = 'allowed' | 'refused' | 'source-down' | 'source-busy';

export interface FilledRequest {
  /** Path and query. */
  readonly path: string;
  readonly body: string;
}

type Part = { readonly text: string } | { readonly field: keyof Fields };

/** An answer longer than this ends its connection instead of being read away. */
const LONGEST_ANSWER_BYTES = 64 * 1024;
const IDLE_MS = 15_000;

function isField(letter: string): letter is keyof Fields {
  return letter.length === 1 && 'ucaPpCdtmAr'.includes(letter);
}

function partsOf(value: string): Part[] {
  const parts: Part[] = [];
  for (const piece of value.split(/(%[A-Za-z%])/)) {
    const letter = piece.startsWith('%') && piece.length === 2 ? piece[1] : '';
    if (isField(letter)) parts.push({ field: letter });
    else if (piece !== '') parts.push({ text: letter === '%' ? '%' : piece });
  }
  return parts;
}

function bytesOf(parts: readonly Part[], fields: Fields): Buffer {
  return Buffer.concat(parts.map((part) => Buffer.from('text' in part ? part.text : fields[part.field])));
}

/** application/x-www-form-urlencoded of any bytes (WHATWG URL section 5.2). */
function formEncode(bytes: Buffer): string {
  let text = '';
  for (const byte of bytes) {
    const char = String.fromCharCode(byte);
    if (/[A-Za-z0-9*\-._]/.test(char)) text += char;
    else text += byte === 0x20 ? '+' : `%${byte.toString(16).toUpperCase().padStart(2, '0')}`;
  }
  return text;
}

function utf8(bytes: Buffer): string | null {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return null;
  }
}

export class RequestTemplate {
  /** Name of the configuration key. */
  readonly where: string;
  lastError: string | null = null;
  private readonly url: URL;
  private readonly get: boolean;
  private readonly json: boolean;
  private readonly headers: Record<string, string>;
  private readonly params: readonly (readonly [string, readonly Part[]])[];
  private readonly agent: HttpAgent | HttpsAgent;

  /** Throws AUTH-SOURCE for what makes no request. */
  constructor(options: RequestOptions, where: string, connections: number) {
    this.where = where;
    const url = URL.canParse(options.url) ? new URL(options.url) : null;
    if (url === null || (url.protocol !== 'http:' && url.protocol !== 'https:')) {
      throw new GatewayError('AUTH-SOURCE', `${where}.url: not an http or https URL`);
    }
    this.url = url;
    this.get = options.method === 'get';
    this.headers = headersOf(options, where, this.get);
    this.json = !this.get && /^application\/json\b/i.test(this.headers['content-type'] ?? '');
    this.params = options.params.map(([name, value]) => [name, partsOf(value)]);
    const pool = { keepAlive: true, maxSockets: connections, maxFreeSockets: connections, timeout: IDLE_MS };
    this.agent = url.protocol === 'https:' ? new HttpsAgent(pool) : new HttpAgent(pool);
  }

  /** Puts the values in; null when one cannot be said in the format (JSON holds no bytes that are not UTF-8). */
  fill(fields: Fields): FilledRequest | null {
    const { pathname, search } = this.url;
    if (this.json) {
      const values: [string, string][] = [];
      for (const [name, parts] of this.params) {
        const value = utf8(bytesOf(parts, fields));
        if (value === null) return null;
        values.push([name, value]);
      }
      return { path: pathname + search, body: JSON.stringify(Object.fromEntries(values)) };
    }
    const form = this.params
      .map(([name, parts]) => `${formEncode(Buffer.from(name))}=${formEncode(bytesOf(parts, fields))}`)
      .join('&');
    if (!this.get) return { path: pathname + search, body: form };
    const query = search === '' ? `?${form}` : `${search}&${form}`;
    return { path: pathname + (form === '' ? search : query), body: '' };
  }

  /**
   * Sends it and waits at most so long. A kept connection that the server has closed in the meantime says nothing about
   * the server: the request is sent once more on a fresh one (RFC 9112 section 9.5), within the same time.
   */
  async send(filled: FilledRequest, timeoutMs: number, connectTimeoutMs: number, clock: Clock): Promise<Outcome> {
    const endsAt = clock.mono() + timeoutMs;
    const first = await this.attempt(filled, timeoutMs, connectTimeoutMs, clock, false);
    if (first !== 'stale') return first;
    const leftMs = endsAt - clock.mono();
    const second = leftMs <= 0 ? 'stale' : await this.attempt(filled, leftMs, connectTimeoutMs, clock, true);
    return second === 'stale' ? 'source-down' : second;
  }

  private attempt(
    filled: FilledRequest,
    timeoutMs: number,
    connectTimeoutMs: number,
    clock: Clock,
    fresh: boolean,
  ): Promise<Outcome | 'stale'> {
    return new Promise((resolve) => {
      let request: ClientRequest;
      const timers: Timer[] = [];
      let settled = false;
      const settle = (outcome: Outcome | 'stale', error: string | null): void => {
        if (settled) return;
        settled = true;
        for (const timer of timers) timer.cancel();
        this.lastError = error;
        resolve(outcome);
      };
      const fail = (error: string): void => {
        settle('source-down', error);
        request.destroy();
      };
      try {
        request = this.open(filled, fresh);
      } catch (error) {
        settle('source-down', errorText(error));
        return;
      }
      timers.push(clock.after(timeoutMs, () => fail('no answer in time')));
      request.once('socket', (socket: Socket) => {
        if (!socket.connecting) return;
        const timer = clock.after(connectTimeoutMs, () => fail('not connected in time'));
        timers.push(timer);
        socket.once('connect', () => timer.cancel());
      });
      request.on('error', (error) => settle(request.reusedSocket ? 'stale' : 'source-down', errorText(error)));
      request.once('response', (response) => {
        drain(response);
        const status = response.statusCode ?? 0;
        if (status === 200) settle('allowed', null);
        else if (status >= 400 && status < 500 && status !== 408 && status !== 429) settle('refused', null);
        else settle('source-down', `status ${status}`);
      });
      request.end(filled.body);
    });
  }

  close(): void {
    this.agent.destroy();
  }

  private open(filled: FilledRequest, fresh: boolean): ClientRequest {
    const options = {
      agent: fresh ? (false as const) : this.agent,
      host: this.url.hostname.replace(/^\[(.*)\]$/, '$1'),
      port: this.url.port === '' ? undefined : Number(this.url.port),
      path: filled.path,
      method: this.get ? 'GET' : 'POST',
      headers: this.get ? this.headers : { ...this.headers, 'content-length': String(Buffer.byteLength(filled.body)) },
      auth:
        this.url.username === ''
          ? undefined
          : `${decodeURIComponent(this.url.username)}:${decodeURIComponent(this.url.password)}`,
    };
    return this.url.protocol === 'https:' ? httpsRequest(options) : httpRequest(options);
  }
}

function headersOf(options: RequestOptions, where: string, get: boolean): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const [name, value] of options.headers) {
    try {
      validateHeaderName(name);
      validateHeaderValue(name, value);
    } catch {
      throw new GatewayError('AUTH-SOURCE', `${where}.headers: not a header`);
    }
    const key = name.toLowerCase();
    // The length belongs to the body, and a GET has none to describe.
    if (
      key === 'content-length' ||
      key === 'transfer-encoding' ||
      key === '__proto__' ||
      (get && key === 'content-type')
    )
      continue;
    headers[key] = value;
  }
  if (!get && headers['content-type'] === undefined) headers['content-type'] = 'application/x-www-form-urlencoded';
  return headers;
}

/** Reads an answer away so that its connection can be used again; too much of it ends the connection. */
function drain(response: IncomingMessage): void {
  let bytes = 0;
  response.on('data', (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes > LONGEST_ANSWER_BYTES) response.destroy();
  });
  response.on('error', () => {});
}

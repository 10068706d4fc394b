// One POST request after the other to an HTTP service, over connections that stay open. Used by webhook/webhook.ts and
// tracing/exporter.ts. Bounded in time and in what is read of an answer; nothing is repeated here and nothing is thrown
// but for TLS files. Knows no event and no span.
import { readFile } from 'node:fs/promises';
import { type ClientRequest, Agent as HttpAgent, request as httpRequest, type IncomingMessage } from 'node:http';
import { type AgentOptions, Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import { createSecureContext } from 'node:tls';
import type { Clock } from './clock.ts';
import { errorText, GatewayError } from './errors.ts';
import { isPemText } from './pem.ts';

/** Files, or PEM texts, of a client that speaks TLS. */
export interface PostTls {
  readonly ca: string | null;
  readonly cert: string | null;
  readonly key: string | null;
  readonly keyPassword: string | null;
  readonly verify: boolean;
  readonly serverName: string | null;
}

export interface PostOptions {
  readonly url: string;
  readonly headers: readonly (readonly [string, string])[];
  /** Connections at once. */
  readonly connections: number;
  readonly timeoutMs: number;
  /** For https. */
  readonly tls: PostTls | null;
  /** The key of the tls block, for errors. */
  readonly name: string;
}

/**
 * `status` is null where there was no answer, and `unsendable` where the request could not even be made. `body` is the
 * beginning of the answer, `headers` are those of the answer.
 */
export interface PostAnswer {
  readonly status: number | null;
  readonly unsendable: boolean;
  readonly why: string;
  readonly body: string;
  readonly retryAfter: string | null;
}

/** More of an answer is not read: the connection ends instead. */
const LONGEST_ANSWER_BYTES = 64 * 1024;

export class Poster {
  private readonly options: PostOptions;
  private readonly clock: Clock;
  private readonly url: URL;
  private agent: HttpAgent | HttpsAgent;

  constructor(options: PostOptions, clock: Clock) {
    this.options = options;
    this.clock = clock;
    this.url = new URL(options.url);
    this.agent = new HttpAgent({ keepAlive: true, maxSockets: options.connections });
  }

  get host(): string {
    return this.url.host;
  }

  /** What may fail, before the first request: throws TRANSPORT-TLS for a certificate that cannot be read. */
  async prepare(): Promise<void> {
    if (this.url.protocol !== 'https:') return;
    const { tls, name, connections } = this.options;
    this.agent = new HttpsAgent({ keepAlive: true, maxSockets: connections, ...(await readTls(tls, name)) });
  }

  /** Calls `done` once, whatever happens. `path` is put behind that of the URL. */
  post(body: Buffer, done: (answer: PostAnswer) => void, path = ''): void {
    let open = true;
    const finish = (answer: PostAnswer): void => {
      if (!open) return;
      open = false;
      timer.cancel();
      done(answer);
    };
    const send = this.url.protocol === 'https:' ? httpsRequest : httpRequest;
    const { timeoutMs } = this.options;
    let request: ClientRequest;
    try {
      request = send(below(this.url, path), { method: 'POST', agent: this.agent, headers: this.headers(body.length) });
    } catch (error) {
      // A header that cannot be sent.
      this.clock.after(0, () => done({ ...NOTHING, unsendable: true, why: errorText(error) }));
      return;
    }
    const timer = this.clock.after(timeoutMs, () => {
      finish({ ...NOTHING, why: `no answer within ${timeoutMs} ms` });
      request.destroy();
    });
    request.on('error', (error) => finish({ ...NOTHING, why: errorText(error) }));
    request.on('response', (response) => readAway(response, finish));
    request.end(body);
  }

  close(): void {
    this.agent.destroy();
  }

  private headers(bytes: number): Record<string, string | number> {
    const headers: Record<string, string | number> = Object.create(null);
    headers['content-type'] = 'application/json';
    for (const [name, value] of this.options.headers) headers[name.toLowerCase()] = value;
    headers['content-length'] = bytes;
    return headers;
  }
}

const NOTHING: PostAnswer = { status: null, unsendable: false, why: '', body: '', retryAfter: null };

function below(url: URL, path: string): URL {
  if (path === '') return url;
  const whole = new URL(url);
  whole.pathname = whole.pathname.replace(/\/$/, '') + path;
  return whole;
}

/** The files of a tls block. */
async function readTls(tls: PostTls | null, name: string): Promise<AgentOptions> {
  if (tls === null) return {};
  const read = async (file: string | null): Promise<Buffer | undefined> => {
    if (file === null) return undefined;
    return isPemText(file) ? Buffer.from(file) : readFile(file);
  };
  try {
    const [ca, cert, key] = [await read(tls.ca), await read(tls.cert), await read(tls.key)];
    const files = { ca, cert, key, passphrase: tls.keyPassword ?? undefined };
    // Wrong ones are told now, not with the first request.
    createSecureContext(files);
    return { ...files, rejectUnauthorized: tls.verify, servername: tls.serverName ?? undefined };
  } catch (error) {
    throw new GatewayError('TRANSPORT-TLS', `${name}: ${errorText(error)}`, error);
  }
}

/** Reads the body to its end, so that the connection can be used again. */
function readAway(response: IncomingMessage, done: (answer: PostAnswer) => void): void {
  const status = response.statusCode ?? 0;
  const chunks: Buffer[] = [];
  let bytes = 0;
  const end = (): void => {
    const body = Buffer.concat(chunks).toString();
    const retryAfter = response.headers['retry-after'] ?? null;
    done({ status, unsendable: false, why: `status ${status}`, body, retryAfter });
  };
  response.on('data', (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes > LONGEST_ANSWER_BYTES) response.destroy();
    else chunks.push(chunk);
  });
  response.on('error', end);
  response.on('end', end);
  response.on('close', end);
}

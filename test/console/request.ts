// HTTP as a client of the console tests speaks it: one request with JSON, and raw bytes for what no client library would send.
import { type IncomingHttpHeaders, request } from 'node:http';
import { connect } from 'node:net';
import type { WebUser } from '../../src/console/console.ts';
import { ADMIN } from './standins.ts';

export interface Reply {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  /** The parsed body; undefined when it is not JSON. */
  // biome-ignore lint/suspicious/noExplicitAny: assertions look into documents of every shape
  readonly json: any;
}

export interface Asked {
  readonly user?: WebUser | null;
  readonly body?: unknown;
  readonly headers?: Record<string, string>;
}

export function basic({ username, password }: Pick<WebUser, 'username' | 'password'>): string {
  return `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`;
}

/** One request on a connection of its own, as admin unless told; a body that is no text is sent as JSON. */
export function ask(port: number, method: string, path: string, asked: Asked = {}): Promise<Reply> {
  const { user = ADMIN, body } = asked;
  const headers: Record<string, string> = {
    ...(user === null ? {} : { authorization: basic(user) }),
    ...asked.headers,
  };
  const bytes =
    body === undefined ? null : typeof body === 'string' || Buffer.isBuffer(body) ? body : JSON.stringify(body);
  if (bytes !== null) headers['content-length'] = String(Buffer.byteLength(bytes));
  return new Promise((resolve, reject) => {
    const sent = request({ host: '127.0.0.1', port, method, path, headers, agent: false }, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk) => chunks.push(chunk));
      response.on('error', reject);
      response.on('end', () => {
        const text = Buffer.concat(chunks).toString();
        resolve({ status: response.statusCode ?? 0, headers: response.headers, text, json: parsed(text) });
      });
    });
    sent.on('error', reject);
    sent.end(bytes ?? undefined);
  });
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Sends raw text and gives everything that comes until the server closes, or until `until` fits; `last`: nothing follows, as TCP says it. */
export function raw(port: number, text: string | Buffer, until: RegExp | null = null, last = false): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1', () => (last ? socket.end(text) : socket.write(text)));
    let got = '';
    const end = (): void => {
      socket.destroy();
      resolve(got);
    };
    socket.on('data', (chunk) => {
      got += chunk.toString('latin1');
      if (until?.test(got)) end();
    });
    socket.on('end', end);
    socket.on('close', end);
    socket.on('error', (error: NodeJS.ErrnoException) => (error.code === 'ECONNRESET' ? end() : reject(error)));
  });
}

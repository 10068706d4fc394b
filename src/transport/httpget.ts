// One HTTP GET with a time limit and a bound on bytes. Called by gateway/transports.ts for the discovery of the proxy.
// Redirects are not followed; user and password in the URL become Basic authentication. Rejects with TRANSPORT-DIAL and
// the reason.
import { readFile } from 'node:fs/promises';
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { request as httpsRequest, type RequestOptions } from 'node:https';
import { errorText, GatewayError } from '../base/errors.ts';
import type { TlsClientOptions } from './transport.ts';

export interface GetOptions {
  readonly headers: Readonly<Record<string, string>>;
  readonly timeoutMs: number;
  readonly maxBytes: number;
  readonly tls: TlsClientOptions | null;
  readonly signal: AbortSignal;
}

export interface GetAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
}

export async function httpGet(url: string, options: GetOptions): Promise<GetAnswer> {
  const { timeoutMs, tls } = options;
  const limit = AbortSignal.timeout(timeoutMs);
  const signal = AbortSignal.any([options.signal, limit]);
  try {
    const secure = url.startsWith('https:') ? await tlsOptions(tls) : {};
    return await get(url, { headers: { ...options.headers }, agent: false, ...secure }, options.maxBytes, signal);
  } catch (error) {
    const reason = limit.aborted ? `no answer within ${timeoutMs} ms` : errorText(error);
    throw new GatewayError('TRANSPORT-DIAL', reason, error);
  }
}

async function tlsOptions(tls: TlsClientOptions | null): Promise<RequestOptions> {
  if (tls === null) return {};
  const file = (path: string | null): Promise<Buffer> | undefined => (path === null ? undefined : readFile(path));
  const [ca, cert, key] = await Promise.all([file(tls.ca), file(tls.cert), file(tls.key)]);
  const { keyPassword, serverName } = tls;
  return {
    ca,
    cert,
    key,
    passphrase: keyPassword ?? undefined,
    servername: serverName ?? undefined,
    rejectUnauthorized: tls.verify,
  };
}

function get(url: string, options: RequestOptions, maxBytes: number, signal: AbortSignal): Promise<GetAnswer> {
  return new Promise((resolve, reject) => {
    const send = url.startsWith('https:') ? httpsRequest : httpRequest;
    const request = send(url, { ...options, signal }, (response) => {
      collect(response, maxBytes).then((body) => {
        resolve({ status: response.statusCode ?? 0, headers: headersOf(response), body });
      }, reject);
    });
    request.once('error', reject);
    request.end();
  });
}

async function collect(response: IncomingMessage, maxBytes: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of response as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > maxBytes) throw new Error(`an answer of more than ${maxBytes} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

function headersOf(response: IncomingMessage): Record<string, string> {
  const headers: Record<string, string> = Object.create(null);
  for (const [name, value] of Object.entries(response.headers))
    if (value !== undefined) headers[name] = Array.isArray(value) ? (value.at(-1) ?? '') : value;
  return headers;
}

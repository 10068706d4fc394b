// The REST client of `tidegate ctl`: where the gateway is, who asks, one call at a time. Called by ctl.ts and top.ts.
// The address comes from --url, TIDEGATE_URL, http_server of a configuration, or is the control socket of the gateway
// that runs on this machine; credentials likewise, passwords best from a file. Certificates are always checked:
// --cafile names an authority, there is no switch to look away.
import { readFile } from 'node:fs/promises';
import { type ClientRequest, request as httpRequest, type IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { errorText, GatewayError } from '../../base/errors.ts';
import { looksHashed } from '../../base/passwordhash.ts';
import { systemErrorText } from '../../base/systemerror.ts';
import type { HttpServerConfig, WebUserConfig } from '../../config/config.ts';
import { loadConfig } from '../../config/load.ts';
import { localGateways } from './local.ts';

/** Longest wait for an answer, and the largest one read. */
const ANSWER_MS = 15_000;
const MAX_ANSWER_BYTES = 256 * 1024 * 1024;
const DEFAULT_URL = 'http://127.0.0.1:8081';

/** The options of `ctl` itself, as commander gives them. */
export interface CtlOptions {
  readonly config?: string;
  readonly set?: readonly string[];
  readonly url?: string;
  readonly user?: string;
  readonly password?: string;
  readonly passwordFile?: string;
  readonly token?: string;
  readonly cafile?: string;
  readonly json?: boolean;
}

export type Env = Readonly<Record<string, string | undefined>>;

/** An answer: `data` where there is one, the rest beside it. */
export interface Reply {
  readonly status: number;
  readonly code: number;
  readonly message: string;
  readonly data: unknown;
  readonly meta: Readonly<Record<string, unknown>>;
  readonly headers: IncomingMessage['headers'];
}

interface Target {
  readonly base: URL;
  /** Path of a control socket; null: over TCP. */
  readonly socket: string | null;
  readonly authorization: string | null;
  readonly ca: Buffer | null;
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The last line end of a file with a secret is not part of the secret. */
async function secretFile(path: string): Promise<string> {
  try {
    return (await readFile(path, 'utf8')).replace(/\r?\n$/, '');
  } catch (error) {
    throw new GatewayError('CLI-FAILED', `password file ${path}: ${systemErrorText(error)}`, error);
  }
}

async function authorities(path: string): Promise<Buffer> {
  try {
    return await readFile(path);
  } catch (error) {
    throw new GatewayError('CLI-FAILED', `${path}: ${systemErrorText(error)}`, error);
  }
}

function addressOf(server: HttpServerConfig): string {
  // Bound to every address: this machine's own is one of them.
  const host = server.ipAddr === '0.0.0.0' ? '127.0.0.1' : server.ipAddr === '::' ? '::1' : server.ipAddr;
  return `${server.tls === null ? 'http' : 'https'}://${host.includes(':') ? `[${host}]` : host}:${server.port}`;
}

/** http_server of the configuration; null when none is named and none can be read. */
function configured(options: CtlOptions, env: Env): HttpServerConfig | null {
  const asked = options.config !== undefined || (options.set?.length ?? 0) > 0;
  try {
    const { config } = loadConfig({ file: options.config, set: options.set, env });
    if (config.httpServer === null && asked)
      throw new GatewayError('CLI-FAILED', 'the configuration has no http_server');
    return config.httpServer;
  } catch (error) {
    if (!asked && error instanceof GatewayError && error.code === 'CFG-READ') return null;
    throw error;
  }
}

/** A user of the configuration whose password can be read there: the one that is named, else an admin, else any. */
function configuredUser(server: HttpServerConfig | null, name: string | null): WebUserConfig | undefined {
  const readable = (server?.users ?? []).filter(({ password }) => !looksHashed(password));
  if (name !== null) return readable.find(({ username }) => username === name);
  return readable.find(({ role }) => role === 'admin') ?? readable[0];
}

/** The control socket of the one gateway that runs here, where nothing else is asked for; null: there is none. */
async function localSocket(options: CtlOptions, env: Env): Promise<string | null> {
  const { url, config, set = [], user, password, passwordFile, token } = options;
  const asked = [url, config, user, password, passwordFile, token, env.TIDEGATE_URL, env.TIDEGATE_USER];
  if (set.length > 0 || [...asked, env.TIDEGATE_TOKEN].some((word) => word !== undefined)) return null;
  const found = await localGateways(env);
  const open = found.filter((gateway) => gateway.open);
  if (open.length === 1) return open[0].path;
  if (open.length > 1) {
    const pids = open.map(({ pid }) => pid).join(', ');
    throw new GatewayError('CLI-USAGE', `${open.length} gateways run here (processes ${pids}): --url or -c says which`);
  }
  // One of another user answers over TCP, to whom may ask it there.
  return null;
}

async function resolve(options: CtlOptions, env: Env): Promise<Target> {
  const socket = await localSocket(options, env);
  if (socket !== null) return { base: new URL('http://localhost'), socket, authorization: null, ca: null };
  const url = options.url ?? env.TIDEGATE_URL;
  const server = url === undefined ? configured(options, env) : null;
  const text = url ?? (server === null ? DEFAULT_URL : addressOf(server));
  if (!URL.canParse(text) || !/^https?:$/.test(new URL(text).protocol)) {
    throw new GatewayError('CLI-USAGE', `--url wants http://host:port or https://host:port, not "${text}"`);
  }
  const base = new URL(text);
  const file = options.passwordFile ?? env.TIDEGATE_PASSWORD_FILE;
  const named = options.user ?? env.TIDEGATE_USER ?? null;
  const known = configuredUser(server, named);
  const user = named ?? known?.username ?? null;
  const password =
    options.password ??
    (file === undefined ? undefined : await secretFile(file)) ??
    env.TIDEGATE_PASSWORD ??
    known?.password;
  const token = options.token ?? env.TIDEGATE_TOKEN;
  const basic = user === null ? null : `Basic ${Buffer.from(`${user}:${password ?? ''}`).toString('base64')}`;
  const ca = options.cafile === undefined ? null : await authorities(options.cafile);
  return { base, socket: null, authorization: token === undefined ? basic : `Bearer ${token}`, ca };
}

export class CtlClient {
  private readonly target: Target;

  private constructor(target: Target) {
    this.target = target;
  }

  /** Finds out where and as whom; connects to nothing yet. Throws GatewayError CLI-USAGE, CFG-INVALID, CLI-FAILED. */
  static async open(options: CtlOptions, env: Env): Promise<CtlClient> {
    return new CtlClient(await resolve(options, env));
  }

  get address(): string {
    const { base, socket } = this.target;
    return socket === null ? base.origin : `unix:${socket}`;
  }

  /**
   * One call below /api/v4. Throws GatewayError CLI-FAILED when nobody answers or the answer is a failure.
   * @param known codes besides 0 that are no failure to the caller
   */
  async call(method: string, path: string, body?: unknown, known: readonly number[] = []): Promise<Reply> {
    const reply = await this.ask(method, path, body);
    if (reply.status >= 400 || (reply.code !== 0 && !known.includes(reply.code))) throw failure(reply);
    return reply;
  }

  /** Like call(), but a failure is an answer like any other. */
  async ask(method: string, path: string, body?: unknown): Promise<Reply> {
    const text = body === undefined ? null : JSON.stringify(body);
    const response = await this.send(method, path, text);
    return replyOf(response, await readAll(response));
  }

  /** Opens a call and gives the response as it begins. */
  send(method: string, path: string, body: string | null, live = false): Promise<IncomingMessage> {
    const { base, socket, authorization, ca } = this.target;
    const headers: Record<string, string> = { accept: live ? 'text/event-stream' : 'application/json' };
    if (authorization !== null) headers.authorization = authorization;
    if (body !== null) {
      headers['content-type'] = 'application/json';
      headers['content-length'] = String(Buffer.byteLength(body));
    }
    const url = new URL(`/api/v4${path}`, base);
    return new Promise((resolve, reject) => {
      const way = socket === null ? {} : { socketPath: socket };
      const options = { method, headers, agent: false, ...way, ...(ca === null ? {} : { ca }) };
      const sent: ClientRequest = (base.protocol === 'https:' ? httpsRequest : httpRequest)(url, options, resolve);
      const what = `${this.address} does not answer`;
      sent.on('error', (error) => reject(new GatewayError('CLI-FAILED', `${what}: ${systemErrorText(error)}`, error)));
      if (!live) sent.setTimeout(ANSWER_MS, () => sent.destroy(new Error('timed out')));
      sent.end(body ?? undefined);
    });
  }
}

function readAll(response: IncomingMessage): Promise<string> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let bytes = 0;
    response.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes > MAX_ANSWER_BYTES) response.destroy(new Error('the answer is too large'));
      else chunks.push(chunk);
    });
    response.on('error', (error) => reject(new GatewayError('CLI-FAILED', errorText(error), error)));
    response.on('end', () => resolve(Buffer.concat(chunks).toString()));
  });
}

function replyOf(response: IncomingMessage, text: string): Reply {
  const status = response.statusCode ?? 0;
  let document: unknown = null;
  try {
    document = JSON.parse(text);
  } catch {
    // Something that is no gateway answers here; the status says enough.
  }
  const fields = isRecord(document) ? document : {};
  const { code, message, data, meta } = fields;
  return {
    status,
    code: typeof code === 'number' ? code : status < 400 && isRecord(document) ? 0 : -1,
    message: typeof message === 'string' ? message : `HTTP status ${status}`,
    data: data === undefined ? fields : data,
    meta: isRecord(meta) ? meta : {},
    headers: response.headers,
  };
}

function failure(reply: Reply): GatewayError {
  const hint =
    reply.status === 401
      ? ' (--user with --password-file, TIDEGATE_USER and TIDEGATE_PASSWORD, or run as root or the user of the gateway)'
      : '';
  return new GatewayError('CLI-FAILED', `${reply.message}${hint}`);
}

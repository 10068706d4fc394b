// A server that a source names, and the checks every source's answer goes through: addresses, weights, metadata, and
// how many. Used by the sources beside it and by discovery.ts. What is malformed makes the whole answer fail, so that
// no half of it is used.
export interface Found {
  /** "host:port", host in brackets where it has colons. */
  readonly addr: string;
  /** A name or an address without brackets. */
  readonly host: string;
  readonly port: number;
  readonly weight: number;
  readonly backup: boolean;
  readonly metadata: Readonly<Record<string, string>>;
}

export interface Answer {
  /** null = nothing has changed since the last answer. */
  readonly servers: readonly Found[] | null;
  /** Milliseconds until the source is to be asked again. */
  readonly againMs: number;
}

export interface Source {
  /** For people: "srv _mqtt._tcp.example.org", "https://...". Without credentials. */
  readonly where: string;
  /** Asks once. Rejects with the reason. */
  next(signal: AbortSignal): Promise<Answer>;
}

export const MAX_SERVERS = 10_000;
/** Bytes of an answer. */
export const MAX_ANSWER = 8 * 1024 * 1024;
const MAX_WEIGHT = 65_535;
const MAX_METADATA = 32;
const MAX_TEXT = 1024;
const HOST = /^(?:[A-Za-z0-9_](?:[A-Za-z0-9_.-]{0,253}[A-Za-z0-9_.])?|[0-9A-Fa-f:.]{2,45}(?:%[A-Za-z0-9]{1,16})?)$/;

/** Throws with what is wrong. */
export function foundServer(
  host: string,
  port: number,
  extra: {
    readonly weight?: unknown;
    readonly backup?: unknown;
    readonly metadata?: Readonly<Record<string, string>>;
  } = {},
): Found {
  if (!HOST.test(host)) throw new Error(`not a host name or address: ${JSON.stringify(host.slice(0, 100))}`);
  if (!Number.isInteger(port) || port < 1 || port > 65_535) throw new Error(`not a port: ${String(port).slice(0, 20)}`);
  const { weight = 1, backup = false, metadata = {} } = extra;
  const parsed = typeof weight === 'string' && /^\d{1,5}$/.test(weight) ? Number(weight) : weight;
  if (typeof parsed !== 'number' || !Number.isInteger(parsed) || parsed < 1 || parsed > MAX_WEIGHT)
    throw new Error(`not a weight from 1 to ${MAX_WEIGHT}: ${String(weight).slice(0, 20)}`);
  return {
    addr: host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`,
    host,
    port,
    weight: parsed,
    backup: backup === true || backup === 'true',
    metadata,
  };
}

/** "host:port", "[v6]:port", or a host alone where `defaultPort` is given. Throws with what is wrong. */
export function splitAddress(text: string, defaultPort: number | null): { host: string; port: number } {
  const match = text.match(/^\[([^\]]{2,60})\](?::(\d{1,5}))?$/) ?? text.match(/^([^:[\]]{1,255})(?::(\d{1,5}))?$/);
  if (match === null) throw new Error(`not an address: ${JSON.stringify(text.slice(0, 100))}`);
  const port = match[2] === undefined ? defaultPort : Number(match[2]);
  if (port === null) throw new Error(`an address without a port: ${JSON.stringify(text.slice(0, 100))}`);
  return { host: match[1], port };
}

/**
 * Texts of an object, as far as they are texts or numbers: bounded in number and length, never a name every object has.
 */
export function metadataOf(value: unknown): Record<string, string> {
  const found: Record<string, string> = Object.create(null);
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return found;
  let count = 0;
  for (const [key, text] of Object.entries(value)) {
    if (!['string', 'number', 'boolean'].includes(typeof text) || key.length > MAX_TEXT || key in Object.prototype)
      continue;
    if (++count > MAX_METADATA) break;
    found[key] = String(text).slice(0, MAX_TEXT);
  }
  return found;
}

/** One entry for each address, the first one; throws when there are too many. */
export function distinct(servers: readonly Found[]): Found[] {
  const byAddress = new Map<string, Found>();
  for (const server of servers) if (!byAddress.has(server.addr)) byAddress.set(server.addr, server);
  if (byAddress.size > MAX_SERVERS) throw new Error(`more than ${MAX_SERVERS} servers`);
  return [...byAddress.values()];
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

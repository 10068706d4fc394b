// Addresses as text: "host:port" taken apart and put together, the forms that IPv6 and dual-stack sockets bring made
// plain. Called by every listener and by dial.ts; gateway/transports.ts reads configured addresses with it. Pure, never
// resolves a name. Source: RFC 3986 section 3.2.2 (brackets), RFC 4291 section 2.5.5.2 (IPv4-mapped addresses), RFC
// 1035 section 2.3.4 (length of a name).
import { isIP } from 'node:net';

export interface HostPort {
  /** A name, an IPv4 or IPv6 address without brackets, or "*" for every address. */
  readonly host: string;
  readonly port: number;
  /** What follows the port, with its leading slash; null when nothing does. */
  readonly path: string | null;
}

const LONGEST_NAME = 253;
/** A name, brackets, a port and a path of a reasonable length. */
const LONGEST_TEXT = 2048;
const NAME = /^[A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_.])?$/;
const PORT = /^[0-9]{1,5}$/;

/** Whether `text` can be the host of a listener or of a peer. */
export function isHost(text: string): boolean {
  if (text.length === 0 || text.length > LONGEST_NAME) return false;
  return text === '*' || isIP(text) !== 0 || NAME.test(text);
}

/** Reads "host:port", "[::1]:1883", "*:1883" and "host:port/path"; null for anything else. */
export function parseHostPort(text: string): HostPort | null {
  if (text.length > LONGEST_TEXT) return null;
  const slash = text.indexOf('/');
  const path = slash < 0 ? null : text.slice(slash);
  const place = slash < 0 ? text : text.slice(0, slash);
  const colon = place.lastIndexOf(':');
  if (colon <= 0) return null;
  const portText = place.slice(colon + 1);
  if (!PORT.test(portText)) return null;
  const port = Number(portText);
  if (port > 65535) return null;
  let host = place.slice(0, colon);
  if (host.startsWith('[')) {
    if (!host.endsWith(']')) return null;
    host = host.slice(1, -1);
    if (isIP(host) !== 6) return null;
  } else if (host.includes(':') || !isHost(host)) return null;
  return { host, port, path };
}

/** "host:port", with brackets where the host is an IPv6 address. */
export function formatHostPort(host: string, port: number): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
}

/** The IPv4 address inside an IPv4-mapped IPv6 one, anything else as it is; "" for undefined. */
export function plainAddress(address: string | undefined): string {
  if (address === undefined) return '';
  if (address.startsWith('::ffff:') && address.includes('.')) return address.slice(7);
  return address;
}

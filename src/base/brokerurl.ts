// The URL of an MQTT broker: the one grammar for configuration, REST and dialling. Called by config/build/bridges.ts,
// bridge/mqtt/connect.ts.
//   mqtt-tcp:// mqtt:// tls+mqtt-tcp:// mqtts:// mqtt-quic://  host[:port][/]       ws:// wss://  host[:port][/path]
// A host is a name, an IPv4 address, or an IPv6 address in brackets, with a zone except for ws and wss. Pure.
// Sources: NanoMQ's names of the schemes; RFC 3986 section 3.2; RFC 6874 for zones.
import { isIPv6 } from 'node:net';

export interface BrokerUrl {
  readonly kind: 'tcp' | 'tls' | 'ws' | 'wss' | 'quic';
  /** Without brackets. */
  readonly host: string;
  readonly port: number;
}

/** Every name of a scheme, and the port where none is written. */
const SCHEMES: ReadonlyMap<string, readonly [BrokerUrl['kind'], number]> = new Map([
  ['mqtt-tcp', ['tcp', 1883]],
  ['mqtt', ['tcp', 1883]],
  ['tls+mqtt-tcp', ['tls', 8883]],
  ['mqtts', ['tls', 8883]],
  ['mqtt-quic', ['quic', 14567]],
  ['ws', ['ws', 80]],
  ['wss', ['wss', 443]],
]);

const PLACE = /^(?:\[([^\s[\]]{2,60})\]|([^\s:/?#[\]@%\\*]{1,253}))(?::(\d{1,9}))?(\/\S{0,1000})?$/;

/** Takes a broker's URL apart; a text says what is wrong with it. */
export function parseBrokerUrl(url: string): BrokerUrl | string {
  const cut = url.indexOf('://');
  const scheme = SCHEMES.get(url.slice(0, Math.max(0, cut)));
  if (scheme === undefined) return 'mqtt-tcp://host:port or tls+mqtt-tcp://host:port expected';
  const [kind, defaultPort] = scheme;
  const found = PLACE.exec(url.slice(cut + 3));
  if (found === null) return 'host:port expected, as in "127.0.0.1:1883" or "[::1]:1883"';
  const [, six, name, digits, path = ''] = found;
  if (six !== undefined && !isIPv6(six)) return 'an IPv6 address expected between "[" and "]"';
  const port = digits === undefined ? defaultPort : Number(digits);
  if (port < 1 || port > 65_535) return 'the port has to be 1 to 65535';
  const isWeb = kind === 'ws' || kind === 'wss';
  if (!isWeb && path !== '' && path !== '/') return `nothing may follow the port of ${url.slice(0, cut)}://`;
  if (isWeb && !URL.canParse(url)) return 'this host is not possible in a ws:// or wss:// URL';
  return { kind, host: six ?? name, port };
}

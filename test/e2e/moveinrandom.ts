// Random files of mosquitto.conf over all options of 2.0.11 that change what a client sees, for movein.test.ts. Every file starts mosquitto.
// Known differences by choice are left out of the files: %c and %u inside a level, TLS below 1.2.
import type { Random } from '../harness/random.ts';

export interface MoveinPlaces {
  /** Free ports of this machine. */
  readonly ports: readonly number[];
  /** Where passwd, acl1 and acl2 are. */
  readonly folder: string;
  readonly tls: { readonly ca: string; readonly cert: string; readonly key: string } | null;
}

/** Cosmetic and lost options: a file may have them, and no probe sees a difference. */
const QUIET = [
  'autosave_interval 7',
  'autosave_on_changes true',
  'connection_messages false',
  'log_timestamp false',
  'set_tcp_nodelay true',
  'upgrade_outgoing_qos false',
  'max_inflight_bytes 100000',
  'max_queued_messages 50 # some',
  'max_queued_bytes 100000',
  'queue_qos0_messages true',
  'persistent_client_expiration 2d',
  'allow_duplicate_messages false',
  'sys_interval 3',
  'memory_limit 100000000',
  'websockets_headers_size 2048',
];

const LIMITS: readonly ((r: Random) => string)[] = [
  (r) => `max_inflight_messages ${r.pick([1, 5, 20, 100])}`,
  (r) => `max_keepalive ${r.pick([10, 60, 65535])}`,
  (r) => `max_packet_size ${r.pick([300, 2000, 100000])}`,
  (r) => `message_size_limit ${r.pick([0, 50, 5000])}`,
  () => 'retain_available false',
  (r) => `clientid_prefixes ${r.pick(['dev-', 'd'])}`,
];

const ON_LISTENER: readonly ((r: Random) => string)[] = [
  (r) => `max_qos ${r.below(3)}`,
  (r) => `max_connections ${r.pick([-1, 0, 50])}`,
  () => 'use_username_as_clientid true',
  (r) => `socket_domain ${r.pick(['ipv4', 'ipv6'])}`,
];

function some<T>(r: Random, list: readonly T[], most: number): T[] {
  const left = [...list];
  const taken: T[] = [];
  for (let count = r.below(most + 1); count > 0 && left.length > 0; count--)
    taken.push(...left.splice(r.below(left.length), 1));
  return taken;
}

function security(r: Random, { folder }: MoveinPlaces): string[] {
  const lines: string[] = [];
  if (r.below(4) > 0) lines.push(`allow_anonymous ${r.pick(['true', 'false', '1', '0'])}`);
  if (r.below(2) > 0) lines.push(`password_file ${folder}/passwd`);
  if (r.below(2) > 0) lines.push(`acl_file ${folder}/${r.pick(['acl1', 'acl2'])}`);
  if (r.below(5) === 0) lines.push('allow_zero_length_clientid false');
  if (r.below(5) === 0) lines.push(`auto_id_prefix ${r.pick(['x-', 'gw'])}`);
  return lines;
}

function tlsOf(r: Random, { tls }: MoveinPlaces): string[] {
  if (tls === null || r.below(3) > 0) return [];
  const lines = [`certfile ${tls.cert}`, `keyfile ${tls.key}`];
  if (r.below(2) > 0) lines.push(`cafile ${tls.ca}`, `require_certificate ${r.pick(['true', 'false'])}`);
  if (r.below(3) === 0) lines.push(r.pick(['use_identity_as_username true', 'use_subject_as_username true']));
  if (r.below(4) === 0) lines.push('tls_version tlsv1.2');
  return lines;
}

function listener(r: Random, port: number, places: MoveinPlaces, perListener: boolean): string[] {
  const host = r.pick(['', ' 127.0.0.1', ' 127.0.0.1', ' ::1', ' 0.0.0.0', ' localhost', ' 127.0.0.2']);
  const own = some(r, ON_LISTENER, 2)
    .map((make) => make(r))
    .filter((line) => host === '' || !line.startsWith('socket_domain'));
  return [`listener ${port}${host}`, ...own, ...tlsOf(r, places), ...(perListener ? security(r, places) : [])];
}

/** The lines of one file. */
export function randomMosquittoConf(r: Random, places: MoveinPlaces): string {
  const perListener = r.below(3) === 0;
  const lines: string[] = ['log_dest stderr'];
  if (perListener) lines.push('per_listener_settings true');
  const [first, second, third] = places.ports;
  const kinds = r.below(4);
  // Without a port line mosquitto would take 1883, which another program may have.
  if (kinds === 0) lines.push(`port ${third}`, ...some(r, ON_LISTENER.slice(0, 3), 1).map((make) => make(r)));
  if (kinds === 0 && r.below(2) > 0) lines.push('bind_address 127.0.0.1');
  // A prefix of the default listener is forgotten by 2.0, which the report says.
  if (perListener && kinds === 0) lines.push(...security(r, places).filter((line) => !line.startsWith('auto_id')));
  if (!perListener) lines.push(...security(r, places));
  lines.push(...some(r, LIMITS, 2).map((make) => make(r)), ...some(r, QUIET, 4));
  if (kinds > 0 || r.below(2) > 0) lines.push(...listener(r, first, places, perListener));
  if (kinds > 1) lines.push(...listener(r, second, places, perListener));
  const shaped = lines.map((line) => (r.below(8) === 0 ? `  ${line.replace(' ', '   ')}` : line));
  if (r.below(4) === 0) shaped.splice(r.below(shaped.length), 0, '# a comment', '');
  return `${shaped.join(r.below(6) === 0 ? '\r\n' : '\n')}\n`;
}

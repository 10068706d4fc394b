// The options of mosquitto.conf that hold for the whole broker, its security and its log. Data for options.ts; see
// option.ts. Sources: mosquitto.conf(5) of 2.0.11, the option list of 2.1.
import { type Option, rows } from './option.ts';

const global = rows('global');
const security = rows('security');
const plugin = rows('plugin');
const structure = rows('structure');

const MAX_PAYLOAD = 268_435_455;

export const GENERAL: readonly Option[] = [
  security.carried('acl_file', 'text', '', { to: 'auth.acl_file, with per_listener_settings listeners.*.acl_file' }),
  security.carried('allow_anonymous', 'flag', '', { to: 'auth.allow_anonymous, or that of the listener' }),
  security.carried('allow_zero_length_clientid', 'flag', '', { to: 'listeners.*.allow_empty_clientid' }),
  security.carried('auto_id_prefix', 'text', '', { to: 'listeners.*.auto_clientid_prefix' }),
  security.carried('password_file', 'text', '', {
    to: 'auth.password_file, with per_listener_settings listeners.*.password_file',
  }),
  security.carried('psk_file', 'text', 'of listeners with psk_hint', { to: 'listeners.*.psk_file' }),
  structure.carried('per_listener_settings', 'flag', '', { to: 'where security stands: auth or the listeners' }),
  structure.carried('include_dir', 'text', 'every *.conf of the folder, in the order of mosquitto 2.0.11'),
  global.lost(
    'allow_duplicate_messages',
    'flag',
    'one message is delivered once to a client, however many of its filters match',
    {
      harmless: 'false',
    },
  ),
  global.cosmetic('autosave_interval', 'int', 'what is acknowledged is on disk at once (persistence.sync = ack)'),
  global.cosmetic('autosave_on_changes', 'flag', 'the same'),
  global.carried('check_retain_source', 'flag', '', { to: 'auth.check_retain_source' }),
  global.carried('clientid_prefixes', 'text', '', { to: 'mqtt.clientid_prefix' }),
  global.cosmetic('connection_messages', 'flag', 'clients are logged as they come and go at the level info'),
  global.lost('enable_control_api', 'flag', 'topics below $CONTROL do nothing; the REST API and `tidegate ctl` do', {
    harmless: 'false',
    since: '2.1',
  }),
  global.changed(
    'global_max_clients',
    'int',
    'counts sessions; one more is refused with 0x97, before MQTT 5 with code 3',
    {
      to: 'mqtt.max_sessions',
      harmless: '-1',
      since: '2.1',
    },
  ),
  global.lost('global_max_connections', 'int', 'connections are limited for each listener only (max_connections)', {
    harmless: '-1',
    since: '2.1',
  }),
  global.lost('max_inflight_bytes', 'int', 'messages in flight are limited by number only', { harmless: '0' }),
  global.carried('max_inflight_messages', 'int', '', {
    to: 'mqtt.max_inflight_window and mqtt.max_awaiting_rel (Receive Maximum)',
    min: 0,
    max: 65535,
  }),
  global.carried('max_keepalive', 'int', '', { to: 'mqtt.max_keepalive', min: 0, max: 65535 }),
  global.carried('max_packet_size', 'int', '', { to: 'mqtt.max_packet_size', min: 20, max: 2 ** 31 - 1 }),
  global.carried('max_queued_bytes', 'int', '', { to: 'mqtt.max_mqueue_bytes' }),
  global.carried('max_queued_messages', 'int', '', { to: 'mqtt.max_mqueue_len' }),
  global.changed('memory_limit', 'int', 'bounds what waits for clients, not the whole process', {
    to: 'mqtt.memory_budget',
    harmless: '0',
  }),
  global.carried('message_size_limit', 'int', '', { to: 'mqtt.max_payload_size', min: 0, max: MAX_PAYLOAD }),
  global.changed('persistence', 'flag', 'the database is SQLite; `tidegate store import` takes mosquitto.db over', {
    to: 'persistence',
    aliases: ['retained_persistence'],
  }),
  global.cosmetic('persistence_file', 'text', 'the database is called tidegate.db'),
  global.carried('persistence_location', 'text', 'alone it turns nothing on', { to: 'persistence.path' }),
  global.carried('persistent_client_expiration', 'words', '', { to: 'mqtt.max_session_expiry' }),
  global.cosmetic('pid_file', 'text', 'the service manager knows the process'),
  global.carried('queue_qos0_messages', 'flag', '', { to: 'mqtt.queue_qos0' }),
  global.carried('retain_available', 'flag', '', { to: 'mqtt.retain_available' }),
  global.lost('retain_expiry_interval', 'int', 'retained messages stay until they are replaced or their own expiry', {
    since: '2.1',
  }),
  global.cosmetic('retry_interval', 'int', 'gone from mosquitto too'),
  global.cosmetic('set_tcp_nodelay', 'flag', 'always on'),
  global.carried('sys_interval', 'int', '', { to: 'mqtt.sys_interval', min: 0, max: 65535 }),
  global.lost(
    'upgrade_outgoing_qos',
    'flag',
    'a message is delivered with its own QoS where that is lower than the subscription',
    {
      harmless: 'false',
    },
  ),
  global.lost(
    'user',
    'text',
    'the gateway stays the user that starts it: set User= in its systemd unit, do not start it as root',
  ),
  global.cosmetic('websockets_log_level', 'int', ''),
  global.cosmetic('websockets_headers_size', 'int', 'requests may have 16 KB of headers', {
    aliases: ['packet_buffer_size'],
  }),

  plugin.refused(
    'plugin',
    'text',
    'what it decides would not be asked; mosquitto_dynamic_security for all listeners is carried: its file becomes auth.dynamic_security',
    {
      aliases: ['auth_plugin', 'global_plugin'],
    },
  ),
  plugin.refused('plugin_load', 'words', 'what it decides would not be asked', { since: '2.1' }),
  plugin.refused('plugin_use', 'text', 'what it decides would not be asked', { since: '2.1' }),
  plugin.refused('plugin_opt_*', 'text', 'goes with its plugin', { aliases: ['auth_opt_*'] }),
  plugin.cosmetic('auth_plugin_deny_special_chars', 'flag', 'names with + or # never pass rules that put them in'),

  global.carried(
    'log_dest',
    'words',
    'stdout, stderr and file; none = level fatal; what else there is goes to the console',
    {
      to: 'log.to, log.dir, log.file',
    },
  ),
  global.cosmetic('log_facility', 'int', 'there is no syslog of its own: the service manager takes the console'),
  global.cosmetic('log_timestamp', 'flag', 'every line has its time'),
  global.cosmetic('log_timestamp_format', 'text', ''),
  global.carried('log_type', 'words', 'the least important of them is the level', { to: 'log.level' }),
];

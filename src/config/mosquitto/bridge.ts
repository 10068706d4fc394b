// The options of mosquitto.conf that a bridge has. Data for options.ts; see option.ts.
// Sources: mosquitto.conf(5) of 2.0.11, the option list of 2.1.
import { type Option, rows } from './option.ts';

const bridge = rows('bridge');
const structure = rows('structure');

export const BRIDGE: readonly Option[] = [
  structure.carried('connection', 'words', '', { to: 'bridges.mqtt.<name>' }),
  bridge.carried('address', 'words', '', { to: 'server, hybrid_servers', aliases: ['addresses'] }),
  bridge.carried('bridge_alpn', 'text', '', { to: 'ssl.alpn' }),
  bridge.cosmetic(
    'bridge_attempt_unsubscribe',
    'flag',
    'nothing is unsubscribed that this bridge has not subscribed to',
  ),
  bridge.carried('bridge_bind_address', 'text', '', { to: 'tcp.bind_interface' }),
  bridge.carried('bridge_cafile', 'text', 'TLS stays TLS', { to: 'ssl.cacertfile' }),
  bridge.carried('bridge_capath', 'text', 'a folder of hashed names', { to: 'ssl.cacertfile' }),
  bridge.carried('bridge_certfile', 'text', '', { to: 'ssl.certfile' }),
  bridge.carried('bridge_ciphers', 'text', '', { to: 'ssl.ciphers', since: '2.1' }),
  bridge.carried('bridge_ciphers_tls1.3', 'text', '', { to: 'ssl.ciphers', since: '2.1' }),
  bridge.carried('bridge_identity', 'text', 'needs bridge_psk', { to: 'ssl.psk_identity' }),
  bridge.carried('bridge_insecure', 'flag', 'the name in the certificate is not checked, its authority is', {
    to: 'ssl.verify_name',
  }),
  bridge.carried('bridge_keyfile', 'text', '', { to: 'ssl.keyfile' }),
  bridge.carried('bridge_max_packet_size', 'int', '', { to: 'max_packet_size' }),
  bridge.cosmetic('bridge_max_topic_alias', 'int', 'aliases are a matter of the connection', { since: '2.1' }),
  bridge.carried('bridge_outgoing_retain', 'flag', '', { to: 'forwards[].retain' }),
  bridge.carried('bridge_protocol_version', 'words', '', { to: 'proto_ver' }),
  bridge.carried('bridge_psk', 'text', 'TLS by a key, without certificates', { to: 'ssl.psk' }),
  bridge.carried('bridge_receive_maximum', 'int', '', {
    to: 'conn_properties.receive_maximum',
    min: 1,
    max: 65535,
    since: '2.1',
  }),
  bridge.cosmetic('bridge_reload_type', 'words', 'a bridge that changes is connected again at once', { since: '2.1' }),
  bridge.refused('bridge_require_ocsp', 'flag', 'a revoked certificate of the remote broker would be taken', {
    harmless: 'false',
  }),
  bridge.carried('bridge_session_expiry_interval', 'int', '', {
    to: 'conn_properties.session_expiry_interval',
    since: '2.1',
  }),
  bridge.cosmetic('bridge_tcp_keepalive', 'words', 'TCP keep-alive is on', { since: '2.1' }),
  bridge.cosmetic('bridge_tcp_user_timeout', 'int', 'a silent remote broker is asked whether it is there', {
    since: '2.1',
  }),
  bridge.carried('bridge_tls_use_os_certs', 'flag', 'TLS with the authorities of the system', {
    to: 'ssl',
    aliases: ['bridge_use_system_ca'],
    since: '2.1',
  }),
  bridge.changed('bridge_tls_version', 'text', 'the least version; below TLS 1.2 nothing is spoken', {
    to: 'ssl.min_version',
  }),
  bridge.carried('cleansession', 'flag', 'absent = the session is kept', { to: 'clean_start' }),
  bridge.lost('idle_timeout', 'int', 'goes with start_type lazy'),
  bridge.carried('keepalive_interval', 'int', '', { to: 'keepalive', max: 65535 }),
  bridge.lost('local_cleansession', 'flag', 'what waits for the remote broker is kept as cleansession says'),
  bridge.lost('local_clientid', 'text', 'a bridge has no client id on its own broker'),
  bridge.lost('local_password', 'text', 'a bridge does not log in on its own broker'),
  bridge.lost('local_username', 'text', 'a bridge does not log in on its own broker, no rights are asked for it'),
  bridge.carried('notification_topic', 'text', '', { to: 'notifications.topic' }),
  bridge.carried('notifications', 'flag', 'at the remote broker with QoS 0', { to: 'notifications' }),
  bridge.carried('notifications_local_only', 'flag', '', { to: 'notifications.local_only' }),
  bridge.carried('remote_clientid', 'text', 'absent = hostname.connection', { to: 'clientid', aliases: ['clientid'] }),
  bridge.carried('remote_password', 'text', '', { to: 'password', aliases: ['password'] }),
  bridge.carried('remote_username', 'text', '', { to: 'username', aliases: ['username'] }),
  bridge.changed('restart_timeout', 'words', 'the longest pause between two attempts; it begins short and has jitter', {
    to: 'backoff_max',
  }),
  bridge.carried('round_robin', 'flag', 'false: no return to the first address while another is connected', {
    to: 'hybrid_servers',
  }),
  bridge.changed('start_type', 'words', 'lazy and once run as automatic', { harmless: 'automatic' }),
  bridge.lost('threshold', 'int', 'goes with start_type lazy'),
  bridge.carried('topic', 'words', 'its QoS is a ceiling', { to: 'forwards, subscription' }),
  bridge.carried('try_private', 'flag', '', { to: 'no_local_v4' }),
];

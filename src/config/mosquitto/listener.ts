// The options of mosquitto.conf that a listener has. Data for options.ts; see option.ts.
// Sources: mosquitto.conf(5) of 2.0.11, the option list of 2.1.
import { type Option, rows } from './option.ts';

const listener = rows('listener');
const structure = rows('structure');

const TLS_ENGINE = 'keys in an OpenSSL engine cannot be used, so the listener cannot speak TLS';

export const LISTENER: readonly Option[] = [
  structure.carried('listener', 'words', 'without an address on IPv4 and IPv6; port 0 = a Unix socket', {
    to: 'listeners.<kind>.<name>.bind or .path',
  }),
  structure.carried('port', 'int', 'of the default listener', { to: 'bind', min: 1, max: 65535 }),
  structure.carried('bind_address', 'text', 'of the default listener', { to: 'bind' }),
  listener.lost('accept_protocol_versions', 'words', 'MQTT 3.1, 3.1.1 and 5.0 are all taken', { since: '2.1' }),
  listener.refused('bind_interface', 'text', 'the listener would be open on every interface; name the address instead'),
  listener.carried('cafile', 'text', '', { to: 'cacertfile' }),
  listener.carried('capath', 'text', 'a folder of hashed names, as openssl rehash makes it', { to: 'cacertfile' }),
  listener.carried('certfile', 'text', 'with keyfile: the listener is ssl or wss', { to: 'certfile' }),
  listener.carried('ciphers', 'text', '', { to: 'ciphers' }),
  listener.carried('ciphers_tls1.3', 'text', '', { to: 'ciphers' }),
  listener.carried('crlfile', 'text', '', { to: 'crlfile' }),
  listener.cosmetic('dhparamfile', 'text', 'groups for key exchange are chosen by OpenSSL'),
  listener.lost('disable_client_cert_date_checks', 'flag', 'certificates that are out of date are refused', {
    harmless: 'false',
    since: '2.1',
  }),
  listener.carried('enable_proxy_protocol', 'int', 'either version is understood', {
    to: 'proxy_protocol',
    min: 1,
    max: 2,
    since: '2.1',
  }),
  listener.lost('http_dir', 'text', 'no files are served over HTTP'),
  listener.carried('keyfile', 'text', '', { to: 'keyfile' }),
  listener.carried('listener_allow_anonymous', 'flag', '', { to: 'allow_anonymous', since: '2.1' }),
  listener.carried('listener_auto_id_prefix', 'text', '', { to: 'auto_clientid_prefix', since: '2.1' }),
  listener.carried('max_connections', 'int', '', { to: 'max_connections' }),
  listener.carried('max_qos', 'int', '', { to: 'max_qos', aliases: ['maximum_qos'], min: 0, max: 2 }),
  listener.changed('max_topic_alias', 'int', 'one value for all listeners: the highest one', {
    to: 'mqtt.max_topic_alias',
    min: 0,
    max: 65535,
  }),
  listener.cosmetic('max_topic_alias_broker', 'int', 'aliases towards clients are off: mqtt.max_topic_alias_out', {
    since: '2.1',
  }),
  listener.carried('mount_point', 'text', 'taken off again towards clients, as from 2.0.12 on', { to: 'mount_point' }),
  listener.carried('protocol', 'words', 'mqtt and websockets; http_api is left out', { to: 'the kind of listener' }),
  listener.refused(
    'proxy_protocol_v2_require_tls',
    'flag',
    'clients that came to the proxy without TLS would be let in',
    {
      harmless: 'false',
      since: '2.1',
    },
  ),
  listener.carried('psk_hint', 'text', 'TLS by keys, without certificates', { to: 'psk_hint, psk_file' }),
  listener.carried('require_certificate', 'flag', '', { to: 'verify_peer, fail_if_no_peer_cert' }),
  listener.carried('socket_domain', 'words', '', { to: 'bind, ipv6_only' }),
  listener.refused('tls_engine', 'text', TLS_ENGINE),
  listener.refused('tls_engine_kpass_sha1', 'text', TLS_ENGINE),
  listener.refused('tls_keyform', 'text', TLS_ENGINE, { harmless: 'pem' }),
  listener.changed('tls_version', 'text', 'the least version; below TLS 1.2 nothing is spoken', { to: 'min_version' }),
  listener.carried('use_identity_as_username', 'flag', '', { to: 'use_identity_as_username' }),
  listener.carried('use_subject_as_username', 'flag', '', { to: 'use_subject_as_username' }),
  listener.carried('use_username_as_clientid', 'flag', '', { to: 'use_username_as_clientid' }),
  listener.carried('websockets_origin', 'text', 'a host or an origin; absent = any', { to: 'origins', since: '2.1' }),
];

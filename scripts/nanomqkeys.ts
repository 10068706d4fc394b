// The keys of NanoMQ's reference, 0.25.6, as paths; `*` is a name that users choose. Used by moving.ts.

function below(path: string, keys: string): string[] {
  return keys.split(' ').map((key) => `${path}.${key}`);
}

const TLS = 'bind enable keyfile certfile cacertfile key_password verify_peer fail_if_no_peer_cert';
const REQUEST = 'url method headers params';

export const NANOMQ_KEYS: readonly (readonly [title: string, keys: readonly string[]])[] = [
  ['system', ['system']],
  [
    'mqtt',
    below(
      'mqtt',
      'property_size max_packet_size max_mqueue_len max_topic_alias retry_interval keepalive_multiplier max_inflight_window max_awaiting_rel await_rel_timeout batch_resend',
    ),
  ],
  [
    'listeners',
    [
      ...below('listeners.tcp', 'bind enable'),
      ...below('listeners.ssl', TLS),
      ...below('listeners.ws', 'bind enable'),
      ...below('listeners.wss', 'bind enable'),
    ],
  ],
  [
    'auth',
    [
      ...below('auth', 'allow_anonymous no_match deny_action enable cache password acl.enable acl.rules'),
      ...below('auth.http_auth', 'enable timeout connect_timeout pool_size cache_ttl'),
      ...['auth_req', 'super_req', 'acl_req'].flatMap((request) => below(`auth.http_auth.${request}`, REQUEST)),
    ],
  ],
  [
    'http_server',
    below('http_server', 'port ip_addr limit_conn max_body username password auth_type jwt.public.keyfile'),
  ],
  ['log', below('log', 'to level dir file uds_addr rotation.size rotation.count')],
  ['sqlite', below('sqlite', 'disk_cache_size mounted_file_path flush_mem_threshold resend_interval')],
  ['webhook', below('webhook', 'enable url headers body.encoding pool_size cancel_timeout ssl events')],
  ['preset', below('preset.session.*', 'clientid topic')],
  [
    'bridges.mqtt',
    [
      ...below(
        'bridges.mqtt.*',
        'enable server proto_ver clientid username password keepalive backoff_max clean_start transparent retry_qos_0 no_local_v4 conn_properties will ssl tcp forwards subscription sub_properties max_parallel_processes max_send_queue_len max_recv_queue_len resend_interval resend_wait cancel_timeout hybrid_bridging hybrid_servers quic_keepalive quic_multi_stream',
      ),
      'bridges.mqtt.cache',
      'bridges.aws',
    ],
  ],
  ['bridges.nng', below('bridges.nng', 'pub sub')],
  ['other blocks', ['rules', 'plugin', 'exchange_client', 'parquet']],
];

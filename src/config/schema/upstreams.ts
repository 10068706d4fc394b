// The keys of upstreams, pools of servers for proxies: each once, with type, default and text. Data for schema.ts; to
// add a key, add a row here and its name in code to proxy/proxy.ts, then run `make docs`. Sources: NGINX's upstream
// module, whose defaults are kept where they suit MQTT.
import { block, list, named, optional } from './blocks.ts';
import { duration, flag, int, text, word } from './keys.ts';
import { checkBind, TLS_CLIENT } from './listeners.ts';
import { checkTemplate } from './template.ts';

const SERVER = block(
  {
    addr: text({
      text: 'host:port, or unix:/path.',
      example: '10.0.1.10:1883',
      check: (value) => (value.startsWith('unix:/') ? null : checkBind(value)),
    }),
    weight: int({ default: 1, min: 1, max: 65535, text: 'Share of connections.' }),
    backup: flag({ default: false, text: 'Used only when no other server is available.' }),
    down: flag({ default: false, text: 'Never used.' }),
    max_fails: int({
      default: 1,
      text: 'Failures within fail_timeout after which the server is not used for fail_timeout. 0 = failures do not count.',
    }),
    fail_timeout: duration({
      default: '10s',
      min: 1,
      text: 'Time window for max_fails, and time a failed server is not used.',
    }),
    max_conns: int({ default: 0, text: 'Largest number of connections. 0 = no limit.' }),
  },
  { unknown: 'error', text: 'One server.' },
);

export const UPSTREAMS = named(
  block(
    {
      balance: word(['round_robin', 'least_conn', 'ip_hash', 'hash', 'consistent_hash', 'random'], {
        default: 'round_robin',
        text: 'How a server is selected.',
      }),
      hash_key: text({
        default: `\${clientid}`,
        text: 'Template of the value hashed by hash and consistent_hash.',
        check: checkTemplate,
      }),
      sticky: optional(
        {
          key: text({
            default: `\${clientid}`,
            text: 'Template of the key, such as the client id.',
            check: checkTemplate,
          }),
          expire: duration({
            default: '30m',
            min: 1,
            text: 'How long a key is remembered after its last connection has ended.',
          }),
          size: int({
            default: 100_000,
            min: 1,
            max: 10_000_000,
            text: 'Largest number of keys. Beyond it, the one that was used longest ago is forgotten.',
          }),
        },
        {
          unknown: 'error',
          text: 'A client goes to the server that its key was connected to the last time, while that can be used; balance selects one for new keys.',
        },
      ),
      servers: list(SERVER, { text: 'The servers. Required without discover.' }),
      discover: optional(
        {
          type: word(['dns', 'srv', 'file', 'http', 'consul'], {
            text: 'Source of the servers. dns: A and AAAA records. srv: SRV records. file: a JSON or TOML file. http: a document in the format of Prometheus http_sd. consul: the healthy instances of a service.',
            example: 'srv',
          }),
          name: text({
            default: '',
            text: 'Host name (dns), name of the SRV records (srv) or of the service (consul).',
            example: '_mqtt._tcp.example.org',
          }),
          port: int({
            default: 0,
            max: 65535,
            text: 'Port of servers without a port in their address. Required with type dns.',
          }),
          resolver: text({
            default: null,
            text: 'Name server, host:port. Absent = those of the system.',
            example: '127.0.0.1:53',
            check: checkBind,
          }),
          path: text({ default: '', text: 'With type file: the file.', example: '/etc/tidegate/servers.json' }),
          url: text({
            default: '',
            text: 'With type http: the document. With type consul: the address of its HTTP API.',
            example: 'http://127.0.0.1:8500',
          }),
          token: text({
            default: null,
            secret: true,
            text: 'Bearer token (http), or ACL token (consul).',
            example: 'change-me',
          }),
          tag: text({ default: null, text: 'With type consul: only instances with this tag.', example: 'edge' }),
          datacenter: text({ default: null, text: 'With type consul: its datacenter.', example: 'dc1' }),
          tls: optional(TLS_CLIENT, { unknown: 'error', text: 'TLS settings for https URLs.' }),
          weight_label: text({ default: 'weight', text: 'Label or metadata key that holds the weight of a server.' }),
          refresh: duration({
            default: '10s',
            min: 100,
            text: 'Interval between queries; with types dns and srv, the TTL of the records applies.',
          }),
          timeout: duration({ default: '5s', min: 10, text: 'Time allowed for an answer.' }),
        },
        { unknown: 'error', text: 'Discovery of servers at run time, in addition to servers.' },
      ),
      health: optional(
        {
          type: word(['tcp', 'mqtt'], { default: 'tcp', text: 'tcp: connect only. mqtt: wait for a CONNACK.' }),
          interval: duration({ default: '5s', min: 10, text: 'Interval between checks.' }),
          timeout: duration({ default: '2s', min: 10, text: 'Time allowed for an answer.' }),
          fails: int({ default: 1, min: 1, text: 'Consecutive failures after which a server is unhealthy.' }),
          passes: int({ default: 1, min: 1, text: 'Consecutive successes after which it is healthy again.' }),
          any_connack: flag({ default: false, text: 'With type mqtt: a CONNACK that refuses also counts as success.' }),
          username: text({ default: null, text: 'With type mqtt: user name of the probe.', example: 'probe' }),
          password: text({
            default: null,
            secret: true,
            text: 'With type mqtt: password of the probe.',
            example: 'change-me',
          }),
        },
        { unknown: 'error', text: 'Active health checks.' },
      ),
      tls: optional(TLS_CLIENT, { unknown: 'error', text: 'TLS for connections to the servers.' }),
      protocol: word(['tcp', 'ws'], {
        default: 'tcp',
        text: 'Protocol of the servers. ws: MQTT over WebSocket, with tls wss.',
      }),
      path: text({
        default: '/mqtt',
        text: 'Path of the WebSocket request.',
        check: (value) => (/^\/\S{0,1000}$/.test(value) ? null : 'a path such as /mqtt expected'),
      }),
      slow_start: duration({
        default: '0s',
        text: 'Time over which a recovered server returns to its full share. 0 = at once.',
      }),
      dns_refresh: duration({
        default: '30s',
        text: 'How long resolved addresses of a host name are used. 0 = resolved once.',
      }),
      send_proxy_protocol: word(['off', 'v1', 'v2'], {
        default: 'off',
        text: 'Send a PROXY protocol header to the servers.',
      }),
    },
    { unknown: 'error', text: 'One pool of servers.' },
  ),
  { example: 'name', text: 'Pools of MQTT brokers for proxies.' },
);

// The keys of auth: each once, with type, default and text. A mistake here could leave the gateway open, so below
// `auth` itself unknown keys are errors. Data for schema.ts; to add a key, add a row here and its name in code to the
// options of auth/ that it belongs to, then run `make docs`. Names, units and meanings are NanoMQ's where NanoMQ has
// the key; what it has and this gateway does not need is `ignored`.

import { checkNetwork, maskUrl } from '../values.ts';
import { block, ignored, list, needless, optional, pairs } from './blocks.ts';
import { duration, flag, int, masked, text, word } from './keys.ts';
import { SECRET_HEADER } from './listeners.ts';

/** "#" is everybody, in NanoMQ's words. */
function checkWho(value: string): string | null {
  return value === '#' ? null : checkNetwork(value);
}

const ACL_WHO = {
  username: text({ default: null, text: 'The rule is for this username.', example: 'alice' }),
  clientid: text({ default: null, text: 'The rule is for this client id.', example: 'sensor-1' }),
  ipaddr: text({
    default: null,
    text: 'The rule is for this address or network.',
    example: '10.0.0.0/8',
    check: checkWho,
  }),
  ipaddrs: list(text({ text: 'Address or network.', check: checkWho }), {
    text: 'The rule is for these addresses or networks.',
    example: ['127.0.0.1'],
  }),
};
/** A mistake here could leave the gateway open, so unknown keys are errors. */
export const ACL_RULE = block(
  {
    permit: word(['allow', 'deny'], { text: 'What clients that match are given.', example: 'allow' }),
    action: word(['publish', 'subscribe', 'pubsub'], { default: 'pubsub', text: 'Actions the rule covers.' }),
    topics: list(text({ text: 'A topic filter.' }), {
      single: true,
      text: `Topic filters; \${clientid} and \${username} are replaced by those of the client; after a leading @ the filter is literal. Empty = every topic.`,
      example: [`dev/\${clientid}/#`],
    }),
    ...ACL_WHO,
    and: list(block(ACL_WHO, { unknown: 'error', text: 'A condition.' }), { text: 'All of these must match.' }),
    or: list(block(ACL_WHO, { unknown: 'error', text: 'A condition.' }), { text: 'At least one of these must match.' }),
  },
  { unknown: 'error', text: 'One rule. The first rule that matches decides.' },
);
const HTTP_REQUEST = {
  url: masked(maskUrl, text({ text: 'Address of the service.', example: 'http://127.0.0.1:8080/mqtt/auth' })),
  method: word(['post', 'get'], {
    default: 'post',
    text: 'HTTP method. post sends the parameters in the body, get in the URL.',
  }),
  headers: pairs({
    secret: SECRET_HEADER,
    text: 'Headers to send.',
    example: { 'content-type': 'application/x-www-form-urlencoded' },
  }),
  params: pairs({
    text: 'Parameters to send: %u username, %c client id, %a address, %P password, %p port, %C and %d subject of the certificate, %t topic, %m mountpoint, %A action, %r protocol.',
    example: { clientid: '%c', username: '%u', password: '%P' },
  }),
  ssl: ignored('TLS settings of this request have no effect', 'block'),
};
export const HTTP_AUTH = optional(
  {
    enable: flag({ default: true, text: 'Whether the service is used.' }),
    timeout: duration({
      default: '5s',
      min: 1,
      text: 'Time allowed for an answer; without one the client is refused.',
    }),
    connect_timeout: duration({ default: '5s', min: 1, text: 'Time allowed to connect to the service.' }),
    pool_size: int({ default: 32, min: 1, max: 1024, text: 'Largest number of concurrent requests.' }),
    cache_ttl: duration({ default: '0s', text: 'How long permission answers are cached. 0 = no cache.' }),
    auth_req: optional(HTTP_REQUEST, {
      unknown: 'error',
      text: 'Request sent at CONNECT; status 200 accepts the client.',
    }),
    super_req: optional(HTTP_REQUEST, {
      unknown: 'error',
      text: 'Request sent at CONNECT; status 200 allows everything that acl_req would check.',
    }),
    acl_req: optional(HTTP_REQUEST, {
      unknown: 'error',
      text: 'Request sent for a publish or subscribe; status 200 allows it.',
    }),
  },
  { unknown: 'error', text: 'Authentication and permissions from an HTTP service.' },
);

/** Keys of tokens that are fetched. */
export const REMOTE_KEYS = {
  jwks_url: masked(
    maskUrl,
    text({
      default: null,
      text: 'Where the JWK set with the public keys is fetched.',
      example: 'https://login.example/keys',
    }),
  ),
  issuer_discovery: flag({
    default: false,
    text: 'Find the JWK set by the document /.well-known/openid-configuration below issuer.',
  }),
  jwks_refresh: duration({
    default: '10m',
    min: 1000,
    text: 'Fetched keys older than this are fetched again at the next login.',
  }),
  jwks_stale: duration({
    default: '1h',
    text: 'How long after jwks_refresh the old keys still hold while they cannot be fetched; then tokens are refused.',
  }),
  jwks_timeout: duration({ default: '5s', min: 1, max: 60_000, text: 'For each request for keys.' }),
  jwks_cacertfile: text({
    default: null,
    text: 'Authorities of the server with the keys, PEM; absent = those of the system.',
    example: '/etc/tidegate/certs/login-ca.pem',
  }),
  jwks_certfile: text({
    default: null,
    text: 'Certificate that is shown to the server with the keys, PEM.',
    example: '/etc/tidegate/certs/gateway.pem',
  }),
  jwks_certkeyfile: text({
    default: null,
    text: 'Key of jwks_certfile, PEM.',
    example: '/etc/tidegate/certs/gateway.key',
  }),
};

export const JWT = {
  enable: flag({ default: true, text: 'Whether tokens are accepted.' }),
  secret: text({
    default: null,
    secret: true,
    text: 'Shared secret of at least 32 bytes, for HS256, HS384 and HS512. One of this, keyfile, jwks_url and issuer_discovery.',
    example: 'change-me-to-a-long-random-text-',
  }),
  keyfile: text({
    default: null,
    text: 'Public key or certificate (PEM), or keys (JWK or JWK set, JSON).',
    example: '/etc/tidegate/jwt.pem',
  }),
  ...REMOTE_KEYS,
  algorithms: list(text({ text: 'An algorithm, e.g. ES256.' }), {
    text: 'Accepted algorithms; empty = all that suit the key.',
    example: ['ES256'],
  }),
  issuer: text({ default: null, text: 'Required value of the claim iss.', example: 'https://login.example' }),
  audience: text({ default: null, text: 'Value that the claim aud must contain.', example: 'tidegate' }),
  require_expiry: flag({ default: true, text: 'Refuse tokens without the claim exp, because they never expire.' }),
  clock_tolerance: duration({ default: '5s', max: 3_600_000, text: 'Largest accepted difference between the clocks.' }),
  username_claims: list(text({ text: 'A claim.' }), {
    default: ['username', 'sub'],
    text: 'The first of these claims found in the token is the username.',
  }),
  clientid_claim: text({ default: 'clientid', text: 'If the token has this claim, the client id must equal it.' }),
  acl_claim: text({
    default: 'acl',
    text: 'If the token has this claim, the client has only the permissions it lists: { "pub": [filters], "sub": [filters], "all": [filters] }.',
  }),
};
const AUTH_LIMITS = block(
  {
    per_user_and_address: int({
      default: 20,
      text: 'Failed logins of one user from one address before further logins are refused without a check. 0 = no limit.',
    }),
    per_address: int({ default: 0, text: 'Failed logins from one address, all users together. 0 = no limit.' }),
    per_user: int({
      default: 0,
      text: 'Failed logins of one user from all addresses, except those the user has logged in from before. 0 = no limit.',
    }),
    window: duration({ default: '1m', min: 1, text: 'Failures older than this do not count.' }),
    lock: duration({ default: '10s', min: 1, text: 'How long logins are refused. Doubles each time, up to max_lock.' }),
    max_lock: duration({ default: '15m', min: 1, text: 'Longest time logins are refused.' }),
    exempt: list(text({ text: 'Address or network.', check: checkNetwork }), {
      default: ['127.0.0.0/8', '::1'],
      text: 'Addresses and networks that are never locked; per_user still applies to them.',
    }),
  },
  { unknown: 'error', text: 'Protection against password guessing.' },
);

export const AUTH = block(
  {
    allow_anonymous: flag({
      default: null,
      text: 'Accept clients that send no username. Absent = only while all listeners are on loopback or a Unix socket and no password source is configured.',
      example: false,
    }),
    password_file: text({
      default: null,
      text: 'Users and hashed passwords: a file in the format of mosquitto_passwd.',
      example: '/etc/tidegate/passwd',
    }),
    acl_file: text({
      default: null,
      text: "Permissions: a file in the format of mosquitto's acl_file.",
      example: '/etc/tidegate/acl',
    }),
    acl_subscribe: word(['mosquitto', 'truthful'], {
      default: 'mosquitto',
      text: 'How acl_file applies to SUBSCRIBE. mosquitto: always granted, messages are checked on delivery. truthful: refused if no message could ever be delivered.',
    }),
    check_retain_source: flag({
      default: true,
      text: 'Deliver a retained message only while its publisher still has permission to write the topic.',
    }),
    session_owner: word(['user', 'client_id'], {
      default: 'user',
      text: 'Who may take over a session. user: only the user that created it. client_id: any accepted client with the same client id, as in mosquitto.',
    }),
    password: pairs({ secret: true, text: 'Users and their plain-text passwords.', example: { alice: 'change-me' } }),
    acl: optional(
      {
        enable: flag({ default: true, text: 'Whether the rules are applied.' }),
        rules: list(ACL_RULE, { text: 'Rules in order.' }),
      },
      { unknown: 'error', text: 'Permissions as a list of rules.' },
    ),
    no_match: word(['allow', 'deny'], { default: 'allow', text: 'Result when no rule of auth.acl matches.' }),
    deny_action: word(['ignore', 'disconnect'], {
      default: 'ignore',
      text: 'Reaction to a denied publish or subscribe: ignore it, or close the connection.',
    }),
    scram_file: text({
      default: null,
      text: 'Users for SCRAM-SHA-256; one line per user: username:SCRAM-SHA-256$iterations:salt$StoredKey:ServerKey.',
      example: '/etc/tidegate/scram',
    }),
    dynamic_security: optional(
      {
        enable: flag({ default: true, text: 'Whether these users have a say.' }),
        file: text({
          default: null,
          text: 'Where they are kept, in the format of dynamic-security.json of mosquitto. Default: dynamic-security.json beside the database, or in tidegate.d where nothing is persisted.',
          example: '/var/lib/tidegate/dynamic-security.json',
        }),
        control_topic: flag({
          default: true,
          text: 'Whether clients with the right to publish $CONTROL/dynamic-security/v1 may manage users over MQTT.',
        }),
      },
      { unknown: 'error', text: 'Users, groups and roles that are managed while the gateway runs.' },
    ),
    jwt: optional(JWT, { unknown: 'error', text: 'Authentication with a token sent as the password.' }),
    limits: AUTH_LIMITS,
    http_auth: HTTP_AUTH,
    cache: needless('verdicts are cached while they are valid; no effect', 'block'),
    enable: ignored('authentication cannot be switched off as a whole; no effect', 'true | false'),
  },
  { unknown: 'warn', text: 'Authentication and permissions.' },
);

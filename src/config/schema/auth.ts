// The keys of auth: each once, with type, default and text. A mistake here could leave the gateway open, so below `auth` itself
// unknown keys are errors.
// Data for schema.ts; to add a key, add a row here, a field in config/config.ts and a line in config/build/auth.ts, then run `make docs`.
// Names, units and meanings are NanoMQ's where NanoMQ has the key; what it has and this gateway does not need is `ignored`.

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
    permit: word(['allow', 'deny'], { text: 'What a client that fits gets.', example: 'allow' }),
    action: word(['publish', 'subscribe', 'pubsub'], { default: 'pubsub', text: 'What the rule is about.' }),
    topics: list(text({ text: 'A topic filter.' }), {
      single: true,
      text: `Topic filters; \${clientid} and \${username} stand for those of the client, a leading @ takes a filter literally. Empty = every topic.`,
      example: [`dev/\${clientid}/#`],
    }),
    ...ACL_WHO,
    and: list(block(ACL_WHO, { unknown: 'error', text: 'A condition.' }), { text: 'All of these have to fit.' }),
    or: list(block(ACL_WHO, { unknown: 'error', text: 'A condition.' }), { text: 'One of these has to fit.' }),
  },
  { unknown: 'error', text: 'One rule; the first that fits decides.' },
);
export const HTTP_REQUEST = {
  url: masked(maskUrl, text({ text: 'Address of the service.', example: 'http://127.0.0.1:8080/mqtt/auth' })),
  method: word(['post', 'get'], { default: 'post', text: 'Parameters go into the body (post) or into the URL (get).' }),
  headers: pairs({
    secret: SECRET_HEADER,
    text: 'Headers to send.',
    example: { 'content-type': 'application/x-www-form-urlencoded' },
  }),
  params: pairs({
    text: 'Parameters: %u username, %c client id, %a address, %P password, %p port, %C and %d subject of the certificate, %t topic, %m mountpoint, %A action, %r protocol.',
    example: { clientid: '%c', username: '%u', password: '%P' },
  }),
  ssl: ignored('TLS settings of this request have no effect', 'block'),
};
const HTTP_AUTH = optional(
  {
    enable: flag({ default: true, text: 'Whether the service is asked.' }),
    timeout: duration({ default: '5s', min: 1, text: 'Time for an answer; without one the client is refused.' }),
    connect_timeout: duration({ default: '5s', min: 1, text: 'Time to connect to the service.' }),
    pool_size: int({ default: 32, min: 1, max: 1024, text: 'Requests at once.' }),
    cache_ttl: duration({ default: '0s', text: 'How long an answer about rights is remembered. 0 = not at all.' }),
    auth_req: optional(HTTP_REQUEST, { unknown: 'error', text: 'Asked at CONNECT; status 200 lets the client in.' }),
    super_req: optional(HTTP_REQUEST, {
      unknown: 'error',
      text: 'Asked at CONNECT; 200 allows everything that acl_req would be asked about.',
    }),
    acl_req: optional(HTTP_REQUEST, { unknown: 'error', text: 'Asked for a publish or subscribe; 200 allows it.' }),
  },
  { unknown: 'error', text: 'Users and rights are asked for over HTTP.' },
);

export const JWT = {
  enable: flag({ default: true, text: 'Whether tokens are taken.' }),
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
  algorithms: list(text({ text: 'An algorithm, e.g. ES256.' }), {
    text: 'Algorithms that are taken; empty = all that fit the key.',
    example: ['ES256'],
  }),
  issuer: text({ default: null, text: 'What the claim iss has to be.', example: 'https://login.example' }),
  audience: text({ default: null, text: 'What the claim aud has to hold.', example: 'tidegate' }),
  require_expiry: flag({ default: true, text: 'Refuse tokens without the claim exp, which would hold for ever.' }),
  clock_tolerance: duration({ default: '5s', max: 3_600_000, text: 'How far the clocks may differ.' }),
  username_claims: list(text({ text: 'A claim.' }), {
    default: ['username', 'sub'],
    text: 'The first of these that a token has is the username.',
  }),
  clientid_claim: text({ default: 'clientid', text: 'Where a token has this claim, the client id has to be equal.' }),
  acl_claim: text({
    default: 'acl',
    text: 'Where a token has this claim, it is all the client may do: { "pub": [filters], "sub": [filters], "all": [filters] }.',
  }),
};
const AUTH_LIMITS = block(
  {
    per_user_and_address: int({
      default: 20,
      text: 'Failed logins of one user from one address before further ones are refused unseen. 0 = no limit.',
    }),
    per_address: int({ default: 0, text: 'The same for all users of an address. 0 = no limit.' }),
    per_user: int({
      default: 0,
      text: 'The same for a user from all addresses but those it has logged in from before. 0 = no limit.',
    }),
    window: duration({ default: '1m', min: 1, text: 'Failures older than this are forgotten.' }),
    lock: duration({ default: '10s', min: 1, text: 'How long logins are refused; twice as long each time.' }),
    max_lock: duration({ default: '15m', min: 1, text: 'The longest of these times.' }),
    exempt: list(text({ text: 'Address or network.', check: checkNetwork }), {
      default: ['127.0.0.0/8', '::1'],
      text: 'Addresses and networks that are never locked; per_user holds for them all the same.',
    }),
  },
  { unknown: 'error', text: 'Against guessing of passwords.' },
);

export const AUTH = block(
  {
    allow_anonymous: flag({
      default: null,
      text: 'Let clients in that send no username; absent = only while every listener is on loopback or a Unix socket and there is no source of passwords.',
      example: false,
    }),
    password_file: text({
      default: null,
      text: 'Users and hashed passwords, a file of mosquitto_passwd.',
      example: '/etc/tidegate/passwd',
    }),
    acl_file: text({
      default: null,
      text: "Rights, a file in mosquitto's acl_file format.",
      example: '/etc/tidegate/acl',
    }),
    acl_subscribe: word(['mosquitto', 'truthful'], {
      default: 'mosquitto',
      text: 'With acl_file a SUBSCRIBE is granted and delivery filtered (mosquitto), or refused where nothing could ever be delivered (truthful).',
    }),
    check_retain_source: flag({
      default: true,
      text: 'Deliver a retained message only while the one who published it may still write its topic.',
    }),
    session_owner: word(['user', 'client_id'], {
      default: 'user',
      text: 'Who may use a client id that has a session: only its user, or whoever is let in with it, as in mosquitto.',
    }),
    password: pairs({ secret: true, text: 'Users and their passwords in clear.', example: { alice: 'change-me' } }),
    acl: optional(
      {
        enable: flag({ default: true, text: 'Whether the rules are in force.' }),
        rules: list(ACL_RULE, { text: 'Rules in order.' }),
      },
      { unknown: 'error', text: 'Rights as a list of rules.' },
    ),
    no_match: word(['allow', 'deny'], { default: 'allow', text: 'What auth.acl gives when no rule fits.' }),
    deny_action: word(['ignore', 'disconnect'], {
      default: 'ignore',
      text: 'Whether a denied publish or subscribe ends the connection.',
    }),
    scram_file: text({
      default: null,
      text: 'Users for SCRAM-SHA-256, lines of username:SCRAM-SHA-256$iterations:salt$StoredKey:ServerKey.',
      example: '/etc/tidegate/scram',
    }),
    jwt: optional(JWT, { unknown: 'error', text: 'Clients that send a token as their password.' }),
    limits: AUTH_LIMITS,
    http_auth: HTTP_AUTH,
    cache: needless('verdicts are remembered as long as they hold; no effect', 'block'),
    enable: ignored('authentication cannot be switched off as a whole; no effect', 'true | false'),
  },
  { unknown: 'warn', text: 'Who may connect and what they may do.' },
);

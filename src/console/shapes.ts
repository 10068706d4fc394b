// The shapes that several calls of the REST API share, by name: components of the OpenAPI document. Read by openapi.ts.
// A test compares them with what a gateway answers. Documents of bridges and rules are not here:
// they are made from the configuration's schema (gateway/keyschema.ts), which validates them.
import type { JsonObject } from './console.ts';
import { ANY, ANY_OBJECT, FLAG, INT, list, mapOf, NUMBER, nullable, object, ref, TEXT, words } from './shape.ts';

const MILLISECONDS: JsonObject = { type: 'integer', description: 'milliseconds since the epoch' };

const USE = (key: string): JsonObject => object({ [key]: TEXT, 'priority?': INT });
/** Roles, groups and members may be given by name. */
const USES = (key: string): JsonObject => list({ anyOf: [TEXT, USE(key)] });

const RATES = { messages: INT, bytes: INT, messages_rate: NUMBER, bytes_rate: NUMBER };

const ACL = object({
  acltype: words(
    ...['publishClientSend', 'publishClientReceive', 'subscribeLiteral', 'subscribePattern'],
    ...['unsubscribeLiteral', 'unsubscribePattern'],
  ),
  topic: TEXT,
  'priority?': INT,
  allow: FLAG,
});

const RULE_COUNTERS = object(
  { index: INT, matched: INT, forwarded: INT, bytes: INT, dropped: mapOf(INT) },
  { additionalProperties: true },
);

export const SHAPES: Readonly<Record<string, JsonObject>> = {
  Error: object({
    code: { type: 'integer', description: 'stable number of the failure: x-codes' },
    message: TEXT,
    pointer: { type: 'string', description: 'JSON pointer to what is wrong in the body' },
    'problems?': list(ref('Problem')),
  }),
  Problem: object({ pointer: TEXT, message: TEXT }),
  Meta: object({ page: INT, limit: INT, count: INT, hasnext: FLAG }, { additionalProperties: true }),
  Done: object({ code: { type: 'integer', const: 0 } }, { additionalProperties: true }),
  Kept: object({ 'kept?': TEXT, 'note?': TEXT }, { additionalProperties: true }),
  Client: object({
    ...{ client_id: TEXT, username: nullable(TEXT), keepalive: INT, conn_state: words('connected', 'disconnected') },
    ...{ clean_start: FLAG, proto_name: TEXT, proto_ver: INT, remote: TEXT, listener: TEXT, since: MILLISECONDS },
    ...{ session_expiry_interval: INT, subscriptions: INT, inflight: INT, queued: INT, queued_bytes: INT },
    ...{ unsent_bytes: INT, recv_msg: INT, send_msg: INT, dropped: INT, last_error: nullable(TEXT) },
  }),
  Subscription: object({
    ...{ clientid: TEXT, topic: TEXT, qos: INT, no_local: FLAG, retain_as_published: FLAG, retain_handling: INT },
    subscription_identifier: INT,
  }),
  Publish: object(
    {
      ...{ 'topic?': TEXT, 'topics?': TEXT, 'payload?': TEXT, 'encoding?': words('plain', 'base64') },
      ...{ 'clientid?': TEXT, 'qos?': INT, 'retain?': FLAG, 'properties?': ANY_OBJECT },
    },
    { additionalProperties: true, example: { topic: 'plant/1', payload: '21.5', qos: 1 } },
  ),
  Retained: object(
    {
      ...{ topic: TEXT, qos: INT, bytes: INT, 'payload?': TEXT, 'payload_base64?': TEXT, 'cut?': FLAG },
      ...{ expires_at: nullable(MILLISECONDS), from_client_id: nullable(TEXT), from_username: nullable(TEXT) },
    },
    { additionalProperties: true },
  ),
  Traffic: object({ topic: TEXT, ...RATES }),
  Endpoint: object(
    { url: TEXT, state: TEXT, bound: nullable(TEXT), lastError: nullable(TEXT) },
    { additionalProperties: true },
  ),
  BridgeStatus: object(
    {
      ...{ name: TEXT, 'type?': TEXT, enable: FLAG, state: TEXT, last_error: nullable(TEXT), clientId: TEXT },
      ...{ endpoints: list(ref('Endpoint')), peers: list(ANY_OBJECT), rules: list(RULE_COUNTERS) },
      ...{ 'taking?': list(RULE_COUNTERS), refused: INT, unmatched: INT, dropped: INT, 'remote?': ANY_OBJECT },
    },
    { additionalProperties: true },
  ),
  ProbeStep: object({
    step: words('resolve', 'connect', 'tls', 'mqtt', 'subscribe', 'publish', 'sp', 'listen'),
    outcome: words('ok', 'warning', 'failed', 'skipped'),
    ...{ 'about?': TEXT, text: TEXT, 'ms?': NUMBER, 'pointer?': TEXT, 'code?': INT },
    'certificate?': object({
      ...{ subject: TEXT, issuer: TEXT, names: list(TEXT), valid_from: MILLISECONDS, valid_to: MILLISECONDS },
      fingerprint: TEXT,
    }),
  }),
  Certificate: object({
    ...{ key: TEXT, file: TEXT, own: FLAG, 'error?': TEXT, 'subject?': TEXT, 'issuer?': TEXT, 'names?': list(TEXT) },
    ...{ 'valid_from?': MILLISECONDS, 'valid_to?': MILLISECONDS, 'fingerprint?': TEXT },
  }),
  LogLine: object({ time: MILLISECONDS, level: TEXT, msgid: TEXT, text: TEXT, fields: ANY_OBJECT }),
  Happening: object({ id: INT, time: MILLISECONDS, at: TEXT, kind: TEXT, level: TEXT, text: TEXT, fields: ANY_OBJECT }),
  Recording: object({
    ...{ topics: list(TEXT), keep_ms: INT, max_size: INT, missed: INT, last_error: nullable(TEXT) },
    ...{ bytes: nullable(INT), messages: nullable(INT), topics_recorded: nullable(INT) },
    ...{ oldest: nullable(INT), newest: nullable(INT) },
  }),
  RecordedMessage: object({
    ...{ time: MILLISECONDS, at: TEXT, topic: TEXT, qos: INT, retain: FLAG, from: nullable(TEXT) },
    ...{ username: nullable(TEXT), properties: ANY_OBJECT, bytes: INT, 'cut?': FLAG, 'payload?': TEXT },
    payload_base64: TEXT,
  }),
  RecordedSeries: object({
    ...{ topic: TEXT, cut: FLAG },
    points: list(object({ time: MILLISECONDS, count: INT, min: NUMBER, max: NUMBER, mean: NUMBER, last: NUMBER })),
  }),
  NewReplay: object(
    {
      ...{ 'topic?': TEXT, 'from?': { type: ['string', 'integer'] }, 'to?': { type: ['string', 'integer'] } },
      ...{ 'prefix?': TEXT, 'speed?': NUMBER, 'retain?': FLAG },
    },
    { example: { topic: 'plant/#', from: '-10m', prefix: 'replay/', speed: 10 } },
  ),
  Replay: object({
    ...{ id: INT, topic: TEXT, from: MILLISECONDS, to: MILLISECONDS, prefix: TEXT, speed: NUMBER, retain: FLAG },
    ...{ state: words('running', 'finished', 'stopped', 'failed'), published: INT, refused: INT },
    ...{ position: nullable(INT), last_error: nullable(TEXT) },
  }),
  AuditEntry: object({ time: MILLISECONDS, user: TEXT, remote: TEXT, method: TEXT, path: TEXT, status: INT }),
  Explained: object({
    ...{ allowed: FLAG, rule: TEXT, connected: FLAG },
    as: object({ username: nullable(TEXT), address: TEXT, listener: TEXT }),
  }),
  MqttUser: object(
    {
      ...{ 'username?': TEXT, 'clientid?': TEXT, 'clientid_pattern?': TEXT, 'textname?': TEXT },
      ...{ 'textdescription?': TEXT, 'disabled?': FLAG, 'has_password?': FLAG },
      ...{ 'roles?': USES('rolename'), 'groups?': USES('groupname') },
      'password?': { type: 'string', writeOnly: true },
    },
    { example: { password: 'water', groups: ['pumps'] } },
  ),
  MqttGroup: object({
    ...{ 'groupname?': TEXT, 'textname?': TEXT, 'textdescription?': TEXT },
    ...{ 'roles?': USES('rolename'), 'clients?': USES('username') },
  }),
  MqttRole: object({
    ...{ 'rolename?': TEXT, 'textname?': TEXT, 'textdescription?': TEXT, 'acls?': list(ACL) },
  }),
  DefaultAccess: object({
    ...{ 'publishClientSend?': FLAG, 'publishClientReceive?': FLAG, 'subscribe?': FLAG, 'unsubscribe?': FLAG },
    'anonymous_group?': nullable(TEXT),
  }),
  WebUser: object({ username: TEXT, role: words('viewer', 'operator', 'admin'), hashed: FLAG, fixed: FLAG }),
  Listener: object({
    ...{ listener: TEXT, anonymous: FLAG, users: nullable(list(TEXT)), users_count: nullable(INT) },
    ...{ sources: list(TEXT), acl_file: nullable(TEXT), rules: FLAG },
  }),
  Upstream: object(
    { name: TEXT, balance: TEXT, health: ANY, discovery: ANY, servers: list(ANY_OBJECT) },
    { additionalProperties: true },
  ),
  Key: object(
    {
      ...{ key: TEXT, type: TEXT, text: TEXT, unit: nullable(TEXT), restart: FLAG, secret: FLAG },
      'default?': ANY,
    },
    { additionalProperties: true },
  ),
  ReloadReport: object(
    {
      ...{ changed: list(TEXT), usersAdded: INT, usersRemoved: INT, usersChanged: INT, clientsDropped: INT },
      ...{ needRestart: list(TEXT), failed: list(TEXT) },
    },
    { additionalProperties: true },
  ),
  Me: object({
    ...{ username: TEXT, role: words('viewer', 'operator', 'admin'), csrf: nullable(TEXT) },
    'via?': words('open', 'basic', 'jwt', 'session', 'socket'),
  }),
};

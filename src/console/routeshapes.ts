// What each call of the REST API takes and answers: shapes by method and path, for openapi.ts. A call without a row is
// described without shapes. A test asks a gateway and compares; to add a call, add its row.
import type { JsonObject } from './console.ts';
import { ANY, ANY_OBJECT, FLAG, INT, list, mapOf, nullable, object, ref, TEXT, words } from './shape.ts';

export interface RouteShape {
  /** The `data` of the answer; absent: {"code":0} alone. */
  readonly data?: JsonObject;
  /** The whole answer, where it is no {"code","data"}. */
  readonly whole?: JsonObject;
  /** The list comes in pages: `meta` stands beside it. */
  readonly paged?: boolean;
  /** Of the request. */
  readonly body?: JsonObject;
  /** Of success; 200 unless it says so. */
  readonly status?: 200 | 201;
  /** What it names need not be there: then the status is 201. */
  readonly creates?: true;
}

const KEPT: RouteShape = { data: ref('Kept') };

/** Calls that bridges of one kind have. @param document names the schema of one, @param row what is listed */
function bridgeShapes(path: string, document: JsonObject): [string, RouteShape][] {
  const row: JsonObject = { allOf: [ref('BridgeStatus')] };
  const one = `${path}/{name}`;
  return [
    [`GET ${path}`, { data: list(row) }],
    [`POST ${path}`, { body: document, status: 201, data: ref('Kept') }],
    [`GET ${one}`, { data: row }],
    [`PUT ${one}`, { body: document, data: ref('Kept') }],
    [`DELETE ${one}`, KEPT],
    [`POST ${one}/enable`, KEPT],
    [`POST ${one}/disable`, KEPT],
  ];
}

function accountShapes(plural: string, name: string): [string, RouteShape][] {
  const path = `/api/v4/mqtt/${plural}`;
  return [
    [`GET ${path}`, { data: list(ref(name)), paged: true }],
    [`GET ${path}/{name}`, { data: ref(name) }],
    [`PUT ${path}/{name}`, { body: ref(name), creates: true }],
    [`DELETE ${path}/{name}`, {}],
  ];
}

const NNG_DOCUMENT: JsonObject = {
  oneOf: ['pub', 'sub', 'push', 'pull', 'pair', 'req', 'rep'].map((type) => ref(`NngBridge_${type}`)),
};
const MQTT_DOCUMENT = ref('MqttBridge');
/** NanoMQ's form: the name of the bridge, then its block. */
const NANOMQ_BLOCK: JsonObject = mapOf(ref('MqttBridge'));
const NANOMQ_NODES = object({ bridge: object({ nodes: list(ANY_OBJECT) }) });

export const ROUTE_SHAPES: ReadonlyMap<string, RouteShape> = new Map<string, RouteShape>([
  ['GET /healthz', { whole: object({ status: TEXT }) }],
  ['GET /readyz', { whole: object({ status: TEXT }, { additionalProperties: TEXT }) }],
  ['GET /openapi.json', { whole: ANY_OBJECT }],
  ['GET /api/v4', { data: list(object({ path: TEXT, name: TEXT, method: TEXT, descr: TEXT })) }],
  ['GET /api/v4/brokers', { data: list(ANY_OBJECT) }],
  ['GET /api/v4/nodes', { data: list(ANY_OBJECT) }],
  ['GET /api/v4/topic-tree', { data: list(list(ANY_OBJECT)) }],
  ['GET /api/v4/access/explain', { data: ref('Explained') }],
  ['GET /api/v4/store', { data: object({ enable: FLAG }, { additionalProperties: true }) }],
  ['GET /api/v4/certificates', { data: list(ref('Certificate')) }],
  ['GET /api/v4/log', { data: list(ref('LogLine')) }],
  ['GET /api/v4/audit', { data: list(ref('AuditEntry')) }],
  ['GET /api/v4/clients', { data: list(ref('Client')), paged: true }],
  ['GET /api/v4/clients/{id}', { data: list({ allOf: [ref('Client')] }) }],
  ['DELETE /api/v4/clients/{id}', {}],
  ['GET /api/v4/clients/username/{username}', { data: list(ref('Client')), paged: true }],
  ['GET /api/v4/subscriptions', { data: list(ref('Subscription')), paged: true }],
  ['GET /api/v4/subscriptions/{id}', { data: list(ref('Subscription')), paged: true }],
  ['POST /api/v4/mqtt/publish', { body: ref('Publish') }],
  [
    'POST /api/v4/mqtt/publish_batch',
    { body: list(ref('Publish')), data: list(object({ topic: TEXT, code: INT }, { additionalProperties: true })) },
  ],
  ['GET /api/v4/configuration', { data: ANY_OBJECT }],
  ['GET /api/v4/configuration/{section}', { data: ANY }],
  ['GET /api/v4/config', { data: ANY_OBJECT }],
  [
    'POST /api/v4/config',
    {
      body: object(
        { values: mapOf({ type: ['string', 'number', 'boolean'] }), 'check?': FLAG },
        { example: { values: { 'log.level': 'debug' } } },
      ),
      data: ANY_OBJECT,
    },
  ],
  ['GET /api/v4/reload', { data: ANY_OBJECT }],
  ['POST /api/v4/reload', { data: ref('ReloadReport') }],
  ...bridgeShapes('/api/v4/mqtt/bridges', MQTT_DOCUMENT),
  ...bridgeShapes('/api/v4/nng/bridges', NNG_DOCUMENT),
  ['GET /api/v4/bridges', { data: NANOMQ_NODES }],
  ['POST /api/v4/bridges', { body: NANOMQ_BLOCK, status: 201, data: ref('Kept') }],
  ['GET /api/v4/bridges/{name}', { data: NANOMQ_NODES }],
  ['PUT /api/v4/bridges/{name}', { body: NANOMQ_BLOCK, data: ref('Kept') }],
  ['DELETE /api/v4/bridges/{name}', KEPT],
  [
    'POST /api/v4/bridges/switch/{name}',
    { body: object({ data: object({ bridge_switch: FLAG }, { additionalProperties: true }) }), data: ref('Kept') },
  ],
  [
    'POST /api/v4/nng/test',
    {
      body: object(
        {
          type: words('pub', 'sub', 'push', 'pull', 'pair', 'req', 'rep'),
          ...{ rule: ANY_OBJECT, 'topic?': TEXT, 'payload?': TEXT, 'payload_base64?': TEXT, 'frame?': TEXT },
          ...{ 'frame_base64?': TEXT, 'qos?': INT, 'retain?': FLAG, 'traceparent?': TEXT },
        },
        { example: { type: 'pub', rule: { local_topic: 'a/#' }, topic: 'a/1', payload: '21' } },
      ),
      data: object({ matched: FLAG }, { additionalProperties: true }),
    },
  ],
  [
    'POST /api/v4/test_connection',
    {
      body: object(
        {
          type: words('mqtt', 'pub', 'sub', 'push', 'pull', 'pair', 'req', 'rep'),
          ...{ 'name?': TEXT, 'document?': nullable(ANY_OBJECT), 'publish_to?': nullable(TEXT) },
        },
        { example: { type: 'mqtt', document: { server: 'mqtt-tcp://broker.local:1883', proto_ver: 5 } } },
      ),
      data: list(ref('ProbeStep')),
    },
  ],
  ['GET /api/v4/rules', { data: list(object({ name: TEXT }, { additionalProperties: true })) }],
  ['GET /api/v4/rules/{name}', { data: object({ name: TEXT }, { additionalProperties: true }) }],
  ['PUT /api/v4/rules/{name}', { body: ref('Rule'), data: ref('Kept'), creates: true }],
  ['DELETE /api/v4/rules/{name}', KEPT],
  ['GET /api/v4/retained', { data: list(ref('Retained')), paged: true }],
  ['GET /api/v4/retained/{topic}', { data: ref('Retained') }],
  ['DELETE /api/v4/retained/{topic}', {}],
  ['GET /api/v4/delayed', { data: list(ANY_OBJECT), paged: true }],
  ['DELETE /api/v4/delayed/{id}', {}],
  ['GET /api/v4/quotas', { data: list(object({ name: TEXT }, { additionalProperties: true })) }],
  ['GET /api/v4/history', { data: object({ times: list(INT), values: mapOf(list({ type: ['number', 'null'] })) }) }],
  ['GET /api/v4/happenings', { data: list(ref('Happening')) }],
  ['GET /api/v4/recording', { data: ref('Recording') }],
  ['GET /api/v4/recording/topics', { data: list(object({ topic: TEXT, newest: INT })) }],
  ['GET /api/v4/recording/messages', { data: list(ref('RecordedMessage')) }],
  ['GET /api/v4/recording/series', { data: list(ref('RecordedSeries')) }],
  ['GET /api/v4/recording/replays', { data: list(ref('Replay')) }],
  ['POST /api/v4/recording/replays', { body: ref('NewReplay'), data: ref('Replay'), status: 201 }],
  ['DELETE /api/v4/recording/replays/{id}', {}],
  ['GET /api/v4/topics', { data: list(ref('Traffic')), paged: true }],
  ['GET /api/v4/access', { data: list(ref('Listener')) }],
  ['GET /api/v4/users', { data: list(ref('WebUser')) }],
  [
    'PUT /api/v4/users/{name}',
    {
      body: object({ 'role?': words('viewer', 'operator', 'admin'), 'password?': TEXT }),
      data: ref('Kept'),
      creates: true,
    },
  ],
  ['DELETE /api/v4/users/{name}', KEPT],
  ...accountShapes('users', 'MqttUser'),
  ...accountShapes('groups', 'MqttGroup'),
  ...accountShapes('roles', 'MqttRole'),
  ['PUT /api/v4/mqtt/users/{name}/password', { body: object({ password: TEXT }) }],
  ['GET /api/v4/mqtt/default_access', { data: ref('DefaultAccess') }],
  ['PUT /api/v4/mqtt/default_access', { body: ref('DefaultAccess') }],
  ['GET /api/v4/mqtt/dynamic_security', { data: ANY_OBJECT }],
  ['PUT /api/v4/mqtt/dynamic_security', { body: ANY_OBJECT }],
  [
    'POST /api/v4/mqtt/dynamic_security/commands',
    { body: object({ commands: list(ANY_OBJECT) }), data: list(ANY_OBJECT) },
  ],
  ['GET /api/v4/proxy/upstreams', { data: list(ref('Upstream')) }],
  ['POST /api/v4/proxy/upstreams/{name}/drain', { body: object({ server: TEXT, 'drain?': FLAG }) }],
  ['GET /api/v4/config/keys', { data: list(ref('Key')) }],
  ['GET /api/v4/config/kept', { data: object({ file: nullable(TEXT) }) }],
  ['POST /api/v4/login', { body: object({ 'username?': TEXT, 'password?': TEXT, 'token?': TEXT }), data: ref('Me') }],
  ['POST /api/v4/logout', {}],
  ['GET /api/v4/me', { data: ref('Me') }],
]);

// REST: POST /mqtt/publish and /mqtt/publish_batch, NanoMQ's fields. Called by routes.ts. A publish goes through the
// broker as an internal client; at QoS 1 and 2 the answer waits until the message is accepted for good. Source: NanoMQ
// 0.25 REST API, "Publish message"; MQTT 5.0 sections 3.3.2.1 (Topic Name) and 3.3.2.3 (properties).

import type { Clock } from '../base/clock.ts';
import type { Broker, PublishOutcome } from '../broker/broker.ts';
import type { Hold } from '../mqtt/message.ts';
import type { Qos } from '../mqtt/packet.ts';
import type { Properties } from '../mqtt/property.ts';
import { type Answer, CODES, data, done, fail, isObject } from './answer.ts';
import type { ConsoleOptions, Json, JsonObject } from './console.ts';
import { type Call, type Route, write } from './route.ts';
import { fromBase64 } from './text.ts';

/** The client id that subscribers' ACL and logs see when the call names none. */
const CLIENT_ID = 'tidegate-http';
/** Topics of one call, and calls of one batch. */
const MAX_TOPICS = 1000;
const MAX_BATCH = 1000;
/** Bytes of a Topic Name [MQTT-4.7.3-3]. */
const MAX_TOPIC_BYTES = 65535;
/** How long an answer waits for a slow bridge or disk before it says that it does not know. */
const ACCEPT_MS = 10_000;

interface PublishRequest {
  readonly topics: readonly string[];
  readonly payload: Uint8Array;
  readonly qos: Qos;
  readonly retain: boolean;
  readonly clientId: string;
  readonly properties: Properties | null;
}

type Read<T> = { readonly value: T } | { readonly problem: Answer };
function bad(detail: string, pointer: string): { readonly problem: Answer } {
  return { problem: fail('value', detail, pointer) };
}

function topicProblem(topic: string): string | null {
  if (topic === '') return 'topic is empty';
  if (topic.includes('\0')) return 'topic holds U+0000';
  if (topic.includes('#') || topic.includes('+')) return 'topic holds a wildcard';
  if (Buffer.byteLength(topic) > MAX_TOPIC_BYTES) return 'topic is longer than 65535 bytes';
  return null;
}

function readTopics(document: JsonObject): Read<string[]> {
  const { topic, topics } = document;
  if (topic === undefined && topics === undefined) return { problem: fail('missing', 'topic', '/topic') };
  const found: string[] = [];
  if (topic !== undefined) {
    if (typeof topic !== 'string') return bad('topic has to be text', '/topic');
    found.push(topic);
  }
  if (topics !== undefined) {
    if (typeof topics !== 'string') return bad('topics has to be text: names with commas between them', '/topics');
    found.push(...topics.split(',', MAX_TOPICS + 1));
  }
  if (found.length > MAX_TOPICS) return bad(`more than ${MAX_TOPICS} topics`, '/topics');
  for (const name of found) {
    const problem = topicProblem(name);
    if (problem !== null) return bad(problem, topic === undefined ? '/topics' : '/topic');
    if (name.startsWith('$SYS/'))
      return { problem: fail('denied', 'topics below $SYS belong to the gateway', '/topic') };
  }
  return { value: found };
}

function readPayload(document: JsonObject): Read<Uint8Array> {
  const { payload, encoding = 'plain', decoding = 'plain' } = document;
  if (payload === undefined) return { problem: fail('missing', 'payload', '/payload') };
  if (typeof payload !== 'string') return bad('payload has to be text', '/payload');
  if (encoding !== 'plain' && encoding !== 'base64') return bad('encoding has to be plain or base64', '/encoding');
  if (decoding !== 'plain' && decoding !== 'base64') return bad('decoding has to be plain or base64', '/decoding');
  if (decoding === 'base64') {
    const bytes = fromBase64(payload);
    return bytes === null ? bad('payload is not base64', '/payload') : { value: bytes };
  }
  const bytes = Buffer.from(payload);
  return { value: encoding === 'base64' ? Buffer.from(bytes.toString('base64')) : bytes };
}

function readUserProperties(value: Json): Read<[string, string][]> {
  if (!isObject(value)) return bad('user_properties has to be an object', '/properties/user_properties');
  const pairs: [string, string][] = [];
  for (const [key, text] of Object.entries(value)) {
    if (typeof text !== 'string') return bad(`user property ${key} has to be text`, '/properties/user_properties');
    pairs.push([key, text]);
  }
  return { value: pairs };
}

function readProperties(value: Json | undefined): Read<Properties | null> {
  if (value === undefined || value === null) return { value: null };
  if (!isObject(value)) return bad('properties has to be an object', '/properties');
  const found: Properties = {};
  for (const [key, entry] of Object.entries(value)) {
    const at = `/properties/${key.replaceAll('~', '~0').replaceAll('/', '~1')}`;
    switch (key) {
      case 'payload_format_indicator':
        if (entry !== 0 && entry !== 1) return bad(`${key} has to be 0 or 1`, at);
        found.payloadFormatIndicator = entry;
        break;
      case 'message_expiry_interval':
        if (typeof entry !== 'number' || !Number.isInteger(entry) || entry < 0 || entry > 0xffffffff) {
          return bad(`${key} has to be a number of seconds`, at);
        }
        found.messageExpiryInterval = entry;
        break;
      case 'response_topic':
        if (typeof entry !== 'string' || topicProblem(entry) !== null) return bad(`${key} has to be a topic`, at);
        found.responseTopic = entry;
        break;
      case 'correlation_data':
        if (typeof entry !== 'string') return bad(`${key} has to be text`, at);
        found.correlationData = Buffer.from(entry);
        break;
      case 'content_type':
        if (typeof entry !== 'string') return bad(`${key} has to be text`, at);
        found.contentType = entry;
        break;
      case 'user_properties': {
        const pairs = readUserProperties(entry);
        if ('problem' in pairs) return pairs;
        found.userProperties = pairs.value;
        break;
      }
      case 'subscription_identifier':
        // NanoMQ lists it; a publisher cannot send one [MQTT-3.3.4-6], receivers get that of their own subscription.
        break;
      default:
        return bad(`unknown property ${key}`, at);
    }
  }
  return { value: found };
}

const KEYS = new Set(['topic', 'topics', 'payload', 'qos', 'retain', 'clientid', 'encoding', 'decoding', 'properties']);

function readRequest(document: Json): Read<PublishRequest> {
  if (!isObject(document)) return bad('the body has to be an object', '');
  for (const key of Object.keys(document)) if (!KEYS.has(key)) return bad(`unknown key ${key}`, `/${key}`);
  const topics = readTopics(document);
  if ('problem' in topics) return topics;
  const payload = readPayload(document);
  if ('problem' in payload) return payload;
  const { qos = 0, retain = false, clientid = CLIENT_ID } = document;
  if (qos !== 0 && qos !== 1 && qos !== 2) return bad('qos has to be 0, 1 or 2', '/qos');
  if (typeof retain !== 'boolean' && retain !== 0 && retain !== 1)
    return bad('retain has to be true or false', '/retain');
  if (typeof clientid !== 'string' || clientid === '' || clientid.length > MAX_TOPIC_BYTES) {
    return bad('clientid has to be text', '/clientid');
  }
  const properties = readProperties(document.properties);
  if ('problem' in properties) return properties;
  return {
    value: {
      topics: topics.value,
      payload: payload.value,
      qos,
      retain: retain === true || retain === 1,
      clientId: clientid,
      properties: properties.value,
    },
  };
}

/** Waits for a hold; null when it takes longer than ACCEPT_MS. */
function settled(hold: Hold, clock: Clock): Promise<number | null> {
  return new Promise((resolve) => {
    const timer = clock.after(ACCEPT_MS, () => resolve(null));
    hold.whenDone((reasonCode) => {
      timer.cancel();
      resolve(reasonCode);
    });
  });
}

function outcomeAnswer(outcome: PublishOutcome): Answer | null {
  switch (outcome) {
    case 'accepted':
    case 'no-subscribers':
      return null;
    case 'denied':
      return fail('denied', 'publish');
    case 'invalid-topic':
      return fail('value', 'topic is not a Topic Name', '/topic');
    case 'refused':
      return fail('unavailable', 'the gateway takes no such message now (store full, or above a limit)');
  }
}

/** Publishes to each topic of the request; null when all were accepted. */
async function publish(
  broker: Broker,
  clock: Clock,
  request: PublishRequest,
  username: string,
): Promise<Answer | null> {
  const { clientId, payload } = request;
  const client = broker.attach({ clientId, username, kind: 'api', bridge: null, trusted: true });
  const holds: Hold[] = [];
  let failure: Answer | null = null;
  try {
    for (const topic of request.topics) {
      const { qos, retain, properties } = request;
      const outcome = client.publish(topic, payload, 0, payload.length, qos, retain, properties);
      failure ??= outcomeAnswer(outcome);
      const hold = client.lastHold();
      if (hold !== null && qos > 0) holds.push(hold);
    }
  } finally {
    client.close();
  }
  for (const reasonCode of await Promise.all(holds.map((hold) => settled(hold, clock)))) {
    if (reasonCode === null)
      failure ??= fail('unavailable', 'the message is not safe yet: a bridge or the disk is slow');
    else if (reasonCode >= 0x80) failure ??= fail('unavailable', `refused with reason code ${reasonCode}`);
  }
  return failure;
}

async function publishOne({ broker, clock }: ConsoleOptions, call: Call): Promise<Answer> {
  const request = readRequest(call.body);
  if ('problem' in request) return request.problem;
  return (await publish(broker, clock, request.value, call.caller.username)) ?? done();
}

/** One code for each entry, in order; the call itself succeeds. */
async function publishBatch({ broker, clock }: ConsoleOptions, call: Call): Promise<Answer> {
  if (!Array.isArray(call.body)) return fail('value', 'the body has to be an array');
  const entries: readonly Json[] = call.body;
  if (entries.length > MAX_BATCH) return fail('value', `more than ${MAX_BATCH} messages`);
  const results: Json[] = [];
  for (const [index, entry] of entries.entries()) {
    const request = readRequest(entry);
    const failure =
      'problem' in request ? request.problem : await publish(broker, clock, request.value, call.caller.username);
    const topic = isObject(entry) && typeof entry.topic === 'string' ? entry.topic : '';
    results.push(failure === null ? { topic, code: 0 } : { topic, ...failureFields(failure, index) });
  }
  return data(results);
}

function failureFields(failure: Answer, index: number): JsonObject {
  const parsed: Json = JSON.parse(String(failure.body));
  if (!isObject(parsed)) return { code: CODES.internal.code };
  return { code: parsed.code, message: parsed.message, pointer: `/${index}${String(parsed.pointer)}` };
}

export function publishRoutes(options: ConsoleOptions): Route[] {
  return [
    write('POST', '/api/v4/mqtt/publish', 'publishes a message to one or more topics', 'json', 'operator', (call) =>
      publishOne(options, call),
    ),
    write('POST', '/api/v4/mqtt/publish_batch', 'publishes many messages', 'json', 'operator', (call) =>
      publishBatch(options, call),
    ),
  ];
}

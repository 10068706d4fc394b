// The JSON lines of `tidegate store export` and `import`: what a Restored looks like in text, and a line told to a
// journal again. Called by store.ts. Payloads and correlation data are base64, "never" is null. Lines come from
// outside: every field is checked by a schema and nothing but its fields is used.
import * as v from 'valibot';
import { arrivalFields, arrivalOf } from '../../mqtt/arrival.ts';
import { type Arrival, Message } from '../../mqtt/message.ts';
import { PROPERTIES, type Properties, type PropertyType } from '../../mqtt/property.ts';
import type { Journal, Restored } from '../../store/store.ts';

export const LINES_FORMAT = 1;

const text = v.pipe(v.string(), v.maxBytes(65_535));
const count = v.pipe(v.number(), v.safeInteger(), v.minValue(0));
const uint16 = v.pipe(v.number(), v.integer(), v.minValue(0), v.maxValue(0xffff));
const uint32 = v.pipe(v.number(), v.integer(), v.minValue(0), v.maxValue(0xffff_ffff));
const varint = v.pipe(v.number(), v.integer(), v.minValue(0), v.maxValue(268_435_455));
const base64 = v.pipe(
  v.string(),
  v.check((s) => s === '' || v.is(v.pipe(v.string(), v.base64()), s), 'not base64'),
  v.transform((s) => Buffer.from(s, 'base64')),
);
const qos = v.picklist([0, 1, 2]);

const BY_TYPE: Record<PropertyType, v.GenericSchema<unknown, unknown>> = {
  byte: v.pipe(v.number(), v.integer(), v.minValue(0), v.maxValue(255)),
  flag: v.boolean(),
  uint16,
  uint32,
  varint,
  string: text,
  binary: base64,
  pair: v.tuple([text, text]),
};
const propertyEntries: Record<string, v.GenericSchema<unknown, unknown>> = Object.fromEntries(
  PROPERTIES.map((row) => [row.key, v.optional(row.repeats ? v.array(BY_TYPE[row.type]) : BY_TYPE[row.type])]),
);
const properties = v.pipe(
  v.nullable(v.strictObject(propertyEntries)),
  v.transform((p) => p as Properties | null),
);

/** How a client came; absent in lines of an earlier format, null where it is not known. */
const arrival = v.optional(
  v.pipe(
    v.nullable(
      v.strictObject({
        listener: text,
        address: text,
        realm: text,
        via: v.nullable(text),
        claims: v.nullable(v.record(text, v.unknown())),
      }),
    ),
    v.transform((fields) => arrivalOf(fields)),
  ),
  null,
);

const message = v.pipe(
  v.strictObject({
    topic: text,
    payload: base64,
    qos,
    retain: v.boolean(),
    expiresAt: count,
    properties,
    origin: v.strictObject({
      kind: v.picklist(['client', 'bridge', 'api', 'server']),
      clientId: text,
      username: v.nullable(text),
      bridge: v.nullable(text),
      arrival,
    }),
  }),
  v.transform((m) => new Message(m.topic, m.payload, m.qos, m.retain, m.properties, m.expiresAt, m.origin)),
);

const line = v.variant('type', [
  v.strictObject({ type: v.literal('tidegate-store'), format: v.literal(LINES_FORMAT) }),
  v.strictObject({
    type: v.literal('session'),
    clientId: text,
    username: v.nullable(text),
    expiresAt: v.nullable(count),
    expiryInterval: uint32,
    version: v.picklist([3, 4, 5]),
    arrival,
    validUntil: v.optional(count, 0),
  }),
  v.strictObject({
    type: v.literal('subscription'),
    clientId: text,
    topicFilter: text,
    qos,
    noLocal: v.boolean(),
    retainAsPublished: v.boolean(),
    retainHandling: qos,
    subscriptionIdentifier: varint,
  }),
  v.strictObject({
    type: v.literal('queued'),
    clientId: text,
    sequence: count,
    qos,
    retain: v.boolean(),
    state: v.picklist(['queued', 'sent', 'received']),
    packetId: uint16,
    subscriptionIdentifiers: v.array(varint),
    // Absent in lines of a store of format 1.
    share: v.optional(v.nullable(text), null),
    message,
  }),
  v.strictObject({ type: v.literal('inbound'), clientId: text, packetId: uint16 }),
  v.strictObject({ type: v.literal('will'), clientId: text, dueAt: v.pipe(v.number(), v.safeInteger()), message }),
  v.strictObject({ type: v.literal('retained'), message }),
  v.strictObject({ type: v.literal('spool'), bridge: text, sequence: count, bytes: base64 }),
]);

type Json = Readonly<Record<string, unknown>>;

function messageJson(m: Message): Json {
  const correlationData = m.properties?.correlationData;
  return {
    topic: m.topic,
    payload: base64Of(m.payload),
    qos: m.qos,
    retain: m.retain,
    expiresAt: m.expiresAt,
    properties:
      correlationData === undefined ? m.properties : { ...m.properties, correlationData: base64Of(correlationData) },
    origin: { ...m.origin, arrival: arrivalJson(m.origin.arrival) },
  };
}

function arrivalJson(arrival: Arrival | null | undefined): Json | null {
  return arrival ? { ...arrivalFields(arrival) } : null;
}

function base64Of(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64');
}

/** Everything in a store, in an order in which it can be told again. */
export function* linesOf(restored: Restored): Iterable<Json> {
  yield { type: 'tidegate-store', format: LINES_FORMAT };
  for (const { session, subscriptions, queue, inbound, will } of restored.sessions) {
    const { clientId, expiresAt } = session;
    const ends = expiresAt === Number.POSITIVE_INFINITY ? null : expiresAt;
    yield { type: 'session', ...session, expiresAt: ends, arrival: arrivalJson(session.arrival) };
    for (const subscription of subscriptions) yield { type: 'subscription', clientId, ...subscription };
    for (const entry of queue) yield { type: 'queued', clientId, ...entry, message: messageJson(entry.message) };
    for (const packetId of inbound) yield { type: 'inbound', clientId, packetId };
    if (will !== null) yield { type: 'will', clientId, dueAt: will.dueAt, message: messageJson(will.message) };
  }
  for (const retained of restored.retained) yield { type: 'retained', message: messageJson(retained) };
  for (const [bridge, entries] of restored.spools) {
    for (const entry of entries)
      yield { type: 'spool', bridge, sequence: entry.sequence, bytes: base64Of(entry.bytes) };
  }
}

/**
 * Tells a journal what one line says. Throws an Error with what is wrong with it.
 * @param known client ids that have a session; a session line adds its own
 */
export function tellLine(journal: Journal, json: string, known: Set<string>): void {
  const parsed = v.safeParse(line, JSON.parse(json));
  if (!parsed.success) {
    const [issue] = parsed.issues;
    throw new Error(`${v.getDotPath(issue) ?? 'line'}: ${issue.message}`);
  }
  const it = parsed.output;
  if ('clientId' in it) {
    if (it.type === 'session') known.add(it.clientId);
    else if (!known.has(it.clientId)) throw new Error('clientId: its session comes first');
  }
  switch (it.type) {
    case 'tidegate-store':
      return;
    case 'session': {
      const { clientId, username, expiryInterval, version, validUntil } = it;
      journal.sessionPut({
        clientId,
        username,
        expiresAt: it.expiresAt ?? Number.POSITIVE_INFINITY,
        expiryInterval,
        version,
        arrival: it.arrival,
        validUntil,
      });
      return;
    }
    case 'subscription': {
      const { type: _, clientId, ...subscription } = it;
      journal.subscriptionPut(clientId, subscription);
      return;
    }
    case 'queued': {
      const { type: _, clientId, ...entry } = it;
      journal.messageQueued(clientId, entry);
      return;
    }
    case 'inbound':
      // It came before, without the messages told just now.
      journal.gather(false);
      journal.inboundPut(it.clientId, it.packetId);
      return;
    case 'will':
      journal.willPut(it.clientId, { message: it.message, dueAt: it.dueAt });
      return;
    case 'retained':
      journal.retainedPut(it.message);
      return;
    case 'spool':
      journal.spoolPut(it.bridge, it.sequence, it.bytes);
  }
}

// What of aedes and its persistence is replaced, and what is heard of it: subscriptions and retained messages are the
// router's, publishing is publishing.ts's. Applied by engine.ts once, before the first client.
import { Readable } from 'node:stream';
import { errorText } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import { sourceMayWrite } from '../../session/origin.ts';
import type { Core } from '../../session/session.ts';
import type { BrokerEvent } from '../broker.ts';
import type { Front } from './front.ts';
import { asBuffer } from './packets.ts';
import type { Aedes, AedesClient, AedesPacket, Persistence } from './parts.ts';
import type { Publishing } from './publishing.ts';
import type { AedesRouter } from './router.ts';
import type { AedesSessions } from './sessions.ts';
import { willFields } from './whose.ts';

export interface Overriding {
  readonly core: Core & { readonly router: AedesRouter };
  readonly sessions: AedesSessions;
  readonly publishing: Publishing;
  /** At most one line a second. */
  readonly refusals: Log;
  readonly stopping: () => boolean;
  readonly emit: (event: BrokerEvent) => void;
}

/**
 * Subscriptions of clients are in the router; those of the persistence stay in aedes: they are made before the function
 * that is given back has been called.
 */
export function overrideBroker(aedes: Aedes, parts: Overriding): () => void {
  let open = false;
  const { publishing } = parts;
  aedes.publish = (packet, client, done) => publishing.published(packet, client, done);
  const [subscribe, unsubscribe] = [aedes.subscribe.bind(aedes), aedes.unsubscribe.bind(aedes)];
  aedes.subscribe = (topic, handler, done) => {
    if (open) setImmediate(done, null);
    else subscribe(topic, handler, done);
  };
  aedes.unsubscribe = (topic, handler, done) => {
    if (!open) unsubscribe(topic, handler, done);
    else if (done !== undefined) setImmediate(done, null);
  };
  return () => {
    open = true;
  };
}

/** Counts and tells what happens to clients. */
export function listenTo(aedes: Aedes, { core, sessions, refusals, stopping, emit }: Overriding): void {
  aedes.on('client', (client) => {
    const { session } = client.conn as Front;
    if (session === null || session.client !== client) return;
    sessions.entered(session);
  });
  const failed = (client: AedesClient, error: Error): void => {
    const front = client.conn as Front;
    if (front.why === '') front.why = errorText(error);
    if (front.session !== null && !stopping()) core.stats.protocolErrors++;
  };
  aedes.on('clientError', failed);
  aedes.on('connectionError', failed);
  aedes.on('error', (error) => refusals('error', 'BRK-SHARE', { error: errorText(error) }));
  aedes.on('ack', (_, client) => (client.conn as Front).session?.acknowledged());
  aedes.on('subscribe', (subscriptions, client) => {
    for (const { topic, qos } of subscriptions)
      if (qos <= 2) emit({ kind: 'subscribed', clientId: client.id, topicFilter: topic });
  });
  aedes.on('unsubscribe', (filters, client) => {
    const { session } = client.conn as Front;
    if (client.closed || session === null) return;
    for (const topicFilter of filters) {
      if (!session.subscriptions.delete(topicFilter)) continue;
      core.router.unsubscribe(session, topicFilter);
      emit({ kind: 'unsubscribed', clientId: client.id, topicFilter });
    }
  });
}

/** Retained messages come from the router, with its limits; what was refused is not kept as a subscription. */
export function overridePersistence(persistence: Persistence, { core, sessions, refusals }: Overriding): void {
  const add = persistence.addSubscriptions.bind(persistence);
  persistence.addSubscriptions = (client, subscriptions) => {
    const session = sessions.get(client.id);
    const granted = subscriptions.filter(({ topic }) => session?.subscriptions.has(topic));
    return granted.length === 0 ? Promise.resolve() : add(client, granted);
  };
  const { delWill } = persistence;
  const putWill = persistence.putWill.bind(persistence);
  // Another gateway may have to publish it when this one has gone, and to judge whose it was.
  persistence.putWill = (client, packet) => {
    const origin = sessions.get(client.id)?.origin;
    if (origin === undefined) return putWill(client, packet);
    return putWill(client, Object.assign(packet, willFields(origin)));
  };
  // aedes looks at neither outcome: one that failed would end the process.
  persistence.delWill = (client) =>
    delWill.call(persistence, client).catch((error: unknown) => {
      refusals('error', 'BRK-SHARE', { error: errorText(error) });
    });
  const outgoing = persistence.outgoingStream.bind(persistence);
  persistence.outgoingStream = (client) => Readable.from(sentBefore(outgoing(client)));
  persistence.createRetainedStreamCombi = (filters) => Readable.from(retainedPackets(core, filters));
}

async function* retainedPackets(core: Overriding['core'], filters: readonly string[]): AsyncIterable<object> {
  const sent = new Set<string>();
  for (const filter of filters) {
    const messages = core.router.retained(filter);
    for (let step = messages.next(); step.done !== true; step = messages.next()) {
      const message = step.value;
      if (filters.length > 1 && sent.has(message.topic)) continue;
      if (filters.length > 1) sent.add(message.topic);
      if (core.limits.checkRetainSource && !(await sourceMayWrite(core, message))) continue;
      const { topic, qos } = message;
      yield { cmd: 'publish', topic, qos, payload: asBuffer(message.payload), retain: true };
    }
  }
}

/** What has had a packet id goes out as a duplicate [MQTT-3.3.1-1]. */
async function* sentBefore(packets: AsyncIterable<AedesPacket>): AsyncIterable<AedesPacket> {
  for await (const packet of packets) {
    if (packet.cmd === 'publish' && packet.messageId !== undefined) packet.dup = true;
    yield packet;
  }
}

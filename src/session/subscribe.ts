// SUBSCRIBE and UNSUBSCRIBE (MQTT 5.0 sections 3.8 to 3.11): which filters are granted, and what stored messages they bring.
// Called by client.ts; gives the codes, client.ts sends them. May have to wait for an authorizer.

import type { Access } from '../auth/auth.ts';
import { ProtocolError } from '../base/errors.ts';
import type { Message } from '../mqtt/message.ts';
import type { SubscribePacket, SubscriptionRequest, UnsubscribePacket } from '../mqtt/packet.ts';
import {
  NO_SUBSCRIPTION_EXISTED,
  NOT_AUTHORIZED,
  PROTOCOL_ERROR,
  SHARED_SUBSCRIPTIONS_NOT_SUPPORTED,
  SUCCESS,
  TOPIC_FILTER_INVALID,
  UNSPECIFIED_ERROR,
  WILDCARD_SUBSCRIPTIONS_NOT_SUPPORTED,
} from '../mqtt/reason.ts';
import { exceedsLevels, hasWildcard, isShared, isTopicFilter, parseShare } from '../mqtt/topic.ts';
import type { Core } from './session.ts';
import type { Session } from './state.ts';

/** A request that passed the checks, with the filter the router takes. */
interface Checked {
  readonly request: SubscriptionRequest;
  readonly filter: string;
  readonly shareName: string | null;
}

/** Checks one request. Returns a failure code when it cannot be granted whoever asks. Throws for what closes the connection. */
function check(core: Core, request: SubscriptionRequest): Checked | number {
  const { topicFilter } = request;
  const limits = core.limits;
  if (isShared(topicFilter)) {
    if (request.noLocal) throw new ProtocolError(PROTOCOL_ERROR, 'No Local on a shared subscription'); // [MQTT-3.8.3-4]
    if (!limits.sharedAvailable) return SHARED_SUBSCRIPTIONS_NOT_SUPPORTED;
    const share = parseShare(topicFilter);
    if (share === null) return TOPIC_FILTER_INVALID; // [MQTT-4.8.2-1] [MQTT-4.8.2-2]
    return checkFilter(core, request, share.topicFilter, share.shareName);
  }
  if (!isTopicFilter(topicFilter)) return TOPIC_FILTER_INVALID; // [MQTT-4.7.1-1] [MQTT-4.7.1-2] [MQTT-4.7.3-1]
  return checkFilter(core, request, topicFilter, null);
}

function checkFilter(
  core: Core,
  request: SubscriptionRequest,
  filter: string,
  shareName: string | null,
): Checked | number {
  const limits = core.limits;
  if (limits.maxTopicLevels > 0 && exceedsLevels(filter, limits.maxTopicLevels)) return TOPIC_FILTER_INVALID;
  if (!limits.wildcardAvailable && hasWildcard(filter)) return WILDCARD_SUBSCRIPTIONS_NOT_SUPPORTED;
  return { request, filter, shareName };
}

/**
 * Grants what can be granted. Returns one code for each request, in order [MQTT-3.8.4-6]; before 5.0 failures are 0x80 [MQTT-3.9.3-2].
 * `afterAnswer` sends the stored messages of the new subscriptions: SUBACK goes first. Denials with deny_action disconnect throw.
 */
export function subscribe(
  core: Core,
  session: Session,
  access: Access,
  packet: SubscribePacket,
): Subscribed | Promise<Subscribed> {
  const checked = packet.subscriptions.map((request) => check(core, request));
  const verdicts = checked.map((c) =>
    typeof c === 'number' ? false : access.authorizer.subscribe(session.identity, c.request.topicFilter, c.request.qos),
  );
  if (verdicts.every((v) => typeof v === 'boolean'))
    return grant(core, session, access, packet, checked, verdicts as boolean[]);
  return Promise.all(verdicts).then((known) => grant(core, session, access, packet, checked, known));
}

export interface Subscribed {
  readonly reasonCodes: number[];
  /** The journal was told something that SUBACK has to wait for. */
  readonly stored: boolean;
  readonly afterAnswer: () => void;
}

function grant(
  core: Core,
  session: Session,
  access: Access,
  packet: SubscribePacket,
  checked: readonly (Checked | number)[],
  verdicts: readonly boolean[],
): Subscribed {
  const subscriptionIdentifier = packet.properties?.subscriptionIdentifiers?.[0] ?? 0;
  const backlogs: (() => void)[] = [];
  let stored = false;
  const reasonCodes = checked.map((c, i) => {
    if (typeof c === 'number') return session.version === 5 ? c : UNSPECIFIED_ERROR;
    if (!verdicts[i]) {
      core.stats.deniedSubscribe++;
      if (access.denyAction === 'disconnect')
        throw new ProtocolError(NOT_AUTHORIZED, `subscribing to ${c.request.topicFilter} is not allowed`);
      return session.version === 5 ? NOT_AUTHORIZED : UNSPECIFIED_ERROR;
    }
    const qos = c.request.qos > core.limits.maxQos ? core.limits.maxQos : c.request.qos;
    const request = { ...c.request, qos };
    if (session.bridge) {
      request.noLocal = c.shareName === null;
      request.retainAsPublished = true;
    }
    const subscription = { ...request, subscriptionIdentifier };
    const existed = core.router.subscribe({
      ...subscription,
      receiver: session.outbox,
      filter: c.filter,
      shareName: c.shareName,
    });
    session.subscriptions.set(request.topicFilter, subscription);
    if (session.outbox.durable) {
      core.journal.subscriptionPut(session.clientId, subscription);
      stored = true;
    }
    core.emit({ kind: 'subscribed', clientId: session.clientId, topicFilter: request.topicFilter });
    // [MQTT-3.3.1-9] to [MQTT-3.3.1-11]; a shared subscription gets no retained messages (section 4.8.2).
    const wanted = request.retainHandling === 0 || (request.retainHandling === 1 && !existed);
    if (wanted && c.shareName === null)
      backlogs.push(() => startBacklog(core, session, access, c.filter, subscription));
    return qos;
  });
  const afterAnswer = (): void => {
    for (const start of backlogs) start();
  };
  return { reasonCodes, stored, afterAnswer };
}

/** Whether the publisher of a stored message may still write its topic; the gateway's own values always count. */
function sourceMayWrite(access: Access, message: Message): boolean {
  const { kind, clientId, username } = message.origin;
  if (kind === 'server' || kind === 'api') return true;
  const identity = { clientId, username, remoteAddress: '', listener: '', claims: null, internal: kind === 'bridge' };
  return access.authorizer.publish(identity, message.topic, message.qos, true) === true;
}

function startBacklog(
  core: Core,
  session: Session,
  access: Access,
  filter: string,
  subscription: { qos: 0 | 1 | 2; subscriptionIdentifier: number },
): void {
  const messages = core.router.retainedInPieces(filter);
  const target = {
    receiver: session.outbox,
    qos: subscription.qos,
    retainAsPublished: true,
    subscriptionIdentifiers: subscription.subscriptionIdentifier > 0 ? [subscription.subscriptionIdentifier] : null,
    own: null,
    share: null,
    order: 0,
  };
  session.outbox.deliverBacklog({
    target,
    next: () => {
      const step = messages.next();
      if (step.done === true) return null;
      const message = step.value;
      if (message === null) return undefined;
      return !core.limits.checkRetainSource || sourceMayWrite(access, message) ? message : undefined;
    },
  });
}

export interface Unsubscribed {
  readonly reasonCodes: number[];
  readonly stored: boolean;
}

/** Ends subscriptions; one code for each filter, in order [MQTT-3.10.4-5] [MQTT-3.11.3-1]. */
export function unsubscribe(core: Core, session: Session, packet: UnsubscribePacket): Unsubscribed {
  let stored = false;
  const reasonCodes = packet.topicFilters.map((topicFilter) => {
    if (!session.subscriptions.delete(topicFilter)) {
      return isTopicFilter(topicFilter) ? NO_SUBSCRIPTION_EXISTED : TOPIC_FILTER_INVALID;
    }
    core.router.unsubscribe(session.outbox, topicFilter);
    if (session.outbox.durable) {
      core.journal.subscriptionDelete(session.clientId, topicFilter);
      stored = true;
    }
    core.emit({ kind: 'unsubscribed', clientId: session.clientId, topicFilter });
    return SUCCESS;
  });
  return { reasonCodes, stored };
}

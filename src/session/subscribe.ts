// SUBSCRIBE and UNSUBSCRIBE (MQTT 5.0 sections 3.8 to 3.11): which filters are granted, and what stored messages they
// bring. Called by served.ts and suback.ts; gives the codes, suback.ts sends them. May have to wait for an authorizer,
// or for its turn.

import type { Access } from '../auth/auth.ts';
import { ProtocolError } from '../base/errors.ts';
import type { ListenerContext } from '../broker/broker.ts';
import type { Qos, SubscribePacket, SubscriptionRequest, UnsubscribePacket } from '../mqtt/packet.ts';
import {
  MALFORMED_PACKET,
  NO_SUBSCRIPTION_EXISTED,
  NOT_AUTHORIZED,
  PROTOCOL_ERROR,
  QUOTA_EXCEEDED,
  SHARED_SUBSCRIPTIONS_NOT_SUPPORTED,
  SUCCESS,
  TOPIC_FILTER_INVALID,
  UNSPECIFIED_ERROR,
  WILDCARD_SUBSCRIPTIONS_NOT_SUPPORTED,
} from '../mqtt/reason.ts';
import { EXCLUSIVE_PREFIX, exceedsLevels, hasWildcard, isShared, isTopicFilter, parseShare } from '../mqtt/topic.ts';
import type { ClientPolicy } from '../policy/policy.ts';
import type { StoredSubscription } from '../store/store.ts';
import type { Cap } from './caps.ts';
import { mostQos } from './checks.ts';
import { sourceMayWrite } from './origin.ts';
import { noMoreSubscriptions } from './quotas.ts';
import type { Core } from './session.ts';
import { inSlices } from './slices.ts';
import type { Session } from './state.ts';
import { judgedBy, put, remove, same } from './subscriptions.ts';

/** A request that passed the checks, with the filter the router takes. */
interface Checked {
  readonly request: SubscriptionRequest;
  readonly filter: string;
  readonly shareName: string | null;
  readonly exclusive: boolean;
  /** The filter that rights are judged by. */
  readonly judged: string;
}

/**
 * Checks one request. `policy` says what its filter stands for, null = for itself. Returns a failure code when it
 * cannot be granted whoever asks. Throws for what closes the connection.
 */
function check(core: Core, policy: ClientPolicy | null, asked: SubscriptionRequest): Checked | number {
  const limits = core.limits;
  if (isShared(asked.topicFilter)) {
    if (asked.noLocal) throw new ProtocolError(PROTOCOL_ERROR, 'No Local on a shared subscription'); // [MQTT-3.8.3-4]
    if (!limits.sharedAvailable) return SHARED_SUBSCRIPTIONS_NOT_SUPPORTED;
    // [MQTT-4.8.2-1] [MQTT-4.8.2-2]
    if (parseShare(asked.topicFilter) === null) throw malformed(asked.topicFilter);
  } else if (!isTopicFilter(asked.topicFilter)) throw malformed(asked.topicFilter); // [MQTT-4.7.1-1] [MQTT-4.7.3-1]
  const request = placed(core, policy, asked);
  if (typeof request === 'number') return request;
  const { topicFilter } = request;
  const share = parseShare(topicFilter);
  if (share !== null)
    return checkFilter(core, { request, filter: share.topicFilter, shareName: share.shareName, judged: topicFilter });
  if (core.policies?.exclusive !== true || !topicFilter.startsWith(EXCLUSIVE_PREFIX))
    return checkFilter(core, { request, filter: topicFilter, shareName: null, judged: topicFilter });
  const filter = topicFilter.slice(EXCLUSIVE_PREFIX.length);
  if (!isTopicFilter(filter) || isShared(filter)) return TOPIC_FILTER_INVALID;
  return checkFilter(core, { request, filter, shareName: null, judged: filter }, true);
}

/** The request with the filter that it stands for, or a reason code. */
function placed(core: Core, policy: ClientPolicy | null, asked: SubscriptionRequest): SubscriptionRequest | number {
  const topicFilter = policy === null ? asked.topicFilter : policy.filter(asked.topicFilter);
  if (typeof topicFilter === 'number') return topicFilter;
  if (topicFilter === asked.topicFilter) return asked;
  core.stats.rewrittenSubscribe++;
  return { ...asked, topicFilter };
}

/** What is no Topic Filter at all makes the packet malformed; 0x8F is for one that is well-formed and not accepted. */
function malformed(topicFilter: string): ProtocolError {
  return new ProtocolError(MALFORMED_PACKET, `"${topicFilter.slice(0, SHOWN_CHARACTERS)}" is not a topic filter`);
}

/** A filter may have 64 KB. */
const SHOWN_CHARACTERS = 100;

function checkFilter(core: Core, found: Omit<Checked, 'exclusive'>, exclusive = false): Checked | number {
  const limits = core.limits;
  const { filter } = found;
  if (limits.maxTopicLevels > 0 && exceedsLevels(filter, limits.maxTopicLevels)) return TOPIC_FILTER_INVALID;
  if (!limits.wildcardAvailable && hasWildcard(filter)) return WILDCARD_SUBSCRIPTIONS_NOT_SUPPORTED;
  return { ...found, exclusive };
}

/**
 * Verdicts of one SUBSCRIBE that are asked for at once where a source of rights answers later: a share, not all of its
 * places.
 */
const ASKED_AT_ONCE = 4;

/** What of a SUBSCRIBE asks for something. */
interface Requests {
  readonly subscriptions: readonly SubscriptionRequest[];
  readonly properties: SubscribePacket['properties'];
}

/**
 * Grants what can be granted. Returns one code for each request, in order [MQTT-3.8.4-6]; before 5.0 failures are 0x80
 * [MQTT-3.9.3-2]. `afterAnswer` sends the stored messages of the new subscriptions: SUBACK goes first. Denials with
 * deny_action disconnect throw. Many filters take several turns; null when the client has gone (`isOpen`) in between.
 * Rejects where nobody could say what is allowed.
 */
export function subscribe(
  core: Core,
  session: Session,
  listener: ListenerContext,
  packet: Requests,
  isOpen: () => boolean,
  policy: ClientPolicy | null = null,
): Subscribed | Promise<Subscribed | null> {
  const access = listener.access();
  const rights = { access, maxQos: mostQos(core.limits, listener.rules) };
  const requests = packet.subscriptions;
  const count = requests.length;
  const checked: (Checked | number)[] = [];
  const verdicts: (boolean | Promise<boolean>)[] = [];
  const ask = (i: number): void => {
    const one = check(core, policy, requests[i]);
    checked.push(one);
    if (typeof one === 'number') verdicts.push(false);
    else {
      const verdict = access.authorizer.subscribe(session.identity, one.judged, one.request.qos);
      // Awaited in its turn; it may reject before that.
      if (typeof verdict !== 'boolean') verdict.catch(() => {});
      verdicts.push(verdict);
    }
  };
  const judge = (i: number): Promise<void> | undefined => {
    if (checked.length <= i) ask(i);
    const verdict = verdicts[i];
    if (typeof verdict === 'boolean') return undefined;
    while (checked.length < count && checked.length < i + ASKED_AT_ONCE) ask(checked.length);
    return verdict.then((allowed) => {
      verdicts[i] = allowed;
    });
  };
  const granted = new Grant(core, session, rights, packet.properties?.subscriptionIdentifiers?.[0] ?? 0);
  const grant = (i: number): undefined => {
    granted.add(checked[i], verdicts[i] === true);
  };
  const all = (): true | Promise<boolean> => inSlices(core.pace, count, grant, isOpen);
  const judged = inSlices(core.pace, count, judge, isOpen);
  const done = judged === true ? all() : judged.then((goOn) => goOn && all());
  return done === true ? granted : done.then((complete) => (complete ? granted : null));
}

export interface Subscribed {
  /** takeBack() changes them. */
  readonly reasonCodes: number[];
  /** The journal was told something that SUBACK has to wait for. */
  readonly stored: boolean;
  readonly afterAnswer: () => void;
  /** What was granted could not be stored: subscriptions are as they were before, and the codes say so. */
  readonly takeBack: () => void;
}

/** What a client may do on its listener. */
interface Rights {
  readonly access: Access;
  readonly maxQos: Qos;
}

/** A subscription that the journal was told. */
interface Told {
  /** Position of its reason code. */
  readonly at: number;
  readonly subscription: StoredSubscription;
  readonly before: StoredSubscription | undefined;
}

/** One SUBSCRIBE being granted. */
class Grant implements Subscribed {
  readonly reasonCodes: number[] = [];
  stored = false;
  private readonly core: Core;
  private readonly session: Session;
  private readonly access: Access;
  private readonly maxQos: Qos;
  private readonly subscriptionIdentifier: number;
  private readonly told: Told[] = [];
  /** Starts the stored messages of a new subscription, by position. */
  private readonly backlogs = new Map<number, () => void>();

  constructor(core: Core, session: Session, { access, maxQos }: Rights, subscriptionIdentifier: number) {
    this.core = core;
    this.session = session;
    this.access = access;
    this.maxQos = maxQos;
    this.subscriptionIdentifier = subscriptionIdentifier;
  }

  /** Appends the code of one request. */
  add(checked: Checked | number, allowed: boolean): void {
    this.reasonCodes.push(this.one(checked, allowed));
  }

  readonly afterAnswer = (): void => {
    for (const start of this.backlogs.values()) start();
  };

  readonly takeBack = (): void => {
    const { core, session } = this;
    for (const { at, subscription, before } of this.told) {
      this.reasonCodes[at] = this.failure(QUOTA_EXCEEDED);
      this.backlogs.delete(at);
      const { topicFilter } = subscription;
      core.caps.refused('store', session.clientId, topicFilter);
      // Another SUBSCRIBE or UNSUBSCRIBE may have come in between, or the end of the session.
      if (session.subscriptions.get(topicFilter) !== subscription) continue;
      if (before !== undefined) {
        put(core, session, before);
        continue;
      }
      remove(core, session, topicFilter);
      core.emit({ kind: 'unsubscribed', clientId: session.clientId, topicFilter });
    }
  };

  private failure(reasonCode: number): number {
    return this.session.version === 5 ? reasonCode : UNSPECIFIED_ERROR; // [MQTT-3.9.3-2]
  }

  private one(c: Checked | number, allowed: boolean): number {
    const { core, session, access } = this;
    if (typeof c === 'number') return this.failure(c);
    const { topicFilter } = c.request;
    if (!allowed) {
      core.stats.deniedSubscribe++;
      if (access.denyAction === 'disconnect')
        throw new ProtocolError(NOT_AUTHORIZED, `subscribing to ${topicFilter} is not allowed`);
      return this.failure(NOT_AUTHORIZED);
    }
    if (c.exclusive && core.exclusives.taken(c.filter, session.clientId)) {
      core.caps.refused('exclusive', session.clientId, topicFilter);
      return this.failure(QUOTA_EXCEEDED);
    }
    const asked = this.subscriptionOf(c);
    const before = session.subscriptions.get(topicFilter);
    const known = before !== undefined && same(before, asked);
    const subscription = known ? before : asked;
    const full = known ? null : this.full(topicFilter, before === undefined);
    if (full !== null) {
      core.caps.refused(full, session.clientId, topicFilter);
      return this.failure(QUOTA_EXCEEDED);
    }
    // What is known is stored, unless the SUBACK of its first SUBSCRIBE is still waiting.
    const tell = session.outbox.durable && (!known || session.unsettled > 0);
    const existed = put(core, session, subscription, tell);
    if (tell) {
      this.told.push({ at: this.reasonCodes.length, subscription, before: known ? undefined : before });
      this.stored = true;
    }
    core.emit({ kind: 'subscribed', clientId: session.clientId, topicFilter });
    // [MQTT-3.3.1-9] to [MQTT-3.3.1-11]; a shared subscription gets no retained messages (section 4.8.2).
    const wanted = subscription.retainHandling === 0 || (subscription.retainHandling === 1 && !existed);
    if (wanted && c.shareName === null)
      this.backlogs.set(this.reasonCodes.length, () => startBacklog(core, session, c.filter, subscription));
    return subscription.qos;
  }

  private subscriptionOf({ request, shareName }: Checked): StoredSubscription {
    const { maxQos } = this;
    const { bridge } = this.session;
    return {
      topicFilter: request.topicFilter,
      qos: request.qos > maxQos ? maxQos : request.qos,
      noLocal: bridge ? shareName === null : request.noLocal,
      retainAsPublished: bridge || request.retainAsPublished,
      retainHandling: request.retainHandling,
      subscriptionIdentifier: this.subscriptionIdentifier,
    };
  }

  /** What has no room for this subscription. `more`: it does not take the place of another. */
  private full(topicFilter: string, more: boolean): Cap | null {
    const { core, session } = this;
    const { maxSubscriptions, maxTotalSubscriptions } = core.limits;
    if (session.outbox.durable && !core.journal.accepting) return 'store';
    if (!more) return null;
    if (noMoreSubscriptions(session)) return 'quota';
    const total = core.router.subscriptionCount + core.router.sharedCount;
    const many = maxSubscriptions > 0 && session.subscriptions.size >= maxSubscriptions;
    if (many || (maxTotalSubscriptions > 0 && total >= maxTotalSubscriptions)) return 'subscriptions';
    return core.router.hasRoomFor(topicFilter) ? null : 'memory';
  }
}

function startBacklog(core: Core, session: Session, filter: string, subscription: StoredSubscription): void {
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
    filter: subscription.topicFilter,
    next: () => {
      const step = messages.next();
      if (step.done === true) return null;
      const message = step.value;
      if (message === null) return undefined;
      if (!core.limits.checkRetainSource) return message;
      const verdict = sourceMayWrite(core, message);
      if (typeof verdict !== 'boolean') return verdict.then((allowed) => (allowed ? message : undefined));
      return verdict ? message : undefined;
    },
  });
}

export interface Unsubscribed {
  /** takeBack() changes them. */
  readonly reasonCodes: number[];
  readonly stored: boolean;
  /** The end of the subscriptions could not be stored: they are there again, and the codes say so. */
  readonly takeBack: () => void;
}

/**
 * Ends subscriptions; one code for each filter, in order [MQTT-3.10.4-5] [MQTT-3.11.3-1]. Many filters take several
 * turns; null when the client has gone in between.
 */
export function unsubscribe(
  core: Core,
  session: Session,
  packet: UnsubscribePacket,
  isOpen: () => boolean,
  policy: ClientPolicy | null = null,
): Unsubscribed | Promise<Unsubscribed | null> {
  for (const topicFilter of packet.topicFilters) {
    const valid = isShared(topicFilter) ? parseShare(topicFilter) !== null : isTopicFilter(topicFilter);
    if (!valid) throw malformed(topicFilter); // [MQTT-4.7.1-1] [MQTT-4.7.1-2] [MQTT-4.7.3-1]
  }
  const ended: { at: number; subscription: StoredSubscription }[] = [];
  const reasonCodes: number[] = [];
  const endOne = (at: number): undefined => {
    const asked = packet.topicFilters[at];
    const meant = policy?.filter(asked) ?? asked;
    // One of a time when its filter stood for itself.
    const topicFilter = typeof meant === 'string' && session.subscriptions.has(meant) ? meant : asked;
    const authorizer = session.currentAccess?.authorizer;
    if (
      authorizer?.unsubscribe !== undefined &&
      !authorizer.unsubscribe(session.identity, judgedBy(core, topicFilter))
    ) {
      reasonCodes.push(NOT_AUTHORIZED);
      return;
    }
    const subscription = session.subscriptions.get(topicFilter);
    if (subscription === undefined) {
      reasonCodes.push(NO_SUBSCRIPTION_EXISTED);
      return;
    }
    remove(core, session, topicFilter);
    ended.push({ at, subscription });
    core.emit({ kind: 'unsubscribed', clientId: session.clientId, topicFilter });
    reasonCodes.push(SUCCESS);
  };
  const takeBack = (): void => {
    for (const { at, subscription } of ended) {
      reasonCodes[at] = UNSPECIFIED_ERROR;
      // Only in the session it was in: that may have ended, or have the filter again.
      if (!session.outbox.durable || session.subscriptions.has(subscription.topicFilter)) continue;
      put(core, session, subscription);
      core.emit({ kind: 'subscribed', clientId: session.clientId, topicFilter: subscription.topicFilter });
    }
  };
  const result = (): Unsubscribed => ({
    reasonCodes,
    stored: ended.length > 0 && session.outbox.durable,
    takeBack,
  });
  const done = inSlices(core.pace, packet.topicFilters.length, endOne, isOpen);
  return done === true ? result() : done.then((complete) => (complete ? result() : null));
}

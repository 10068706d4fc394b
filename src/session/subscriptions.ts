// The subscriptions of a session: put in force, withdrawn, ended, with what router, journal, counts and exclusive
// filters ($exclusive/...) each have to know of it. Called by subscribe.ts for packets, and wherever else subscriptions
// come and go. Checks nothing: who calls has done so.
import { EXCLUSIVE_PREFIX, parseShare } from '../mqtt/topic.ts';
import type { StoredSubscription } from '../store/store.ts';
import { countSubscriptions } from './quotas.ts';
import type { Core } from './session.ts';
import type { Session } from './state.ts';

/** Whether both ask for the same. */
export function same(a: StoredSubscription, b: StoredSubscription): boolean {
  return (
    a.qos === b.qos &&
    a.noLocal === b.noLocal &&
    a.retainAsPublished === b.retainAsPublished &&
    a.retainHandling === b.retainHandling &&
    a.subscriptionIdentifier === b.subscriptionIdentifier
  );
}

/** Puts a subscription in force; true when its filter was subscribed before. */
export function put(
  core: Core,
  session: Session,
  subscription: StoredSubscription,
  tell = session.outbox.durable,
): boolean {
  const { topicFilter } = subscription;
  if (core.policies?.exclusive === true && topicFilter.startsWith(EXCLUSIVE_PREFIX))
    core.exclusives.take(topicFilter.slice(EXCLUSIVE_PREFIX.length), session.clientId);
  const existed = route(core, session, subscription);
  if (!session.subscriptions.has(topicFilter)) countSubscriptions(session, 1);
  session.subscriptions.set(topicFilter, subscription);
  if (tell) core.journal.subscriptionPut(session.clientId, subscription);
  return existed;
}

/** Has messages for a subscription delivered; the router knows nothing of exclusive ones. */
function route(core: Core, session: Session, subscription: StoredSubscription): boolean {
  const share = parseShare(subscription.topicFilter);
  const topicFilter = core.exclusives.heldBy(session.clientId, subscription.topicFilter) ?? subscription.topicFilter;
  return core.router.subscribe({
    ...subscription,
    topicFilter,
    receiver: session.outbox,
    filter: share?.topicFilter ?? topicFilter,
    shareName: share?.shareName ?? null,
  });
}

/** Has no more messages delivered for a subscription that the session no longer has. */
export function withdraw(core: Core, session: Session, topicFilter: string): void {
  const exclusive = core.exclusives.heldBy(session.clientId, topicFilter);
  if (exclusive !== null) core.exclusives.release(exclusive);
  core.router.unsubscribe(session.outbox, exclusive ?? topicFilter);
  // To the router an exclusive subscription and an ordinary one to the same filter are one: the other one goes on.
  const twin = session.subscriptions.get(exclusive ?? EXCLUSIVE_PREFIX + topicFilter);
  if (twin === undefined) return;
  if (exclusive !== null || core.exclusives.heldBy(session.clientId, twin.topicFilter) !== null)
    route(core, session, twin);
}

/** The filter that rights on a subscription are judged by. */
export function judgedBy(core: Core, topicFilter: string): string {
  const exclusive = core.policies?.exclusive === true && topicFilter.startsWith(EXCLUSIVE_PREFIX);
  return exclusive ? topicFilter.slice(EXCLUSIVE_PREFIX.length) : topicFilter;
}

/** Ends a subscription; false when there is none. */
export function remove(core: Core, session: Session, topicFilter: string): boolean {
  if (!session.subscriptions.delete(topicFilter)) return false;
  countSubscriptions(session, -1);
  withdraw(core, session, topicFilter);
  session.outbox.dropBacklog(topicFilter);
  if (session.outbox.durable) core.journal.subscriptionDelete(session.clientId, topicFilter);
  return true;
}

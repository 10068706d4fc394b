// The scopes of quotas that a session counts in (policy/policy.ts). Called by the steps of connect.ts, by registry.ts
// and subscribe.ts. Without quotas a session has none, and each of these is a loop over nothing.
import { CONNECTION_RATE_EXCEEDED, QUOTA_EXCEEDED } from '../mqtt/reason.ts';
import type { Usage, Whose } from '../policy/policy.ts';
import type { Refusal } from './checks.ts';
import type { Core } from './session.ts';
import type { Session } from './state.ts';

/** Who asks for what is refused is not read for so long. */
export const RELAX_MS = 20;
/** A CONNECT waits no longer for its turn: clients give up. */
const LONGEST_WAIT_MS = 5000;

/** Counts a CONNECT: null = it may go on, now or, with a promise, later. */
export function takeTurn(core: Core, scopes: readonly Usage[]): Refusal | Promise<null> | null {
  const nowMs = core.clock.mono();
  let waitMs = 0;
  for (const [i, scope] of scopes.entries()) {
    const ms = scope.connectMs(nowMs);
    if (ms > waitMs) waitMs = ms;
    if (ms === 0 || (scope.action === 'delay' && ms <= LONGEST_WAIT_MS)) continue;
    scope.count('connects', 'refused');
    for (const taken of scopes.slice(0, i + 1)) taken.giveBackConnect();
    return { reasonCode: CONNECTION_RATE_EXCEEDED, why: 'too many connections a second' };
  }
  if (waitMs === 0) return null;
  for (const scope of scopes) scope.count('connects', 'delayed');
  return new Promise((resolve) => core.clock.after(waitMs, () => resolve(null)));
}

/** Whether the session that a client asks for is within its quotas. @param known the one it has already */
export function checkSessions(core: Core, known: Session | undefined, whose: Whose): Refusal | null {
  if (core.quotas === null) return null;
  for (const scope of core.quotas.of(whose, core.clock.mono())) {
    if (!scope.full('sessions') || known?.scopes.includes(scope) === true) continue;
    scope.count('sessions', 'refused');
    return { reasonCode: QUOTA_EXCEEDED, why: 'too many sessions by quota' };
  }
  return null;
}

/** The session is there, or its client has come another way: it counts where it belongs. */
export function enterScopes(core: Core, session: Session): void {
  const scopes = core.quotas?.of(session.identity, core.clock.mono()) ?? NONE;
  if (scopes.length === 0 && session.scopes.length === 0) return;
  leaveScopes(session);
  session.scopes = scopes;
  for (const scope of scopes) {
    scope.sessions++;
    scope.subscriptions += session.subscriptions.size;
  }
}

/** The session ends; to be called while it has its subscriptions. */
export function leaveScopes(session: Session): void {
  for (const scope of session.scopes) {
    scope.sessions--;
    scope.subscriptions -= session.subscriptions.size;
  }
  session.scopes = NONE;
}

export function countSubscriptions(session: Session, more: number): void {
  for (const scope of session.scopes) scope.subscriptions += more;
}

/** Whether a quota leaves no room for one more subscription; counts it. */
export function noMoreSubscriptions(session: Session): boolean {
  for (const scope of session.scopes) {
    if (!scope.full('subscriptions')) continue;
    scope.count('subscriptions', 'refused');
    return true;
  }
  return false;
}

/** What has been refused by the quotas of a session so far. */
export function refusals({ scopes }: Session): number {
  let sum = 0;
  for (const scope of scopes) sum += scope.refusals;
  return sum;
}

const NONE: readonly Usage[] = [];

// What the clients of one listener may do: ACL file, acl.rules and further sources, all of which have to agree. Asked
// by session/ for PUBLISH, SUBSCRIBE, delivery and will. Topics of the server ($SYS, $CONTROL) cannot be written
// whatever the sources say. Verdicts are fast and not cached here; `version` tells who caches them when they may have
// changed.

import type { Clock } from '../base/clock.ts';
import type { AccountAction } from './accounts/judge.ts';
import type { Explanation } from './aclfile.ts';
import type { Authorizer, Identity, Verdict } from './auth.ts';
import type { Realm } from './realm.ts';
import type { Action } from './rules.ts';
import { READ, WRITE } from './ruletree.ts';
import { allOf } from './verdict.ts';

const DOLLAR = 36;
/** Where commands of dynamic security are published to, and nothing else. */
export const CONTROL_TOPIC = '$CONTROL/dynamic-security/v1';
export const CONTROL_RESPONSE = '$CONTROL/dynamic-security/v1/response';
const STATE_PREFIX = '$SYS/broker/connection/';
const STATE_SUFFIX = '/state';

/** The one topic below $SYS that a client may be allowed to write: a bridge's state, as mosquitto has it. */
function isBridgeState(topic: string): boolean {
  if (!topic.startsWith(STATE_PREFIX) || !topic.endsWith(STATE_SUFFIX)) return false;
  const end = topic.length - STATE_SUFFIX.length;
  return end >= STATE_PREFIX.length && topic.indexOf('/', STATE_PREFIX.length) === end;
}

/** Topics of the server by their first characters, as mosquitto compares them: `$SYSx` and `$sharex` are meant too. */
function mayWrite(topic: string): boolean {
  if (topic.charCodeAt(0) !== DOLLAR) return true;
  if (topic.startsWith('$SYS')) return isBridgeState(topic);
  return !topic.startsWith('$CONTROL') && !topic.startsWith('$share');
}

/** Whom to ask: accounts decide about a client, or leave it to the others, of which there may be none. */
type Decision = 'allowed' | 'denied' | 'others' | 'nobody';

/** What accounts say. Clients inside the process that have no account are judged by the others, as ever. */
function decide(realm: Realm, identity: Identity, action: AccountAction, topic: string): Decision {
  const { accounts, acl, rules, rights } = realm;
  if (accounts === null) return 'others';
  if (identity.internal && (identity.username === null || accounts.get(identity.username) === undefined))
    return 'others';
  const verdict = accounts.verdict(identity, action, topic);
  if (verdict !== null) return verdict.allowed ? 'allowed' : 'denied';
  return acl === null && rules === null && rights.length === 0 ? 'nobody' : 'others';
}

export class ChainAuthorizer implements Authorizer {
  private readonly realm: () => Realm;
  private readonly versions: { readonly current: number };
  private readonly clock: Clock;

  /** @param versions rises with every reload. */
  constructor(realm: () => Realm, versions: { readonly current: number }, clock: Clock) {
    this.realm = realm;
    this.versions = versions;
    this.clock = clock;
  }

  /** Rises with reloads, and with time where verdicts grow old. */
  get version(): number {
    const { periodMs } = this.realm();
    return this.versions.current + (periodMs === 0 ? 0 : Math.floor(this.clock.mono() / periodMs));
  }

  publish(identity: Identity, topicName: string, qos: number, retain: boolean): Verdict {
    const realm = this.realm();
    const { acl, rules, rights } = realm;
    if (topicName === CONTROL_TOPIC) return !retain && this.mayControl(identity);
    if (!mayWrite(topicName)) return false;
    const decision = decide(realm, identity, 'publish', topicName);
    if (decision === 'denied' || decision === 'nobody') return false;
    if (decision === 'others') {
      if (acl !== null && !acl.allows(identity, topicName, WRITE)) return false;
      if (rules !== null && !rules.allows(identity, 'publish', topicName)) return false;
    }
    let verdict: Verdict = true;
    for (let i = 0; i < rights.length && verdict !== false; i++) {
      verdict = allOf([verdict, rights[i].publish(identity, topicName, qos, retain)]);
    }
    return verdict;
  }

  subscribe(identity: Identity, topicFilter: string, qos: number): Verdict {
    const realm = this.realm();
    const { acl, aclSubscribe, rules, rights } = realm;
    const decision = decide(realm, identity, 'subscribe', topicFilter);
    if (decision === 'denied' || decision === 'nobody') return false;
    if (decision === 'others') {
      if (acl !== null && aclSubscribe === 'truthful' && !acl.reaches(identity, topicFilter)) return false;
      if (rules !== null && !rules.allows(identity, 'subscribe', topicFilter)) return false;
    }
    let verdict: Verdict = true;
    for (let i = 0; i < rights.length && verdict !== false; i++) {
      verdict = allOf([verdict, rights[i].subscribe(identity, topicFilter, qos)]);
    }
    return verdict;
  }

  unsubscribe(identity: Identity, topicFilter: string): boolean {
    return decide(this.realm(), identity, 'unsubscribe', topicFilter) !== 'denied';
  }

  /** Commands are only for those that an entry of a role names. */
  private mayControl(identity: Identity): boolean {
    const { accounts } = this.realm();
    if (accounts === null || !accounts.served || identity.internal) return false;
    return accounts.verdict(identity, 'publish', CONTROL_TOPIC)?.allowed === true;
  }

  deliver(identity: Identity, topicName: string): boolean {
    const realm = this.realm();
    const { acl, rules, rights } = realm;
    if (topicName.charCodeAt(0) === DOLLAR && topicName.startsWith('$share')) return false;
    const decision = decide(realm, identity, 'deliver', topicName);
    if (decision === 'denied' || decision === 'nobody') return false;
    if (decision === 'others') {
      if (acl !== null && !acl.allows(identity, topicName, READ)) return false;
      if (rules !== null && !rules.allows(identity, 'deliver', topicName)) return false;
    }
    for (let i = 0; i < rights.length; i++) if (!rights[i].deliver(identity, topicName)) return false;
    return true;
  }

  explain(identity: Identity, action: Action, topic: string): Explanation {
    const realm = this.realm();
    const { acl, aclSubscribe, rules, rights, accounts } = realm;
    if (action === 'publish' && !mayWrite(topic) && (topic !== CONTROL_TOPIC || accounts === null))
      return { allowed: false, rule: 'topics of the server cannot be written' };
    const decision = decide(realm, identity, action, topic);
    const opinions: (Explanation | null)[] = [accounts?.verdict(identity, action, topic) ?? null];
    if (decision === 'nobody' || (action === 'publish' && topic === CONTROL_TOPIC && !this.mayControl(identity)))
      opinions.push({ allowed: false, rule: 'no entry of a role matches and there is no other source of rights' });
    if (decision !== 'others') {
      // The account has the say.
    } else if (acl !== null && action === 'subscribe') {
      const reaches = aclSubscribe === 'mosquitto' || acl.reaches(identity, topic);
      const rule =
        aclSubscribe === 'mosquitto' ? 'granted, deliveries are filtered' : 'whether any rule gives it a message';
      opinions.push({ allowed: reaches, rule: `${acl.path}: ${rule}` });
    } else if (acl !== null) opinions.push(acl.explain(identity, topic, action === 'publish' ? WRITE : READ));
    if (rules !== null && decision === 'others') opinions.push(rules.explain(identity, action, topic));
    for (const source of rights) opinions.push(source.explain(identity, action, topic));
    const known = opinions.filter((opinion) => opinion !== null);
    return (
      known.find((opinion) => !opinion.allowed) ??
      known[0] ?? { allowed: true, rule: 'no source of rights is configured' }
    );
  }
}

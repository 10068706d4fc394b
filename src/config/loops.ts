// Finds NNG bridges whose frames could come back: what a sub bridge publishes, a pub bridge forwards to where the sub
// bridge listens. Called by config/build/build.ts. Warns only: such loops are sometimes meant, and a message never goes
// back through the bridge of its own name.
import type { ForwardRule, NngConfig, NngPairConfig, NngPubConfig, NngSubConfig, SubscriptionRule } from './bridges.ts';
import { meetingPoint, ruleStart } from './build/bridges.ts';
import { nngBridges } from './nngbridges.ts';
import type { Sink } from './sink.ts';
import { filtersMeet } from './values.ts';

/** Pairs of rules looked at for two bridges: a second of work at most, for a hint. */
const MAX_PAIRS = 200_000;

export function warnLoops(nng: NngConfig, sink: Sink): void {
  const all = nngBridges(nng);
  for (const sub of all) {
    for (const pub of all) {
      if (!('subscription' in sub) || !('forwards' in pub)) continue;
      if (!sub.enable || !pub.enable || !meet(pub, sub)) continue;
      if (sub.subscription.length * pub.forwards.length > MAX_PAIRS) continue;
      for (const rule of sub.subscription) {
        const forward = pub.forwards.find((candidate) => comesBack(rule, candidate));
        if (!rule.enable || forward === undefined) continue;
        const message = `what this rule publishes is forwarded by bridges.nng.${pub.type}.${pub.name} (line ${forward.source.line}) and could come back`;
        sink.warn(rule.source, `bridges.nng.${sub.type}.${sub.name}`, message);
      }
    }
  }
}

/** Same name, or one listens where the other dials. */
function meet(pub: NngPubConfig | NngPairConfig, sub: NngSubConfig | NngPairConfig): boolean {
  if (pub.name === sub.name) return true;
  if (pub.mode === sub.mode) return false;
  const points = new Set(pub.urls.map(meetingPoint));
  return sub.urls.some((url) => points.has(meetingPoint(url)));
}

function comesBack(rule: SubscriptionRule, forward: ForwardRule): boolean {
  if (!forward.enable || forward.from === 'mqtt') return false;
  if (!filtersMeet(publishedTo(rule), forward.localTopic)) return false;
  const { prefix } = ruleStart(rule.remoteTopic, rule.nngDelimiter);
  if (forward.remoteTopic !== '')
    return forward.remoteTopic.startsWith(prefix) || prefix.startsWith(forward.remoteTopic);
  const wildcard = forward.localTopic.search(/[#+]/);
  const start = wildcard < 0 ? forward.localTopic : forward.localTopic.slice(0, wildcard);
  return start.startsWith(prefix) || prefix.startsWith(start);
}

/** A filter for all topics the rule can publish to. */
function publishedTo(rule: SubscriptionRule): string {
  const topic =
    rule.localTopic === '' ? `${ruleStart(rule.remoteTopic, rule.nngDelimiter).prefix}{topic}` : rule.localTopic;
  const open = topic.indexOf('{');
  if (open < 0) return topic;
  const level = topic.lastIndexOf('/', open);
  return level < 0 ? '#' : `${topic.slice(0, level)}/#`;
}

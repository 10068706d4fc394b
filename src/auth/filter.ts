// Topic filters as sets of topics: whether one holds another, and what two have in common. Called by aclfile.ts and
// rules.ts when a SUBSCRIBE is judged; matching a topic against rules is ruletree.ts. Pure. Sources: MQTT 5.0 section
// 4.7. A filter is given as its levels. Filters whose first level is a wildcard never hold topics that begin with $
// [MQTT-4.7.2-1].

import { exceedsLevels, isTopicFilter, parseShare } from '../mqtt/topic.ts';

/** mosquitto's limit of 200 slashes, plus one. */
const MOST_LEVELS = 201;

/** True for a filter that a rule may name. */
export function isRuleFilter(filter: string): boolean {
  return isTopicFilter(filter) && !exceedsLevels(filter, MOST_LEVELS);
}

function isWild(level: string): boolean {
  return level === '+' || level === '#';
}

function dollarKept(wild: string, other: string): boolean {
  return isWild(wild) && other.startsWith('$');
}

/**
 * Whether every topic that `inner` matches is matched by `outer` too.
 * @param dollar a wildcard in front means topics that begin with $ as well: so it is in a denial
 */
export function covers(outer: readonly string[], inner: readonly string[], dollar = false): boolean {
  if (!dollar && dollarKept(outer[0], inner[0])) return false;
  for (let i = 0; i < outer.length; i++) {
    if (outer[i] === '#') return true;
    if (i === inner.length) return false;
    if (inner[i] === '#' || (outer[i] !== '+' && outer[i] !== inner[i])) return false;
  }
  // `a/#` also matches its parent `a`, so `a` holds `a` but not `a/#`.
  return inner.length === outer.length;
}

/** The filter of all topics that both match, or null when there is none. */
export function intersect(a: readonly string[], b: readonly string[]): string[] | null {
  if (dollarKept(a[0], b[0]) || dollarKept(b[0], a[0])) return null;
  const common: string[] = [];
  for (let i = 0; ; i++) {
    if (i === a.length && i === b.length) return common;
    // `#` stands for the rest of the other, which may be nothing: it matches the parent level.
    if (a[i] === '#') return [...common, ...b.slice(i)];
    if (b[i] === '#') return [...common, ...a.slice(i)];
    if (i === a.length || i === b.length) return null;
    if (a[i] === '+') common.push(b[i]);
    else if (b[i] === '+' || a[i] === b[i]) common.push(a[i]);
    else return null;
  }
}

/** The filter behind `$share/<name>/`, or the filter itself (MQTT 5.0 section 4.8.2). */
export function sharedFilter(topicFilter: string): string {
  return parseShare(topicFilter)?.topicFilter ?? topicFilter;
}

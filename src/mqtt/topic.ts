// Topic Names and Topic Filters (MQTT 5.0 sections 4.7 and 4.8.2, 3.1.1 section 4.7): validity, levels, shared
// subscriptions, matching. Called by codec/, auth/, session/, broker/, bridge/, proxy/, console/ and cli/. Pure; works
// on strings, never throws. Policy: U+0000 and unpaired surrogates are refused; other control characters are accepted
// in topics, as the specifications allow ([MQTT-1.5.4-2] forbids only U+0000): refusing them makes a client that
// re-sends the message after a reconnect fail for ever.

/** Longest Topic Name or Topic Filter in UTF-8 bytes [MQTT-4.7.3-3]. */
export const TOPIC_MAX_BYTES = 65_535;

const SHARE_PREFIX = '$share/';
/** Begins a filter that may have one subscriber, where the configuration says so. */
export const EXCLUSIVE_PREFIX = '$exclusive/';

const HASH = 0x23;
const PLUS = 0x2b;
const SLASH = 0x2f;

/** A UTF-16 unit takes at most three bytes of UTF-8, so short strings need no counting. */
function fits(text: string): boolean {
  if (text.length === 0) return false; // [MQTT-4.7.3-1]
  if (text.length * 3 <= TOPIC_MAX_BYTES) return true;
  return text.length <= TOPIC_MAX_BYTES && Buffer.byteLength(text) <= TOPIC_MAX_BYTES;
}

/**
 * True when `text` may be the topic of a message: 1 to 65,535 bytes, no wildcard, no U+0000 [MQTT-3.3.2-2]
 * [MQTT-4.7.1-1] [MQTT-4.7.3-2].
 */
export function isTopicName(text: string): boolean {
  if (!fits(text)) return false;
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    if (unit === HASH || unit === PLUS || unit === 0) return false;
    if (unit >= 0xd800 && unit <= 0xdfff && !isPair(text, i++)) return false;
  }
  return true;
}

/**
 * True when `text` may be a Topic Filter: 1 to 65,535 bytes, no U+0000, '#' only as the whole last level [MQTT-4.7.1-1
 * of 5.0], '+' only as a whole level [MQTT-4.7.1-2]. A shared subscription needs parseShare() as well.
 */
export function isTopicFilter(text: string): boolean {
  if (!fits(text)) return false;
  const last = text.length - 1;
  for (let i = 0; i <= last; i++) {
    const unit = text.charCodeAt(i);
    if (unit === 0) return false;
    if (unit === HASH || unit === PLUS) {
      if (i > 0 && text.charCodeAt(i - 1) !== SLASH) return false;
      if (i < last && (unit === HASH || text.charCodeAt(i + 1) !== SLASH)) return false;
    } else if (unit >= 0xd800 && unit <= 0xdfff && !isPair(text, i++)) return false;
  }
  return true;
}

function isPair(text: string, at: number): boolean {
  const high = text.charCodeAt(at);
  const low = text.charCodeAt(at + 1);
  return high <= 0xdbff && low >= 0xdc00 && low <= 0xdfff;
}

/** True when the filter holds a '+' or '#' level. For filters that isTopicFilter() accepts. */
export function hasWildcard(filter: string): boolean {
  return filter.includes('+') || filter.includes('#');
}

/** The levels between slashes; an empty level is a level (section 4.7.1.1). */
export function levels(text: string): string[] {
  return text.split('/');
}

/**
 * True when `text` has more than `max` levels. Stops counting there: a topic of 30,000 slashes costs no more than one
 * of `max`.
 */
export function exceedsLevels(text: string, max: number): boolean {
  let at = -1;
  for (let count = 1; count <= max; count++) {
    at = text.indexOf('/', at + 1);
    if (at < 0) return false;
  }
  return true;
}

/** A shared subscription taken apart (section 4.8.2). */
export interface Share {
  readonly shareName: string;
  readonly topicFilter: string;
}

/** True when the filter asks for a shared subscription, well-formed or not [MQTT-4.8.2-1]. */
export function isShared(filter: string): boolean {
  return filter.startsWith(SHARE_PREFIX);
}

/**
 * Takes `$share/<shareName>/<topicFilter>` apart; null when it is not of this form: the name is at least one character
 * without '/', '+', '#' and is followed by '/' and a valid Topic Filter [MQTT-4.8.2-1] [MQTT-4.8.2-2].
 */
export function parseShare(filter: string): Share | null {
  if (!isShared(filter) || !fits(filter)) return null;
  const slash = filter.indexOf('/', SHARE_PREFIX.length);
  if (slash <= SHARE_PREFIX.length) return null;
  const shareName = filter.slice(SHARE_PREFIX.length, slash);
  const topicFilter = filter.slice(slash + 1);
  if (!isTopicName(shareName) || !isTopicFilter(topicFilter)) return null;
  return { shareName, topicFilter };
}

/**
 * True when the Topic Name matches the Topic Filter (section 4.7). Plain and slow, O(levels): the reference that the
 * router's trie is tested against, and good enough where one filter meets one topic. Both must be valid.
 */
export function matches(filter: string, topic: string): boolean {
  const wanted = levels(filter);
  const given = levels(topic);
  // A wildcard in the first level does not match topics that begin with '$' [MQTT-4.7.2-1].
  if (topic.startsWith('$') && (wanted[0] === '+' || wanted[0] === '#')) return false;
  for (let i = 0; i < wanted.length; i++) {
    // '#' stands for the level it is on, all below it, and the parent (section 4.7.1.2).
    if (wanted[i] === '#') return true;
    if (i >= given.length) return false;
    if (wanted[i] !== '+' && wanted[i] !== given[i]) return false;
  }
  return wanted.length === given.length;
}

/**
 * What each wildcard of `filter` stands for in `topic`, which matches it, in order: '+' for a level, '#' for the rest
 * with its slashes, or for null at the parent level itself.
 */
export function captures(filter: string, topic: string): (string | null)[] {
  const given = levels(topic);
  const found: (string | null)[] = [];
  for (const [i, level] of levels(filter).entries()) {
    if (level === '+') found.push(given[i] ?? '');
    else if (level === '#') found.push(i < given.length ? given.slice(i).join('/') : null);
  }
  return found;
}

// Fuzz target: topics, filters, shares. Holds: nothing is thrown; what is a Topic Name is a filter that matches itself alone;
// a share taken apart is the filter put together again.
import { exceedsLevels, isTopicFilter, isTopicName, levels, matches, parseShare } from '../../src/mqtt/topic.ts';
import type { FuzzTarget } from '../harness/fuzz.ts';
import type { Random } from '../harness/random.ts';

const PARTS = ['/', '/', '+', '#', 'a', 'bc', '$', '$share/', '$SYS', '\0', '\t', 'ü', '😀', '\ud83d', '\ude00', ' '];

export const target: FuzzTarget = {
  once(random: Random): void {
    const one = some(random);
    const other = some(random);
    if (isTopicName(one) && !isTopicFilter(one)) throw new Error(`a name is no filter: ${JSON.stringify(one)}`);
    if (isTopicName(one) && !matches(one, one)) throw new Error(`does not match itself: ${JSON.stringify(one)}`);
    if (isTopicName(one) && isTopicName(other) && matches(one, other) !== (one === other))
      throw new Error('a name matched another');
    if (isTopicFilter(one) && isTopicName(other)) matches(one, other);
    const count = levels(one).length;
    if (exceedsLevels(one, count) || (count > 1 && !exceedsLevels(one, count - 1)))
      throw new Error('levels are miscounted');
    const share = parseShare(one);
    if (share === null) return;
    if (`$share/${share.shareName}/${share.topicFilter}` !== one || !isTopicFilter(share.topicFilter)) {
      throw new Error(`wrong share: ${JSON.stringify(one)}`);
    }
  },
};

function some(random: Random): string {
  return Array.from({ length: random.below(9) }, () => random.pick(PARTS)).join('');
}

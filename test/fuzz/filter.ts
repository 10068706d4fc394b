// Fuzz target: filters as sets. Holds, with the reference matcher over random topics: a filter that covers another matches all that it
// matches; the intersection of two matches exactly what both match.
import { covers, intersect } from '../../src/auth/filter.ts';
import { isTopicFilter, isTopicName, matches } from '../../src/mqtt/topic.ts';
import type { FuzzTarget } from '../harness/fuzz.ts';
import type { Random } from '../harness/random.ts';

function someFilter(random: Random): string {
  const levels = Array.from({ length: 1 + random.below(3) }, () => random.pick(['a', 'b', '+', '', '$x']));
  if (random.below(3) === 0) levels.push('#');
  const filter = levels.join('/');
  return isTopicFilter(filter) ? filter : random.pick(['#', '+', 'a']);
}

export const target: FuzzTarget = {
  once(random: Random): void {
    const [one, other] = [someFilter(random), someFilter(random)];
    const covered = covers(one.split('/'), other.split('/'));
    const common = intersect(one.split('/'), other.split('/'))?.join('/') ?? null;
    for (let i = 0; i < 40; i++) {
      const topic = Array.from({ length: 1 + random.below(4) }, () => random.pick(['a', 'b', '', '$x', 'c'])).join('/');
      if (!isTopicName(topic)) continue;
      const [a, b] = [matches(one, topic), matches(other, topic)];
      if (covered && b && !a) throw new Error(`${one} does not cover ${other}: ${topic}`);
      if ((common !== null && matches(common, topic)) !== (a && b))
        throw new Error(`${one} and ${other} are not ${common}: ${topic}`);
    }
    if (one === other && !covered) throw new Error(`${one} does not cover itself`);
  },
};

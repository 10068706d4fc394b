// How a bridge to a remote broker renames topics: filter and target from a rule, prefix and suffix around. Pure. Called
// by rules.ts for each topic that is new; results are remembered. What comes out is a Topic Name or null: a wildcard
// never leaves. Source: docs/mqtt-bridges.md; NanoMQ's remote_topic, local_topic, prefix and suffix.
import { fillFromJson, parseTemplate, type Template } from '../../mqtt/template.ts';
import { captures, isTopicName, levels, matches } from '../../mqtt/topic.ts';

export interface TopicMapping {
  readonly filter: string;
  /** "" = keep the topic. */
  readonly target: string;
  readonly prefix: string;
  readonly suffix: string;
}

/** Topics remembered with their new names; a rule mostly sees few. */
const REMEMBERED = 1000;
/** Longer topics are not remembered: a thousand of 64 KB each would fill memory. */
const LONG_CHARACTERS = 256;

export class TopicMapper {
  /** Whether the target has {json:} fields: then mapFrom() names topics, and map() is not to be used. */
  readonly json: boolean;
  private readonly mapping: TopicMapping;
  private readonly template: Template;
  /** True when every topic becomes the same one. */
  private readonly constant: string | null | undefined;
  private readonly keeps: boolean;
  private readonly known = new Map<string, string | null>();
  private readonly matched = new Map<string, boolean>();

  constructor(mapping: TopicMapping) {
    this.mapping = mapping;
    const { target, prefix, suffix } = mapping;
    this.template = parseTemplate(target, 0, ['json']);
    this.json = this.template.json;
    this.keeps = target === '' && prefix === '' && suffix === '';
    const fixed = target !== '' && !/[+#]/.test(target);
    this.constant = fixed ? named(prefix + target + suffix) : undefined;
  }

  /**
   * The new name of `topic`, which matches the filter, with the fields of the payload's JSON; null when it cannot be a
   * Topic Name, undefined when a field is missing. A field brings no wildcard, so those of the target are the rule's.
   */
  mapFrom(topic: string, value: unknown): string | null | undefined {
    const target = fillFromJson(this.template, '', '', [], value);
    return target === null ? undefined : mapTopic({ ...this.mapping, target }, topic);
  }

  /** Whether the filter matches a topic. */
  matches(topic: string): boolean {
    let matched = this.matched.get(topic);
    if (matched === undefined) {
      matched = matches(this.mapping.filter, topic);
      if (this.matched.size >= REMEMBERED) this.matched.clear();
      if (topic.length <= LONG_CHARACTERS) this.matched.set(topic, matched);
    }
    return matched;
  }

  /** The new name of `topic`, which matches the filter; null when it cannot be a Topic Name. */
  map(topic: string): string | null {
    if (this.keeps) return topic;
    if (this.constant !== undefined) return this.constant;
    let mapped = this.known.get(topic);
    if (mapped === undefined) {
      mapped = mapTopic(this.mapping, topic);
      if (this.known.size >= REMEMBERED) this.known.clear();
      if (topic.length <= LONG_CHARACTERS) this.known.set(topic, mapped);
    }
    return mapped;
  }
}

function named(topic: string): string | null {
  return isTopicName(topic) ? topic : null;
}

/**
 * The new name: each '+' of the target takes the next '+' of the filter, '#' takes the tail. A '#' without one takes
 * the '+' that are left; a wildcard for which nothing is left goes with its level. Null when the result is no Topic
 * Name.
 */
export function mapTopic(mapping: TopicMapping, topic: string): string | null {
  const { filter, target, prefix, suffix } = mapping;
  if (target === '') return named(prefix + topic + suffix);
  const all = captures(filter, topic);
  const hasTail = filter.endsWith('#');
  const tail = hasTail ? all.pop() : null;
  const single = all.map((level) => level ?? '');
  const made: string[] = [];
  let next = 0;
  for (const level of levels(target)) {
    if (level === '+') {
      if (next < single.length) made.push(single[next++]);
    } else if (level === '#') {
      if (!hasTail) made.push(...single.slice(next));
      else if (tail != null) made.push(tail);
    } else made.push(level);
  }
  return named(prefix + made.join('/') + suffix);
}

// Topic rewriting: the first rule whose pattern matches gives the topic or filter another name. Used by topics.ts,
// which asks once per topic of a client. Pure. What a rule makes is not looked at by further rules, so none can go in
// circles.
import { capturesOf, fillTemplate, parseTemplate, type Template, wildcardCount } from '../mqtt/template.ts';
import { matches } from '../mqtt/topic.ts';
import { type Names, templateFor } from './naming.ts';

export interface RewriteOptions {
  readonly action: 'publish' | 'subscribe' | 'all';
  /** Topic Filter. */
  readonly from: string;
  /** With {1}, {2} ... for the wildcards of `from`, {topic}, %c and %u. */
  readonly to: string;
  /** Name of a listener and a username; "" = all. */
  readonly listener: string;
  readonly username: string;
}

/** One rule for one client. */
interface Rule {
  readonly from: string;
  /** null: a name in it does not fit, so what matches goes nowhere. */
  readonly to: Template | null;
}

/** The rules of one kind that concern one client. */
export class Rewriter {
  private readonly rules: readonly Rule[];

  constructor(rules: readonly RewriteOptions[], action: 'publish' | 'subscribe', listener: string, names: Names) {
    const mine = rules.filter(
      (rule) =>
        (rule.action === action || rule.action === 'all') &&
        (rule.listener === '' || rule.listener === listener) &&
        (rule.username === '' || rule.username === names.username),
    );
    this.rules = mine.map(({ from, to }) => ({
      from,
      to: templateFor(parseTemplate(to, wildcardCount(from), ['topic']), names),
    }));
  }

  get empty(): boolean {
    return this.rules.length === 0;
  }

  /** The other name of a topic, the same where no rule matches, null where it has none. */
  topic(topic: string): string | null {
    for (const { from, to } of this.rules)
      if (matches(from, topic)) return to === null ? null : fillTemplate(to, topic, '', capturesOf(from, topic));
    return topic;
  }

  /** The same for a Topic Filter: its wildcards are levels like others, but # is more than + stands for. */
  filter(filter: string): string | null {
    const last = filter.split('/').length - 1;
    for (const { from, to } of this.rules) {
      if (!matches(from, filter)) continue;
      if (filter.endsWith('#') && from.split('/')[last] === '+') continue;
      return to === null ? null : fillTemplate(to, filter, '', capturesOf(from, filter));
    }
    return filter;
  }
}

// Which upstream a topic belongs to, and which ones a Topic Filter may reach: the rules of `topics` for the clients of
// one upstream. Made by compileTopics() for rules.ts, asked by exchange.ts for every PUBLISH and SUBSCRIBE. Pure but
// for a bounded cache (owners.ts). Topics are compared by their bytes: texts here hold one byte a character (latin1),
// as they are cut from packets without decoding. Source: MQTT 5.0 section 4.7; docs/proxy.md says what is promised.
import { matches, parseShare } from '../../mqtt/topic.ts';
import type { Facts } from '../facts.ts';
import { covers, overlaps } from '../filter.ts';
import type { TopicRuleOptions } from '../proxy.ts';
import { compileTemplate, type Template } from '../template.ts';
import { Owners } from './owners.ts';

interface Row {
  readonly filter: string;
  readonly upstream: number;
}

export class TopicTable {
  /** The first is that of the route, where everything goes that no rule takes. */
  readonly upstreams: readonly string[];
  private readonly rows: readonly Row[];
  private readonly owners = new Owners();

  constructor(rules: readonly TopicRuleOptions[], home: string) {
    this.upstreams = [...new Set([home, ...rules.map((rule) => rule.upstream)])];
    this.rows = rules.map((rule) => ({
      filter: bytesOf(rule.filter),
      upstream: this.upstreams.indexOf(rule.upstream),
    }));
  }

  /** Index of the upstream that the topic in bytes[start, end) belongs to: that of the first rule that fits. */
  owner(bytes: Buffer, start = 0, end = bytes.length): number {
    const known = this.owners.find(bytes, start, end);
    if (known >= 0) return known;
    const topic = bytes.toString('latin1', start, end);
    const owner = this.rows.find((row) => matches(row.filter, topic))?.upstream ?? 0;
    this.owners.add(bytes, start, end, owner);
    return owner;
  }

  /**
   * Indexes of all upstreams that may have messages for a filter, a shared subscription by the filter in it. Never
   * empty.
   */
  reach(topicFilter: string): number[] {
    const filter = bytesOf(parseShare(topicFilter)?.topicFilter ?? topicFilter);
    const found = new Set<number>();
    for (const row of this.rows) {
      if (!meets(row.filter, filter)) continue;
      found.add(row.upstream);
      if (covers(row.filter, filter)) return [...found];
    }
    return [...found.add(0)];
  }
}

/** A wildcard in the first level and a level that begins with $ have no topic in common [MQTT-4.7.2-1]. */
function meets(one: string, other: string): boolean {
  const apart = (a: string, b: string): boolean => a.startsWith('$') && (b.startsWith('+') || b.startsWith('#'));
  return !apart(one, other) && !apart(other, one) && overlaps(one, other);
}

function bytesOf(text: string): string {
  return Buffer.from(text).toString('latin1');
}

/** The rules of one proxy. */
export class TopicRules {
  private readonly rules: readonly TopicRuleOptions[];
  private readonly tables = new Map<string, TopicTable>();
  /** Client ids by upstream, where a rule gives one. */
  readonly clientIds: ReadonlyMap<string, Template>;

  constructor(rules: readonly TopicRuleOptions[], env: Readonly<Record<string, string | undefined>>) {
    this.rules = rules;
    const ids = new Map<string, Template>();
    for (const { upstream, clientId } of rules)
      if (clientId !== null) ids.set(upstream, compileTemplate(clientId, env));
    this.clientIds = ids;
  }

  /**
   * A variable of the client's certificate that a client id for one of the upstreams needs and this client does not
   * give, or null: clients without it would share an id.
   */
  missing(facts: Facts): string | null {
    for (const template of this.clientIds.values()) {
      const name = template.missing(facts);
      if (name !== null) return name;
    }
    return null;
  }

  /** For clients whose route leads to `home`: one table for each upstream that routes name. */
  table(home: string): TopicTable {
    let table = this.tables.get(home);
    if (table === undefined) {
      table = new TopicTable(this.rules, home);
      this.tables.set(home, table);
    }
    return table;
  }
}

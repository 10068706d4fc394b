// What a client may publish and subscribe to behind a proxy with `inspect`, and where its topics really are: rules, and
// the decisions by them. Compiled by rules.ts, used by inspect.ts for every PUBLISH and SUBSCRIBE, and by verdict.ts
// for the will. Pure. Topics here are those the client writes, without the prefix. Source: MQTT 5.0 sections 4.7, 4.8.2
// (docs/proxy.md says what is promised).
import type { Will } from '../mqtt/packet.ts';
import { matches } from '../mqtt/topic.ts';
import type { Facts } from './facts.ts';
import type { FilterOptions } from './proxy.ts';
import { compileTemplate, type Template } from './template.ts';

export interface CompiledFilter {
  readonly options: FilterOptions;
  readonly prefix: Template;
  readonly userProperties: readonly (readonly [string, Template])[];
}

export function compileFilter(
  options: FilterOptions,
  env: Readonly<Record<string, string | undefined>>,
): CompiledFilter {
  return {
    options,
    prefix: compileTemplate(options.prefix, env),
    userProperties: options.userProperties.map(([name, value]) => [name, compileTemplate(value, env)]),
  };
}

const SHARE = '$share/';

/** The rules for one client. */
export class ClientFilter {
  readonly prefix: string;
  readonly prefixBytes: Buffer;
  readonly userProperties: readonly [string, string][];
  readonly options: FilterOptions;
  /** Whether a topic has to be looked at before it may be published. */
  readonly checksTopics: boolean;
  /**
   * Whether a topic has to be looked at before the client gets it: an older session may have filters that it may not
   * subscribe now.
   */
  readonly checksDeliveries: boolean;
  /**
   * False: the prefix is not this client's alone, and it has to be refused. A variable that is empty, or that holds a
   * level separator or a wildcard, would make one client's prefix another's.
   */
  readonly sound: boolean;

  constructor(compiled: CompiledFilter, facts: Facts) {
    const { publish, subscribe } = compiled.options;
    this.options = compiled.options;
    this.prefix = compiled.prefix.fill(facts);
    this.sound = compiled.prefix.values(facts).every((value) => value !== '' && !/[/+#\0]/.test(value));
    this.prefixBytes = Buffer.from(this.prefix);
    this.userProperties = compiled.userProperties.map(([name, value]) => [name, value.fill(facts)]);
    this.checksTopics = publish.allow.length + publish.deny.length > 0;
    this.checksDeliveries = subscribe.allow.length + subscribe.deny.length > 0;
  }

  mayPublish(topic: string): boolean {
    return permits(this.options.publish, topic);
  }

  /** Whether a message on this topic may reach the client, whatever it has subscribed and when. */
  mayReceive(topic: string): boolean {
    return permits(this.options.subscribe, topic);
  }

  maySubscribe(topicFilter: string): boolean {
    const { allow, deny } = this.options.subscribe;
    const { filter } = shareOf(topicFilter);
    if (deny.some((denied) => overlaps(denied, filter))) return false;
    return allow.length === 0 || allow.some((allowed) => covers(allowed, filter));
  }

  /** The Topic Filter as the server gets it; the group of a shared subscription stays in front. */
  outside(topicFilter: string): string {
    const { share, filter } = shareOf(topicFilter);
    return share + this.prefix + filter;
  }

  /** The will as the server gets it; null = it may not be published. */
  will(will: Will): Will | null {
    if (!this.mayPublish(will.topicName)) return null;
    const { properties } = will;
    const responseTopic = properties?.responseTopic;
    return {
      ...will,
      topicName: this.prefix + will.topicName,
      properties:
        responseTopic === undefined ? properties : { ...properties, responseTopic: this.prefix + responseTopic },
    };
  }
}

/**
 * By the levels alone: a wildcard that forbids means topics that begin with $ as well, only one that allows does not
 * [MQTT-4.7.2-1].
 */
function permits({ allow, deny }: FilterOptions['publish'], topic: string): boolean {
  if (deny.some((filter) => overlaps(filter, topic))) return false;
  return allow.length === 0 || allow.some((filter) => matches(filter, topic));
}

function shareOf(topicFilter: string): { share: string; filter: string } {
  if (!topicFilter.startsWith(SHARE)) return { share: '', filter: topicFilter };
  const slash = topicFilter.indexOf('/', SHARE.length);
  if (slash < 0) return { share: '', filter: topicFilter };
  return { share: topicFilter.slice(0, slash + 1), filter: topicFilter.slice(slash + 1) };
}

/** Whether everything that `narrow` matches is matched by `wide`. O(levels). */
export function covers(wide: string, narrow: string): boolean {
  const [a, b] = [wide.split('/'), narrow.split('/')];
  // A wildcard in front does not reach topics that begin with $ [MQTT-4.7.2-1].
  if (b[0].startsWith('$') && (a[0] === '#' || a[0] === '+')) return false;
  for (let i = 0; i < a.length; i++) {
    if (a[i] === '#') return true;
    // "a/#" matches "a" as well.
    if (i >= b.length) return false;
    if (b[i] === '#') return false;
    if (a[i] !== '+' && a[i] !== b[i]) return false;
  }
  return a.length === b.length;
}

/** Whether a topic exists that both match; in doubt yes. O(levels). */
export function overlaps(one: string, other: string): boolean {
  const [a, b] = [one.split('/'), other.split('/')];
  const shorter = Math.min(a.length, b.length);
  for (let i = 0; i < shorter; i++) {
    if (a[i] === '#' || b[i] === '#') return true;
    if (a[i] !== '+' && b[i] !== '+' && a[i] !== b[i]) return false;
  }
  if (a.length === b.length) return true;
  const longer = a.length > b.length ? a : b;
  return longer.length === shorter + 1 && longer[shorter] === '#';
}

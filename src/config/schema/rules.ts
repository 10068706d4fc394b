// The keys of rules.<name>, and NanoMQ's blocks below `rules`: each once, with type, default and text. Data for
// schema.ts; to add a key, add a row here, its name in code to rules/rules.ts, and run `make docs`. Expressions are
// CEL: rules/expression.ts reads them when the rules are brought into force. Source of the repub keys: NanoMQ's
// documentation.
import { isNull, joinPath } from '../text/node.ts';
import type { TreeValue } from '../tree.ts';
import { checkTopicFilter, checkTopicName } from '../values.ts';
import { block, list, pairs } from './blocks.ts';
import { type Key, kindOf, type ValueOf } from './key.ts';
import { decimal, digit, duration, flag, int, text, word } from './keys.ts';

function checkFrom(filter: string): string | null {
  if (filter.startsWith('nng:')) return filter === 'nng:' ? 'the name of a bridge is missing after nng:' : null;
  if (filter.startsWith('$share/')) return 'a shared subscription has no meaning in a rule';
  return checkTopicFilter(filter);
}

/** What is filled in holds no wildcard; the names of fields may look like one. */
function checkTo(topic: string): string | null {
  if (topic === '') return null;
  return checkTopicName(topic.replace(/\{(?:topic|[1-9][0-9]{0,2}|json:[^{}]+)\}/g, 'x'));
}

export const RULE = block(
  {
    enable: flag({ default: true, text: 'Whether the rule is active.' }),
    from: list(text({ text: 'A topic filter.', check: checkFrom }), {
      min: 1,
      single: true,
      text: 'MQTT topic filters, or nng:<bridge> for messages from that NNG bridge.',
      example: ['sensor/+/data'],
    }),
    where: text({
      default: '',
      text: 'CEL condition over topic, payload, qos, retain, clientId, username, properties and now. Only messages for which it is true are processed. Empty = all.',
      example: 'payload.temp > 20',
    }),
    set: pairs({
      text: 'The new JSON payload: each key with a CEL expression; "*" copies all fields of an object. Empty = the payload is unchanged.',
      example: { device: 'topic', temp: 'payload.temp' },
    }),
    payload: word(['auto', 'json', 'text', 'bytes'], {
      default: 'auto',
      text: 'Type of payload in expressions. auto: JSON if valid, else text, else bytes. json: other messages are dropped and counted.',
    }),
    to: text({
      default: '',
      text: 'Topic of the result; {1} is the level matched by the first wildcard, {topic} the topic, {json:a.b} a field of the payload.',
      check: checkTo,
      example: 'out/{1}',
    }),
    fallback_topic: text({
      default: '',
      text: 'Topic used when a {json:} field of to is missing. Empty = the message is dropped and counted.',
      check: (topic) => (topic === '' ? null : checkTopicName(topic)),
    }),
    to_nng: text({
      default: '',
      text: 'Name of a sending NNG bridge. The result is sent there, in the frame format of its first rule, and not published.',
      example: 'analytics',
    }),
    to_webhook: flag({ default: false, text: 'Also send the result to the webhook, as on_message_publish.' }),
    qos: digit([0, 1, 2], { default: null, text: 'QoS of the result. Absent = that of the message.', example: 1 }),
    retain: flag({ default: false, text: 'RETAIN flag of the result.' }),
    changed: text({
      default: '',
      text: 'CEL expression. Only messages for which its value differs from that of the previous message on the same topic are processed. Empty = all.',
      example: 'payload.temp',
    }),
    by: decimal({
      default: 0,
      min: 0,
      text: 'Smallest difference that counts for changed, for numbers. 0 = any difference.',
    }),
    throttle: duration({
      default: '0',
      text: 'At most one message per topic in this time; the last one is kept and sent at its end. 0 = off.',
    }),
  },
  { unknown: 'error', text: 'One rule.' },
);

export const REPUB = block(
  {
    server: text({
      default: 'mqtt-tcp://localhost:1883',
      text: 'The gateway itself. For another broker use bridges.mqtt.',
    }),
    topic: text({ text: 'Topic to publish to.', check: checkTopicName, example: 'topic/repub1' }),
    sql: text({ text: 'SELECT ... FROM "filter" WHERE ...', example: 'SELECT topic, payload FROM "abc"' }),
    proto_ver: int({ default: 4, text: 'No effect: no connection is made.' }),
    clientid: text({ default: '', text: 'No effect.' }),
    keepalive: text({ default: '', text: 'No effect.' }),
    clean_start: flag({ default: true, text: 'No effect.' }),
    username: text({ default: '', text: 'No effect.' }),
    password: text({ default: '', secret: true, text: 'No effect.' }),
  },
  { unknown: 'warn', text: 'One rule of rules.repub.' },
);
const REPUBS = block(
  { rules: list(REPUB, { text: 'Rules in order.' }) },
  { unknown: 'warn', text: "NanoMQ's rules that republish messages." },
);

/** NanoMQ's rules that write to a database. */
const DATABASES: ReadonlySet<string> = new Set(['sqlite', 'mysql', 'postgresql', 'timescaledb']);

export interface CheckedRules {
  readonly named: ReadonlyMap<string, ValueOf<typeof RULE>>;
  readonly repub: readonly ValueOf<typeof REPUB>[];
}

const NAME = /^[\w.:-]{1,64}$/;

/** Rules by name; the names of NanoMQ's blocks keep their meaning. */
export const RULES: Key<CheckedRules> = {
  doc: {
    type: 'named blocks',
    default: null,
    text: 'Rules that filter, change and route messages. repub { rules = [...] } is read as in NanoMQ; databases are not supported.',
  },
  inside: { kind: 'named', item: RULE, example: 'name', group: false },
  read(node, path, sink) {
    if (isNull(node)) return this.missing(node.at, path, sink);
    if (node.kind !== 'block') return sink.problem(node.at, path, `named blocks expected, not ${kindOf(node)}`);
    const rules = new Map<string, ValueOf<typeof RULE>>();
    let repub: CheckedRules['repub'] = [];
    for (const [name, { value, at }] of node.fields) {
      const inner = joinPath(path, name);
      if (isNull(value)) continue;
      if (name === 'repub') repub = REPUBS.read(value, inner, sink)?.rules ?? [];
      else if (DATABASES.has(name))
        sink.warn(at, inner, 'rules that write to a database are not supported: this block has no effect');
      else if (!NAME.test(name)) sink.problem(at, inner, 'rule names may contain letters, digits and . : _ -');
      else rules.set(name, RULE.read(value, inner, sink) as ValueOf<typeof RULE>);
    }
    return { named: rules, repub };
  },
  missing: () => ({ named: new Map(), repub: [] }),
  show: (value, mask) => {
    const shown = Object.create(null) as Record<string, TreeValue>;
    for (const [name, rule] of value.named) shown[name] = RULE.show(rule, mask) ?? null;
    if (value.repub.length > 0) shown.repub = REPUBS.show({ rules: value.repub }, mask) ?? null;
    return shown;
  },
};

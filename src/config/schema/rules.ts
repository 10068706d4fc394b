// The keys of rules.<name>, and NanoMQ's blocks below `rules`: each once, with type, default and text.
// Data for schema.ts; to add a key, add a row here, its name in code to rules/rules.ts, and run `make docs`.
// Expressions are CEL: rules/expression.ts reads them when the rules are brought into force. Source of the repub keys: NanoMQ's documentation.
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
    enable: flag({ default: true, text: 'Whether the rule is in force.' }),
    from: list(text({ text: 'A topic filter.', check: checkFrom }), {
      min: 1,
      single: true,
      text: 'MQTT topic filters, or nng:<bridge> for what comes in through that NNG bridge.',
      example: ['sensor/+/data'],
    }),
    where: text({
      default: '',
      text: 'CEL over topic, payload, qos, retain, clientId, username, properties and now; only messages for which it is true. Empty = all.',
      example: 'payload.temp > 20',
    }),
    set: pairs({
      text: 'The new JSON object: each key with a CEL expression; "*" takes over all fields of an object. None = the payload stays.',
      example: { device: 'topic', temp: 'payload.temp' },
    }),
    payload: word(['auto', 'json', 'text', 'bytes'], {
      default: 'auto',
      text: 'What payload is in expressions. auto: JSON where it is JSON, else text, else bytes; json: other messages are dropped and counted.',
    }),
    to: text({
      default: '',
      text: 'Topic of the result; {1} is what the first wildcard stands for, {topic} the topic, {json:a.b} a field of the payload.',
      check: checkTo,
      example: 'out/{1}',
    }),
    fallback_topic: text({
      default: '',
      text: 'Where a {json:} field of to is missing; empty = the message is dropped and counted.',
      check: (topic) => (topic === '' ? null : checkTopicName(topic)),
    }),
    to_nng: text({
      default: '',
      text: 'Name of an NNG bridge that sends: the result goes there, by the frame of its first rule, and is not published.',
      example: 'analytics',
    }),
    to_webhook: flag({ default: false, text: 'Whether the webhook gets the result too, as on_message_publish.' }),
    qos: digit([0, 1, 2], { default: null, text: 'QoS of the result; absent = that of the message.', example: 1 }),
    retain: flag({ default: false, text: 'RETAIN flag of the result.' }),
    changed: text({
      default: '',
      text: 'CEL; only messages for which its value differs from that of the last one of the same topic. Empty = all.',
      example: 'payload.temp',
    }),
    by: decimal({ default: 0, min: 0, text: 'How much a number has to differ for changed; 0 = at all.' }),
    throttle: duration({
      default: '0',
      text: 'At most one message of each topic in this time; the last one is kept and sent when it is over. 0 = off.',
    }),
  },
  { unknown: 'error', text: 'One rule.' },
);

export const REPUB = block(
  {
    server: text({ default: 'mqtt-tcp://localhost:1883', text: 'The broker itself: another one needs bridges.mqtt.' }),
    topic: text({ text: 'Topic to publish to.', check: checkTopicName, example: 'topic/repub1' }),
    sql: text({ text: 'SELECT ... FROM "filter" WHERE ...', example: 'SELECT topic, payload FROM "abc"' }),
    proto_ver: int({ default: 4, text: 'No effect: nothing is connected to.' }),
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
  { unknown: 'warn', text: "NanoMQ's rules that publish again." },
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
    text: 'Rules that filter, change and route messages; repub { rules = [...] } is read as in NanoMQ, databases are not supported.',
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
        sink.warn(at, inner, 'rules that write to a database are not supported: this block does nothing');
      else if (!NAME.test(name)) sink.problem(at, inner, 'the name of a rule has letters, digits, and . : _ -');
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

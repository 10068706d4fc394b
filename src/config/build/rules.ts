// From the checked tree to the rules: those with names, and NanoMQ's repub rules as the same thing. Called by build.ts,
// and by config/documents.ts for rules that come at run time. Pure: problems go to the sink. Expressions are read by
// the engine, which is loaded only where there are rules; it says what is wrong with them at `places`.
import { parseBrokerUrl } from '../../base/brokerurl.ts';
import type { RuleConfig } from '../rules.ts';
import { effective } from '../schema/effective.ts';
import type { ValueOf } from '../schema/key.ts';
import { type CheckedRules, RULE } from '../schema/rules.ts';
import type { CheckedRoot } from '../schema/schema.ts';
import type { Sink } from '../sink.ts';
import { readSql } from '../text/rulesql.ts';
import { isLoopback } from '../values.ts';

export function buildRules(root: CheckedRoot, sink: Sink): RuleConfig[] {
  const rules = [...root.rules.named].map(([name, block]) => buildRule(name, block, sink));
  for (const [index, block] of root.rules.repub.entries()) rules.push(...buildRepub(index, block, sink));
  for (const rule of rules) {
    if (rule.toNng !== '' && !isSending(root, rule.toNng))
      sink.warn(rule.source, `rules.${rule.name}.to_nng`, `no NNG bridge named "${rule.toNng}" sends`);
    for (const from of rule.from)
      if (from.startsWith('nng:') && !isReceiving(root, from.slice(4)))
        sink.warn(rule.source, `rules.${rule.name}.from`, `no NNG bridge named "${from.slice(4)}" receives`);
    if (rule.toWebhook && root.webhook === null)
      sink.warn(rule.source, `rules.${rule.name}.to_webhook`, 'no webhook is configured');
  }
  return rules;
}

/** One rules.<name>; what REST gets passes here too. */
export function buildRule(name: string, block: ValueOf<typeof RULE>, sink: Sink): RuleConfig {
  const rule = effective(RULE, block);
  if (rule.to === '' && rule.toNng === '' && !rule.toWebhook)
    sink.refuse(block, 'to', 'is required: a rule cannot publish to its own input topic');
  if (rule.by > 0 && rule.changed === '') sink.doubt(block, 'by', 'no effect without changed');
  if (rule.fallbackTopic !== '' && !rule.to.includes('{json:'))
    sink.doubt(block, 'fallback_topic', 'no effect without {json:} in to');
  const places = Object.fromEntries(
    ['from', 'where', 'set', 'to', 'changed'].map((key) => [key, sink.at(block, key)] as const),
  );
  return { ...rule, name, lenient: false, places, source: sink.at(block) };
}

function buildRepub(index: number, block: CheckedRules['repub'][number], sink: Sink): RuleConfig[] {
  const server = parseBrokerUrl(block.server);
  if (typeof server === 'string') {
    sink.refuse(block, 'server', server);
    return [];
  }
  if (!isLoopback(server.host)) {
    sink.refuse(block, 'server', 'rules publish here; another broker needs a bridge (bridges.mqtt) for the topic');
    return [];
  }
  const sql = readSql(block.sql);
  if (typeof sql === 'string') {
    sink.refuse(block, 'sql', sql);
    return [];
  }
  const name = `repub:${index}`;
  const at = sink.at(block, 'sql');
  const places = { from: at, where: at, set: at, to: sink.at(block, 'topic'), changed: at };
  return [
    {
      ...DEFAULTS,
      ...sql,
      name,
      to: block.topic,
      places,
      source: sink.at(block),
    },
  ];
}

/** What a repub rule does not say. */
const DEFAULTS = {
  enable: true,
  payload: 'auto',
  fallbackTopic: '',
  toNng: '',
  toWebhook: false,
  qos: 0,
  retain: false,
  changed: '',
  by: 0,
  throttleMs: 0,
  lenient: true,
} as const;

function isSending(root: CheckedRoot, name: string): boolean {
  const { pub, push, pair } = root.bridges.nng;
  return pub.has(name) || push.has(name) || pair.has(name);
}

function isReceiving(root: CheckedRoot, name: string): boolean {
  const { sub, pull, pair } = root.bridges.nng;
  return sub.has(name) || pull.has(name) || pair.has(name);
}

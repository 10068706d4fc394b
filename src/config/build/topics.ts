// From the checked tree to topics, payload checks and quotas, with the checks that take more than one key. Called by
// build.ts. Pure: problems go to the sink. Schemas are read and compiled by gateway/policies.ts.
import { effective } from '../schema/effective.ts';
import { LISTENER_KINDS } from '../schema/listeners.ts';
import { QUOTAS } from '../schema/quotas.ts';
import type { CheckedRoot } from '../schema/schema.ts';
import { TOPICS, VALIDATION } from '../schema/topics.ts';
import type { Sink } from '../sink.ts';
import type { QuotaConfig, TopicsConfig, ValidationConfig } from '../topics.ts';
import { listenerBlocks } from './listeners.ts';

const NAME = /^[\w.:-]{1,64}$/;

function listenerNames(root: CheckedRoot): ReadonlySet<string> {
  return new Set([...LISTENER_KINDS, ...[...listenerBlocks(root)].map(({ name }) => name)]);
}

export function buildTopics(root: CheckedRoot, sink: Sink): TopicsConfig {
  const names = listenerNames(root);
  for (const rule of [...root.topics.rewrite, ...root.topics.auto_subscribe])
    if (rule.listener !== '' && !names.has(rule.listener))
      sink.refuse(rule, 'listener', `there is no listener "${rule.listener}"`);
  for (const rule of root.topics.rewrite) {
    const wildcards = rule.from.split('/').filter((level) => level === '+' || level === '#').length;
    for (const [, index] of rule.to.matchAll(/\{([1-9][0-9]{0,2})\}/g))
      if (Number(index) > wildcards) sink.refuse(rule, 'to', `{${index}}: from has ${wildcards} wildcards`);
  }
  return effective(TOPICS, root.topics);
}

/** Those that are enabled, in the order of the file. */
export function buildQuotas(root: CheckedRoot, sink: Sink): QuotaConfig[] {
  const names = listenerNames(root);
  const quotas: QuotaConfig[] = [];
  for (const [name, block] of root.quotas) {
    if (!NAME.test(name)) sink.refuse(block, 'per', 'names of quotas may contain letters, digits and . : _ -');
    if (block.listener !== '' && !names.has(block.listener))
      sink.refuse(block, 'listener', `there is no listener "${block.listener}"`);
    const { connects, publishes, bytes, subscriptions, sessions, retained, inflight } = block;
    if (connects + publishes + bytes + subscriptions + sessions + retained + inflight === 0)
      sink.refuse(block, 'per', 'this quota limits nothing');
    if (block.enable) quotas.push({ ...effective(QUOTAS.item, block), name });
  }
  return quotas;
}

/** Those that are enabled, in the order of the file. */
export function buildValidation(root: CheckedRoot, sink: Sink): ValidationConfig[] {
  const rules: ValidationConfig[] = [];
  for (const [name, block] of root.validation) {
    if (!NAME.test(name)) sink.refuse(block, 'topics', 'rule names may contain letters, digits and . : _ -');
    const key = block.schema_file === null ? 'schema' : 'schema_file';
    if (block.schema !== null && block.schema_file !== null)
      sink.refuse(block, 'schema_file', 'cannot be combined with schema');
    if (block[key] !== null && block.content !== 'json') sink.refuse(block, key, 'content = json is required');
    if (block.content === 'json' && block.max_size === 0)
      sink.refuse(block, 'max_size', 'a limit is required with content = json');
    if (block.content === 'any' && block.max_size === 0) sink.refuse(block, 'content', 'this rule checks nothing');
    if (block.enable) rules.push({ ...effective(VALIDATION.item, block), name, source: sink.at(block, key) });
  }
  return rules;
}

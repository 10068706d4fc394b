// From the configuration to what holds for topics, payloads and quotas of clients (policy/): reads and compiles the
// schemas of validation.<name>. Called by gateway.ts at start, by running.ts before a reload changes anything, by
// cli/check.ts. Null where nothing is configured: then nothing of policy/ is in any path.
import { closeSync, fstatSync, openSync, readFileSync } from 'node:fs';
import { errorText } from '../base/errors.ts';
import { Metrics } from '../base/metrics.ts';
import type { Config, Problem, ValidationConfig } from '../config/config.ts';
import { ConfigError } from '../config/problem.ts';
import type { SchemaCheck } from '../policy/payload.ts';
import type { Policies, Quotas } from '../policy/policy.ts';

/** Throws ConfigError with everything that is wrong with the schemas of a configuration. */
export async function checkPolicies(config: Config): Promise<void> {
  await buildPolicies(config, new Metrics());
}

/** Throws ConfigError as checkPolicies() does. */
export async function buildPolicies(config: Config, metrics: Metrics): Promise<Policies | null> {
  const { topics, validation } = config;
  const mounts = new Map(config.listeners.map((one) => [one.name, one.mountPoint] as const));
  const mounted = config.listeners.some((one) => one.mountPoint !== '');
  const named = topics.rewrite.length + topics.autoSubscribe.length > 0 || topics.exclusiveSubscriptions;
  if (!mounted && !named && !topics.delayed.enable && validation.length === 0) return null;
  const { TopicPolicies } = await import('../policy/topics.ts');
  const { enable, maxDelaySeconds, maxMessages, maxBytes } = topics.delayed;
  return new TopicPolicies(
    {
      rewrite: topics.rewrite,
      autoSubscribe: topics.autoSubscribe,
      exclusive: topics.exclusiveSubscriptions,
      delayed: enable ? { maxSeconds: maxDelaySeconds, messages: maxMessages, bytes: maxBytes } : null,
      mounts,
    },
    validation.length === 0 ? null : await payloadRules(validation, metrics),
  );
}

/** null where there are none. */
export async function buildQuotas({ quotas }: Config, metrics: Metrics): Promise<Quotas | null> {
  if (quotas.length === 0) return null;
  const { QuotaSet } = await import('../policy/quota.ts');
  return new QuotaSet(quotas, metrics);
}

async function payloadRules(validation: readonly ValidationConfig[], metrics: Metrics) {
  const { PayloadRules } = await import('../policy/payload.ts');
  const problems: Problem[] = [];
  const options = [];
  for (const rule of validation) {
    const schema = await schemaOf(rule);
    const key = rule.schemaFile === null ? 'schema' : 'schema_file';
    if (typeof schema === 'string')
      problems.push({ at: rule.source, key: `validation.${rule.name}.${key}`, message: schema });
    else options.push({ ...rule, schema });
  }
  if (problems.length > 0) throw new ConfigError(problems);
  return new PayloadRules(options, metrics);
}

/** null where the rule has none; a text says what is wrong. */
async function schemaOf(rule: ValidationConfig): Promise<SchemaCheck | string | null> {
  const { schema, schemaFile } = rule;
  if (schema === null && schemaFile === null) return null;
  const { compileSchema, MAX_SCHEMA_BYTES } = await import('../policy/jsonschema.ts');
  if (schemaFile === null) return compileSchema(schema ?? '');
  try {
    const file = openSync(schemaFile, 'r');
    try {
      const found = fstatSync(file);
      if (!found.isFile()) return `${schemaFile} is not a file`;
      if (found.size > MAX_SCHEMA_BYTES) return `${schemaFile} is larger than 1 MB`;
      return compileSchema(readFileSync(file, 'utf8'));
    } finally {
      closeSync(file);
    }
  } catch (error) {
    return errorText(error);
  }
}

// The whole schema: every key of every section once, with type, default, unit, text and whether a change takes a
// restart. Read by config/load.ts and config/converting.ts (checking), gateway/keys.ts and scripts/reference.ts (etc/
// and docs/). Each section is in the file of its name.

import { AUTH } from './auth.ts';
import { block, list } from './blocks.ts';
import { BRIDGES } from './bridges.ts';
import { BROKER } from './broker.ts';
import { FOREIGN } from './foreign.ts';
import { HTTP_SERVER } from './httpserver.ts';
import type { ValueOf } from './key.ts';
import { text } from './keys.ts';
import { LISTENERS } from './listeners.ts';
import { LOG } from './log.ts';
import { METRICS } from './metrics.ts';
import { MQTT } from './mqtt.ts';
import { PERSISTENCE } from './persistence.ts';
import { PROXY } from './proxy.ts';
import { QUOTAS } from './quotas.ts';
import { RECORD } from './record.ts';
import { RULES } from './rules.ts';
import { TOPICS, VALIDATION } from './topics.ts';
import { TRACING } from './tracing.ts';
import { UPSTREAMS } from './upstreams.ts';
import { WEBHOOK } from './webhook.ts';

const PLUGINS = list(text({ text: 'Path of a module (.mjs), relative to the folder of the configuration file.' }), {
  single: true,
  restart: true,
  text: 'Modules whose hooks decide on clients and messages: docs/embedding.md. Loaded only if they and their folders belong to root or the user of the gateway and others cannot change them.',
  example: ['./my-plugin.mjs'],
});

/** Sections of this gateway, in the order of the reference. */
export const SECTIONS = {
  listeners: LISTENERS,
  mqtt: MQTT,
  auth: AUTH,
  persistence: PERSISTENCE,
  record: RECORD,
  topics: TOPICS,
  validation: VALIDATION,
  quotas: QUOTAS,
  bridges: BRIDGES,
  rules: RULES,
  plugins: PLUGINS,
  proxy: PROXY,
  upstreams: UPSTREAMS,
  http_server: HTTP_SERVER,
  metrics: METRICS,
  webhook: WEBHOOK,
  tracing: TRACING,
  log: LOG,
  broker: BROKER,
};

/** Those, and the ones of NanoMQ's files that are read from. */
export const ROOT_FIELDS = { ...SECTIONS, ...FOREIGN };

export const ROOT = block(ROOT_FIELDS, { unknown: 'foreign', text: 'The configuration.' });
export type CheckedRoot = ValueOf<typeof ROOT>;

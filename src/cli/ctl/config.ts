// `tidegate ctl config`, `set`, `log`, `audit`, `subscriptions`, `access`: what else the console shows and changes.
// Called by ctl.ts. Each asks the REST API, which decides what may be seen and changed.
import type { Command } from 'commander';
import { GatewayError } from '../../base/errors.ts';
import { column, facts, type Row } from './table.ts';
import {
  type Adder,
  KEEP_OPTION,
  type KeepOptions,
  keepWord,
  outcome,
  pages,
  query,
  rowOf,
  rowsOf,
  say,
  show,
  type Work,
} from './work.ts';

/** Keys with a value each, blocks taken apart; lists and empty blocks are values. */
function flat(value: unknown, prefix: string, found: [string, unknown][]): void {
  const entries = typeof value === 'object' && value !== null && !Array.isArray(value) ? Object.entries(value) : [];
  if (entries.length === 0) {
    if (prefix !== '') found.push([prefix, Array.isArray(value) ? JSON.stringify(value) : value]);
    return;
  }
  for (const [key, inner] of entries) flat(inner, prefix === '' ? key : `${prefix}.${key}`, found);
}

/** Whether a key is the one that is asked for, or in the block of it. */
function isWithin(key: string, wanted: string): boolean {
  return wanted === '' || key === wanted || key.startsWith(`${wanted}.`);
}

async function showConfig(work: Work, wanted: string): Promise<void> {
  const { data } = await work.client.call('GET', '/config');
  const found: [string, unknown][] = [];
  flat(data, '', found);
  const shown = found.filter(([key]) => isWithin(key, wanted));
  if (shown.length === 0) throw new GatewayError('CLI-FAILED', `there is no key ${wanted}`);
  say(work, wanted === '' ? data : Object.fromEntries(shown), facts(shown));
}

interface SetOptions extends KeepOptions {
  readonly check?: boolean;
}

async function setKeys(work: Work, { check, ...options }: SetOptions, pairs: readonly string[]): Promise<void> {
  const values: Record<string, string> = Object.create(null);
  for (const pair of pairs) {
    const at = pair.indexOf('=');
    if (at < 1) throw new GatewayError('CLI-USAGE', `set wants key=value, not "${pair}"`);
    values[pair.slice(0, at)] = pair.slice(at + 1);
  }
  const path = `/config${query({ keep: keepWord(options) })}`;
  const { data } = await work.client.call('POST', path, { values, check: check === true });
  const { needRestart } = rowOf(data);
  const waits =
    Array.isArray(needRestart) && needRestart.length > 0 ? `, needs a restart: ${needRestart.join(' ')}` : '';
  say(work, data, check === true ? 'valid\n' : outcome(`set${waits}`, data));
}

/** A log line's fields as text. */
function fieldsText(row: Row): string {
  return Object.entries(rowOf(row.fields))
    .map(([name, value]) => `${name}=${typeof value === 'string' ? value : JSON.stringify(value)}`)
    .join(' ');
}

const TIME = {
  title: 'TIME',
  value: ({ time }: Row) => (typeof time === 'number' ? new Date(time).toISOString() : time),
};
const LOG_COLUMNS = [
  TIME,
  column('LEVEL', 'level'),
  column('ID', 'msgid'),
  { title: 'TEXT', value: (row: Row) => `${String(row.text)} ${fieldsText(row)}`.trimEnd() },
];
const AUDIT_COLUMNS = [
  TIME,
  column('USER', 'user'),
  column('ADDRESS', 'remote'),
  column('STATUS', 'status', true),
  { title: 'CALL', value: (row: Row) => `${String(row.method)} ${String(row.path)}` },
];
const SUBSCRIPTION_COLUMNS = [
  column('CLIENT', 'clientid'),
  column('QOS', 'qos', true),
  column('TOPIC FILTER', 'topic'),
];
const ACCESS_COLUMNS = [
  { title: 'LISTENER', value: ({ listener }: Row) => (listener === '' ? '(all others)' : listener) },
  { title: 'ANONYMOUS', value: ({ anonymous }: Row) => (anonymous === true ? 'allowed' : 'refused') },
  column('USERS', 'users_count', true),
  column('OTHER SOURCES', 'sources'),
  { title: 'RIGHTS', value: ({ acl_file, rules }: Row) => acl_file ?? (rules === true ? 'auth.acl.rules' : null) },
];

interface SubscriptionOptions {
  readonly client?: string;
  readonly topic?: string;
  readonly limit: string;
}

function addSetting(ctl: Command, add: Adder): void {
  add(
    ctl,
    'config [key]',
    'the configuration that holds, or a key or block of it; secrets are masked',
    (work, _, [key]) => showConfig(work, key),
  );
  add<SetOptions>(ctl, 'set <key=value...>', 'set keys until the next start; all or nothing', setKeys)
    .option('--check', 'only tell whether they are valid')
    .option(...KEEP_OPTION);
}

/** Adds the subcommands. */
export function addConfigCommands(ctl: Command, add: Adder): void {
  addSetting(ctl, add);
  add<{ limit: string }>(ctl, 'log', 'the last log lines, the newest last', async (work, { limit }) => {
    show(work, rowsOf((await work.client.call('GET', `/log${query({ limit })}`)).data), LOG_COLUMNS);
  }).option('--limit <lines>', 'lines at most', '200');
  add(ctl, 'audit', 'changes made through console and API, the newest first', async (work) => {
    show(work, rowsOf((await work.client.call('GET', '/audit')).data), AUDIT_COLUMNS);
  });
  add<SubscriptionOptions>(ctl, 'subscriptions', 'who subscribes to what', async (work, { client, topic, limit }) => {
    show(work, await pages(work, '/subscriptions', { clientid: client, topic }, Number(limit)), SUBSCRIPTION_COLUMNS);
  })
    .option('--client <id>', 'of this client')
    .option('--topic <filter>', 'of this topic filter')
    .option('--limit <rows>', 'rows at most', '100000');
  add(ctl, 'access', 'who may come in through which listener', async (work) => {
    show(work, rowsOf((await work.client.call('GET', '/access')).data), ACCESS_COLUMNS);
  });
}

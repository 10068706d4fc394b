// `tidegate ctl rule`: lists, shows, puts, removes and tries rules at run time. Called by ctl.ts.
// What a rule's document may hold is checked by the gateway, which answers with what is wrong and where.
import type { Command } from 'commander';
import { GatewayError } from '../../base/errors.ts';
import { column, facts, table } from './table.ts';
import {
  type Adder,
  documentOf,
  KEEP_OPTION,
  type KeepOptions,
  keepWord,
  outcome,
  query,
  rowOf,
  rowsOf,
  say,
  type Work,
} from './work.ts';

interface TestOptions {
  readonly topic?: string;
  readonly payload?: string;
  readonly qos?: string;
  readonly live?: string;
  readonly count?: string;
}

const COLUMNS = [
  column('RULE', 'name'),
  column('STATE', 'state'),
  column('MATCHED', 'matched', true),
  column('PASSED', 'passed', true),
  column('NOT PASSED', 'lost'),
  column('LAST ERROR', 'error'),
];

const path = (name: string, options: KeepOptions = {}): string =>
  `/rules/${encodeURIComponent(name)}${query({ keep: keepWord(options) })}`;

async function list(work: Work): Promise<void> {
  const rows = rowsOf((await work.client.call('GET', '/rules')).data);
  const shown = rows.map((rule) => ({
    ...rule,
    state: rule.enable === true ? 'on' : 'off',
    lost: Object.entries(rowOf(rule.dropped))
      .map(([reason, count]) => `${reason} ${String(count)}`)
      .join(', '),
    error: rowOf(rule.last_error).text ?? '',
  }));
  say(work, rows, table(COLUMNS, shown));
}

/** Tries a rule: a name, or a file with a document. */
async function test(work: Work, options: TestOptions, which: string): Promise<void> {
  const isFile = which === '-' || /[./\\]/.test(which);
  const rule = isFile ? await documentOf(which, work.io) : which;
  const { topic, payload, qos = '0', live, count = '10' } = options;
  if ((topic === undefined) === (live === undefined))
    throw new GatewayError('CLI-USAGE', 'either --topic (with --payload) or --live SECONDS is required');
  const body =
    live === undefined
      ? { rule, topic, payload: payload ?? '', qos: Number(qos) }
      : { rule, live: { seconds: Number(live), count: Number(count) } };
  const { data } = await work.client.call('POST', '/rules/test', body);
  const results = Array.isArray(data) ? rowsOf(data) : [rowOf(data)];
  const told = results.map(({ payload_base64: _, from, ...fields }) => {
    const source = rowOf(from);
    const shown = from === undefined ? [] : [['from', `${String(source.topic)} ${String(source.payload ?? '')}`]];
    return facts([...shown, ...Object.entries(fields)] as [string, unknown][]);
  });
  say(work, data, told.length === 0 ? 'no message came\n' : told.join('\n'));
}

/** Adds the subcommands of `rule`. */
export function addRuleCommands(ctl: Command, add: Adder): void {
  const rule = ctl.command('rule').description('rules inside the gateway');
  add(rule, 'list', 'all rules with their counters', (work) => list(work));
  add(rule, 'show <name>', 'one rule in full, as JSON', async (work, _, [name]) => {
    const { data } = await work.client.call('GET', path(name));
    say(work, data, `${JSON.stringify(data, null, 2)}\n`);
  });
  add<KeepOptions>(
    rule,
    'put <name> <file>',
    'add a rule from a JSON document, or take its place; - reads standard input',
    async (work, options, [name, file]) => {
      const { data } = await work.client.call('PUT', path(name, options), await documentOf(file, work.io));
      say(work, { name, changed: true, ...rowOf(data) }, outcome('in force', data));
    },
  ).option(...KEEP_OPTION);
  add<KeepOptions>(rule, 'remove <name>', 'remove a rule', async (work, options, [name]) => {
    const { data } = await work.client.call('DELETE', path(name, options));
    say(work, { name, removed: true, ...rowOf(data) }, outcome('removed', data));
  }).option(...KEEP_OPTION);
  add<TestOptions>(
    rule,
    'test <rule>',
    'what a rule (its name, or a file with its document) would do; nothing is published',
    (work, options, [which]) => test(work, options, which),
  )
    .option('--topic <topic>', 'topic of a sample')
    .option('--payload <text>', 'payload of the sample')
    .option('--qos <qos>', 'QoS of the sample')
    .option('--live <seconds>', 'try it on the messages of the next seconds instead')
    .option('--count <n>', 'messages at most (default: 10)');
}

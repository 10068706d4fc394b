// `tidegate ctl`: looks at a running gateway and changes it, over its REST API. Called by cli/cli.ts. Tables for
// people, --json for scripts. Exit codes: 0 done, 1 refused or nobody answers, 64 wrong words, 78 wrong configuration.
import { type Command, InvalidArgumentError, Option } from 'commander';
import { GatewayError } from '../../base/errors.ts';
import type { Context } from '../cli.ts';
import { addAccountCommands } from './account.ts';
import { addBridgeCommands } from './bridge.ts';
import { CtlClient, type CtlOptions, type Env } from './client.ts';
import { addConfigCommands } from './config.ts';
import { addEventsCommand } from './events.ts';
import { addRecordingCommands } from './recording.ts';
import { addRuleCommands } from './rule.ts';
import { type Column, column, facts, mqttVersion, type Row, sizeColumn, sizeText, uptimeText } from './table.ts';
import { top } from './top.ts';
import { addTopicCommand } from './topics.ts';
import { addUserCommands } from './user.ts';
import { type Adder, pages, query, rowOf, rowsOf, say, show, type Work } from './work.ts';

async function status(work: Work): Promise<void> {
  const node = rowsOf((await work.client.call('GET', '/nodes')).data)[0] ?? {};
  const nng = rowsOf((await work.client.call('GET', '/nng/bridges')).data);
  const broken = nng.filter(({ state }) => state === 'error' || state === 'retrying').map(({ name }) => name);
  const text = facts([
    ['gateway', work.client.address],
    ['status', node.ready === false ? 'not ready' : node.node_status],
    ['version', node.version],
    ['uptime', uptimeText(node.uptime)],
    ['connections', node.connections],
    ['memory', sizeText(node.memory)],
    ['processor', `${(Number(node.cpu ?? 0) * 100).toFixed(1)} %`],
    ['NNG bridges', `${nng.length}, with errors: ${broken.length === 0 ? 'none' : broken.join(' ')}`],
  ]);
  say(work, { ...node, nng_bridges: nng.length, nng_bridges_with_errors: broken }, text);
}

const CLIENT_COLUMNS: readonly Column[] = [
  column('CLIENT', 'client_id'),
  column('USER', 'username'),
  column('STATE', 'conn_state'),
  column('ADDRESS', 'remote'),
  column('LISTENER', 'listener'),
  { title: 'VERSION', right: true, value: (row) => mqttVersion(row.proto_ver) },
  column('SUBS', 'subscriptions', true),
  column('INFLIGHT', 'inflight', true),
  column('QUEUED', 'queued', true),
  column('IN', 'recv_msg', true),
  column('OUT', 'send_msg', true),
  column('DROPPED', 'dropped', true),
];

interface ListOptions {
  readonly search?: string;
  readonly state?: string;
  readonly limit: number;
}

async function clients(work: Work, options: ListOptions): Promise<void> {
  const values = { search: options.search, conn_state: options.state };
  show(work, await pages(work, '/clients', values, options.limit), CLIENT_COLUMNS);
}

async function kick(work: Work, clientId: string, session: boolean): Promise<void> {
  await work.client.call('DELETE', `/clients/${encodeURIComponent(clientId)}${session ? '?session=1' : ''}`);
  say(work, { client_id: clientId, kicked: true }, 'disconnected\n');
}

const BRIDGE_COLUMNS: readonly Column[] = [
  column('NAME', 'name'),
  column('KIND', 'kind'),
  column('STATE', 'state'),
  { title: 'ADDRESS', value: (row) => row.pub_url ?? row.sub_url ?? rowOf(row.connector).server },
  column('ERROR', 'last_error'),
];

async function bridges(work: Work): Promise<void> {
  const nng = rowsOf((await work.client.call('GET', '/nng/bridges')).data);
  const mqtt = rowsOf(rowOf(rowOf((await work.client.call('GET', '/bridges')).data).bridge).nodes);
  const rows = [
    ...nng.map((row): Row => ({ ...row, kind: `nng ${String(row.type)}` })),
    ...mqtt.map((row): Row => ({ ...row, kind: 'mqtt' })),
  ];
  show(work, rows, BRIDGE_COLUMNS);
}

const RETAINED_COLUMNS: readonly Column[] = [
  column('TOPIC', 'topic'),
  column('QOS', 'qos', true),
  sizeColumn('BYTES', 'bytes'),
  { title: 'PAYLOAD', value: (row) => row.payload ?? row.payload_base64 ?? (row.cut === true ? '...' : '') },
];

interface RetainedOptions {
  readonly filter?: string;
  readonly search?: string;
  readonly clear?: string;
  readonly limit: number;
}

async function retained(work: Work, options: RetainedOptions): Promise<void> {
  if (options.clear !== undefined) {
    await work.client.call('DELETE', `/retained/${encodeURIComponent(options.clear)}`);
    say(work, { topic: options.clear, cleared: true }, 'cleared\n');
    return;
  }
  const { filter, search, limit } = options;
  show(work, await pages(work, '/retained', { filter, search }, limit), RETAINED_COLUMNS);
}

const DELAYED_COLUMNS: readonly Column[] = [
  column('ID', 'id', true),
  column('TOPIC', 'topic'),
  column('QOS', 'qos', true),
  sizeColumn('BYTES', 'bytes'),
  column('FROM', 'from_client_id'),
  { title: 'DUE', value: (row) => new Date(Number(row.due_at)).toISOString() },
];

interface DelayedOptions {
  readonly search?: string;
  readonly remove?: string;
  readonly limit: number;
}

async function delayed(work: Work, { search, remove, limit }: DelayedOptions): Promise<void> {
  if (remove !== undefined) {
    await work.client.call('DELETE', `/delayed/${encodeURIComponent(remove)}`);
    say(work, { id: remove, removed: true }, 'removed\n');
    return;
  }
  show(work, await pages(work, '/delayed', { search }, limit), DELAYED_COLUMNS);
}

const QUOTA_COLUMNS: readonly Column[] = [
  column('QUOTA', 'name'),
  column('PER', 'per'),
  column('ACTION', 'action'),
  { title: 'LIMITS', value: (row) => namedValues(row.limits) },
  column('SCOPES', 'scopes', true),
  { title: 'EXCEEDED', value: (row) => namedValues(row.counts) },
];

/** "publishes 100, bytes 2000" of what is not 0. */
function namedValues(value: unknown): string {
  const all = Object.entries(rowOf(value)).filter(([, count]) => count !== 0);
  return all.map(([name, count]) => `${name} ${String(count)}`).join(', ');
}

async function quotas(work: Work): Promise<void> {
  show(work, rowsOf((await work.client.call('GET', '/quotas')).data), QUOTA_COLUMNS);
}

const UPSTREAM_COLUMNS: readonly Column[] = [
  column('UPSTREAM', 'upstream'),
  column('SERVER', 'server'),
  column('ADDRESS', 'address'),
  column('FROM', 'from'),
  column('STATE', 'state'),
  column('WEIGHT', 'weight', true),
  column('OPEN', 'connections', true),
  column('SERVED', 'served', true),
  column('FAILS', 'fails', true),
  column('ERROR', 'lastError'),
];

interface UpstreamOptions {
  readonly drain?: string;
  readonly undrain?: string;
}

/** Pools of the proxy, a row for each server; or takes a server out of `pool` and puts it back. */
async function upstreams(work: Work, { drain, undrain }: UpstreamOptions, pool: string): Promise<void> {
  const server = drain ?? undrain;
  if (server !== undefined) {
    if (pool === '') throw new GatewayError('CLI-USAGE', 'upstreams wants the name of the pool to drain a server of');
    const body = { server, drain: drain !== undefined };
    await work.client.call('POST', `/proxy/upstreams/${encodeURIComponent(pool)}/drain`, body);
    say(work, { upstream: pool, ...body }, drain === undefined ? 'takes clients again\n' : 'drained\n');
    return;
  }
  const pools = rowsOf((await work.client.call('GET', '/proxy/upstreams')).data);
  const wanted = pools.filter(({ name }) => pool === '' || name === pool);
  if (pool !== '' && wanted.length === 0) throw new GatewayError('CLI-FAILED', `no upstream is called ${pool}`);
  const rows = wanted.flatMap(({ name, servers }) => rowsOf(servers).map((row): Row => ({ upstream: name, ...row })));
  show(work, rows, UPSTREAM_COLUMNS);
}

const ACTIONS = ['publish', 'subscribe', 'deliver', 'connect'];

interface ExplainOptions {
  readonly clientid?: string;
  readonly topic?: string;
  readonly action?: string;
  readonly username?: string;
  readonly address?: string;
  readonly listener?: string;
}

/** What a reload answers when something could not be applied or needs a restart. */
const NOT_ALL = 209;

function identityText({ username, listener, address }: Row): string {
  const user = username === null || username === undefined ? 'no user name' : `user ${username}`;
  const through = listener === '' ? 'any listener' : `listener ${listener}`;
  return `${user}, ${through}, ${address === '' ? 'any address' : `address ${address}`}`;
}

/** Exit code 1 when it is not allowed, so that scripts can ask. */
async function explain(
  work: Work,
  options: ExplainOptions,
  [client, verb, about]: readonly string[],
  context: Context,
): Promise<void> {
  const clientid = client || options.clientid;
  const action = verb || options.action;
  const topic = about || options.topic;
  if (clientid === undefined || (topic === undefined && action !== 'connect'))
    throw new GatewayError(
      'CLI-USAGE',
      'explain needs a client id and connect, or publish, subscribe, deliver and a topic',
    );
  if (action !== undefined && !ACTIONS.includes(action))
    throw new GatewayError('CLI-USAGE', `${action}: publish, subscribe, deliver or connect expected`);
  const { data } = await work.client.call('GET', `/access/explain${query({ ...options, clientid, action, topic })}`);
  const { allowed, rule, connected } = rowOf(data);
  const verdict: [string, unknown] = [allowed === true ? 'allowed' : 'denied', rule];
  // Judged as nobody in particular: that has to be said.
  const judged: [string, unknown] = ['not connected', `judged as ${identityText(rowOf(rowOf(data).as))}`];
  say(work, data, facts(connected === false ? [verdict, judged] : [verdict]));
  if (allowed !== true) context.exit(1);
}

function reloadText(report: Row): string {
  const list = (value: unknown): string => (Array.isArray(value) && value.length > 0 ? value.join(' ') : '-');
  return facts([
    ['reloaded', list(report.failed) === '-' && list(report.needRestart) === '-' ? 'yes' : 'in part'],
    ['changed', list(report.changed)],
    ['users', `${report.usersAdded ?? 0} new, ${report.usersRemoved ?? 0} gone, ${report.usersChanged ?? 0} changed`],
    ['disconnected', report.clientsDropped ?? 0],
    ['need a restart', list(report.needRestart)],
    ['failed', list(report.failed)],
  ]);
}

/** A whole number above 0, for --limit and --count. */
function wholeNumber(text: string): number {
  if (!/^\d{1,9}$/.test(text)) throw new InvalidArgumentError('It has to be a whole number.');
  return Number(text);
}

function collect(value: string, list: string[]): string[] {
  return [...list, value];
}

function adder(ctl: Command, context: Context, env: Env): Adder {
  return (parent, words, text, run) => {
    const command = parent.command(words).description(text);
    return command.action(async (...all: unknown[]) => {
      const args = all
        .slice(0, command.registeredArguments.length)
        .flatMap((word) => (Array.isArray(word) ? word.map(String) : [word === undefined ? '' : String(word)]));
      const options = ctl.opts<CtlOptions>();
      const client = await CtlClient.open(options, env);
      await run({ client, io: context.io, json: options.json === true }, command.opts(), args);
    });
  };
}

function addLists(ctl: Command, add: Adder): void {
  add(ctl, 'status', 'is it running, and how', status);
  add<ListOptions>(ctl, 'clients', 'clients and sessions', clients)
    .option('--search <text>', 'part of the client id, user or address')
    .option('--state <state>', 'connected or disconnected')
    .option('--limit <rows>', 'rows at most', wholeNumber, 100_000);
  add<{ session?: boolean }>(ctl, 'kick <clientid>', 'end the connection of a client', (work, options, [id]) =>
    kick(work, id, options.session === true),
  ).option('--session', 'end its session too');
  add(ctl, 'bridges', 'bridges and their state', bridges);
  add<UpstreamOptions>(ctl, 'upstreams [pool]', 'servers behind the proxy', (work, options, [pool]) =>
    upstreams(work, options, pool),
  )
    .option('--drain <server>', 'give this server no new clients')
    .option('--undrain <server>', 'give it clients again');
  addTopicCommand(ctl, add, wholeNumber);
  add<RetainedOptions>(ctl, 'retained', 'retained messages', retained)
    .option('--filter <filter>', 'topic filter')
    .option('--search <text>', 'part of the topic')
    .option('--clear <topic>', 'clear this one instead')
    .option('--limit <rows>', 'rows at most', wholeNumber, 100_000);
  add(ctl, 'quotas', 'quotas, and how often they were exceeded', quotas);
  add<DelayedOptions>(ctl, 'delayed', 'messages that are published later', delayed)
    .option('--search <text>', 'part of the topic')
    .option('--remove <id>', 'take this one back instead')
    .option('--limit <rows>', 'rows at most', wholeNumber, 100_000);
}

/** Adds `ctl` and its subcommands to the program. */
export function registerCtl(
  program: Command,
  context: Context,
  env: Env = process.env,
  tty = process.stdout.isTTY,
): void {
  const ctl = program
    .command('ctl')
    .description('look at a running gateway and change it, over its REST API')
    .option('-c, --config <file>', 'take address and credentials from http_server of this configuration')
    .option('--set <key=value>', 'set one key of it, literally; may be repeated', collect, [])
    .option('--url <url>', 'address of the REST API (TIDEGATE_URL)')
    .option('--user <name>', 'user name (TIDEGATE_USER)')
    .option('--password <password>', 'password; other users of this machine can see it, better --password-file')
    .option('--password-file <file>', 'file with the password (TIDEGATE_PASSWORD_FILE, TIDEGATE_PASSWORD)')
    .option('--token <token>', 'bearer token instead of user and password (TIDEGATE_TOKEN)')
    .option('--cafile <file>', 'certificate authority of the gateway, for https')
    .option('--json', 'print JSON')
    // The options of ctl may stand behind the subcommand too.
    .enablePositionalOptions(false);
  const add = adder(ctl, context, env);
  addLists(ctl, add);
  addBridgeCommands(ctl, add, context);
  addRuleCommands(ctl, add);
  addRecordingCommands(ctl, add, wholeNumber);
  addAccountCommands(ctl, add);
  addUserCommands(ctl, add);
  addEventsCommand(ctl, add, wholeNumber);
  addConfigCommands(ctl, add);
  add(ctl, 'reload', 'read the configuration file again; exit 1 when not all of it is in force', async (work) => {
    const { data, code } = await work.client.call('POST', '/reload', undefined, [NOT_ALL]);
    say(work, data, reloadText(rowOf(data)));
    if (code === NOT_ALL) context.exit(1);
  });
  add<ExplainOptions>(
    ctl,
    'explain [client] [action] [topic]',
    'which rule lets a client publish, subscribe, get a topic or take its client id (connect); exit 1 when denied',
    (work, options, words) => explain(work, options, words, context),
  )
    .option('--clientid <id>', 'the client, instead of the first word')
    .addOption(new Option('--action <action>', 'what it does (publish unless told)').choices(ACTIONS))
    .option('--topic <topic>', 'topic, or topic filter for subscribe')
    .option('--username <name>', 'its user name, where it is not connected')
    .option('--address <address>', 'its address')
    .option('--listener <name>', 'the listener it comes through');
  add(ctl, 'store', 'the store: size and state', async (work) => {
    const { data } = await work.client.call('GET', '/store');
    say(work, data, facts(Object.entries(rowOf(data))));
  });
  const words = 'counters and, on a terminal, the busiest topics, live';
  add<{ count: number; topics: number }>(ctl, 'top', words, async (work, { count, topics }) => {
    await top(work.client, { json: work.json, tty: tty === true, count, topics }, work.io);
  })
    .option('--topics <n>', 'so many topics at most', wholeNumber, 10)
    .addOption(new Option('--count <n>', 'end after so many samples').argParser(wholeNumber).default(0, 'never'));
}

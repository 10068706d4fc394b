// What holds for the whole broker: limits, sessions, persistence, the log. Called by mosquitto.ts with a draft; fills
// the tree. mosquitto's own defaults are written out where ours would mean something else to its clients.
import type { Position } from '../problem.ts';
import type { Report } from '../report.ts';
import { append, child, put } from '../text/grow.ts';
import type { BlockNode } from '../text/node.ts';
import { parseDuration } from '../values.ts';
import type { Draft, Settings } from './draft.ts';
import { words } from './lines.ts';

/** In flight to one client, and the Receive Maximum of 5.0, where mosquitto.conf says nothing. */
const INFLIGHT = 20;
const QUEUED = 1000;

export function placeBroker(draft: Draft, root: BlockNode, report: Report): void {
  const { global, at } = draft;
  placeLimits(global, root, at, report);
  placeAliases(draft, root, report);
  placeExpiry(global, root, at, report);
  placePersistence(global, root, at, report);
  placeLog(draft, root, report);
}

type Rename = readonly [from: string, to: string];

const FLAGS: readonly Rename[] = [
  ['queue_qos0_messages', 'mqtt.queue_qos0'],
  ['retain_available', 'mqtt.retain_available'],
  ['check_retain_source', 'auth.check_retain_source'],
];
/** Below 0 is mosquitto's 0: no limit. */
const NUMBERS: readonly Rename[] = [
  ['max_queued_messages', 'mqtt.max_mqueue_len'],
  ['max_queued_bytes', 'mqtt.max_mqueue_bytes'],
  ['max_packet_size', 'mqtt.max_packet_size'],
  ['message_size_limit', 'mqtt.max_payload_size'],
  ['max_keepalive', 'mqtt.max_keepalive'],
  ['sys_interval', 'mqtt.sys_interval'],
];

function placeLimits(global: Settings, root: BlockNode, at: Position, report: Report): void {
  const line = (key: string): Position => global.line(key)?.at ?? at;
  for (const [from, to] of FLAGS) {
    const value = global.flag(from);
    if (value !== null) put(root, to, value, line(from));
  }
  for (const [from, to] of NUMBERS) {
    const value = global.number(from);
    if (value !== null) put(root, to, Math.max(0, value), line(from));
  }
  const inflight = global.number('max_inflight_messages') ?? INFLIGHT;
  put(root, 'mqtt.max_inflight_window', inflight, line('max_inflight_messages'));
  put(root, 'mqtt.max_awaiting_rel', inflight, line('max_inflight_messages'));
  if (!global.has('max_queued_messages')) put(root, 'mqtt.max_mqueue_len', QUEUED, at);
  if (!global.has('max_queued_bytes')) put(root, 'mqtt.max_mqueue_bytes', 0, at);
  if (!global.has('max_packet_size')) put(root, 'mqtt.max_packet_size', 0, at);
  const prefix = global.text('clientid_prefixes');
  if (prefix !== null) put(root, 'mqtt.clientid_prefix', prefix, line('clientid_prefixes'));
  placeMemory(global, root, report);
  const clients = global.number('global_max_clients');
  if (clients !== null && clients >= 0) {
    put(root, 'mqtt.max_sessions', clients, line('global_max_clients'));
    const message = 'is mqtt.max_sessions, which counts clients and kept sessions; one more is refused, not closed';
    report.change(line('global_max_clients'), 'global_max_clients', message);
  }
}

/** Of a listener that says nothing. */
const TOPIC_ALIASES = 10;

function placeAliases({ first, listeners }: Draft, root: BlockNode, report: Report): void {
  const all = [...listeners, first].map(({ settings }) => settings);
  const lines = all.flatMap((settings) => settings.line('max_topic_alias') ?? []);
  if (lines.length === 0) return;
  const heard = first.settings.has('max_topic_alias') ? all : all.slice(0, -1);
  const most = Math.max(...heard.map((settings) => settings.number('max_topic_alias') ?? TOPIC_ALIASES));
  put(root, 'mqtt.max_topic_alias', most, lines[0].at);
  for (const { at, key } of lines) report.change(at, key, `is mqtt.max_topic_alias = ${most}, of every listener`);
}

const LEAST_MEMORY = 1024 * 1024;

function placeMemory(global: Settings, root: BlockNode, report: Report): void {
  const limit = global.number('memory_limit');
  const at = global.line('memory_limit')?.at;
  if (limit === null || limit <= 0 || at === undefined) return;
  put(root, 'mqtt.memory_budget', Math.max(limit, LEAST_MEMORY), at);
  const message = 'is mqtt.memory_budget: it bounds what waits for clients, not the memory of the process';
  report.change(at, 'memory_limit', message);
}

/** Days of the units that are no duration here. */
const DAYS: ReadonlyMap<string, number> = new Map([
  ['w', 7],
  ['m', 30],
  ['y', 365],
]);
/** The longest session MQTT knows. */
const LONGEST_DAYS = 49_710;

function placeExpiry(global: Settings, root: BlockNode, at: Position, report: Report): void {
  const line = global.line('persistent_client_expiration');
  if (line === undefined) {
    put(root, 'mqtt.max_session_expiry', 0, at);
    return;
  }
  const found = /^(\d{1,9})([shdwmy])$/.exec(words(line.value)[0]);
  if (found === null || Number(found[1]) === 0) {
    report.invalid(line.at, line.key, 'a number with h, d, w, m or y expected');
    return;
  }
  const days = DAYS.get(found[2]);
  const text = days === undefined ? found[0] : `${Number(found[1]) * days}d`;
  const ms = parseDuration(text, 's') ?? Number.POSITIVE_INFINITY;
  put(root, 'mqtt.max_session_expiry', ms > LONGEST_DAYS * 86_400_000 ? 0 : text, line.at);
}

function placePersistence(global: Settings, root: BlockNode, at: Position, report: Report): void {
  const line = global.line('persistence');
  const location = global.line('persistence_location');
  if (global.flag('persistence') !== true || line === undefined) {
    if (location !== undefined)
      report.change(location.at, location.key, 'not carried over: without persistence true it turns nothing on');
    return;
  }
  const folder = location === undefined ? '' : `${location.value.replace(/\/+$/, '')}/`;
  put(root, 'persistence.path', `${folder}tidegate.db`, location?.at ?? line.at);
  const old = `${folder}${global.text('persistence_file') ?? 'mosquitto.db'}`;
  report.change(
    line.at ?? at,
    line.key,
    `begins with an empty database: sessions and retained messages of ${old} are not read; \`tidegate store import\` takes them over`,
  );
}

// ---- log

const LEVELS: ReadonlyMap<string, string> = new Map([
  ['error', 'error'],
  ['warning', 'warn'],
  ['notice', 'info'],
  ['information', 'info'],
  ['debug', 'debug'],
  ['subscribe', 'debug'],
  ['unsubscribe', 'debug'],
  ['internal', 'debug'],
  ['websockets', 'info'],
  ['all', 'debug'],
  ['none', 'fatal'],
]);
const SEVERITY = ['debug', 'info', 'warn', 'error', 'fatal'];

function placeLog(draft: Draft, root: BlockNode, report: Report): void {
  const { at, logTypes, logDests } = draft;
  let level = logTypes.length === 0 ? 'info' : 'fatal';
  for (const { at: place, key, value } of logTypes) {
    const [word] = words(value);
    const named = LEVELS.get(word);
    if (named === undefined) report.invalid(place, key, `${word} is no type of log lines`);
    else if (word === 'none') level = 'fatal';
    else if (SEVERITY.indexOf(named) < SEVERITY.indexOf(level)) level = named;
  }
  let silent = false;
  for (const { at: place, key, value } of logDests) {
    const [kind, ...rest] = words(value);
    silent = kind === 'none';
    if (kind === 'file') placeLogFile(value.replace(/^file[ \t]*/, ''), root, place, report);
    else if (kind === 'stdout' || kind === 'stderr') addTarget(root, 'console', place);
    else if (kind === 'syslog' || kind === 'topic' || kind === 'dlt') {
      addTarget(root, 'console', place);
      report.change(place, key, `${kind} is not there: log lines go to the console, which the service manager keeps`);
    } else if (kind !== 'none')
      report.invalid(place, key, `${[kind, ...rest].join(' ')} is no destination of log lines`);
  }
  put(root, 'log.level', silent ? 'fatal' : level, logTypes[0]?.at ?? at);
}

function addTarget(root: BlockNode, target: string, at: Position): void {
  const log = child(root, 'log', at);
  const before = log.fields.get('to')?.value;
  const known = before?.kind === 'list' && before.items.some((item) => item.kind === 'scalar' && item.text === target);
  if (!known) append(log, 'to', target, at);
}

function placeLogFile(path: string, root: BlockNode, at: Position, report: Report): void {
  if (path === '') {
    report.invalid(at, 'log_dest', 'file needs a path');
    return;
  }
  addTarget(root, 'file', at);
  const slash = path.lastIndexOf('/');
  if (slash >= 0) put(root, 'log.dir', slash === 0 ? '/' : path.slice(0, slash), at);
  put(root, 'log.file', path.slice(slash + 1), at);
}

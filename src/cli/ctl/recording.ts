// `tidegate ctl recording`: what is recorded, recorded messages as a table or a file, and publishing them again. Called
// by ctl.ts. Filters, times and speeds are checked by the gateway, which answers with what is wrong.
import { pipeline } from 'node:stream/promises';
import { type Command, InvalidArgumentError, Option } from 'commander';
import { errorText, GatewayError } from '../../base/errors.ts';
import { type Column, column, durationText, facts, type Row, sizeColumn, sizeText } from './table.ts';
import { type Adder, query, rowOf, rowsOf, say, show, type Work } from './work.ts';

/** Rows asked for at once. */
const PAGE_ROWS = 1000;

interface RangeOptions {
  readonly from?: string;
  readonly to?: string;
}

function timeText(value: unknown): string {
  return typeof value === 'number' ? new Date(value).toISOString() : '';
}

async function status(work: Work): Promise<void> {
  const { data } = await work.client.call('GET', '/recording');
  const now = rowOf(data);
  const limit = (value: unknown, text: string): string => (value === 0 ? 'no limit' : text);
  const text = facts([
    ['topics', Array.isArray(now.topics) && now.topics.length > 0 ? now.topics : 'none now'],
    ['messages', now.messages],
    ['recorded topics', now.topics_recorded],
    ['size', `${sizeText(now.bytes)} of ${limit(now.max_size, sizeText(now.max_size))}`],
    ['kept for', limit(now.keep_ms, durationText(Number(now.keep_ms) / 1000))],
    ['oldest', timeText(now.oldest)],
    ['newest', timeText(now.newest)],
    ['not recorded', now.missed],
    ['error', now.last_error],
  ]);
  say(work, data, text);
}

const TOPICS: readonly Column[] = [
  column('TOPIC', 'topic'),
  { title: 'NEWEST', value: ({ newest }) => timeText(newest) },
];

const MESSAGES: readonly Column[] = [
  column('TIME', 'at'),
  column('TOPIC', 'topic'),
  column('QOS', 'qos', true),
  sizeColumn('BYTES', 'bytes'),
  column('FROM', 'from'),
  { title: 'PAYLOAD', value: ({ payload, payload_base64: base64 }) => payload ?? base64 },
];

async function messages(
  work: Work,
  { from, to, limit, oldest }: RangeOptions & { limit: number; oldest?: boolean },
  topic: string,
): Promise<void> {
  const rows: Row[] = [];
  for (let after: string | undefined; rows.length < limit; ) {
    const page = { limit: String(Math.min(PAGE_ROWS, limit - rows.length)), order: oldest === true ? 'asc' : 'desc' };
    const reply = await work.client.call('GET', `/recording/messages${query({ topic, from, to, after, ...page })}`);
    rows.push(...rowsOf(reply.data));
    if (typeof reply.meta.next !== 'string') break;
    after = reply.meta.next;
  }
  show(work, rows, MESSAGES);
}

/** As the gateway writes it, however long it is. */
async function exported(
  { client, io }: Work,
  { from, to, format }: RangeOptions & { format: string },
  topic: string,
): Promise<void> {
  const path = `/recording/export${query({ topic, from, to, format })}`;
  // What is wrong is found out before: an export has begun once its status is sent.
  await client.call('GET', `/recording/messages${query({ topic, from, to, limit: '1' })}`);
  const response = await client.send('GET', path, null);
  if (response.statusCode !== 200) {
    response.resume();
    throw new GatewayError('CLI-FAILED', `HTTP status ${response.statusCode ?? 0}`);
  }
  try {
    await pipeline(response, io.stdout, { end: false });
  } catch (error) {
    throw new GatewayError('CLI-FAILED', `the export has ended early: ${errorText(error)}`, error);
  }
}

const REPLAYS: readonly Column[] = [
  column('ID', 'id', true),
  column('STATE', 'state'),
  column('TOPIC', 'topic'),
  column('PREFIX', 'prefix'),
  column('SPEED', 'speed', true),
  column('PUBLISHED', 'published', true),
  column('REFUSED', 'refused', true),
  { title: 'POSITION', value: ({ position }) => timeText(position) },
  column('ERROR', 'last_error'),
];

interface ReplayOptions extends RangeOptions {
  readonly prefix?: string;
  readonly speed?: number;
  readonly retain?: boolean;
}

async function replay(work: Work, options: ReplayOptions, topic: string): Promise<void> {
  const { data } = await work.client.call('POST', '/recording/replays', { ...options, topic });
  const { id, prefix } = rowOf(data);
  say(work, data, `replay ${String(id)} publishes below ${String(prefix)}\n`);
}

function speedOf(text: string): number {
  if (!/^\d{1,7}(\.\d{1,6})?$/.test(text)) throw new InvalidArgumentError('A number is required.');
  return Number(text);
}

function ranged(command: Command): Command {
  return command
    .option('--from <time>', 'earliest: -10m, -2h, -7d, ISO 8601 or milliseconds (default: -1h)')
    .option('--to <time>', 'latest, written in the same way (default: now)');
}

/** Adds the subcommands of `recording`. */
export function addRecordingCommands(ctl: Command, add: Adder, wholeNumber: (text: string) => number): void {
  const recording = ctl.command('recording').description('recorded messages');
  add(recording, 'status', 'what is recorded, how much, and whether anything was missed', status);
  add<{ search?: string }>(recording, 'topics [filter]', 'recorded topics', async (work, { search }, [filter]) => {
    const reply = await work.client.call('GET', `/recording/topics${query({ topic: filter || undefined, search })}`);
    show(work, rowsOf(reply.data), TOPICS);
  }).option('--search <text>', 'part of the topic');
  ranged(
    add<RangeOptions & { limit: number; oldest?: boolean }>(
      recording,
      'messages <filter>',
      'recorded messages, newest first',
      (work, options, [filter]) => messages(work, options, filter),
    ),
  )
    .option('--oldest', 'oldest first')
    .option('--limit <rows>', 'rows at most', wholeNumber, 50);
  ranged(
    add<RangeOptions & { format: string }>(
      recording,
      'export <filter>',
      'recorded messages on standard output, oldest first',
      (work, options, [filter]) => exported(work, options, filter),
    ),
  ).addOption(new Option('--format <format>', 'of the file').choices(['jsonl', 'csv']).default('jsonl'));
  ranged(
    add<ReplayOptions>(recording, 'replay <filter>', 'publish recorded messages again', (work, options, [filter]) =>
      replay(work, options, filter),
    ),
  )
    .option('--prefix <prefix>', 'stands before each topic (default: replay/)')
    .addOption(
      new Option('--speed <factor>', '10 is ten times as fast, 0 does not wait (default: 1)').argParser(speedOf),
    )
    .option('--retain', 'with the RETAIN flags of the recording');
  add(recording, 'replays', 'replays that run or have ended', async (work) => {
    show(work, rowsOf((await work.client.call('GET', '/recording/replays')).data), REPLAYS);
  });
  add(recording, 'stop <id>', 'stop a replay', async (work, _, [id]) => {
    await work.client.call('DELETE', `/recording/replays/${encodeURIComponent(id)}`);
    say(work, { id: Number(id), stopped: true }, 'stopped\n');
  });
}

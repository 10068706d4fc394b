// `tidegate ctl top`: the gateway's counters, live, from its event stream. Called by ctl.ts.
// On a terminal the screen is drawn anew every two seconds; elsewhere one line (or one JSON document) for each sample.
import { GatewayError } from '../../base/errors.ts';
import type { Io } from '../cli.ts';
import type { CtlClient } from './client.ts';
import { durationText, facts, sizeText } from './table.ts';
import { busiest } from './topics.ts';

/** Characters of one event that are kept while its end has not come. */
const MAX_EVENT = 64 * 1024;

export interface TopOptions {
  readonly json: boolean;
  readonly tty: boolean;
  /** Samples shown, 0 = until interrupted. */
  readonly count: number;
  /** Topics shown on a terminal. */
  readonly topics: number;
}

type Sample = Readonly<Record<string, unknown>>;

function numberOf(sample: Sample | null, key: string): number {
  const value = sample?.[key];
  return typeof value === 'number' ? value : 0;
}

/** Change of a counter per second between two samples. */
function rate(before: Sample | null, now: Sample, key: string): number {
  const seconds = (numberOf(now, 'time') - numberOf(before, 'time')) / 1000;
  return before === null || seconds <= 0 ? 0 : Math.max(0, (numberOf(now, key) - numberOf(before, key)) / seconds);
}

function screen(address: string, before: Sample | null, now: Sample): string {
  const each = (key: string): string => `${Math.round(rate(before, now, key))}/s, ${numberOf(now, key)} in all`;
  return facts([
    ['gateway', `${address}, up ${durationText(numberOf(now, 'uptime_ms') / 1000)}`],
    ['clients', numberOf(now, 'clients')],
    ['sessions', numberOf(now, 'sessions')],
    ['subscriptions', numberOf(now, 'subscriptions')],
    ['retained', numberOf(now, 'retained')],
    ['received', each('received')],
    ['sent', each('sent')],
    ['dropped', each('dropped')],
    ['processor', `${(numberOf(now, 'cpu') * 100).toFixed(1)} %`],
    ['memory', sizeText(numberOf(now, 'memory'))],
    ['latency p99', `${(numberOf(now, 'latency_p99') * 1000).toFixed(2)} ms`],
    ['event loop p99', `${(numberOf(now, 'lag_p99') * 1000).toFixed(1)} ms`],
  ]);
}

function lineOf(before: Sample | null, now: Sample): string {
  const per = (key: string): string => `${key} ${Math.round(rate(before, now, key))}/s`;
  const { clients, subscriptions } = now;
  const use = `processor ${(numberOf(now, 'cpu') * 100).toFixed(1)} %  memory ${sizeText(now.memory)}`;
  return `clients ${clients}  subscriptions ${subscriptions}  ${per('received')}  ${per('sent')}  ${per('dropped')}  ${use}\n`;
}

/** Takes the text of complete events out of a stream of server-sent events. */
class EventReader {
  private rest = '';

  /** The data of each event that this piece completes. */
  take(piece: string): string[] {
    const parts = (this.rest + piece).split('\n\n');
    this.rest = (parts.pop() ?? '').slice(-MAX_EVENT);
    const found: string[] = [];
    for (const part of parts) {
      const line = part.split('\n').find((text) => text.startsWith('data: '));
      if (line !== undefined) found.push(line.slice('data: '.length));
    }
    return found;
  }
}

/**
 * Shows samples until `count` or until the gateway ends the stream. Throws GatewayError CLI-FAILED when it cannot be
 * had.
 */
export async function top(client: CtlClient, options: TopOptions, io: Io): Promise<void> {
  const response = await client.send('GET', '/events?kinds=stats', null, true);
  if (response.statusCode !== 200) {
    response.destroy();
    throw new GatewayError('CLI-FAILED', `${client.address}: HTTP status ${response.statusCode}`);
  }
  response.setEncoding('utf8');
  const reader = new EventReader();
  let before: Sample | null = null;
  let seen = 0;
  for await (const piece of response) {
    for (const text of reader.take(String(piece))) {
      const now: Sample = JSON.parse(text);
      if (options.json) io.stdout.write(`${text}\n`);
      // Home, draw, clear what the last screen had below: no flicker.
      else if (options.tty) {
        const drawn = screen(client.address, before, now) + (await busiest(client, options.topics));
        io.stdout.write(`\x1b[H${drawn.replaceAll('\n', '\x1b[K\n')}\x1b[J`);
      } else io.stdout.write(lineOf(before, now));
      before = now;
      if (++seen === options.count) return;
    }
  }
}

// `tidegate nng req`, `rep`, `survey` and `respond`: ask SP peers and answer them, for scripts and for looking at a
// bridge from outside. Registered by nng.ts. Source: nngcat(1) for what people expect of such a tool.
import type { Command } from 'commander';
import type { Protocol } from '../../sp/sp.ts';
import type { Context, Io } from '../cli.ts';
import { usage } from '../usage.ts';
import { bodyOf, printBody } from './body.ts';
import { commonOf, duration, type NngCommon, type NngFlags, wholeNumber, withCommon } from './options.ts';
import { Station, within } from './station.ts';

export interface NngAskOptions extends NngCommon {
  readonly data: string;
  /** Requests, one after the other. */
  readonly count: number;
  /** Milliseconds an answer may take; a survey lasts as long. */
  readonly waitMs: number;
}

export interface NngAnswerOptions extends NngCommon {
  /** null: every request is answered with itself. */
  readonly data: string | null;
  /** Requests to answer before it ends, 0 = no end. */
  readonly count: number;
}

const WAIT_MS = 5000;
const SURVEY_MS = 1000;

/** Asks `count` times and prints what is answered. Returns the exit code: 1 when a request has no answer in time. */
export async function nngAsk(options: NngAskOptions, io: Io): Promise<number> {
  const body = bodyOf(options.data, options.hex);
  const station = new Station(options, io);
  let unanswered = 0;
  const code = await within(options, io, station, async (over) => {
    while (!over() && station.peers === 0) await station.change();
    for (let i = 0; i < options.count && !over(); i++) if (!(await askOnce(station, body, options, io))) unanswered++;
  });
  if (unanswered === 0) return code;
  io.stderr.write(`tidegate: no answer within ${options.waitMs} ms\n`);
  return 1;
}

/** Resolves with whether there was an answer. */
function askOnce(station: Station, body: Uint8Array, options: NngAskOptions, io: Io): Promise<boolean> {
  return new Promise((resolve) => {
    let answers = 0;
    // Timers of sockets do not hold a process; the station's ticks do, as long as the command runs.
    const cancel = station.socket.request?.(body, options.waitMs, {
      reply: (bytes, start, end) => {
        answers++;
        printBody(bytes, start, end, options, io);
      },
      ended: () => resolve(answers > 0),
    });
    if (cancel === null || cancel === undefined) resolve(false);
  });
}

/**
 * Answers requests and prints them, until there were `count`. Returns the exit code: 1 when `timeoutMs` ran out first.
 */
export async function nngAnswer(options: NngAnswerOptions, io: Io): Promise<number> {
  const fixed = options.data === null ? null : bodyOf(options.data, options.hex);
  const station = new Station(options, io);
  let left = options.count > 0 ? options.count : Number.POSITIVE_INFINITY;
  station.socket.onRequest?.((bytes, start, end, answer) => {
    if (left <= 0) return;
    left--;
    printBody(bytes, start, end, options, io);
    answer(fixed ?? Uint8Array.from(bytes.subarray(start, end)));
    if (left === 0) station.wake();
  });
  return within(options, io, station, async (over) => {
    while (left > 0 && !over()) await station.change();
  });
}

function addAsker(nng: Command, context: Context, name: 'req' | 'survey', protocol: Protocol, waitMs: number): void {
  const text = name === 'req' ? 'ask one peer and print its answer' : 'ask every peer and print what they answer';
  withCommon(nng.command(name), protocol)
    .description(text)
    .option('--data <text>', 'the question (default: empty)')
    .option('--hex', 'data is written and printed in hexadecimal digits')
    .option('--raw', 'print answers as they are, nothing added')
    .option('--count <n>', 'how often (default: once)')
    .option('--wait <duration>', `how long answers may take (bare numbers are seconds; default: ${waitMs / 1000}s)`)
    .action(async (flags: NngFlags & { readonly wait?: string }) => {
      const options: NngAskOptions = {
        ...commonOf(flags, [protocol]),
        data: flags.data ?? '',
        count: wholeNumber(flags.count, '--count', 1),
        waitMs: duration(flags.wait, '--wait') || waitMs,
      };
      context.exit(await nngAsk(options, context.io));
    });
}

function addAnswerer(nng: Command, context: Context, name: 'rep' | 'respond', protocol: Protocol): void {
  const text = name === 'rep' ? 'answer requests and print them' : 'answer surveys and print them';
  withCommon(nng.command(name), protocol)
    .description(text)
    .option('--data <text>', 'the answer')
    .option('--echo', 'answer each question with itself')
    .option('--hex', 'data is written, questions are printed in hexadecimal digits')
    .option('--raw', 'print questions as they are, nothing added')
    .option('--count <n>', 'end after this number of questions (default: never)')
    .action(async (flags: NngFlags & { readonly echo?: true }) => {
      if ((flags.data === undefined) === (flags.echo === undefined)) throw usage('either --data or --echo is required');
      const options: NngAnswerOptions = {
        ...commonOf(flags, [protocol]),
        data: flags.data ?? null,
        count: wholeNumber(flags.count, '--count', 0),
      };
      context.exit(await nngAnswer(options, context.io));
    });
}

/** Adds the commands that ask and answer below `nng`. */
export function registerRequests(nng: Command, context: Context): void {
  addAsker(nng, context, 'req', 'req0', WAIT_MS);
  addAnswerer(nng, context, 'rep', 'rep0');
  addAsker(nng, context, 'survey', 'surveyor0', SURVEY_MS);
  addAnswerer(nng, context, 'respond', 'respondent0');
}

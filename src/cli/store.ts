// `tidegate store`: looks into the database of a gateway that is not running, and moves its content as JSON lines.
// Called through cli.ts. check changes nothing but the time of the last opening; export reads; import tells a journal what the lines say,
// through the same writer a gateway uses. A database that a gateway has open is refused (STORE-OPEN).

import { once } from 'node:events';
import { createReadStream, createWriteStream, existsSync } from 'node:fs';
import { createInterface } from 'node:readline';
import type { Readable, Writable } from 'node:stream';
import { finished } from 'node:stream/promises';
import type { Command } from 'commander';
import { systemClock } from '../base/clock.ts';
import { errorText, GatewayError } from '../base/errors.ts';
import { nullLog } from '../base/log.ts';
import { Metrics } from '../base/metrics.ts';
import { Hold } from '../mqtt/message.ts';
import { OpenError, type Opened, openStore } from '../store/open.ts';
import { Restorer, readPacks } from '../store/restore.ts';
import { sqliteJournal } from '../store/sqlite.ts';
import type { Journal, Restored } from '../store/store.ts';
import type { Context } from './cli.ts';
import { linesOf, tellLine } from './storelines.ts';

/** Lines told before the import waits for them to be durable. */
const IMPORT_STEP = 1000;
/** No limit of its own: what is imported was within limits when it was stored. */
const NO_LIMIT = Number.MAX_SAFE_INTEGER;

function openExisting(path: string): Opened {
  if (!existsSync(path)) throw new GatewayError('STORE-OPEN', `${path} does not exist`);
  try {
    return openStore({ path, synchronous: 'full', checkpointBytes: 4 * 1024 * 1024, now: systemClock.now() });
  } catch (error) {
    throw new GatewayError('STORE-OPEN', errorText(error), error);
  }
}

/** Prints what is in a store and whether it is whole; false when it is damaged. */
export function checkStore(path: string, out: Writable): boolean {
  let opened: Opened;
  try {
    opened = openExisting(path);
  } catch (error) {
    if (!(error instanceof GatewayError && error.cause instanceof OpenError && error.cause.damaged)) throw error;
    out.write(`damaged: ${error.cause.message}\n`);
    return false;
  }
  const { db, pageBytes } = opened;
  const number = (sql: string): number => Number(db.prepare(sql, true).get([])?.[0] ?? 0);
  const problems = db
    .prepare('PRAGMA integrity_check(20)', true)
    .all([])
    .map(([text]) => String(text))
    .filter((text) => text !== 'ok');
  const facts: [string, string | number][] = [
    ['format', number('PRAGMA user_version')],
    ['size', `${number('PRAGMA page_count') * pageBytes} bytes, ${number('PRAGMA freelist_count') * pageBytes} free`],
  ];
  for (const table of ['session', 'subscription', 'queued', 'message', 'inbound', 'will', 'retained', 'spool']) {
    facts.push([table, number(`SELECT count(*) FROM ${table}`)]);
  }
  db.close();
  for (const [name, value] of facts) out.write(`${name.padEnd(14)}${value}\n`);
  for (const problem of problems) out.write(`damaged: ${problem}\n`);
  if (problems.length === 0) out.write('ok\n');
  return problems.length === 0;
}

function readStore(path: string): Restored {
  const { db } = openExisting(path);
  try {
    const restorer = new Restorer();
    for (const pack of readPacks(db)) restorer.add(pack);
    return restorer.finish();
  } finally {
    db.close();
  }
}

/** Writes everything in a store as JSON lines, one thing each. */
export async function exportStore(path: string, out: Writable): Promise<void> {
  for (const line of linesOf(readStore(path))) {
    if (!out.write(`${JSON.stringify(line)}\n`)) await once(out, 'drain');
  }
}

function durable(journal: Journal): Promise<void> {
  const hold = new Hold();
  journal.barrier(hold);
  return new Promise((resolve, reject) => {
    hold.whenDone((code) => {
      if (code === 0) resolve();
      else reject(new GatewayError('STORE-WRITE', 'the store is full or cannot be written'));
    });
  });
}

/**
 * Adds what JSON lines say to a store, making it when it is absent; gives the number of lines.
 * Throws CLI-FAILED with the number of a line that is wrong (the lines before it are stored), STORE-OPEN, STORE-WRITE.
 * @param force also into a store that has something in it
 */
export async function importStore(path: string, input: Readable, force: boolean): Promise<number> {
  const journal = sqliteJournal({
    path,
    sync: 'ack',
    intervalMs: 100,
    maxSize: NO_LIMIT,
    onCorrupt: 'stop',
    clock: systemClock,
    log: nullLog,
    metrics: new Metrics(),
  });
  try {
    const { sessions, retained, spools } = await journal.load();
    if (!force && sessions.length + retained.length + spools.size > 0) {
      throw new GatewayError(
        'CLI-FAILED',
        `${path} is not empty (--force adds to it, replacing what has the same name)`,
      );
    }
    let count = 0;
    const known = new Set(sessions.map((s) => s.session.clientId));
    for await (const line of createInterface({ input, crlfDelay: Number.POSITIVE_INFINITY })) {
      count++;
      if (line.trim() === '') continue;
      try {
        tellLine(journal, line, known);
      } catch (error) {
        throw new GatewayError('CLI-FAILED', `line ${count}: ${errorText(error)}`, error);
      }
      if (count % IMPORT_STEP === 0) await durable(journal);
    }
    await durable(journal);
    return count;
  } finally {
    await journal.close();
  }
}

/** Adds `store` and its subcommands to the program. */
export function registerStore(program: Command, context: Context): void {
  const { io } = context;
  const store = program.command('store').description('check, export and import the database of a stopped gateway');
  store
    .command('check')
    .argument('<file>', 'the database (persistence.path)')
    .description('is it whole, and what is in it; exit code 1 when it is damaged')
    .action((file: string) => {
      if (!checkStore(file, io.stdout)) context.exit(1);
    });
  store
    .command('export')
    .argument('<file>', 'the database (persistence.path)')
    .option('-o, --output <file>', 'write there instead of to standard output')
    .description('write everything as JSON lines')
    .action(async (file: string, options: { output?: string }) => {
      if (options.output === undefined) return exportStore(file, io.stdout);
      // Payloads are as private as the database.
      const out = createWriteStream(options.output, { mode: 0o600 });
      await exportStore(file, out);
      out.end();
      await finished(out);
    });
  store
    .command('import')
    .argument('<file>', 'the database (persistence.path), made when it is absent')
    .argument('[lines]', 'a file of JSON lines instead of standard input')
    .option('--force', 'add to a store that is not empty')
    .description('read JSON lines as export writes them')
    .action(async (file: string, lines: string | undefined, options: { force?: boolean }) => {
      const input = lines === undefined ? io.stdin : createReadStream(lines);
      const count = await importStore(file, input, options.force === true);
      io.stdout.write(`${count} lines imported\n`);
    });
}

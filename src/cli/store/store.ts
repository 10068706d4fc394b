// `tidegate store`: looks into the database of a gateway that is not running, and moves its content as JSON lines.
// Called through cli/cli.ts. check and export change nothing; import tells a journal what the lines say,
// through the same writer a gateway uses. A database that a gateway has open is refused (STORE-OPEN).

import { once } from 'node:events';
import { createWriteStream, existsSync, realpathSync, statSync } from 'node:fs';
import { open, readFile } from 'node:fs/promises';
import { createInterface } from 'node:readline';
import { Readable, type Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { Command } from 'commander';
import { systemClock } from '../../base/clock.ts';
import { errorText, GatewayError } from '../../base/errors.ts';
import { nullLog } from '../../base/log.ts';
import { Metrics } from '../../base/metrics.ts';
import { systemErrorText } from '../../base/systemerror.ts';
import { Hold } from '../../mqtt/message.ts';
import { SqliteError } from '../../store/driver.ts';
import { type Inspected, inspectStore } from '../../store/inspect.ts';
import { OpenError } from '../../store/open.ts';
import { Restorer, readPacks, TABLES, type Table } from '../../store/restore.ts';
import { FORMAT_VERSION } from '../../store/schema.ts';
import { sqliteJournal } from '../../store/sqlite.ts';
import type { Journal, Restored } from '../../store/store.ts';
import type { Context } from '../cli.ts';
import { linesOf, tellLine } from './lines.ts';
import { MAGIC, readMosquittoDb } from './mosquittodb.ts';

/** Lines told before the import waits for them to be durable. */
const IMPORT_STEP = 1000;
/** No limit of its own: what is imported was within limits when it was stored. */
const NO_LIMIT = Number.MAX_SAFE_INTEGER;

function inspect(path: string): Inspected {
  try {
    return inspectStore(path);
  } catch (error) {
    throw new GatewayError('STORE-OPEN', errorText(error), error);
  }
}

/** Prints what is in a store and whether it is whole; false when it is damaged. */
export function checkStore(path: string, out: Writable): boolean {
  let inspected: Inspected;
  try {
    inspected = inspect(path);
  } catch (error) {
    if (!(error instanceof GatewayError && error.cause instanceof OpenError && error.cause.damaged)) throw error;
    out.write(`damaged: ${error.cause.message}\n`);
    return false;
  }
  const { db, format } = inspected;
  const problems: string[] = [];
  try {
    const number = (sql: string): number => Number(db.prepare(sql, true).get([])?.[0] ?? 0);
    const fact = (name: string, value: string | number): void => {
      out.write(`${name.padEnd(14)}${value}\n`);
    };
    const pageBytes = number('PRAGMA page_size');
    fact('format', format === FORMAT_VERSION ? format : `${format} (the next start makes it ${FORMAT_VERSION})`);
    fact('size', `${statSync(path).size} bytes, ${number('PRAGMA freelist_count') * pageBytes} free`);
    for (const [text] of db.prepare('PRAGMA integrity_check(20)', true).all([]))
      if (text !== 'ok') problems.push(String(text).replaceAll('\n', ' '));
    for (const table of TABLES) {
      const count = attempt(() => number(`SELECT count(*) FROM ${table}`), problems, table);
      fact(table, count ?? 'cannot be read');
    }
    const restorer = new Restorer();
    for (const table of TABLES) readTable(inspected, table, restorer, () => {});
    if (restorer.skipped > 0) problems.push(`${restorer.skipped} rows cannot be what they should be`);
  } catch (error) {
    if (!(error instanceof SqliteError)) throw error;
    problems.push(error.message);
  } finally {
    inspected.close();
  }
  for (const problem of new Set(problems)) out.write(`damaged: ${problem}\n`);
  if (problems.length === 0) out.write('ok\n');
  return problems.length === 0;
}

function attempt<T>(read: () => T, problems: string[], what: string): T | null {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof SqliteError)) throw error;
    problems.push(`${what}: ${error.message}`);
    return null;
  }
}

/** Hands the rows of a table to a restorer, as far as they can be read; `fault` is told where that ends. */
function readTable({ db }: Inspected, table: Table, into: Restorer, fault: (text: string) => void): void {
  try {
    for (const pack of readPacks(db, [table])) into.add(pack);
  } catch (error) {
    if (!(error instanceof SqliteError)) throw error;
    fault(`${table}: ${error.message}`);
  }
}

/** Everything in a store that can be read, and what cannot. */
function readStore(path: string): { restored: Restored; faults: string[] } {
  const inspected = inspect(path);
  const faults: string[] = [];
  try {
    const restorer = new Restorer();
    for (const table of TABLES) readTable(inspected, table, restorer, (text) => faults.push(text));
    if (restorer.skipped > 0) faults.push(`${restorer.skipped} rows cannot be what they should be`);
    return { restored: restorer.finish(), faults };
  } finally {
    inspected.close();
  }
}

function* textOf(restored: Restored): Iterable<string> {
  for (const line of linesOf(restored)) yield `${JSON.stringify(line)}\n`;
}

/**
 * Writes everything in a store as JSON lines, one thing each; gives what was damaged and is left out. Throws
 * STORE-OPEN.
 */
export async function exportStore(path: string, out: Writable): Promise<readonly string[]> {
  const { restored, faults } = readStore(path);
  for (const line of textOf(restored)) if (!out.write(line)) await once(out, 'drain');
  return faults;
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
    const lines = createInterface({ input, crlfDelay: Number.POSITIVE_INFINITY });
    for await (const line of lines) {
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

async function linesFrom(file: string): Promise<Readable> {
  try {
    const handle = await open(file);
    // A folder opens without complaint; only reading tells.
    if ((await handle.stat()).isDirectory()) {
      await handle.close();
      throw new Error('it is a folder');
    }
    return handle.createReadStream();
  } catch (error) {
    throw new GatewayError('CLI-FAILED', `cannot read ${file}: ${systemErrorText(error)}`, error);
  }
}

/** What a database of mosquitto says as lines; null for any other file. */
async function mosquittoLines(file: string): Promise<{ input: Readable; expired: number } | null> {
  const isOne = await open(file)
    .then(async (handle) => {
      const { buffer, bytesRead } = await handle.read(Buffer.alloc(MAGIC.length)).finally(() => handle.close());
      return bytesRead === MAGIC.length && buffer.equals(MAGIC);
    })
    .catch(() => false);
  if (!isOne) return null;
  const time = { wallMs: systemClock.now(), steadyMs: systemClock.steady() };
  const { restored, expired } = readMosquittoDb(await readFile(file), time);
  return { input: Readable.from(textOf(restored)), expired };
}

async function exportTo(file: string, output: string): Promise<readonly string[]> {
  const same = existsSync(output) && existsSync(file) && realpathSync(output) === realpathSync(file);
  if (same) throw new GatewayError('CLI-FAILED', `${output} is the database itself`);
  const { restored, faults } = readStore(file);
  try {
    // Payloads are as private as the database.
    await pipeline(Readable.from(textOf(restored)), createWriteStream(output, { mode: 0o600 }));
  } catch (error) {
    throw new GatewayError('CLI-FAILED', `cannot write ${output}: ${systemErrorText(error)}`, error);
  }
  return faults;
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
    .description('write everything as JSON lines; of a damaged database what can be read (exit code 1 then)')
    .action(async (file: string, options: { output?: string }) => {
      const { output } = options;
      const faults = output === undefined ? await exportStore(file, io.stdout) : await exportTo(file, output);
      for (const fault of faults) io.stderr.write(`damaged: ${fault}\n`);
      if (faults.length > 0) context.exit(1);
    });
  store
    .command('import')
    .argument('<file>', 'the database (persistence.path), made when it is absent')
    .argument(
      '[lines]',
      'a file of JSON lines instead of standard input, or the database of a mosquitto that is stopped',
    )
    .option('--force', 'add to a store that is not empty')
    .description('read JSON lines as export writes them, or mosquitto.db')
    .action(async (file: string, lines: string | undefined, options: { force?: boolean }) => {
      const database = lines === undefined ? null : await mosquittoLines(lines);
      const input = database?.input ?? (lines === undefined ? io.stdin : await linesFrom(lines));
      const count = await importStore(file, input, options.force === true);
      io.stdout.write(`${count} lines imported\n`);
      if (database !== null && database.expired > 0)
        io.stderr.write(`${database.expired} expired sessions and messages left out\n`);
    });
}

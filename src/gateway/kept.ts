// Keeps changes made at run time: writes tidegate.d/50-console.conf beside the main configuration file, all or nothing.
// Made by running.ts, which calls it for one change after the other. Touches no other file, and this one only with a
// text that was read as part of the whole configuration before and says what was asked for.
import { mkdir, open, readFile, rename, rm } from 'node:fs/promises';
import path from 'node:path';
import { errorText } from '../base/errors.ts';
import type { Log } from '../base/log.ts';
import type { Loaded } from '../config/config.ts';
import { FOLDER, KEPT_NAME } from '../config/dropins.ts';
import { keptText, readKept } from '../config/keep.ts';
import { ConfigError, formatProblem } from '../config/problem.ts';
import type { BlockNode } from '../config/text/node.ts';
import type { ChangeResult } from '../console/console.ts';

/** What is to be written, and how to tell that it does what it should. */
export interface Plan {
  /** What the file will say. */
  readonly tree: BlockNode;
  /** Whether the configuration that the files give then says what was asked for. */
  readonly holds: (next: Loaded, text: string) => boolean;
  /** Brings it into force; a failure takes the file back. */
  readonly apply: (next: Loaded) => Promise<ChangeResult>;
  /** For people: what is kept in another way than they may think. */
  readonly note?: string;
}

/** Reads the files of this start again, `kept` in the place of 50-console.conf. Throws like loadConfig. */
export type LoadKept = (set: readonly string[], kept?: string) => Loaded;

/** Makes a plan from what the file says now and from what files give without it. */
export type Planner = (kept: BlockNode, load: LoadKept) => Plan | ChangeResult;

const OVERRULED =
  'the environment, --set or a later file of tidegate.d says otherwise: it would not hold after a restart';
const NO_FILE = 'changes can be kept only by a gateway that was started with a configuration file';

export class KeptFile {
  /** null: there is no main file to stand beside. */
  readonly file: string | null;
  private readonly load: LoadKept;
  private readonly log: Log;

  /** @param main absolute path of the main file, null for a configuration from elsewhere */
  constructor(main: string | null, load: LoadKept, log: Log) {
    this.file = main === null ? null : path.join(path.dirname(main), FOLDER, KEPT_NAME);
    this.load = load;
    this.log = log;
  }

  /** Writes a change and brings it into force. What fails changes nothing and says why. Never rejects. */
  async change(what: string, planner: Planner): Promise<ChangeResult> {
    const { file } = this;
    if (file === null) return invalid(NO_FILE);
    let plan: Plan;
    let text: string;
    let next: Loaded;
    try {
      const planned = planner(readKept(file), this.load);
      if ('ok' in planned) return planned;
      plan = planned;
      text = keptText(plan.tree);
      next = this.load([], text);
      if (!plan.holds(next, text)) return invalid(OVERRULED);
    } catch (error) {
      return invalid(error instanceof ConfigError ? error.problems.map(formatProblem).join('\n') : errorText(error));
    }
    return this.write(file, text, what, plan, next);
  }

  private async write(file: string, text: string, what: string, plan: Plan, next: Loaded): Promise<ChangeResult> {
    let before: string | null;
    try {
      before = await readIfThere(file);
      await replace(file, text);
    } catch (error) {
      return { ok: false, why: 'unavailable', message: `it cannot be kept: ${errorText(error)}` };
    }
    const result = await this.applied(plan, next);
    if (!result.ok) {
      await this.takeBack(file, before);
      return result;
    }
    this.log('warn', 'CFG-KEPT', { file, what });
    const { note } = plan;
    return { ok: true, report: { ...result.report, kept: file, ...(note === undefined ? {} : { note }) } };
  }

  private async applied(plan: Plan, next: Loaded): Promise<ChangeResult> {
    try {
      return await plan.apply(next);
    } catch (error) {
      return { ok: false, why: 'unavailable', message: errorText(error) };
    }
  }

  private async takeBack(file: string, before: string | null): Promise<void> {
    try {
      if (before === null) await rm(file);
      else await replace(file, before);
    } catch (error) {
      this.log('error', 'GW-INTERNAL', { part: file, error: errorText(error) });
    }
  }
}

function invalid(message: string): ChangeResult {
  return { ok: false, why: 'invalid', problems: [{ pointer: '', message }] };
}

async function readIfThere(file: string): Promise<string | null> {
  try {
    return await readFile(file, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
}

/**
 * Old or new, whenever the power fails: written beside it, on the disk before it takes the name. Only its owner may
 * read it.
 */
async function replace(file: string, text: string): Promise<void> {
  const folder = path.dirname(file);
  await mkdir(folder, { mode: 0o700, recursive: true });
  // Hidden files of the folder are not read as configuration.
  const beside = path.join(folder, `.${path.basename(file)}.new`);
  await rm(beside, { force: true });
  try {
    await synced(beside, 'wx', async (handle) => {
      await handle.writeFile(text);
    });
    await rename(beside, file);
  } catch (error) {
    await rm(beside, { force: true });
    throw error;
  }
  await synced(folder, 'r', async () => {});
}

type Handle = Awaited<ReturnType<typeof open>>;

async function synced(target: string, flags: string, work: (handle: Handle) => Promise<void>): Promise<void> {
  const handle = await open(target, flags, 0o600);
  try {
    await work(handle);
    await handle.sync();
  } finally {
    await handle.close();
  }
}

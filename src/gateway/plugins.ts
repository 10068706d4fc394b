// Plugins of the command (`plugins = ["./mine.mjs"]`): modules that give hooks, loaded at start by extensions.ts. Their
// code runs with all rights of the gateway, so only files are loaded that nobody but root and the user of this
// process can change. What goes wrong in one is counted and never ends the gateway; its time is measured.
import { lstatSync, realpathSync, type Stats } from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { errorText, GatewayError } from '../base/errors.ts';
import { type Log, limitLog } from '../base/log.ts';
import type { Metrics } from '../base/metrics.ts';
import { checkHooks, type GatewayHooks } from './hooks.ts';

/** A call that holds the event loop for longer is named in the log. */
const SLOW_MS = 50;
const LOG_PERIOD_MS = 10_000;

const CALLS = {
  name: 'tidegate_plugin_calls_total',
  text: 'Calls of hooks of plugins',
  type: 'counter',
  unit: 'items',
} as const;
const TIME = {
  name: 'tidegate_plugin_seconds_total',
  text: 'Time on the event loop that hooks of plugins have taken',
  type: 'counter',
  unit: 'seconds',
} as const;

export interface PluginParts {
  readonly log: Log;
  readonly metrics: Metrics;
  /** Monotonic milliseconds. */
  readonly mono: () => number;
}

export interface Plugin {
  readonly name: string;
  readonly file: string;
  readonly hooks: GatewayHooks;
}

/** What a plugin that exports a function is given. */
export interface PluginContext {
  readonly name: string;
  /** Writes a line to the log of the gateway. */
  log(text: string): void;
}

/** Throws CFG-INVALID for a file that may not be loaded, or is no plugin. @param folder relative paths start here */
export async function loadPlugins(paths: readonly string[], folder: string, parts: PluginParts): Promise<Plugin[]> {
  const plugins: Plugin[] = [];
  for (const given of paths) {
    const file = trusted(path.resolve(folder, given));
    plugins.push(await load(file, parts));
    parts.log('info', 'PLUGIN-LOADED', { plugin: file });
  }
  return plugins;
}

async function load(file: string, parts: PluginParts): Promise<Plugin> {
  const name = path.basename(file);
  const warn = limitLog(parts.log, parts.mono, LOG_PERIOD_MS);
  const context: PluginContext = { name, log: (text) => parts.log('info', 'PLUGIN-SAYS', { plugin: name, text }) };
  let hooks: GatewayHooks | null;
  try {
    const module = (await import(pathToFileURL(file).href)) as { readonly default?: unknown };
    const made: unknown = typeof module.default === 'function' ? await module.default(context) : module.default;
    hooks = checkHooks(made);
  } catch (error) {
    throw new GatewayError('CFG-INVALID', `plugins: ${file}: ${errorText(error)}`, error);
  }
  if (hooks === null) throw new GatewayError('CFG-INVALID', `plugins: ${file}: the default export gives no hooks`);
  return { name, file, hooks: measured(name, hooks, parts, warn) };
}

/** The same hooks, with their time on the event loop measured. */
function measured(plugin: string, hooks: GatewayHooks, { metrics, mono }: PluginParts, warn: Log): GatewayHooks {
  const entries = Object.entries(hooks).map(([hook, call]: [string, (...args: unknown[]) => unknown]) => {
    const calls = metrics.cell(CALLS, { plugin, hook });
    const time = metrics.cell(TIME, { plugin, hook });
    const timed = (...args: unknown[]): unknown => {
      const beganMs = mono();
      try {
        return call(...args);
      } finally {
        const ms = mono() - beganMs;
        calls.value++;
        time.value += ms / 1000;
        if (ms > SLOW_MS) warn('warn', 'PLUGIN-SLOW', { plugin, hook, ms: Math.round(ms) });
      }
    };
    return [hook, timed];
  });
  return Object.fromEntries(entries) as GatewayHooks;
}

type Decision = (...args: readonly unknown[]) => boolean | PromiseLike<boolean>;
type Told = (...args: readonly unknown[]) => unknown;

/** Hooks of several as one: what decides is asked in order until one refuses, what is told is told to all. */
export function together(all: readonly GatewayHooks[]): GatewayHooks | null {
  if (all.length < 2) return all[0] ?? null;
  const joined: Record<string, unknown> = {};
  for (const name of new Set(all.flatMap((hooks) => Object.keys(hooks)))) {
    const calls = all.flatMap((hooks) => (hooks as Record<string, unknown>)[name] ?? []);
    if (calls.length === 1) [joined[name]] = calls;
    else if (/^auth/.test(name)) joined[name] = eachAllows(calls as Decision[]);
    else if (name === 'deliver') joined[name] = deliverThrough(calls as NonNullable<GatewayHooks['deliver']>[]);
    else joined[name] = (...args: unknown[]) => Promise.all((calls as Told[]).map(async (call) => call(...args)));
  }
  return joined as GatewayHooks;
}

/** Answers at once where all of them do. Anything but true ends it, as the hook's own answer. */
function eachAllows(calls: readonly Decision[]): Decision {
  const from = (index: number, args: readonly unknown[]): boolean | PromiseLike<boolean> => {
    for (let i = index; i < calls.length; i++) {
      const answer = calls[i](...args);
      if (typeof answer === 'object')
        return Promise.resolve(answer).then((one) => (one === true ? from(i + 1, args) : one));
      if (answer !== true) return answer;
    }
    return true;
  };
  return (...args) => from(0, args);
}

/** Each gets the message as the one before has left it. */
function deliverThrough(calls: readonly NonNullable<GatewayHooks['deliver']>[]): NonNullable<GatewayHooks['deliver']> {
  return (message, client) => {
    let current = message;
    let changed = false;
    for (const call of calls) {
      const answer = call(current, client);
      if (answer === true || answer === undefined) continue;
      if (typeof answer !== 'object' || answer === null || 'then' in answer) return answer;
      const { payload = current.payload, properties = current.properties } = answer;
      current = { ...current, payload: typeof payload === 'string' ? Buffer.from(payload) : payload, properties };
      changed = true;
    }
    return changed ? { payload: current.payload, properties: current.properties } : true;
  };
}

// ---- who may have written it

/** The real path of a file that only root and this user can change, and nobody can put another one in its place. */
function trusted(file: string): string {
  const wrong = (what: string, why: string): GatewayError =>
    new GatewayError('CFG-INVALID', `plugins: ${file} is not loaded: ${what} ${why}`);
  let real: string;
  try {
    real = realpathSync(file);
  } catch (error) {
    throw new GatewayError('CFG-INVALID', `plugins: ${errorText(error)}`, error);
  }
  for (let at = real, isFile = true; ; at = path.dirname(at), isFile = false) {
    const found = lstatSync(at);
    if (isFile && !found.isFile()) throw wrong(at, 'is not a file');
    if (!isOurs(found)) throw wrong(at, 'belongs to another user');
    if (othersMayWrite(found)) throw wrong(at, 'can be changed by others (chmod go-w)');
    if (at === path.dirname(at)) return real;
  }
}

function isOurs({ uid }: Stats): boolean {
  return uid === 0 || uid === process.getuid?.();
}

/** A folder like /tmp lets everybody add, and nobody replace what is another's. */
function othersMayWrite(found: Stats): boolean {
  const sticky = found.isDirectory() && (found.mode & 0o1000) !== 0;
  return !sticky && (found.mode & 0o022) !== 0;
}

// REST: every key of the configuration with its text and default; checking and setting single keys. Called by
// routes.ts. What is set holds until the next start unless it is kept; the schema decides, all or nothing. Secrets can
// be set here, and are never shown.
import { type Answer, changed, data, done, fail, isObject } from './answer.ts';
import type { ConsoleOptions, Json, JsonObject } from './console.ts';
import { KEEP, keepOf } from './keeping.ts';
import { type Call, get, type Route, write } from './route.ts';

/** Keys of one call, and bytes of one of their values. */
const MAX_KEYS = 256;
const MAX_VALUE = 8192;
/** A path of keys as `--set` takes it. */
const KEY = /^[A-Za-z0-9_-]{1,64}(\.[A-Za-z0-9_-]{1,64}){0,11}$/;

type Values = Map<string, string | number | boolean>;

function readValues(document: JsonObject): Values | Answer {
  const { values } = document;
  if (!isObject(values)) return fail('missing', 'values, an object of keys', '/values');
  const entries = Object.entries(values);
  if (entries.length === 0) return fail('missing', 'at least one key', '/values');
  if (entries.length > MAX_KEYS) return fail('value', `more than ${MAX_KEYS} keys`, '/values');
  const read: Values = new Map();
  for (const [key, value] of entries) {
    const pointer = `/values/${key}`;
    if (!KEY.test(key)) return fail('value', 'this is no key', pointer);
    if (typeof value !== 'string' && typeof value !== 'number' && typeof value !== 'boolean') {
      return fail('value', 'only single values can be set', pointer);
    }
    if (String(value).length > MAX_VALUE) return fail('value', `longer than ${MAX_VALUE} characters`, pointer);
    read.set(key, value);
  }
  return read;
}

async function set({ config }: ConsoleOptions, call: Call): Promise<Answer> {
  if (!isObject(call.body)) return fail('value', 'the body has to be an object');
  const { check = false } = call.body;
  if (typeof check !== 'boolean') return fail('value', 'check has to be true or false', '/check');
  const values = readValues(call.body);
  if ('status' in values) return values;
  const keep = keepOf(call);
  if (typeof keep === 'object') return keep;
  if (!check) return changed(await config.set(values, keep), 'unavailable');
  return config.check === undefined ? done() : changed(config.check(values), 'unavailable');
}

export function settingRoutes(options: ConsoleOptions): Route[] {
  const keys = (): Json => (options.config.keys?.() ?? []).map((key): Json => ({ ...key }));
  return [
    get('/api/v4/config/keys', 'every key of the configuration: type, text, default', () => data(keys())),
    get('/api/v4/config/kept', 'the file that kept changes are written to, null where nothing can be kept', () =>
      data({ file: options.config.keptFile?.() ?? null }),
    ),
    write(
      'POST',
      '/api/v4/config',
      'sets keys until the next restart or keeps them, or only checks them',
      'json',
      'admin',
      (call) => set(options, call),
      [KEEP],
    ),
  ];
}

// The document of a bridge on its way out and in: what is shown can be changed and sent back. Called by bridgeapi.ts and mqttbridge.ts.
// The effective configuration holds durations as milliseconds; a document is read like a file, where a bare number is seconds,
// so they are shown with their unit.
import { isObject } from './answer.ts';
import type { BridgeView, Json, JsonObject } from './console.ts';

/** Keys of bridge blocks whose bare numbers are seconds. */
const DURATIONS = new Set(['reconnect_max', 'keepalive', 'backoff_max']);
/** What a shown bridge has beside its block. */
const SHOWN = new Set(['type', 'name', 'state', 'last_error']);

/** 30000 -> "30s", 1500 -> "1500ms". */
export function durationText(ms: number): string {
  return ms % 1000 === 0 ? `${ms / 1000}s` : `${ms}ms`;
}

/** The block of a bridge as a document: durations with their unit. */
export function shownBlock(config: JsonObject): JsonObject {
  const block: Record<string, Json> = Object.create(null);
  for (const [key, value] of Object.entries(config)) {
    block[key] = DURATIONS.has(key) && typeof value === 'number' ? durationText(value) : value;
  }
  return block;
}

/** Without members that are null: they stand for the default, which is what leaving them out means. */
function withoutNulls(value: Json): Json {
  if (Array.isArray(value)) return value.map(withoutNulls);
  if (!isObject(value)) return value;
  const kept: Record<string, Json> = Object.create(null);
  for (const [key, member] of Object.entries(value)) if (member !== null) kept[key] = withoutNulls(member);
  return kept;
}

/**
 * The block that a document asks for.
 * @param enable whether it runs where the document does not say
 * @param view the bridge that is changed: what only tells its state is left out, so that a shown bridge can be sent back
 */
export function wantedBlock(document: JsonObject, enable: boolean, view: BridgeView | null): JsonObject {
  const block: Record<string, Json> = Object.create(null);
  block.enable = enable;
  for (const [key, value] of Object.entries(document)) {
    const onlyShown =
      view === null ? key === 'type' || key === 'name' : SHOWN.has(key) || Object.hasOwn(view.status, key);
    if (value === null || (onlyShown && !(view !== null && Object.hasOwn(view.config, key)))) continue;
    block[key] = withoutNulls(value);
  }
  return block;
}

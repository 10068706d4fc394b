// The document of a bridge on its way in: what is shown can be changed and sent back. Called by bridgeapi.ts and
// mqttbridge.ts. Which keys a block has is not known here: the schema reads it.
import { isObject } from './answer.ts';
import type { BridgeView, Json, JsonObject } from './console.ts';

/** What a shown bridge has beside its block. */
const SHOWN = new Set(['type', 'name', 'state', 'last_error']);

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
 * @param view the bridge that is changed: what only tells its state is left out, so that a shown bridge can be sent
 *   back
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

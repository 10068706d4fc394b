// Which bridges a message has crossed, in a User Property that goes with it: a bridge that finds itself there breaks
// the loop. Made by bridge.ts; asked by rules.ts before a message is forwarded and by fetch.ts for what comes back. 5.0
// only: other versions have no properties. Form: tidegate-via = the marks of the bridges in the order they were
// crossed, with commas between.
import { randomBytes } from 'node:crypto';
import type { Properties } from '../../mqtt/property.ts';

export const VIA = 'tidegate-via';
/** More bridges one after the other are a loop through bridges that were restarted on the way. */
const MOST_HOPS = 16;
const MARK_BYTES = 6;
/** Of a mark in base64url. */
const MARK_CHARACTERS = 8;

export class Via {
  /** One bridge in one process; nobody else can guess it. */
  readonly mark = randomBytes(MARK_BYTES).toString('base64url');
  /** What a message without properties leaves with. */
  private readonly alone: Properties = { userProperties: [[VIA, this.mark]] };

  /** Whether a message has crossed this bridge before, or too many. */
  crossed(properties: Properties | null): boolean {
    const path = pathOf(properties);
    if (path === null) return false;
    if (path.length >= MOST_HOPS * (MARK_CHARACTERS + 1) - 1) return true;
    return `,${path},`.includes(`,${this.mark},`);
  }

  /** The properties with this bridge added. */
  marked(properties: Properties | null): Properties {
    if (properties === null) return this.alone;
    const path = pathOf(properties);
    const others = (properties.userProperties ?? []).filter(([name]) => name !== VIA);
    const value = path === null ? this.mark : `${path},${this.mark}`;
    return { ...properties, userProperties: [...others, [VIA, value]] };
  }
}

function pathOf(properties: Properties | null): string | null {
  const pairs = properties?.userProperties;
  if (pairs === undefined) return null;
  for (const [name, value] of pairs) if (name === VIA) return value;
  return null;
}

// Routes found so far, by topic: bounded in number and in memory, since one topic may have thousands of targets. Used by routes.ts.
// Forgets all when it is full: what is needed is found again. Must not decide whether a route is current: routes.ts compares versions.
import { ENTRY_BYTES, OBJECT_BYTES } from '../base/ledger.ts';
import type { Route } from './router.ts';

/** Routes kept, and their memory. */
const ROUTES = 20_000;
const ROUTE_BYTES = 16 * 1024 * 1024;
/** Longer topics are not kept: twenty thousand of 64 KB each would be a client's way to fill memory. */
const LONG_CHARACTERS = 256;
/** A route with its lists, a target of it, an identifier of a target. */
const BASE_BYTES = 2 * OBJECT_BYTES + ENTRY_BYTES + 64;
const IDENTIFIER_BYTES = 8;

function weightOf({ topic, targets, groups }: Route): number {
  let bytes = BASE_BYTES + topic.length + OBJECT_BYTES * (targets.length + 2 * groups.length);
  for (const target of targets) bytes += IDENTIFIER_BYTES * (target.subscriptionIdentifiers?.length ?? 0);
  return bytes;
}

export class RouteCache {
  /** Memory of all routes. */
  bytes = 0;
  private readonly routes = new Map<string, Route>();
  private readonly onCleared: () => void;

  /** @param onCleared whoever keeps a route forgets it too */
  constructor(onCleared: () => void) {
    this.onCleared = onCleared;
  }

  get(topic: string): Route | undefined {
    return this.routes.get(topic);
  }

  set(topic: string, route: Route): void {
    if (topic.length > LONG_CHARACTERS) return;
    const bytes = weightOf(route);
    const before = this.routes.get(topic);
    if (before !== undefined) this.bytes -= weightOf(before);
    else if (this.routes.size >= ROUTES) this.clear();
    if (this.bytes + bytes > ROUTE_BYTES) this.clear();
    if (bytes > ROUTE_BYTES) return;
    this.routes.set(topic, route);
    this.bytes += bytes;
  }

  private clear(): void {
    this.routes.clear();
    this.bytes = 0;
    this.onCleared();
  }
}

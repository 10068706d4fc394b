// Routes found so far, by topic: bounded in number and in memory, since one topic may have thousands of targets. Used
// by routes.ts. Forgets all when it is full: what is needed is found again. A route that no longer holds (its version
// is not the router's) must not keep the receivers of sessions that have ended in memory, wherever somebody still has
// it: sweep() empties it. Whether a route may be used is for routes.ts to say, which compares versions.
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

/** A route as its finder makes it; to others it is read-only. */
export interface FoundRoute extends Route {
  targets: Route['targets'];
  groups: Route['groups'];
}

const NOBODY = Object.freeze([]);

export class RouteCache {
  /** Memory of all routes. */
  bytes = 0;
  private readonly routes = new Map<string, FoundRoute>();
  /** Not kept here, and perhaps with somebody who asked. */
  private loose: WeakRef<FoundRoute>[] = [];
  private sweptVersion = 0;
  private readonly onCleared: () => void;

  /** @param onCleared whoever keeps a route forgets it too */
  constructor(onCleared: () => void) {
    this.onCleared = onCleared;
  }

  get(topic: string): Route | undefined {
    return this.routes.get(topic);
  }

  set(topic: string, route: FoundRoute): void {
    if (topic.length > LONG_CHARACTERS) {
      this.loose.push(new WeakRef(route));
      return;
    }
    const bytes = weightOf(route);
    const before = this.routes.get(topic);
    if (before !== undefined) {
      this.bytes -= weightOf(before);
      this.routes.delete(topic);
      empty(before);
    } else if (this.routes.size >= ROUTES) this.clear();
    if (this.bytes + bytes > ROUTE_BYTES) this.clear();
    if (bytes > ROUTE_BYTES) {
      this.loose.push(new WeakRef(route));
      return;
    }
    this.routes.set(topic, route);
    this.bytes += bytes;
  }

  /** Empties and forgets what does not hold any more. O(routes) after a change, else O(routes not kept). */
  sweep(version: number): void {
    this.loose = this.loose.filter((reference) => {
      const route = reference.deref();
      if (route !== undefined && route.version !== version) empty(route);
      return route?.version === version;
    });
    if (this.sweptVersion === version) return;
    this.sweptVersion = version;
    for (const [topic, route] of this.routes) {
      if (route.version === version) continue;
      this.bytes -= weightOf(route);
      this.routes.delete(topic);
      empty(route);
    }
  }

  private clear(): void {
    for (const route of this.routes.values()) this.loose.push(new WeakRef(route));
    this.routes.clear();
    this.bytes = 0;
    this.onCleared();
  }
}

function empty(route: FoundRoute): void {
  route.targets = NOBODY;
  route.groups = NOBODY;
}

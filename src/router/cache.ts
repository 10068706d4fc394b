// The routes that have been found, by topic. Used by routes.ts. A route that no longer holds (its version is not the router's) must not keep
// the receivers of sessions that have ended in memory, wherever somebody still has it: sweep() empties it.
import type { GroupTargets, Route } from './router.ts';

/** Routes kept; above that all are forgotten and found again as they are needed. */
const ROUTES = 20_000;
/** Longer topics are not kept: twenty thousand of 64 KB each would be a client's way to fill memory. */
const LONG_CHARACTERS = 256;

/** A route as its finder makes it; to others it is read-only. */
export interface FoundRoute extends Route {
  targets: Route['targets'];
  groups: readonly GroupTargets[];
}

const NOBODY = Object.freeze([]);

export class RouteCache {
  private readonly routes = new Map<string, FoundRoute>();
  /** Not kept here, and perhaps with somebody who asked. */
  private loose: WeakRef<FoundRoute>[] = [];
  private sweptVersion = 0;

  /** The route of a topic if one is known and of this version. */
  get(topic: string, version: number): Route | null {
    const known = this.routes.get(topic);
    return known !== undefined && known.version === version ? known : null;
  }

  add(route: FoundRoute): void {
    if (route.topic.length > LONG_CHARACTERS) {
      this.loose.push(new WeakRef(route));
      return;
    }
    if (this.routes.size >= ROUTES && !this.routes.has(route.topic)) {
      for (const kept of this.routes.values()) this.loose.push(new WeakRef(kept));
      this.routes.clear();
    }
    const replaced = this.routes.get(route.topic);
    if (replaced !== undefined) empty(replaced);
    this.routes.set(route.topic, route);
  }

  /** Empties and forgets what does not hold any more. O(routes) after a change, else O(routes not kept). */
  sweep(version: number): void {
    if (this.loose.length > 0) {
      this.loose = this.loose.filter((reference) => {
        const route = reference.deref();
        if (route === undefined) return false;
        if (route.version !== version) empty(route);
        return route.version === version;
      });
    }
    if (this.sweptVersion === version) return;
    this.sweptVersion = version;
    for (const route of this.routes.values()) {
      if (route.version === version) continue;
      empty(route);
      this.routes.delete(route.topic);
    }
  }
}

function empty(route: FoundRoute): void {
  route.targets = NOBODY;
  route.groups = NOBODY;
}

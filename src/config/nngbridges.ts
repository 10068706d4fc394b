// All NNG bridges of a configuration as one list, in the order in which they start.
// Called by config/build/build.ts, loops.ts, gateway/bridging.ts and gateway/options.ts. Pure.
import type { NngBridgeConfig, NngConfig } from './bridges.ts';

/** In the order in which they start: who sends comes first, so that nothing that comes in finds a bridge missing. */
export function nngBridges(nng: NngConfig): NngBridgeConfig[] {
  return [...nng.pub, ...nng.push, ...nng.pair, ...nng.req, ...nng.sub, ...nng.pull, ...nng.rep];
}

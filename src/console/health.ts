// /healthz and /readyz: whether the process lives, and whether the gateway does what it is configured for. Called by
// routes.ts. Public, so nothing is named: which bridge, listener or file it is stands in the API. Reads flags that are
// kept anyway; costs nothing.
import { type Answer, json } from './answer.ts';
import type { BridgeView, ConsoleOptions } from './console.ts';
import { type Call, get, type Route } from './route.ts';

type Part = 'gateway' | 'listeners' | 'store' | 'bridges';

function isUp({ enabled, state }: BridgeView): boolean {
  return !enabled || state === 'listening' || state === 'connected';
}

function bridgesUp({ bridges }: ConsoleOptions): boolean {
  for (const view of bridges.list()) if (!isUp(view)) return false;
  return true;
}

/**
 * Ready: started and not stopping, every listener open, the store takes messages, every enabled bridge listens or is
 * connected.
 */
function readiness(options: ConsoleOptions, call: Call): Answer {
  const { metrics, ready, listening } = options;
  const parts: Record<Part, boolean> = {
    gateway: ready(),
    listeners: listening?.() ?? true,
    store: metrics.value('tidegate_store_ok') !== 0,
    bridges: call.query.get('bridges') === 'false' || bridgesUp(options),
  };
  const isReady = Object.values(parts).every((up) => up);
  const words = Object.fromEntries(Object.entries(parts).map(([part, up]) => [part, up ? 'ok' : 'down']));
  return json({ status: isReady ? 'ok' : 'unavailable', ...words }, isReady ? 200 : 503);
}

export function healthRoutes(options: ConsoleOptions): Route[] {
  return [
    get('/healthz', 'the process answers', () => json({ status: 'ok' }), 'public'),
    get(
      '/readyz',
      'the gateway serves: started, listeners open, the store takes messages, bridges up',
      (call) => readiness(options, call),
      'public',
      [{ name: 'bridges', text: 'false: bridges are not looked at', type: 'boolean' }],
    ),
  ];
}

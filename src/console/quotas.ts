// REST: quotas: their limits, how often each was exceeded, and what their scopes use. Called by routes.ts.
import { data } from './answer.ts';
import type { ConsoleOptions, JsonObject } from './console.ts';
import { get, type Route } from './route.ts';

export function quotaRoutes({ broker }: ConsoleOptions): Route[] {
  return [
    get('/api/v4/quotas', 'quotas: limits, how often each was exceeded, what their scopes use', () =>
      data(
        (broker.quotas?.() ?? []).map(
          ({ name, per, action, limits, counts, scopes, rows }): JsonObject => ({
            name,
            per,
            action,
            limits: { ...limits },
            counts: { ...counts },
            scopes,
            rows: rows.map((row) => ({ ...row })),
          }),
        ),
      ),
    ),
  ];
}

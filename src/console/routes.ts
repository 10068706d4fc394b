// The one list of everything the HTTP server answers to. Built by http.ts; served by app.ts, described by openapi.ts,
// tested as a whole.
import type { WebAccess } from './access.ts';
import { accountRoutes } from './accounts.ts';
import { adminRoutes } from './admin.ts';
import { json } from './answer.ts';
import { apiRoutes } from './api.ts';
import type { Audit } from './audit.ts';
import { clientRoutes } from './clients.ts';
import { configurationRoutes } from './configuration.ts';
import type { ConsoleOptions } from './console.ts';
import { delayedRoutes } from './delayed.ts';
import { type EventFeed, eventRoutes } from './events.ts';
import { healthRoutes } from './health.ts';
import { messageRoutes } from './messages.ts';
import { mqttBridgeRoutes } from './mqttbridge.ts';
import { nngRoutes } from './nngapi.ts';
import { describe } from './openapi.ts';
import { pastRoutes } from './pastapi.ts';
import { probeRoutes } from './probeapi.ts';
import type { ProcessMetrics } from './process.ts';
import { proxyRoutes } from './proxyapi.ts';
import { publishRoutes } from './publish.ts';
import { quotaRoutes } from './quotas.ts';
import { recordingRoutes } from './recordingapi.ts';
import { retainedRoutes } from './retained.ts';
import { get, type Route } from './route.ts';
import { ruleRoutes } from './ruleapi.ts';
import { securityRoutes } from './security.ts';
import { sessionRoutes } from './session.ts';
import { settingRoutes } from './settings.ts';
import { topicRoutes } from './topics.ts';
import { userRoutes } from './users.ts';

/** What the routes work on, each made once by http.ts. */
export interface RouteParts {
  readonly options: ConsoleOptions;
  readonly access: WebAccess;
  readonly audit: Audit;
  readonly feed: EventFeed;
  readonly process: ProcessMetrics;
}

/** Bridges and rules without shapes: what tests without a configuration see. */
const NO_DOCUMENTS = {};

export function allRoutes({ options, access, audit, feed, process }: RouteParts): readonly Route[] {
  const routes: Route[] = [
    ...healthRoutes(options),
    ...adminRoutes(options, audit),
    ...apiRoutes(options, process, () => routes),
    ...clientRoutes(options),
    ...publishRoutes(options),
    ...messageRoutes(options),
    ...configurationRoutes(options),
    ...mqttBridgeRoutes(options),
    ...nngRoutes(options),
    ...probeRoutes(options),
    ...ruleRoutes(options),
    ...retainedRoutes(options),
    ...delayedRoutes(options),
    ...quotaRoutes(options),
    ...topicRoutes(options),
    ...pastRoutes(options),
    ...recordingRoutes(options),
    ...eventRoutes(feed),
    ...securityRoutes(options),
    ...userRoutes(options),
    ...accountRoutes(options),
    ...proxyRoutes(options),
    ...settingRoutes(options),
    ...sessionRoutes(access, audit),
    get('/openapi.json', 'this description', () =>
      json(describe(routes, options.version, options.documents?.() ?? NO_DOCUMENTS)),
    ),
  ];
  return routes;
}

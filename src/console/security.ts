// REST: who may come in through which listener, and what decides on rights there. Called by routes.ts. Names only,
// never a secret.
import { data } from './answer.ts';
import type { ConsoleOptions, Json } from './console.ts';
import { get, type Route } from './route.ts';

/** User names that one answer shows of one listener. */
const MAX_USERS = 5000;

export function securityRoutes(options: ConsoleOptions): Route[] {
  const rows = (): Json =>
    (options.security?.() ?? []).map((view) => ({
      listener: view.listener,
      anonymous: view.anonymous,
      users: view.users?.slice(0, MAX_USERS) ?? null,
      users_count: view.users?.length ?? null,
      sources: view.sources,
      acl_file: view.aclFile,
      rules: view.rules,
    }));
  return [get('/api/v4/access', 'who may come in through which listener', () => data(rows()), 'admin')];
}

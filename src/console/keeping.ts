// `?keep=true`: whether a change is to be written to tidegate.d or holds until the next start. Called by the routes
// that change bridges and keys. Writing configuration is for admins, also where operators may make the change itself.
import { type Answer, fail } from './answer.ts';
import type { Call, QueryParameter } from './route.ts';

export const KEEP: QueryParameter = {
  name: 'keep',
  text: 'true: written to tidegate.d too, so that it holds after a restart (admin)',
  type: 'boolean',
};

/** What the caller wants, or why that cannot be. */
export function keepOf(call: Call): boolean | Answer {
  const text = call.query.get('keep') ?? 'false';
  if (text !== 'true' && text !== 'false') return fail('query', 'keep has to be true or false');
  if (text === 'false') return false;
  return call.caller.role === 'admin' ? true : fail('role', 'only an admin keeps changes');
}

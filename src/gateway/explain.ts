// Why a client may do something or not, for `ctl explain` and the console. Called by console.ts for the REST API. A
// client that has a session is judged as it is, with what its token brought, whether it is here or away. Changes
// nothing.
import type { Identity } from '../auth/auth.ts';
import type { AccessControl } from '../auth/chain.ts';
import type { Engine } from '../broker/broker.ts';
import type { Explain, ExplainQuery } from '../console/console.ts';

type Explanation = ReturnType<Explain>;

/** @param owner whose a session is, auth.session_owner as it is now */
export function explainer(broker: Engine, access: AccessControl, owner: () => 'user' | 'client_id'): Explain {
  return (query) => {
    const { action, topic, ...asked } = query;
    const { listener, username } = asked;
    const known = broker.identity(query.clientId);
    if (action === 'connect') return connecting(query, known, access, owner());
    const same = known?.username === username && known.listener === listener;
    if (same) return access.absentees.access(known).authorizer.explain(known, action, topic);
    return access.access(listener).authorizer.explain({ ...asked, claims: null, internal: false }, action, topic);
  };
}

/** Whether the client id is free for this user; passwords are not asked for. */
function connecting(
  { username, listener }: ExplainQuery,
  known: Identity | undefined,
  access: AccessControl,
  owner: 'user' | 'client_id',
): Explanation {
  if (known === undefined) return { allowed: true, rule: 'no session has this client id' };
  const whose = `the session of this client id is that of ${nameOf(known)}`;
  if (owner === 'client_id') return { allowed: true, rule: `${whose}; auth.session_owner lets any user continue it` };
  const { realm = '' } = known;
  if (realm === null)
    return { allowed: false, rule: `${whose}; of which users is not known: an earlier version kept it` };
  const allowed = known.username === username && realm === access.access(listener).realm;
  return { allowed, rule: allowed ? whose : `${whose} (auth.session_owner)` };
}

function nameOf({ username, listener, realm }: Identity): string {
  const name = username === null ? 'a client without a user name' : `the user ${username}`;
  const users = realm ? ` of ${realm}` : '';
  return listener === '' ? `${name}${users}` : `${name}${users}, last here through ${listener}`;
}

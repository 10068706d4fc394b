// REST: logging in and out at the console. Called by routes.ts; sessions and checks are access.ts's.
// The cookie is HttpOnly and SameSite=Strict, Secure over TLS; changes also need the token given here (X-CSRF-Token).
import { COOKIE, type WebAccess } from './access.ts';
import { type Answer, data, done, fail, isObject, json } from './answer.ts';
import type { Audit } from './audit.ts';
import type { LoginSession } from './login.ts';
import { type Call, get, type Route, write } from './route.ts';

function cookie(token: string, secure: boolean, more = ''): Record<string, string> {
  return { 'set-cookie': `${COOKIE}=${token}; Path=/; HttpOnly; SameSite=Strict${secure ? '; Secure' : ''}${more}` };
}

function opened({ token, session }: { token: string; session: LoginSession }, secure: boolean): Answer {
  const { username, role, csrf } = session;
  return json({ code: 0, data: { username, role, csrf } }, 200, cookie(token, secure));
}

async function login(access: WebAccess, audit: Audit, call: Call): Promise<Answer> {
  const { asking, body } = call;
  if (!isObject(body)) return fail('value', 'the body has to be an object');
  const { username, password, token } = body;
  if (typeof token === 'string') {
    const owner = await access.fromToken(asking, token);
    if ('status' in owner) return owner;
    audit.loggedIn(owner.username, asking.remote);
    return opened(access.sessions.open(owner.username, owner.role, '', owner.lifeMs), asking.secure);
  }
  if (typeof username !== 'string' || typeof password !== 'string') return fail('missing', 'username and password');
  const user = await access.checkPassword(asking, username, password);
  if ('status' in user) return user;
  audit.loggedIn(user.username, asking.remote);
  return opened(access.sessions.open(user.username, user.role, access.credentialsOf(user)), asking.secure);
}

export function sessionRoutes(access: WebAccess, audit: Audit): Route[] {
  const enter: Route = {
    method: 'POST',
    path: '/api/v4/login',
    role: 'public',
    text: 'opens a session: a cookie and the token that changes have to send',
    query: [],
    body: 'json',
    quiet: true,
    handle: (call) => login(access, audit, call),
  };
  const leave = write('POST', '/api/v4/logout', 'ends the session', 'none', 'viewer', ({ asking }) => {
    const token = access.tokenOf(asking);
    if (token !== null) access.sessions.close(token);
    return { ...done(), headers: cookie('', asking.secure, '; Max-Age=0') };
  });
  return [
    enter,
    { ...leave, quiet: true },
    get('/api/v4/me', 'who the caller is', ({ caller, asking }) => {
      const { username, role, via } = caller;
      return data({ username, role, via, csrf: access.csrfOf(asking) });
    }),
  ];
}

// Who may use console and REST API: http_server.username and http_server.users as one list. Called by
// config/build/core.ts. Pure: problems go to the sink and never repeat a password. A hash is read here only for its
// form; auth/hash.ts compares.
import { looksHashed, parseHash } from '../base/passwordhash.ts';
import type { WebUserConfig } from './config.ts';
import type { HTTP_SERVER } from './schema/httpserver.ts';
import type { ValueOf } from './schema/key.ts';
import type { Sink } from './sink.ts';

type HttpKeys = NonNullable<ValueOf<typeof HTTP_SERVER>>;

/** Characters of a name or password: Basic credentials and the login page take no longer ones. */
const LONGEST = 512;

/** What Basic credentials cannot carry (RFC 7617 section 2), or nobody can type. */
function wrongName(name: string): string | null {
  if (name === '' || name.length > LONGEST) return `a user name has 1 to ${LONGEST} characters`;
  if (name.includes(':')) return 'a user name holds no colon';
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
  return /[\u0000-\u001f\u007f]/.test(name) ? 'a user name holds no control characters' : null;
}

/** A damaged hash is never taken for a plain password. */
function wrongPassword(password: string): string | null {
  if (password === '') return 'an empty password lets nobody in';
  if (password.length > LONGEST) return `longer than ${LONGEST} characters`;
  const hash = looksHashed(password) ? parseHash(password) : null;
  return typeof hash === 'string' ? `this is no complete hash: ${hash}` : null;
}

/** The users that are let in, http_server.username first. */
export function buildWebUsers(http: HttpKeys, sink: Sink): WebUserConfig[] {
  const users: WebUserConfig[] = [];
  const { username, password } = http;
  if (username !== null && password !== null) {
    const wrong = password === '' ? null : wrongPassword(password);
    if (wrong !== null) sink.refuse(http, 'password', wrong);
    users.push({ username, password, role: 'admin' });
  }
  for (const [name, user] of http.users) {
    const badName = name === username ? 'http_server.username is this user already' : wrongName(name);
    if (badName !== null) sink.refuse(user, 'role', badName);
    const badPassword = wrongPassword(user.password);
    if (badPassword !== null) sink.refuse(user, 'password', badPassword);
    if (user.enable) users.push({ username: name, password: user.password, role: user.role });
  }
  return users;
}

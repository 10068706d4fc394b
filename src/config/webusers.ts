// Who may use console and REST API: http_server.username and http_server.users as one list. Called by config/build/core.ts.
// Pure: problems go to the sink and never repeat a password. A hash is looked at here only for its form; auth/hash.ts compares.
import type { WebUserConfig } from './config.ts';
import type { HTTP_SERVER } from './schema/core.ts';
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

const BASE64_64_BYTES = '[A-Za-z0-9+/]{86}==';
const SALT = '[A-Za-z0-9+/]{16,88}={0,2}';
const HASH_FORMS: readonly RegExp[] = [
  new RegExp(`^\\$6\\$${SALT}\\$${BASE64_64_BYTES}$`),
  new RegExp(`^\\$7\\$[1-9]\\d{0,6}\\$${SALT}\\$${BASE64_64_BYTES}$`),
  /^\$argon2id\$v=19\$m=\d{1,9},t=\d{1,9},p=\d{1,9}\$[A-Za-z0-9+/]{11,}\$[A-Za-z0-9+/]{16,}$/,
];

/** A damaged hash is never taken for a plain password. */
function wrongPassword(password: string): string | null {
  if (password === '') return 'an empty password lets nobody in';
  if (password.length > LONGEST) return `longer than ${LONGEST} characters`;
  if (!/^\$(?:6\$|7\$|argon2)/.test(password)) return null;
  return HASH_FORMS.some((form) => form.test(password)) ? null : 'this is no complete hash ($6$, $7$ or $argon2id$)';
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

// http_server.users: what is taken, what is refused and where, what is masked.
import { expect, test } from 'vitest';
import { loadConfig } from '../../src/config/load.ts';
import { ConfigError, formatProblem } from '../../src/config/problem.ts';

function load(http: string): ReturnType<typeof loadConfig> {
  return loadConfig({ text: { text: `http_server { ${http} }`, dialect: 'hocon' }, env: {} });
}
function problem(http: string): string {
  try {
    load(http);
  } catch (error) {
    if (error instanceof ConfigError) return error.problems.map(formatProblem).join('\n');
    throw error;
  }
  return '';
}

const SALT = Buffer.alloc(12, 1).toString('base64');
const DIGEST = Buffer.alloc(64, 2).toString('base64');

test('users come in the order of the file, the first one before them, disabled ones not at all', () => {
  const http = load(
    'username = a, password = p, users { c { password = pc, role = operator }, b { password = pb }, d { password = pd, enable = false } }',
  ).config.httpServer;
  expect(http?.users).toEqual([
    { username: 'a', password: 'p', role: 'admin' },
    { username: 'c', password: 'pc', role: 'operator' },
    { username: 'b', password: 'pb', role: 'viewer' },
  ]);
});

test('users alone are credentials: another address than loopback is taken', () => {
  expect(load('ip_addr = "0.0.0.0", users.a.password = p').config.httpServer?.ipAddr).toBe('0.0.0.0');
  expect(load('ip_addr = "0.0.0.0", users.a { password = p, enable = false }').config.httpServer?.ipAddr).toBe(
    '127.0.0.1',
  );
});

test.each([
  `$6$${SALT}$${DIGEST}`,
  `$7$101$${SALT}$${DIGEST}`,
  '$argon2id$v=19$m=47104,t=1,p=1$c29tZXNhbHQxMjM$aGFzaGhhc2hoYXNoaGFzaA',
])('the hash %s is taken', (hash) => {
  expect(problem(`users.a.password = "${hash}"`)).toBe('');
});

test.each([
  ['users.a { role = admin }', 'users.a.password: is missing'],
  ['users.a { password = p, role = king }', 'users.a.role: viewer | operator | admin expected'],
  ['users.a { password = "" }', 'users.a.password: an empty password'],
  ['users.a { password = "$7$101$short$x" }', 'users.a.password: this is no complete hash'],
  ['users.a { password = "$argon2i$v=19$x" }', 'users.a.password: this is no complete hash'],
  [`users.a { password = "$7$1000001$${SALT}$${DIGEST}" }`, 'the number of iterations'],
  [`users.a { password = "$6$MDEyMzQ1Njc4OWFiY2RlZg==$${DIGEST}" }`, 'the salt is not'],
  ['username = a, password = "$6$x"', 'password: this is no complete hash'],
  ['users."a:b" { password = p }', 'a user name holds no colon'],
  ['username = a, password = p, users.a { password = q }', 'http_server.username is this user already'],
  ['users.a { password = p, rol = admin }', 'did you mean role?'],
])('%s is refused', (text, expected) => {
  expect(problem(text)).toContain(expected);
  expect(problem(text)).not.toContain('short$x');
});

test('passwords and hashes are masked', () => {
  const { masked } = load(`users { a.password = secret-1, b.password = "$7$101$${SALT}$${DIGEST}" }`);
  expect(JSON.stringify(masked)).not.toMatch(/secret-1|\$7\$/);
});

// mosquitto's password file: every hash, every odd line, every mistake with its line; users and the hashing queue.
import { describe, expect, it } from 'vitest';
import { Gate } from '../../src/auth/gate.ts';
import { parsePasswordFile } from '../../src/auth/passwordfile.ts';
import { Users } from '../../src/auth/users.ts';
import { fileOf, line6, line7 } from './support.ts';

function usersOf(text: string): Users {
  return new Users({ file: parsePasswordFile(fileOf(text)), passwords: null, scram: null }, new Gate(2, 10), null);
}

async function kind(users: Users, name: string, password: string): Promise<string> {
  return (await users.check(name, Buffer.from(password), true)).kind;
}

describe('password file', () => {
  it.each([
    ['$6$ with a 12-byte salt', line6('u', 'one')],
    ['$6$ with a 64-byte salt', line6('u', 'one', 64)],
    ['$7$ with a 12-byte salt', line7('u', 'one')],
    ['$7$ with a 64-byte salt', line7('u', 'one', 1000, 64)],
    ['$7$ with one iteration', line7('u', 'one', 1)],
    ['$7$ with 100,000 iterations', line7('u', 'one', 100_000)],
  ])('verifies %s', async (_name, line) => {
    const users = usersOf(`${line}\n`);
    expect(await kind(users, 'u', 'one')).toBe('accept');
    expect(await kind(users, 'u', 'onex')).toBe('refuse');
    expect(await kind(users, 'u', 'on')).toBe('refuse');
  });

  it('takes comments, blank lines, CRLF, tabs, inner blanks, third fields and a last line without end', async () => {
    const text = `# c: x\n\nno colon here\n${line7('one', 'p')}\r\n\t${line7('two', 'p')}  \n${line7('sp user', 'p')}\n${line7('more', 'p')}:x:y\n ${line7('#x', 'p')}\n\r\nspaced :${line7('', 'p').slice(1)}\n${line7('Ünï', 'p')}`;
    const users = usersOf(text);
    for (const name of ['one', 'two', 'sp user', 'more', '#x', 'spaced', 'Ünï']) {
      expect(await kind(users, name, 'p'), name).toBe('accept');
    }
    for (const name of ['One', '# c', 'no colon here', 'x', 'sp'])
      expect(await kind(users, name, 'p'), name).toBe('unknown');
  });

  const hash = line7('u', 'p').split('$')[4];
  const salt = line7('u', 'p').split('$')[3];
  it.each([
    ['plain text', 'u:plain'],
    ['an unknown type', `u:$5$c2FsdHNhbHQ$${hash}`],
    ['a 16-byte salt', `u:$7$101$${Buffer.from('0123456789abcdef').toString('base64')}$${hash}`],
    ['a 32-byte hash', `u:$7$101$${salt}$${Buffer.alloc(32).toString('base64')}`],
    ['a hash without padding', `u:$7$101$${salt}$${hash.replaceAll('=', '')}`],
    ['0 iterations', `u:$7$0$${salt}$${hash}`],
    ['too many iterations', `u:$7$1000001$${salt}$${hash}`],
    ['words as iterations', `u:$7$many$${salt}$${hash}`],
    ['half an argon2id hash', 'u:$argon2id$v=19$m=47104,t=1,p=1$abc'],
    [
      'an argon2id hash that takes all memory',
      'u:$argon2id$v=19$m=99999999,t=1,p=1$AAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAA',
    ],
    ['no password', 'u:'],
    ['no user', line7('', 'p')],
    ['a blank user', line7('  ', 'p')],
    ['a user that is there already', line7('ok', 'other')],
  ])('refuses %s with the line and without the text', (_name, line) => {
    const parse = (): unknown => parsePasswordFile(fileOf(`# first\n${line7('ok', 'p')}\n${line}\n`, '/x/pw'));
    expect(parse).toThrow(/\/x\/pw:3: /);
    expect(parse).not.toThrow(/plain|AAAA|abc/);
  });

  it('refuses bytes that are no UTF-8 with their line', () => {
    expect(() => fileOf(Buffer.from([0x61, 0x0a, 0xff, 0xfe]), '/x/pw')).toThrow(/\/x\/pw:2: not UTF-8/);
  });
});

describe('users', () => {
  it('compares plain passwords of the configuration', async () => {
    const passwords = new Map([
      ['ann', 'p@ss w'],
      ['constructor', 'x'],
    ]);
    const users = new Users({ file: null, passwords, scram: null }, new Gate(2, 10), null);
    expect(await kind(users, 'ann', 'p@ss w')).toBe('accept');
    expect(await kind(users, 'ann', 'p@ss')).toBe('refuse');
    expect(await kind(users, 'constructor', 'x')).toBe('accept');
    expect(await kind(users, '__proto__', 'x')).toBe('unknown');
    expect(await kind(users, 'toString', '')).toBe('unknown');
  });

  it('refuses at once when too many hashes wait', async () => {
    const file = parsePasswordFile(fileOf(line7('u', 'p', 20_000)));
    const users = new Users({ file, passwords: null, scram: null }, new Gate(1, 1), null);
    const answers = [1, 2, 3].map(() => users.check('u', Buffer.from('p'), true));
    expect(answers[2]).toMatchObject({ kind: 'refuse', why: 'busy' });
    expect(await answers[1]).toMatchObject({ kind: 'accept' });
  });

  it('lets a file decide on a name that the configuration has as well', async () => {
    const file = parsePasswordFile(fileOf(line7('u', 'file')));
    const users = new Users({ file, passwords: new Map([['u', 'conf']]), scram: null }, new Gate(2, 10), null);
    expect(await kind(users, 'u', 'file')).toBe('accept');
    expect(await kind(users, 'u', 'conf')).toBe('refuse');
  });
});

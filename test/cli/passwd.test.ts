// `tidegate passwd`: every option; nothing of a file is lost; mosquitto takes what it writes.
import { execFileSync } from 'node:child_process';
import { chmodSync, readdirSync, readFileSync, statSync, symlinkSync } from 'node:fs';
import { PassThrough } from 'node:stream';
import { Command } from 'commander';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Gate } from '../../src/auth/gate.ts';
import { loadPasswordFile } from '../../src/auth/passwordfile.ts';
import { loadScramFile, type ScramKeys, verifyScram } from '../../src/auth/scram.ts';
import { Users } from '../../src/auth/users.ts';
import { GatewayError } from '../../src/base/errors.ts';
import { registerPasswd } from '../../src/cli/passwd.ts';
import { askPassword } from '../../src/cli/secret.ts';
import { RawClient } from '../auth/rawmqtt.ts';
import { Folder, line6, line7 } from '../auth/support.ts';
import { fakeIo, Sink } from '../harness/io.ts';
import { Mosquitto, programPath } from '../harness/mosquitto.ts';

let folder: Folder;
beforeEach(() => {
  folder = new Folder();
});
afterEach(() => folder.done());

/** Runs the command line and gives its exit code. */
async function tool(words: readonly string[], input = ''): Promise<number> {
  const program = new Command('tidegate')
    .exitOverride()
    .enablePositionalOptions()
    .configureOutput({ writeErr: () => {} });
  let code = -1;
  registerPasswd(program, { io: fakeIo(input), exit: (value) => (code = value) });
  for (const command of program.commands) command.exitOverride();
  try {
    await program.parseAsync(['passwd', ...words], { from: 'user' });
  } catch (error) {
    return error instanceof GatewayError ? error.exit : 64;
  }
  return code;
}

async function accepts(path: string, user: string, password: string): Promise<boolean> {
  const users = new Users({ file: await loadPasswordFile(path), passwords: null, scram: null }, new Gate(2, 10), null);
  return (await users.check(user, Buffer.from(password), true)).kind === 'accept';
}

function text(name = 'pw'): string {
  return readFileSync(folder.at(name), 'latin1');
}

const HASH = String.raw`\$7\$\d+\$[A-Za-z0-9+/]{16}\$[A-Za-z0-9+/]{86}==`;
const MIXED = `# top comment: keep\n\n${line7('ann', 'p')}\n  # indented note\n${line6('bob', 'p')}\r\n\r\n#end of bob\nno colon\n${line7('cy', 'p')}`;

describe('passwd', () => {
  it('makes a file for its owner alone', async () => {
    expect(await tool(['-c', '-b', folder.at('pw'), 'ann', 'a b$c:d'])).toBe(0);
    expect(await tool(['-b', folder.at('pw'), 'bob', 'pässwörd'])).toBe(0);
    expect(statSync(folder.at('pw')).mode & 0o777).toBe(0o600);
    expect(readdirSync(folder.path)).toEqual(['pw']);
    expect(text()).toMatch(new RegExp(`^ann:${HASH}\nbob:${HASH}\n$`));
    expect(await accepts(folder.at('pw'), 'ann', 'a b$c:d')).toBe(true);
    expect(await accepts(folder.at('pw'), 'bob', 'pässwörd')).toBe(true);
    expect(await accepts(folder.at('pw'), 'bob', 'passwörd')).toBe(false);
  });

  it('does not make a file that is there unless forced', async () => {
    folder.put('pw', MIXED);
    expect(await tool(['-c', '-b', folder.at('pw'), 'ann', 'p'])).toBe(1);
    expect(text()).toBe(Buffer.from(MIXED).toString('latin1'));
    expect(await tool(['-c', '--force', '-b', folder.at('pw'), 'ann', 'p'])).toBe(0);
    expect(text()).toMatch(new RegExp(`^ann:${HASH}\n$`));
  });

  it('sets the iterations', async () => {
    expect(await tool(['-c', '-b', '-H', 'pbkdf2', '-I', '5000', folder.at('pw'), 'ann', 'p'])).toBe(0);
    expect(text()).toContain('ann:$7$5000$');
  });

  it('appends a user and keeps every other byte', async () => {
    folder.put('pw', MIXED);
    chmodSync(folder.at('pw'), 0o640);
    expect(await tool(['-b', folder.at('pw'), 'new', 'q'])).toBe(0);
    expect(text().startsWith(`${MIXED}\nnew:$7$`)).toBe(true);
    expect(text().endsWith('\n')).toBe(true);
    expect(statSync(folder.at('pw')).mode & 0o777).toBe(0o640);
  });

  it.each(['ann', 'bob', 'cy'])('changes %s where it stands and keeps every other byte', async (user) => {
    folder.put('pw', MIXED);
    expect(await tool(['-b', folder.at('pw'), user, 'q'])).toBe(0);
    const before = MIXED.split('\n');
    const after = text().split('\n');
    expect(after).toHaveLength(before.length);
    for (let i = 0; i < before.length; i++) {
      if (!before[i].startsWith(`${user}:`)) expect(after[i]).toBe(before[i]);
      else expect(after[i]).toMatch(new RegExp(`^${user}:${HASH}\r?$`));
    }
    expect(await accepts(folder.at('pw'), user, 'q')).toBe(true);
  });

  it.each(['ann', 'bob', 'cy'])('deletes %s and keeps every other byte', async (user) => {
    folder.put('pw', MIXED);
    expect(await tool(['-D', folder.at('pw'), user])).toBe(0);
    expect(text()).toBe(
      MIXED.split('\n')
        .filter((line) => !line.startsWith(`${user}:`))
        .join('\n'),
    );
  });

  it.each([
    ['deleting nobody', 1, ['-D', 'FILE', 'nobody']],
    ['a colon in the name', 64, ['-b', 'FILE', 'a:b', 'p']],
    ['a line feed in the name', 64, ['-b', 'FILE', 'a\nb', 'p']],
    ['a name that would be a comment', 64, ['-b', 'FILE', '#a', 'p']],
    ['blanks around the name', 64, ['-b', 'FILE', ' a', 'p']],
    ['an empty password', 1, ['-b', 'FILE', 'a', '']],
    ['two actions', 64, ['-c', '-D', 'FILE', 'ann']],
    ['an unknown hash', 64, ['-b', '-H', 'md5', 'FILE', 'x', 'p']],
    ['0 iterations', 64, ['-b', '-I', '0', 'FILE', 'x', 'p']],
    ['words as iterations', 64, ['-b', '-I', '1e3', 'FILE', 'x', 'p']],
    ['a password without -b', 64, ['FILE', 'x', 'p']],
    ['no words at all', 64, []],
    ['a file that is not there', 1, ['-b', 'ABSENT', 'x', 'p']],
    ['a folder', 1, ['-b', 'FOLDER', 'x', 'p']],
  ])('refuses %s and leaves everything as it was', async (_name, code, words) => {
    folder.put('pw', MIXED);
    const places: Record<string, string> = { FILE: folder.at('pw'), ABSENT: folder.at('absent'), FOLDER: folder.path };
    expect(await tool(words.map((word) => places[word] ?? word))).toBe(code);
    expect(text()).toBe(MIXED);
    expect(readdirSync(folder.path)).toEqual(['pw']);
  });

  it('hashes plain passwords once and leaves hashed lines alone', async () => {
    folder.put('pw', `# old\nplain:secret word\n${line7('ann', 'p')}\n\nother:5x:y\r\n`);
    expect(await tool(['-U', folder.at('pw')])).toBe(0);
    const once = text();
    expect(once).toContain(`${line7('ann', 'p')}\n`);
    expect(once).not.toContain('secret');
    expect(once.endsWith('\r\n')).toBe(true);
    expect(await accepts(folder.at('pw'), 'plain', 'secret word')).toBe(true);
    expect(await accepts(folder.at('pw'), 'other', '5x:y')).toBe(true);
    expect(await tool(['-U', folder.at('pw')])).toBe(0);
    expect(text()).toBe(once);
  });

  it('edits the file behind a symbolic link', async () => {
    folder.put('real', MIXED);
    symlinkSync('real', folder.at('link'));
    expect(await tool(['-b', folder.at('link'), 'new', 'q'])).toBe(0);
    expect(readdirSync(folder.path).sort()).toEqual(['link', 'real']);
    expect(text('real')).toContain('\nnew:$7$');
  });

  it('reads the password from a pipe', async () => {
    expect(await tool(['-c', folder.at('pw'), 'ann'], 'from pipe\r\nmore\n')).toBe(0);
    expect(await accepts(folder.at('pw'), 'ann', 'from pipe')).toBe(true);
  });

  it('asks twice at a terminal, without echo', async () => {
    const modes: boolean[] = [];
    const stdin = Object.assign(new PassThrough(), { isTTY: true, setRawMode: (raw: boolean) => modes.push(raw) });
    const stderr = new Sink();
    const asked = askPassword({ stdin, stdout: new Sink(), stderr });
    await stderr.until(/Password: $/);
    stdin.write('seé\u007fcret\r');
    await stderr.until(/Again: $/);
    stdin.write('secret\n');
    expect((await asked).toString()).toBe('secret');
    expect(modes).toEqual([true, false, true, false]);
    expect(stderr.text()).not.toContain('cret');
  });

  it('writes argon2id hashes', async () => {
    expect(await tool(['-c', '-b', '-H', 'argon2id', folder.at('pw'), 'ann', 'p'])).toBe(0);
    expect(text()).toMatch(/^ann:\$argon2id\$v=19\$m=47104,t=1,p=1\$[A-Za-z0-9+/]{86}\$[A-Za-z0-9+/]{86}\n$/);
  });
});

describe('passwd -H scram-sha-256', () => {
  async function stored(user: string): Promise<ScramKeys | undefined> {
    return (await loadScramFile(folder.at('scram'))).get(user);
  }

  it('makes, changes and deletes stored keys and keeps every other line', async () => {
    const scram = ['-b', '-H', 'scram-sha-256'];
    expect(await tool(['-c', ...scram, folder.at('scram'), 'ann', 'p'])).toBe(0);
    expect(await tool([...scram, '-I', '5000', folder.at('scram'), 'bob', 'q'])).toBe(0);
    const before = text('scram');
    expect((await stored('bob'))?.iterations).toBe(5000);
    expect(await tool([...scram, folder.at('scram'), 'ann', 'new'])).toBe(0);
    const keys = await stored('ann');
    expect(keys !== undefined && (await verifyScram(keys, Buffer.from('new')))).toBe(true);
    expect(text('scram').split('\n')[1]).toBe(before.split('\n')[1]);
    expect(await tool(['-D', folder.at('scram'), 'ann'])).toBe(0);
    expect(text('scram')).toBe(`${before.split('\n')[1]}\n`);
  });

  it('does not mix keys and password hashes', async () => {
    folder.put('pw', MIXED);
    expect(await tool(['-b', '-H', 'scram-sha-256', folder.at('pw'), 'x', 'p'])).toBe(1);
    expect(text()).toBe(MIXED);
    expect(await tool(['-c', '-b', '-H', 'scram-sha-256', folder.at('scram'), 'ann', 'p'])).toBe(0);
    const before = text('scram');
    expect(await tool(['-b', folder.at('scram'), 'x', 'p'])).toBe(1);
    expect(text('scram')).toBe(before);
  });
});

const mosquittoPasswd = programPath('mosquitto_passwd');
describe.skipIf(mosquittoPasswd === null || programPath('mosquitto') === null)(
  'passwd and mosquitto (needs mosquitto)',
  () => {
    it('edit one file in turns, and mosquitto takes it', async () => {
      const path = folder.at('pw');
      const theirs = (...words: string[]): unknown => execFileSync(mosquittoPasswd ?? '', words, { stdio: 'pipe' });
      await tool(['-c', '-b', path, 'ann', 'p one']);
      await tool(['-b', path, 'b ob', 'p:two$']);
      theirs('-b', path, 'cy', 'three');
      await tool(['-b', path, 'dan', 'четыре']);
      await tool(['-D', path, 'ann']);
      const rows: [string, string, boolean][] = [
        ['b ob', 'p:two$', true],
        ['cy', 'three', true],
        ['dan', 'четыре', true],
        ['dan', 'x', false],
        ['ann', 'p one', false],
      ];
      const broker = await Mosquitto.start(['allow_anonymous false', 'password_file {dir}/pw'], {
        pw: readFileSync(path, 'utf8'),
      });
      try {
        for (const [user, password, ok] of rows) {
          const client = await RawClient.open(broker.port, 'x', user, password);
          client.close();
          expect(client.code, user).toBe(ok ? 0 : 0x87);
          expect(await accepts(path, user, password), user).toBe(ok);
        }
      } finally {
        await broker.stop();
      }
    });
  },
);

// SCRAM-SHA-256 (RFC 5802, RFC 7677): the vectors, stored keys, everything a peer can get wrong.
import { createHash, createHmac, pbkdf2Sync, randomBytes } from 'node:crypto';
import { readFileSync, statSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { EnhancedExchange, EnhancedStep } from '../../src/auth/auth.ts';
import type { AccessControl } from '../../src/auth/chain.ts';
import { deriveScram, makeScram, parseScram, parseScramFile } from '../../src/auth/scram.ts';
import { stableSecret } from '../../src/auth/secret.ts';
import { build, credentials, Folder, fileOf, line7, OFF, word } from './support.ts';

let folder: Folder;
beforeEach(() => {
  folder = new Folder();
});
afterEach(() => folder.done());

const PASSWORDS = new Map([
  ['ann', 'pencil'],
  ['a,b=c', 'x'],
]);

function exchange(control: AccessControl, username: string | null = null): EnhancedExchange {
  const method = control.access('tcp').enhanced.find((one) => one.name === 'SCRAM-SHA-256');
  if (method === undefined) throw new Error('no SCRAM');
  return method.begin(credentials(username, null));
}

async function say(to: EnhancedExchange, text: string | null): Promise<EnhancedStep> {
  return to.step(text === null ? null : Buffer.from(text));
}

function dataOf(step: EnhancedStep): string {
  if (step.kind === 'refuse') throw new Error(step.why);
  return Buffer.from(step.data ?? []).toString();
}

/** The client's half, written from RFC 5802 without the code under test. Gives the last step and what the server had to sign. */
async function converse(
  to: EnhancedExchange,
  name: string,
  password: string,
  header = 'n,,',
): Promise<{ last: EnhancedStep; signature: string }> {
  const bare = `n=${name},r=${randomBytes(12).toString('hex')}`;
  const serverFirst = dataOf(await say(to, header + bare));
  const [, nonce, salt, iterations] = /^r=([^,]+),s=([^,]+),i=(\d+)$/.exec(serverFirst) ?? [];
  const salted = pbkdf2Sync(password, Buffer.from(salt, 'base64'), Number(iterations), 32, 'sha256');
  const clientKey = createHmac('sha256', salted).update('Client Key').digest();
  const stored = createHash('sha256').update(clientKey).digest();
  const final = `c=${Buffer.from(header).toString('base64')},r=${nonce}`;
  const message = `${bare},${serverFirst},${final}`;
  const mask = createHmac('sha256', stored).update(message).digest();
  const proof = Buffer.from(clientKey.map((byte, i) => byte ^ mask[i]));
  const serverKey = createHmac('sha256', salted).update('Server Key').digest();
  const signature = `v=${createHmac('sha256', serverKey).update(message).digest('base64')}`;
  return { last: await say(to, `${final},p=${proof.toString('base64')}`), signature };
}

describe('SCRAM keys', () => {
  it('are those of the example [RFC 7677 section 3]', async () => {
    const keys = await deriveScram('pencil', Buffer.from('W22ZaJ0SNY7soEsUEjb6gQ==', 'base64'), 4096);
    const message =
      'n=user,r=rOprNGfwEbeRWgbNEkqO,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096,c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0';
    const signature = createHmac('sha256', keys.serverKey).update(message).digest('base64');
    expect(signature).toBe('6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=');
  });

  it('are read as they are written', async () => {
    const made = await makeScram(Buffer.from('p'), 4096);
    expect(parseScram(made.text)).toEqual(made);
  });

  it.each(['u:SCRAM-SHA-256$0:AAAA$x:y', 'u:plain', ':SCRAM', 'nothing'])(
    'refuse the line "%s" with its number',
    (line) => {
      expect(() => parseScramFile(fileOf(`# c\n${line}\n`, '/x/scram'))).toThrow(/\/x\/scram:2: /);
    },
  );
});

describe('SCRAM-SHA-256', () => {
  it('lets in who knows the password and proves that the gateway knows it too', async () => {
    const control = await build({ passwords: PASSWORDS });
    const { last, signature } = await converse(exchange(control), 'ann', 'pencil');
    expect(last).toMatchObject({ kind: 'accept', username: 'ann' });
    expect(dataOf(last)).toBe(signature);
  });

  it.each([
    ['a wrong password', 'ann', 'pencil2'],
    ['an unknown user', 'nobody', 'pencil'],
  ])('refuses %s at the last step', async (_name, user, password) => {
    const control = await build({ passwords: PASSWORDS });
    expect((await converse(exchange(control), user, password)).last).toMatchObject({
      kind: 'refuse',
      reasonCode: 0x87,
    });
  });

  it('shows the same salt for a name each time, known or not', async () => {
    const control = await build({ passwords: PASSWORDS });
    for (const name of ['ann', 'nobody']) {
      const salts = [1, 2].map(
        async () => /s=([^,]+)/.exec(dataOf(await say(exchange(control), `n,,n=${name},r=abc`)))?.[1],
      );
      const [one, two] = await Promise.all(salts);
      expect(one).toBe(two);
    }
  });

  it('takes names with comma and equals sign, and the y header', async () => {
    const control = await build({ passwords: PASSWORDS });
    expect((await converse(exchange(control), 'a=2Cb=3Dc', 'x')).last).toMatchObject({
      kind: 'accept',
      username: 'a,b=c',
    });
    expect((await converse(exchange(control), 'ann', 'pencil', 'y,,')).last).toMatchObject({ kind: 'accept' });
    expect((await converse(exchange(control), 'ann', 'pencil', 'n,a=ann,')).last).toMatchObject({ kind: 'accept' });
  });

  it('goes on after an empty first message', async () => {
    const control = await build({ passwords: PASSWORDS });
    const to = exchange(control);
    expect(await say(to, null)).toEqual({ kind: 'continue', data: null });
    expect((await converse(to, 'ann', 'pencil')).last).toMatchObject({ kind: 'accept' });
  });

  it.each([
    'n=ann,r=abc',
    'p=tls-unique,,n=ann,r=abc',
    'n,,m=x,n=ann,r=abc',
    'n,,n=a=2Xnn,r=abc',
    'n,a=bob,n=ann,r=abc',
    'n,,n=,r=abc',
    'n,,n=ann,r=',
    'n,,n=ann,r=a\u0000b',
    'x',
    `n,,n=ann,r=${'a'.repeat(5000)}`,
  ])('refuses the first message "%s"', async (message) => {
    const control = await build({ passwords: PASSWORDS });
    expect(await say(exchange(control), message)).toMatchObject({ kind: 'refuse' });
  });

  it('refuses another nonce, another header and a second try', async () => {
    const control = await build({ passwords: PASSWORDS });
    const proof = `p=${Buffer.alloc(32).toString('base64')}`;
    for (const final of ['c=biws,r=other', 'c=eSws,r=NONCE', 'c=biws,r=NONCE']) {
      const to = exchange(control);
      const nonce = /^r=([^,]+)/.exec(dataOf(await say(to, 'n,,n=ann,r=abc')))?.[1] ?? '';
      const message = `${final.replace('NONCE', nonce)},${proof}`;
      expect(await say(to, message)).toMatchObject({ kind: 'refuse' });
      expect(await say(to, message)).toMatchObject({ kind: 'refuse', why: 'scram-message' });
    }
  });

  it('refuses a user name of the CONNECT that is another one', async () => {
    const control = await build({ passwords: PASSWORDS });
    expect(await say(exchange(control, 'bob'), 'n,,n=ann,r=abc')).toMatchObject({ kind: 'refuse' });
    expect((await converse(exchange(control, 'ann'), 'ann', 'pencil')).last).toMatchObject({ kind: 'accept' });
  });

  it('takes stored keys of a file, and a password against them', async () => {
    const keys = await makeScram(Buffer.from('secret'), 4096);
    const control = await build({ scramFile: folder.put('scram', `# keys\ndev:${keys.text}\n`) });
    expect((await converse(exchange(control), 'dev', 'secret')).last).toMatchObject({ kind: 'accept' });
    expect((await converse(exchange(control), 'dev', 'other')).last).toMatchObject({ kind: 'refuse' });
    expect((await converse(exchange(control), 'nobody', 'x')).last).toMatchObject({ kind: 'refuse' });
    const { authenticator } = control.access('tcp');
    expect(await word(authenticator.authenticate(credentials('dev', 'secret')))).toBe('ok');
    expect(await word(authenticator.authenticate(credentials('dev', 'x')))).toBe('bad-password');
  });

  it('leaves users to the password file that has them', async () => {
    const control = await build({ passwords: PASSWORDS, passwordFile: folder.put('pw', `${line7('ann', 'file')}\n`) });
    expect((await converse(exchange(control), 'ann', 'pencil')).last).toMatchObject({ kind: 'refuse' });
  });

  it('refuses whose password changes before the last step, and nobody else', async () => {
    const control = await build({ passwords: PASSWORDS });
    for (const [passwords, kind] of [
      [new Map(PASSWORDS), 'accept'],
      [new Map([['ann', 'new']]), 'refuse'],
    ] as const) {
      const to = exchange(control);
      const through: EnhancedExchange = {
        step: async (data) => {
          if (data !== null && Buffer.from(data).includes('p=')) await control.reload({ ...OFF, passwords });
          return to.step(data);
        },
      };
      expect((await converse(through, 'ann', 'pencil')).last.kind).toBe(kind);
    }
  });

  it('is not offered where nobody could use it', async () => {
    const pw = folder.put('pw', `${line7('ann', 'p')}\n`);
    const control = await build({
      passwordFile: pw,
      passwords: PASSWORDS,
      listeners: new Map([
        ['own', { passwordFile: pw }],
        ['ssl', { identity: 'cn' }],
      ]),
    });
    expect(control.access('own').enhanced).toEqual([]);
    expect(control.access('ssl').enhanced).toEqual([]);
    expect((await build({ passwordFile: pw })).access('tcp').enhanced).toEqual([]);
  });
});

describe('a name that nobody has', () => {
  async function first(control: AccessControl, name: string): Promise<string> {
    return dataOf(await say(exchange(control), `n,,n=${name},r=abc`)).replace(/^r=[^,]+,/, '');
  }

  it('gets the same salt and iterations after a restart, and those that most users have', async () => {
    const lines = await Promise.all(
      ['a', 'b', 'c'].map(
        async (name, i) => `${name}:${(await makeScram(Buffer.from('p'), i === 0 ? 4096 : 9000)).text}`,
      ),
    );
    const scramFile = folder.put('scram', `${lines.join('\n')}\n`);
    const secretPath = folder.at('scram.secret');
    const answers: string[] = [];
    for (let start = 0; start < 2; start++) {
      const control = await build({ scramFile }, { secretPath });
      answers.push(await first(control, 'nobody'));
      expect(await first(control, 'nobody')).toBe(answers[start]);
      expect(await first(control, 'other')).not.toBe(answers[start]);
      expect(await first(control, 'b')).toMatch(/,i=9000$/);
    }
    expect(answers[1]).toBe(answers[0]);
    expect(answers[0]).toMatch(/,i=9000$/);
    expect(readFileSync(secretPath, 'latin1')).toMatch(/^[A-Za-z0-9+/]{43}=$/);
    expect(statSync(secretPath).mode & 0o777).toBe(0o600);
  });

  it('gets the same where nothing can be kept, by the id of the machine', () => {
    const id = folder.put('machine-id', `${'0123456789abcdef'.repeat(2)}\n`);
    expect(stableSecret(null, [folder.at('none'), id])).toEqual(stableSecret('/proc/no/such', [id]));
    expect(stableSecret(null, [])).not.toEqual(stableSecret(null, []));
  });
});

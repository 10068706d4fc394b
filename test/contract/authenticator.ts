// What every source of users owes session/, run for each of them: the user `known` with `password` gets in as itself, everything else
// is a refusal with a reason code and a stable word, given at once or by a promise that never rejects.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { AuthResult, Credentials } from '../../src/auth/auth.ts';
import type { AccessControl } from '../../src/auth/chain.ts';
import { credentials } from '../auth/support.ts';

export interface AuthenticatorUnderTest {
  make(): Promise<AccessControl>;
  /** Has the source fail (server gone); absent where nothing can fail. */
  fail?(): Promise<void>;
  done?(): Promise<void> | void;
  readonly known: string;
  readonly password: () => Promise<string | Uint8Array> | string | Uint8Array;
}

const NAMES = [
  'nobody',
  '__proto__',
  'constructor',
  'toString',
  'hasOwnProperty',
  ' ',
  '#',
  '+',
  'a:b',
  '\u0000',
  'x'.repeat(65_535),
];
const PASSWORDS = [
  'x',
  'undefined',
  '[object Object]',
  'x'.repeat(65_535),
  '\u0000',
  '\ufffd',
  '{}',
  'eyJ.eyJ.x',
  '$6$',
];

export function authenticatorContract(name: string, subject: AuthenticatorUnderTest): void {
  describe(`${name} as a source of users`, () => {
    let control: AccessControl;
    let password: Uint8Array;
    beforeAll(async () => {
      control = await subject.make();
      password = Buffer.from(await subject.password());
    });
    afterAll(async () => {
      control.close();
      await subject.done?.();
    });

    function ask(
      username: string | null,
      secret: string | Uint8Array | null,
      more: Partial<Credentials> = {},
    ): Promise<AuthResult> {
      return Promise.resolve(control.access('tcp').authenticator.authenticate(credentials(username, secret, more)));
    }

    function expectRefusal(result: AuthResult, what: string): void {
      if (result.accepted) throw new Error(`${what}: let in`);
      expect(result.reasonCode, what).toBeGreaterThanOrEqual(0x80);
      expect(result.why, what).toMatch(/^[a-z-]+$/);
    }

    it('lets the known user in as itself', async () => {
      const more = { clientId: 'dev-1', remoteAddress: '10.1.2.3' };
      expect(await ask(subject.known, password, more)).toMatchObject({
        accepted: true,
        identity: { ...more, username: subject.known, listener: 'tcp', internal: false },
      });
    });

    it('refuses everybody else', async () => {
      for (const other of NAMES) expectRefusal(await ask(other, 'x'), JSON.stringify(other).slice(0, 20));
    });

    it('refuses the known user with any other password', async () => {
      for (const other of PASSWORDS) expectRefusal(await ask(subject.known, other), JSON.stringify(other).slice(0, 20));
      expectRefusal(await ask(subject.known, password.subarray(0, -1)), 'one byte less');
      expectRefusal(await ask(subject.known, Buffer.concat([password, Buffer.from([0])])), 'a NUL behind');
      expectRefusal(await ask(subject.known, Buffer.concat([password, Buffer.from('x')])), 'one byte more');
    });

    it('refuses the known user without password, and nobody at all', async () => {
      for (const secret of [null, '']) expectRefusal(await ask(subject.known, secret), 'no password');
      for (const user of [null, '']) expectRefusal(await ask(user, null), 'no user');
      expectRefusal(await ask(null, 'x'), 'only a password');
    });

    it('answers many at once, each for itself', async () => {
      const answers = await Promise.all(
        Array.from({ length: 60 }, (_, i) => ask(subject.known, i % 2 === 0 ? password : 'wrong')),
      );
      expect(answers.map((answer) => answer.accepted)).toEqual(answers.map((_, i) => i % 2 === 0));
    });

    // A source inside the gateway cannot fail.
    if (subject.fail !== undefined)
      it('refuses the known user while the source fails', async () => {
        await subject.fail?.();
        expectRefusal(await ask(subject.known, password), 'failing source');
      });
  });
}

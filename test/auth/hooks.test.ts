// What a program's own functions decide beside the configured sources: who they are asked about, and what they can never do.
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Identity, Verdict } from '../../src/auth/auth.ts';
import type { AccessControl } from '../../src/auth/chain.ts';
import { type AuthHooks, HOOK_LIMIT_MS, Hooks } from '../../src/auth/hooks.ts';
import type { AuthOptions } from '../../src/auth/options.ts';
import { nullLog } from '../../src/base/log.ts';
import { Metrics } from '../../src/base/metrics.ts';
import { checkHooks } from '../../src/gateway/hooks.ts';
import { FakeClock } from '../harness/clock.ts';
import { build, credentials, Folder, identity, line7, OFF, word } from './support.ts';

let folder: Folder;
let clock: FakeClock;
let metrics: Metrics;
beforeEach(() => {
  folder = new Folder();
  clock = new FakeClock();
  metrics = new Metrics();
});
afterEach(() => folder.done());

function hooked(given: AuthHooks, options: Partial<AuthOptions> = {}): Promise<AccessControl> {
  return build(options, { clock, metrics, hooks: new Hooks(given, { clock, log: nullLog, metrics }) });
}

function login(control: AccessControl, name: string | null, password: string | null, more = {}): Promise<string> {
  const sent = credentials(name, password, more);
  return word(control.access(sent.listener).authenticator.authenticate(sent));
}

function publish(control: AccessControl, who: Identity, topic = 'a'): Verdict {
  return control.access('tcp').authorizer.publish(who, topic, 1, false);
}

function failures(hook: string, why: string): number | undefined {
  return metrics.value('tidegate_hook_failures_total', { hook, why });
}

/** A hook that notes whom it was asked about and gives one answer. */
function noting(answer: boolean): { asked: unknown[][]; hook: (...args: unknown[]) => boolean } {
  const asked: unknown[][] = [];
  return {
    asked,
    hook: (...args) => {
      asked.push(args);
      return answer;
    },
  };
}

const LIMITS = {
  perAddress: 3,
  perUser: 0,
  perUserAndAddress: 0,
  windowMs: 60_000,
  lockMs: 1000,
  maxLockMs: 1000,
  exempt: [],
};

describe('authenticate', () => {
  it('lets in a user whom no configured source knows, with its password', async () => {
    const { asked, hook } = noting(true);
    const control = await hooked({ authenticate: hook }, { passwordFile: folder.put('pw', line7('ann', 'p')) });
    expect(await login(control, 'bob', 'secret')).toBe('ok');
    const client = { clientId: 'c', username: 'bob', remoteAddress: '127.0.0.1', listener: 'tcp' };
    expect(asked).toEqual([[client, 'bob', Buffer.from('secret')]]);
  });

  it('lets in an unknown user without a password, an anonymous client, and users where no source is configured', async () => {
    const { hook } = noting(true);
    const known = await hooked({ authenticate: hook }, { passwordFile: folder.put('pw', line7('ann', 'p')) });
    expect(await login(known, 'bob', null)).toBe('ok');
    expect(await login(known, null, null)).toBe('ok');
    const bare = await hooked({ authenticate: hook });
    expect(await login(bare, 'bob', 'x')).toBe('ok');
    expect(await login(bare, 'bob', null)).toBe('ok');
    expect(await login(bare, null, null)).toBe('ok');
  });

  it('is not asked where a configured user gives a wrong password or none, nor where a password has a NUL', async () => {
    const { asked, hook } = noting(true);
    const control = await hooked({ authenticate: hook }, { passwordFile: folder.put('pw', line7('ann', 'p')) });
    expect(await login(control, 'ann', 'wrong')).toBe('bad-password');
    expect(await login(control, 'ann', null)).toBe('no-password');
    expect(await login(control, 'bob', 'a\0b')).toBe('bad-password');
    expect(asked).toEqual([]);
  });

  it('is not asked on a listener whose certificates give names, where there is none', async () => {
    const { asked, hook } = noting(true);
    const listeners = new Map([['tcp', { identity: 'cn' as const }]]);
    const control = await hooked({ authenticate: hook }, { listeners });
    expect(await login(control, 'bob', 'x')).toBe('certificate');
    expect(asked).toEqual([]);
  });

  it('may refuse whom a source, the anonymous rule or nobody checks', async () => {
    const { asked, hook } = noting(false);
    const control = await hooked({ authenticate: hook }, { passwordFile: folder.put('pw', line7('ann', 'p')) });
    expect(await login(control, 'ann', 'p')).toBe('hook-refused');
    const open = await hooked({ authenticate: hook }, { allowAnonymous: true });
    expect(await login(open, 'bob', 'x')).toBe('hook-refused');
    expect(await login(open, null, null)).toBe('hook-refused');
    expect(asked).toHaveLength(3);
  });

  it.each([
    [
      'throws',
      'error',
      () => {
        throw new Error('down');
      },
    ],
    [
      'throws what has no text',
      'error',
      () => {
        throw Object.create(null);
      },
    ],
    ['rejects', 'error', () => Promise.reject(new Error('down'))],
    ['answers nothing', 'wrong-answer', () => undefined],
    ['answers 1', 'wrong-answer', () => 1],
    ['resolves with a word', 'wrong-answer', async () => 'yes'],
  ])('refuses and is counted when it %s', async (_, why, hook) => {
    const control = await hooked({ authenticate: hook as unknown as () => boolean }, { allowAnonymous: true });
    expect(await login(control, 'bob', 'x')).toBe('hook-failed');
    expect(failures('authenticate', why)).toBe(1);
  });

  it('refuses and is counted once when it does not answer in time, whatever comes later', async () => {
    let late: (answer: boolean) => void = () => {};
    const control = await hooked({ authenticate: () => new Promise((resolve) => (late = resolve)) });
    const waiting = login(control, 'bob', 'x');
    await Promise.resolve();
    clock.advance(HOOK_LIMIT_MS);
    late(true);
    expect(await waiting).toBe('hook-failed');
    expect(failures('authenticate', 'timeout')).toBe(1);
  });

  it('is followed by the lock that guesses earn, with and without a source, and that lock is not asked away', async () => {
    for (const options of [{}, { allowAnonymous: true }, { passwordFile: folder.put('pw', line7('ann', 'p')) }]) {
      let answer = false;
      const control = await hooked({ authenticate: () => answer }, { ...options, limits: LIMITS });
      const away = { remoteAddress: '10.0.0.1' };
      for (let i = 0; i < 3; i++) expect(await login(control, 'bob', 'guess', away)).toBe('hook-refused');
      answer = true;
      expect(await login(control, 'bob', 'right', away)).toBe('locked');
      clock.advance(LIMITS.lockMs + 1);
      expect(await login(control, 'bob', 'right', away)).toBe('ok');
    }
  });

  it('counts no failure for a client that it lets in, nor for one it could not judge', async () => {
    let fail = false;
    const authenticate = (): boolean => {
      if (fail) throw new Error('down');
      return true;
    };
    const file = folder.put('pw', line7('ann', 'p'));
    const control = await hooked({ authenticate }, { passwordFile: file, limits: LIMITS });
    const away = { remoteAddress: '10.0.0.1' };
    for (let i = 0; i < 5; i++) expect(await login(control, 'bob', 'x', away)).toBe('ok');
    fail = true;
    for (let i = 0; i < 5; i++) expect(await login(control, 'bob', 'x', away)).toBe('hook-failed');
  });

  it('does not clear what an address has tried when it lets a nameless client in', async () => {
    const file = folder.put('pw', line7('ann', 'p'));
    for (const allowAnonymous of [true, false]) {
      const options = { passwordFile: file, allowAnonymous, limits: LIMITS };
      const control = await hooked({ authenticate: () => true }, options);
      const away = { remoteAddress: '10.0.0.1' };
      for (let i = 0; i < 3; i++) {
        expect(await login(control, 'ann', 'guess', away)).toBe('bad-password');
        if (i < 2) expect(await login(control, null, null, away)).toBe('ok');
      }
      expect(await login(control, 'ann', 'p', away)).toBe('locked');
    }
  });

  it('judges a client of an enhanced authentication after its method', async () => {
    const { asked, hook } = noting(false);
    const guarded = new Hooks({ authenticate: hook }, { clock, log: nullLog, metrics }).guard({
      name: 'M',
      begin: () => ({ step: () => ({ kind: 'accept', data: null, username: 'ann' }) }),
    });
    const step = await guarded.begin(credentials(null, null)).step(null);
    expect(step).toMatchObject({ kind: 'refuse', why: 'hook-refused' });
    expect(asked[0].slice(1)).toEqual(['ann', null]);
    const control = await hooked({ authenticate: hook }, { passwords: new Map([['ann', 'p']]) });
    expect(control.access('tcp').enhanced.map(({ name }) => name)).toEqual(['SCRAM-SHA-256']);
  });
});

describe('authorizePublish and authorizeSubscribe', () => {
  it('are asked with client, topic, QoS and RETAIN after the sources have allowed', async () => {
    const pub = noting(true);
    const sub = noting(false);
    const control = await hooked({ authorizePublish: pub.hook, authorizeSubscribe: sub.hook });
    const { authorizer } = control.access('tcp');
    expect(authorizer.publish(identity('ann'), 'a/b', 2, true)).toBe(true);
    expect(authorizer.subscribe(identity('ann'), 'a/#', 1)).toBe(false);
    const client = { clientId: 'c', username: 'ann', remoteAddress: '127.0.0.1', listener: 'tcp' };
    expect(pub.asked).toEqual([[client, { topic: 'a/b', qos: 2, retain: true }]]);
    expect(sub.asked).toEqual([[client, { topic: 'a/#', qos: 1 }]]);
  });

  it('are not asked where a source denies, and cannot allow it', async () => {
    const { asked, hook } = noting(true);
    const aclFile = folder.put('acl', 'user ann\ntopic write a\n');
    const control = await hooked(
      { authorizePublish: hook, authorizeSubscribe: hook },
      { aclFile, aclSubscribe: 'truthful' },
    );
    expect(publish(control, identity('ann'), 'b')).toBe(false);
    expect(publish(control, identity('ann'), '$SYS/x')).toBe(false);
    expect(control.access('tcp').authorizer.subscribe(identity('ann'), 'b', 0)).toBe(false);
    expect(asked).toEqual([]);
    expect(publish(control, identity('ann'), 'a')).toBe(true);
  });

  it('deny what they could not judge', async () => {
    let answer: () => unknown = () => undefined;
    const control = await hooked({
      authorizePublish: () => answer() as boolean,
      authorizeSubscribe: () => answer() as boolean,
    });
    expect(publish(control, identity('ann'))).toBe(false);
    answer = () => Promise.reject(new Error('down'));
    expect(await publish(control, identity('ann'))).toBe(false);
    expect(await control.access('tcp').authorizer.subscribe(identity('ann'), 'a', 0)).toBe(false);
    answer = () => new Promise(() => {});
    const waiting = publish(control, identity('ann'));
    clock.advance(HOOK_LIMIT_MS);
    expect(await waiting).toBe(false);
    expect(failures('authorizePublish', 'timeout')).toBe(1);
  });

  it('let a program that changes what it was given change nothing else', async () => {
    const seen: unknown[] = [];
    const control = await hooked({
      authorizePublish: (client) => {
        seen.push(client.username);
        try {
          (client as { username: string }).username = 'root';
        } catch (error) {
          if (!(error instanceof TypeError)) throw error;
        }
        return true;
      },
    });
    const ann = identity('ann');
    expect([publish(control, ann), publish(control, ann)]).toEqual([true, true]);
    expect(ann.username).toBe('ann');
    expect(seen).toEqual(['ann', 'ann']);
  });

  it('are not asked about clients inside the process', async () => {
    const { asked, hook } = noting(false);
    const control = await hooked({ authorizePublish: hook, authorizeSubscribe: hook });
    const bridge = identity('b', { internal: true, listener: '' });
    expect(control.access('').authorizer.publish(bridge, 'a', 0, false)).toBe(true);
    expect(control.absentees.access(bridge).authorizer.subscribe(bridge, 'a', 0)).toBe(true);
    expect(asked).toEqual([]);
  });

  it('are named by explain where they may still refuse', async () => {
    const control = await hooked({ authorizePublish: () => false });
    const { authorizer } = control.access('tcp');
    expect(authorizer.explain(identity('ann'), 'publish', 'a').rule).toMatch(/hook/);
    expect(authorizer.explain(identity('ann'), 'subscribe', 'a').rule).not.toMatch(/hook/);
  });

  it('say that a verdict on a publish holds for one packet, only when they judge publishes', async () => {
    expect((await hooked({ authorizePublish: () => true })).access('tcp').authorizer.everyPublish).toBe(true);
    expect((await hooked({ authorizeSubscribe: () => true })).access('tcp').authorizer.everyPublish).toBe(false);
    expect((await build({})).access('tcp').authorizer.everyPublish).toBeUndefined();
  });
});

describe('clients that are away', () => {
  const left = identity('bob', { realm: '', via: 'hook' });

  it('are judged by the hooks, once, also when their listener is not there any more or only their names are known', async () => {
    const { asked, hook } = noting(false);
    const listeners = new Map([
      ['tcp', {}],
      ['ws', {}],
    ]);
    const control = await hooked({ authorizePublish: hook }, { allowAnonymous: true, listeners });
    const clients = [left, { ...left, listener: 'gone' }, { ...left, listener: '', remoteAddress: '', partial: true }];
    for (const client of clients)
      expect(control.absentees.access(client).authorizer.publish(client, 'a', 1, true)).toBe(false);
    expect(asked).toHaveLength(clients.length);
  });

  it('are vouched for by a hook while there is one that authenticates, and not by a source that has their name', async () => {
    const options = { passwordFile: folder.put('pw', line7('ann', 'p')), allowAnonymous: true };
    const same = { passwordFile: folder.put('same', line7('bob', 'p')), allowAnonymous: true };
    for (const client of [left, { ...left, listener: 'gone' }, { ...left, username: null }]) {
      const program = await hooked({ authenticate: () => true }, options);
      expect(program.absentees.access(client).vouches(client)).toBe(true);
      expect((await build(options)).absentees.access(client).vouches(client)).toBe(false);
      expect((await build(same)).absentees.access(client).vouches(client)).toBe(false);
      const other = await hooked({ authorizePublish: () => true }, options);
      expect(other.absentees.access(client).vouches(client)).toBe(false);
    }
  });

  it('of a hook are nobody once their name is that of a configured user', async () => {
    const control = await hooked({ authenticate: () => true }, { passwordFile: folder.put('pw', line7('bob', 'p')) });
    expect(control.absentees.access(left).vouches(left)).toBe(false);
  });

  it('of a hook stay through a reload, unless their name has become that of a configured user', async () => {
    const control = await hooked({ authenticate: () => true });
    const same = await control.reload(OFF);
    if (!same.ok) throw same.error;
    expect([same.revoked('tcp', 'bob', 'hook'), same.revoked('tcp', null, 'hook')]).toEqual([false, false]);
    const known = await control.reload({ ...OFF, passwordFile: folder.put('pw', line7('bob', 'p')) });
    if (!known.ok) throw known.error;
    expect([known.revoked('tcp', 'bob', 'hook'), known.revoked('tcp', 'eve', 'hook')]).toEqual([true, false]);
  });
});

describe('hooks of a program', () => {
  it('are refused when one is misspelt, is no function, or they are no plain object', () => {
    expect(() => checkHooks({ authorisePublish: () => true })).toThrow(/authorisePublish/);
    expect(() => checkHooks({ authenticate: true })).toThrow(/authenticate/);
    expect(() => checkHooks({ toString: () => '' })).toThrow(/toString/);
    expect(() => checkHooks(new Map())).toThrow(/plain object/);
    expect(() => checkHooks('x')).toThrow(/plain object/);
  });

  it('are none when none is set, and a copy when some are', () => {
    expect(checkHooks(undefined)).toBeNull();
    expect(checkHooks({ authenticate: undefined })).toBeNull();
    const given = { authenticate: () => true };
    const taken = checkHooks(given);
    given.authenticate = () => false;
    expect(taken?.authenticate?.({ clientId: '', username: null, remoteAddress: '', listener: '' }, null, null)).toBe(
      true,
    );
  });

  it('cost nothing when there are none: access is that of the sources itself', async () => {
    const control = await build({ allowAnonymous: true });
    const { authenticator, authorizer } = control.access('tcp');
    expect(authenticator.authenticate(credentials(null, null))).not.toBeInstanceOf(Promise);
    expect(authorizer.constructor.name).toBe('ChainAuthorizer');
  });
});

// The two chains together, users and rights, as listeners see them; start and reload.
import { mkdirSync, rmSync, symlinkSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { AccessControl } from '../../src/auth/chain.ts';
import type { AuthOptions } from '../../src/auth/options.ts';
import { build, credentials, Folder, identity, line7, OFF, word } from './support.ts';

let folder: Folder;
beforeEach(() => {
  folder = new Folder();
});
afterEach(() => folder.done());

function users(...names: string[]): string {
  return names.map((name) => `${line7(name, 'p')}\n`).join('');
}

async function login(
  control: AccessControl,
  username: string | null,
  password: string | Uint8Array | null,
  more = {},
): Promise<string> {
  const sent = credentials(username, password, more);
  return word(control.access(sent.listener).authenticator.authenticate(sent));
}

function may(control: AccessControl, name: string | null, topic: string, listener = 'tcp'): boolean {
  const verdict = control.access(listener).authorizer.publish(identity(name, { listener }), topic, 1, false);
  if (typeof verdict !== 'boolean') throw new Error('a promise where none is needed');
  return verdict;
}

describe('authentication', () => {
  it('refuses wrong, empty and missing passwords, unknown users and no user name', async () => {
    const control = await build({ passwordFile: folder.put('pw', users('ann', 'bob')) });
    expect(await login(control, 'ann', 'p')).toBe('ok');
    for (const [name, password] of [
      ['ann', 'P'],
      ['ann', ''],
      ['ann', null],
      ['ann', 'p '],
      ['nobody', 'p'],
      ['Ann', 'p'],
      [null, null],
      ['', null],
      ['', 'p'],
      [null, 'p'],
    ] as const) {
      expect(await login(control, name, password), `${name} ${password}`).not.toBe('ok');
    }
  });

  it('answers with 0x87 for every wrong user or password', async () => {
    const control = await build({ passwordFile: folder.put('pw', users('ann')) });
    for (const [name, password] of [
      ['ann', 'x'],
      ['no', 'p'],
      [null, null],
      ['ann', null],
    ] as const) {
      const result = await control.access('tcp').authenticator.authenticate(credentials(name, password));
      expect(result).toMatchObject({ accepted: false, reasonCode: 0x87 });
    }
  });

  it('never takes a password with a NUL for the part before it', async () => {
    const control = await build({ passwordFile: folder.put('pw', users('ann')), passwords: new Map([['bob', 'p']]) });
    for (const name of ['ann', 'bob']) {
      for (const bytes of ['p\0zzz', 'p\0', '\0p', '\0'])
        expect(await login(control, name, bytes), name).toBe('bad-password');
    }
  });

  it('checks credentials that are sent where anonymous is allowed', async () => {
    const control = await build({ allowAnonymous: true, passwordFile: folder.put('pw', users('ann')) });
    expect(await login(control, null, null)).toBe('ok');
    expect(await login(control, '', null)).toBe('ok');
    expect(await login(control, null, 'p', { version: 5 })).toBe('ok');
    expect(await login(control, 'ann', 'p')).toBe('ok');
    expect(await login(control, 'ann', 'q')).toBe('bad-password');
    expect(await login(control, 'nobody', 'p')).toBe('unknown-user');
    expect(await login(control, 'ann', null)).toBe('no-password');
  });

  it('takes every name where anonymous is allowed and there is no source of users', async () => {
    const control = await build({ allowAnonymous: true });
    const result = await control.access('tcp').authenticator.authenticate(credentials('ann', 'whatever'));
    expect(result).toMatchObject({ accepted: true, identity: { username: 'ann', internal: false } });
  });

  it('lets nobody in without anonymous and without a source of users', async () => {
    const control = await build({});
    for (const [name, password] of [
      [null, null],
      ['ann', 'p'],
      ['ann', null],
      ['', ''],
    ] as const) {
      expect(await login(control, name, password)).not.toBe('ok');
    }
  });

  it('takes an empty password file for a source without users', async () => {
    const control = await build({ allowAnonymous: true, passwordFile: folder.put('pw', '') });
    expect(await login(control, 'ann', 'p')).toBe('unknown-user');
  });

  it('gives listeners their own users, rights and anonymous rule', async () => {
    const control = await build({
      passwordFile: folder.put('pw', users('glob')),
      aclFile: folder.put('acl', 'user glob\ntopic readwrite g/#\n'),
      listeners: new Map([
        [
          'tcp.a',
          { passwordFile: folder.put('pwa', users('ann')), aclFile: folder.put('acla', 'pattern readwrite a/#\n') },
        ],
        ['tcp.open', { allowAnonymous: true }],
      ]),
    });
    expect(await login(control, 'glob', 'p')).toBe('ok');
    expect(await login(control, 'glob', 'p', { listener: 'tcp.a' })).not.toBe('ok');
    expect(await login(control, 'ann', 'p', { listener: 'tcp.a' })).toBe('ok');
    expect(await login(control, 'ann', 'p')).not.toBe('ok');
    expect(await login(control, null, null, { listener: 'tcp.open' })).toBe('ok');
    expect(await login(control, null, null)).toBe('anonymous');
    expect(may(control, 'glob', 'g/1')).toBe(true);
    expect(may(control, 'glob', 'a/1')).toBe(false);
    expect(may(control, 'ann', 'a/1', 'tcp.a')).toBe(true);
    expect(may(control, 'ann', 'g/1', 'tcp.a')).toBe(false);
  });

  it('takes the name from the certificate and leaves credentials aside', async () => {
    const control = await build({
      passwordFile: folder.put('pw', users('ann')),
      listeners: new Map([['ssl', { identity: 'cn' }]]),
    });
    const peer = { commonName: 'device-7', subject: 'CN=device-7,O=x', fingerprint: '', pem: '' };
    const tls = { version: 'TLSv1.3', cipher: '', serverName: null, peer };
    const sent = credentials('ann', 'wrong', { listener: 'ssl', tls });
    expect(await control.access('ssl').authenticator.authenticate(sent)).toMatchObject({
      accepted: true,
      identity: { username: 'device-7' },
    });
    for (const nameless of [null, { ...tls, peer: null }, { ...tls, peer: { ...peer, commonName: '' } }]) {
      const result = await control
        .access('ssl')
        .authenticator.authenticate({ ...sent, password: Buffer.from('p'), tls: nameless });
      expect(result).toMatchObject({ accepted: false, reasonCode: 0x86 });
    }
  });
});

describe('start', () => {
  it.each(['passwordFile', 'aclFile'] as const)('fails and names the %s that cannot be read', async (key) => {
    mkdirSync(folder.at('folder'));
    folder.put('file', '');
    symlinkSync('nowhere', folder.at('dangling'));
    for (const name of ['missing', 'folder', 'dangling', 'file/below']) {
      const path = folder.at(name);
      await expect(build({ allowAnonymous: true, [key]: path }), name).rejects.toThrow(path);
    }
  });

  it('follows a symbolic link to a password file', async () => {
    folder.put('real', users('ann'));
    symlinkSync('real', folder.at('link'));
    const control = await build({ passwordFile: folder.at('link') });
    expect(await login(control, 'ann', 'p')).toBe('ok');
  });

  it('fails with one clear line when an argon2id hash cannot be checked', async () => {
    const path = folder.put('pw', 'a:$argon2id$v=19$m=47104,t=1,p=1$AAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAA\n');
    const building = build({ passwordFile: path }, { argon2: async () => null });
    await expect(building).rejects.toThrow(`${path}:1: an argon2id hash needs the package`);
  });

  it('warns of a password file that everybody may read', async () => {
    const lines: unknown[] = [];
    const path = folder.put('pw', users('a'), 0o644);
    await build({ passwordFile: path }, { log: (level, id, fields) => lines.push([level, id, fields]) });
    expect(lines).toEqual([['warn', 'AUTH-WARNING', { text: expect.stringContaining(path) }]]);
  });
});

describe('argon2id', () => {
  const KNOWN =
    'ann:$argon2id$v=19$m=47104,t=1,p=1$i+zU5zKmwScGCoUZjB6QtSv3JEGSYEButN7j8e6ffNiyXrhqXnevQnw0IP2yqmE3zDE0b5Gm0otfSS6Pfl885Q$OndsMNPVEisoRMg9Nhp6LH5hNA34s8PXViP8/dMZ6Ddvy9LRlzC//o4Dzq1sv4j8gdncvaNGhHLhxUaLD4SMTg';
  it('verifies a hash with a 64-byte salt', async () => {
    const control = await build({ passwordFile: folder.put('pw', `${KNOWN}\n`) });
    expect(await login(control, 'ann', 'tide pool')).toBe('ok');
    expect(await login(control, 'ann', 'tide pool!')).toBe('bad-password');
    expect(await login(control, 'bob', 'tide pool')).toBe('unknown-user');
  });
});

describe('rights', () => {
  it('allows everything without a source of rights, but topics of the server', async () => {
    const control = await build({ allowAnonymous: true });
    expect(may(control, null, 'a/b')).toBe(true);
    for (const topic of ['$SYS', '$SYS/x', '$SYSx', '$CONTROL/dynamic-security/v1', '$share/g/t', '$sharex']) {
      expect(may(control, null, topic), topic).toBe(false);
    }
    expect(may(control, null, '$SYS/broker/connection/c/state')).toBe(true);
    expect(may(control, null, '$SYS/broker/connection/c/d/state')).toBe(false);
    expect(may(control, null, '$SYS/broker/connection/state')).toBe(false);
    expect(may(control, null, '$other/x')).toBe(true);
  });

  it('refuses topics of the server whatever the files say', async () => {
    const text = 'user s\ntopic write $SYS/#\ntopic write $CONTROL/#\ntopic write $share/#\n';
    const control = await build({ aclFile: folder.put('acl', text) });
    expect(may(control, 's', '$SYS/x')).toBe(false);
    expect(may(control, 's', '$CONTROL/x')).toBe(false);
    expect(may(control, 's', '$SYS/broker/connection/c/state')).toBe(true);
    expect(may(control, null, '$SYS/broker/connection/c/state')).toBe(false);
  });

  it('needs the consent of both the ACL file and acl.rules', async () => {
    const rule = {
      permit: 'allow',
      action: 'pubsub',
      topics: ['a/#', 'b/#'],
      username: null,
      clientId: null,
      ipaddrs: [],
      and: [],
      or: [],
    } as const;
    const control = await build({
      aclFile: folder.put('acl', 'pattern readwrite b/#\npattern readwrite c/#\n'),
      rules: { rules: [rule], noMatch: 'deny' },
    });
    expect([may(control, 'u', 'a/1'), may(control, 'u', 'b/1'), may(control, 'u', 'c/1')]).toEqual([
      false,
      true,
      false,
    ]);
    const { authorizer } = control.access('tcp');
    expect(authorizer.explain(identity('u'), 'publish', 'a/1').rule).toContain('acl: no rule grants it');
    expect(authorizer.explain(identity('u'), 'publish', 'c/1').rule).toBe('auth.no_match');
  });

  it('grants every SUBSCRIBE with an ACL file and filters deliveries', async () => {
    const control = await build({ aclFile: folder.put('acl', 'user u\ntopic read ok/#\n') });
    const { authorizer } = control.access('tcp');
    expect(authorizer.subscribe(identity('u'), 'no/#', 0)).toBe(true);
    expect(authorizer.deliver(identity('u'), 'no/1')).toBe(false);
    expect(authorizer.deliver(identity('u'), 'ok/1')).toBe(true);
  });

  it('refuses what would never deliver when SUBSCRIBE is to be truthful', async () => {
    const control = await build({ aclFile: folder.put('acl', 'user u\ntopic read ok/#\n'), aclSubscribe: 'truthful' });
    const { authorizer } = control.access('tcp');
    expect(authorizer.subscribe(identity('u'), 'no/#', 0)).toBe(false);
    expect(authorizer.subscribe(identity('u'), '#', 0)).toBe(true);
  });
});

describe('reload', () => {
  async function reloaded(control: AccessControl, options: Partial<AuthOptions>) {
    const result = await control.reload({ ...OFF, ...options });
    if (!result.ok) throw result.error;
    return result;
  }

  it('applies changed users and tells who has to go', async () => {
    const options = { passwordFile: folder.put('pw', users('keep', 'chg', 'del')) };
    const control = await build(options);
    folder.put('pw', `${users('keep', 'new')}${line7('chg', 'q')}\n`);
    const result = await reloaded(control, options);
    expect(result).toMatchObject({ usersAdded: 1, usersRemoved: 1, usersChanged: 1 });
    expect(['keep', 'chg', 'del'].map((name) => result.revoked('tcp', name))).toEqual([false, true, true]);
    expect(await login(control, 'new', 'p')).toBe('ok');
    expect(await login(control, 'del', 'p')).toBe('unknown-user');
    expect(await login(control, 'chg', 'p')).toBe('bad-password');
    expect(await login(control, 'chg', 'q')).toBe('ok');
  });

  it('keeps everything when one of the files is wrong', async () => {
    const options = {
      passwordFile: folder.put('pw', users('u')),
      aclFile: folder.put('acl', 'user u\ntopic write ok\n'),
    };
    const control = await build(options);
    const before = control.access('tcp').authorizer.version;
    folder.put('pw', users('u', 'bob'));
    for (const spoil of [
      () => folder.put('acl', 'user u\ntopic read/write x\n'),
      () => rmSync(folder.at('acl')),
      () => mkdirSync(folder.at('acl')),
    ]) {
      spoil();
      const result = await control.reload({ ...OFF, ...options });
      expect(result).toMatchObject({ ok: false });
      if (!result.ok) expect(result.error.message).toContain(options.aclFile);
      expect(await login(control, 'bob', 'p')).not.toBe('ok');
      expect(await login(control, 'u', 'p')).toBe('ok');
      expect([may(control, 'u', 'ok'), may(control, 'u', 'no')]).toEqual([true, false]);
    }
    expect(control.access('tcp').authorizer.version).toBe(before);
    rmSync(folder.at('acl'), { recursive: true });
    folder.put('acl', 'user u\ntopic write new\n');
    await reloaded(control, options);
    expect(await login(control, 'bob', 'p')).toBe('ok');
    expect([may(control, 'u', 'ok'), may(control, 'u', 'new')]).toEqual([false, true]);
    expect(control.access('tcp').authorizer.version).toBeGreaterThan(before);
  });

  it('sends anonymous and unchecked clients away when they are no longer allowed', async () => {
    const control = await build({ allowAnonymous: true });
    expect((await reloaded(control, { allowAnonymous: true })).revoked('tcp', null)).toBe(false);
    const closed = await reloaded(control, { passwordFile: folder.put('pw', users('ann')) });
    expect([closed.revoked('tcp', null), closed.revoked('tcp', 'ann')]).toEqual([true, true]);
  });

  it('does not let in whose password changed while the old one was checked', async () => {
    const options = { passwordFile: folder.put('pw', `${line7('u', 'p', 200_000)}\n`) };
    const control = await build(options);
    const pending = login(control, 'u', 'p');
    folder.put('pw', `${line7('u', 'q')}\n`);
    await reloaded(control, options);
    expect(await pending).toBe('changed');
  });
});

// Users, groups and roles at run time: the file, what roles allow, who may log in, and changes that cannot be written.
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Draft } from '../../src/auth/accounts/draft.ts';
import { Judge } from '../../src/auth/accounts/judge.ts';
import type { AccessControl } from '../../src/auth/chain.ts';
import type { Right } from '../../src/base/accounts.ts';
import { EMPTY_BOOK } from '../../src/base/accounts.ts';
import { bookText, parseBook } from '../../src/base/accountsfile.ts';
import { INITIAL } from '../harness/dynsec.ts';
import { build, credentials, Folder, identity, line7, OFF, word } from './support.ts';

const BY = { user: 'tester', remote: '', via: 'http' } as const;
let folder: Folder;
beforeEach(() => {
  folder = new Folder();
});
afterEach(() => folder.done());

function judgeOf(rights: readonly [string, string, boolean, number?][], more = {}): Judge {
  const acls = rights.map(([acltype, topic, allow, priority = 0]) => ({ acltype, topic, allow, priority }));
  const text = { clients: [{ username: 'u', roles: [{ rolename: 'r' }] }], roles: [{ rolename: 'r', acls }], ...more };
  return new Judge(parseBook(JSON.stringify(text)).book);
}

const U = { username: 'u', clientId: 'c' };

describe('the file of accounts', () => {
  it('is read as it was written', () => {
    const { book } = parseBook(INITIAL);
    const again = parseBook(bookText(book, new WeakMap())).book;
    expect(again).toEqual(book);
    expect(again.accounts.get('admin')?.hash?.text).toMatch(/^\$7\$101\$/);
  });

  it('keeps groups, their priorities, texts, client ids and hashes of mosquitto 2.1', () => {
    const text = JSON.stringify({
      clients: [
        { username: 'a', clientid: 'one', textname: 'A', disabled: true, roles: [{ rolename: 'r', priority: 3 }] },
        { username: 'b', clientid_pattern: 'dev-*', encoded_password: line7('b', 'p', 1000, 64).slice(2) },
      ],
      groups: [{ groupname: 'g', clients: [{ username: 'a', priority: 2 }, { username: 'b' }], roles: [] }],
      roles: [{ rolename: 'r', textdescription: 'D', acls: [] }],
      anonymousGroup: 'g',
    });
    const { book, warnings } = parseBook(text);
    expect(warnings).toEqual([]);
    expect(book.accounts.get('a')).toMatchObject({
      clientId: 'one',
      disabled: true,
      groups: [{ name: 'g', priority: 2 }],
    });
    expect(book.accounts.get('b')).toMatchObject({ clientId: 'dev-*', isPattern: true });
    expect(parseBook(bookText(book, new WeakMap())).book).toEqual(book);
  });

  it.each([
    ['{', 'not valid JSON'],
    ['[]', 'an object expected'],
    ['{"clients":{}}', '/clients: a list expected'],
    ['{"clients":[{}]}', 'username expected'],
    ['{"clients":[{"username":""}]}', '/clients/0/username'],
    ['{"clients":[{"username":"a"},{"username":"a"}]}', 'the same name again'],
    ['{"clients":[{"username":"a","disabled":"no"}]}', '/clients/0/disabled'],
    ['{"clients":[{"username":"a","password":"x","salt":"y"}]}', '/clients/0/password'],
    ['{"roles":[{"rolename":"r","acls":[{"acltype":"publish","topic":"a","allow":true}]}]}', 'Unknown acltype'],
    ['{"roles":[{"rolename":"r","acls":[{"acltype":"subscribePattern","topic":"a/#/b"}]}]}', 'Invalid ACL topic'],
    ['{"roles":[{"rolename":"r","acls":[{"acltype":"subscribePattern","topic":"a","allow":"no"}]}]}', 'allow'],
    ['{"defaultACLAccess":{"subscribe":1}}', '/defaultACLAccess/subscribe'],
  ])('%s is refused by its place', (text, message) => {
    expect(() => parseBook(text)).toThrow(message);
  });

  it('names that lead nowhere are left out with a warning', () => {
    const { book, warnings } = parseBook(
      '{"clients":[{"username":"a","roles":[{"rolename":"x"}]}],"groups":[{"groupname":"g","clients":[{"username":"b"}]}],"anonymousGroup":"h"}',
    );
    expect(book.accounts.get('a')?.roles).toEqual([]);
    expect(warnings).toHaveLength(3);
  });
});

describe('what roles allow', () => {
  it.each<[string, readonly [string, string, boolean, number?][], string, boolean | null]>([
    ['publish', [['publishClientSend', 'a/#', true]], 'a/b', true],
    [
      'publish',
      [
        ['publishClientSend', 'a/#', false, 1],
        ['publishClientSend', 'a/b', true, 2],
      ],
      'a/b',
      true,
    ],
    [
      'publish',
      [
        ['publishClientSend', 'a/#', false, 1],
        ['publishClientSend', 'a/b', true, 2],
      ],
      'a/c',
      false,
    ],
    ['publish', [['publishClientSend', '#', true]], '$other/x', null],
    ['publish', [['publishClientSend', 'd/%c/x', true]], 'd/c/x', true],
    ['publish', [['publishClientSend', 'd/%u/x', true]], 'd/c/x', null],
    ['subscribe', [['subscribePattern', 'a/#', true]], 'a/+/b', true],
    ['subscribe', [['subscribePattern', 'a/#', true]], '+/b', null],
    ['subscribe', [['subscribePattern', '#', true]], '$SYS/#', true],
    ['subscribe', [['subscribePattern', 'a/#', true]], '$share/g/a/b', null],
    [
      'subscribe',
      [
        ['subscribePattern', '#', true],
        ['subscribePattern', 's/#', false, 1],
      ],
      '$share/g/s/b',
      false,
    ],
    ['subscribe', [['subscribeLiteral', 'x/+', true]], 'x/+', true],
    ['subscribe', [['subscribeLiteral', 'x/+', true]], 'x/y', null],
    [
      'subscribe',
      [
        ['subscribePattern', 'a/#', false, 9],
        ['subscribeLiteral', 'a/b', true],
      ],
      'a/b',
      true,
    ],
    ['deliver', [], 'anything', true],
    ['deliver', [], '$CONTROL/dynamic-security/v1/response', null],
    ['unsubscribe', [['unsubscribePattern', 'a/#', false]], 'a/b', false],
  ])('%s with %j of %s: %s', (action, rights, topic, allowed) => {
    const verdict = judgeOf(rights).judge(U, action as 'publish', topic);
    expect(verdict?.allowed ?? null).toBe(allowed);
  });

  it('roles of the user come before those of groups, higher priorities first', () => {
    const acl = (allow: boolean) => [{ acltype: 'publishClientSend', topic: 'a', allow }];
    const { book } = parseBook(
      JSON.stringify({
        clients: [{ username: 'u' }, { username: 'v', roles: [{ rolename: 'no' }, { rolename: 'yes', priority: 1 }] }],
        groups: [
          { groupname: 'low', roles: [{ rolename: 'yes' }], clients: [{ username: 'u' }] },
          {
            groupname: 'high',
            roles: [{ rolename: 'no' }],
            clients: [{ username: 'u', priority: 4 }, { username: 'v' }],
          },
        ],
        roles: [
          { rolename: 'yes', acls: acl(true) },
          { rolename: 'no', acls: acl(false) },
        ],
      }),
    );
    const judge = new Judge(book);
    expect(judge.judge(U, 'publish', 'a')).toMatchObject({
      allowed: false,
      rule: expect.stringContaining('group high'),
    });
    expect(judge.judge({ username: 'v', clientId: 'c' }, 'publish', 'a')?.allowed).toBe(true);
  });

  it('a name with a wildcard in the place of %u is denied, never allowed', () => {
    const text = (allow: boolean): Judge =>
      new Judge(
        parseBook(
          JSON.stringify({
            clients: [{ username: '+', roles: [{ rolename: 'r' }] }],
            roles: [{ rolename: 'r', acls: [{ acltype: 'subscribePattern', topic: 'a/%u', allow }] }],
          }),
        ).book,
      );
    const who = { username: '+', clientId: 'c' };
    expect(text(true).judge(who, 'subscribe', 'a/+')).toBeNull();
    expect(text(false).judge(who, 'subscribe', 'a/b')?.allowed).toBe(false);
  });
});

describe('a listener with accounts', () => {
  async function withAccounts(more: object = {}, text = INITIAL): Promise<AccessControl> {
    return build({ ...OFF, accountsFile: folder.put('ds.json', text), accountsControl: true, ...more });
  }

  it('lets its users in by their hash and nobody else', async () => {
    const { authenticator } = (await withAccounts()).access('tcp');
    expect(await word(authenticator.authenticate(credentials('admin', 'pw')))).toBe('ok');
    expect(await word(authenticator.authenticate(credentials('admin', 'other')))).toBe('bad-password');
    expect(await word(authenticator.authenticate(credentials('nobody', 'pw')))).toBe('unknown-user');
    expect(await word(authenticator.authenticate(credentials(null, null)))).toBe('anonymous');
  });

  it('asks the password file about names without an account only', async () => {
    const passwordFile = folder.put('passwd', `${line7('admin', 'from-file')}\n${line7('file', 'p')}\n`);
    const { authenticator } = (await withAccounts({ passwordFile })).access('tcp');
    expect(await word(authenticator.authenticate(credentials('file', 'p')))).toBe('ok');
    expect(await word(authenticator.authenticate(credentials('admin', 'from-file')))).toBe('bad-password');
  });

  it('binds a user to a client id or a pattern', async () => {
    const control = await withAccounts();
    const { accounts } = control;
    await accounts?.run([{ command: 'setClientId', username: 'admin', clientid: 'desk' }], BY);
    const ask = (clientId: string) =>
      word(control.access('tcp').authenticator.authenticate(credentials('admin', 'pw', { clientId })));
    expect([await ask('desk'), await ask('c')]).toEqual(['ok', 'client-id']);
    await accounts?.run([{ command: 'setClientId', username: 'admin', clientid_pattern: 'a*b*c' }], BY);
    expect(await Promise.all(['axbyc', 'abc', 'ac', 'abcd', 'acb'].map(ask))).toEqual([
      'ok',
      'ok',
      'client-id',
      'client-id',
      'client-id',
    ]);
  });

  it('keeps a disabled user out, whatever vouches for the name', async () => {
    const control = await withAccounts({ listeners: new Map([['tls', { identity: 'cn' }]]) });
    await control.accounts?.run([{ command: 'disableClient', username: 'admin' }], BY);
    expect(await word(control.access('tcp').authenticator.authenticate(credentials('admin', 'pw')))).toBe('disabled');
    const tls = { peer: { commonName: 'admin', subject: 'CN=admin' } } as never;
    const came = control.access('tls').authenticator.authenticate(credentials(null, null, { listener: 'tls', tls }));
    expect(await word(came)).toBe('disabled');
    expect(control.access('tcp').vouches(identity('admin', { realm: '', via: 'users' }))).toBe(false);
  });

  it('leaves to the ACL file what no entry decides', async () => {
    const aclFile = folder.put('acl', 'user admin\ntopic write plant\n');
    const text = INITIAL.replace('"topic":"#"', '"topic":"other/#"');
    const { authorizer } = (await withAccounts({ aclFile }, text)).access('tcp');
    expect(authorizer.publish(identity('admin'), 'plant', 0, false)).toBe(true);
    expect(authorizer.publish(identity('admin'), 'elsewhere', 0, false)).toBe(false);
    expect(authorizer.subscribe(identity('admin'), 'anything', 0)).toBe(true);
  });

  it('takes commands only from those that an entry names, and never retained', async () => {
    const control = await withAccounts();
    const { authorizer } = control.access('tcp');
    const topic = '$CONTROL/dynamic-security/v1';
    expect(authorizer.publish(identity('admin'), topic, 1, false)).toBe(true);
    expect(authorizer.publish(identity('admin'), topic, 1, true)).toBe(false);
    expect(authorizer.publish(identity('admin'), `${topic}x`, 1, false)).toBe(false);
    expect(authorizer.publish(identity('admin', { internal: true }), topic, 1, false)).toBe(false);
    await control.accounts?.run(
      [
        { command: 'createClient', username: 'u', password: 'p' },
        { command: 'setDefaultACLAccess', acls: [{ acltype: 'publishClientSend', allow: true }] },
      ],
      BY,
    );
    expect(authorizer.publish(identity('u'), 'any', 0, false)).toBe(true);
    expect(authorizer.publish(identity('u'), topic, 1, false)).toBe(false);
  });

  it('does not start with a file it cannot read, and keeps what it has at a reload', async () => {
    await expect(withAccounts({}, '{"clients":[{"username":5}]}')).rejects.toThrow(
      'ds.json: /clients/0: username expected',
    );
    mkdirSync(folder.at('folder'));
    await expect(build({ ...OFF, accountsFile: folder.at('folder') })).rejects.toThrow(/folder/);
    const control = await withAccounts();
    const options = { ...OFF, accountsFile: folder.at('ds.json') };
    writeFileSync(folder.at('ds.json'), 'no JSON');
    expect(await control.reload(options)).toMatchObject({ ok: false });
    rmSync(folder.at('ds.json'));
    expect(await control.reload(options)).toMatchObject({ ok: false });
    const came = control.access('tcp').authenticator.authenticate(credentials('admin', 'pw'));
    expect(await word(came)).toBe('ok');
  });

  it('takes a file that is not there for an empty one, and makes it with its first user', async () => {
    const control = await build({ ...OFF, accountsFile: folder.at('new/ds.json') });
    const run = await control.accounts?.run([{ command: 'createClient', username: 'u', password: 'p' }], BY);
    expect(run).toMatchObject({ ok: true });
    expect(JSON.parse(readFileSync(folder.at('new/ds.json'), 'utf8'))).toMatchObject({ clients: [{ username: 'u' }] });
    expect(existsSync(folder.at('new/.ds.json.new'))).toBe(false);
  });

  it('changes nothing that cannot be written, nor a file that somebody else has changed', async () => {
    const control = await withAccounts();
    writeFileSync(folder.at('ds.json'), INITIAL.replace('"admin"', '"boss"'));
    const run = await control.accounts?.run([{ command: 'createClient', username: 'u', password: 'p' }], BY);
    expect(run).toMatchObject({ ok: false, why: 'unwritable' });
    expect(control.accounts?.get('u')).toBeUndefined();
    expect(readFileSync(folder.at('ds.json'), 'utf8')).toContain('boss');
  });

  it('refuses requests that too many others are in front of', async () => {
    const control = await withAccounts();
    const runs = Array.from({ length: 70 }, () => control.accounts?.run([{ command: 'listClients' }], BY));
    const outcomes = await Promise.all(runs);
    expect(outcomes.filter((outcome) => outcome?.ok === false)).toHaveLength(6);
  });

  it('undoes all commands of a whole request when one is refused', async () => {
    const control = await withAccounts();
    const commands = [
      { command: 'createRole', rolename: 'r' },
      { command: 'deleteRole', rolename: 'nope' },
    ];
    await control.accounts?.run(commands, BY, true);
    expect(control.accounts?.book.roles.has('r')).toBe(false);
    await control.accounts?.run(commands, BY);
    expect(control.accounts?.book.roles.has('r')).toBe(true);
  });
});

describe('a draft', () => {
  it('forgets roles and groups everywhere when they are removed', () => {
    const draft = new Draft(EMPTY_BOOK);
    const right: Right = { kind: 'publishClientSend', topic: 'a', priority: 0, allow: true };
    draft.addRole('r', { rights: [right] });
    draft.addGroup('g', { roles: [{ name: 'r', priority: -1 }] });
    draft.addAccount('u', { roles: [{ name: 'r', priority: -1 }], groups: [{ name: 'g', priority: -1 }] });
    draft.setAnonymousGroup('g');
    draft.removeRole('r');
    draft.removeGroup('g');
    expect(draft.book.accounts.get('u')).toMatchObject({ roles: [], groups: [] });
    expect(draft.book.anonymousGroup).toBeNull();
  });

  it('ends connections for a password, a binding, a disabled or removed user, not for a role', () => {
    const account = { hash: null, clientId: null };
    const ended = (change: (draft: Draft) => void): string[] => {
      const first = new Draft(EMPTY_BOOK);
      first.addRole('r', {});
      first.addAccount('u', account);
      const draft = new Draft(first.book);
      change(draft);
      return [...draft.ended];
    };
    expect(ended((draft) => draft.changeAccount('u', { disabled: true }))).toEqual(['u']);
    expect(ended((draft) => draft.changeAccount('u', { clientId: 'x' }))).toEqual(['u']);
    expect(ended((draft) => draft.removeAccount('u'))).toEqual(['u']);
    expect(ended((draft) => draft.changeAccount('u', { roles: [{ name: 'r', priority: 1 }] }))).toEqual([]);
  });
});

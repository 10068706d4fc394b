// What `ctl explain` says of client ids and of clients that are away.
import { afterEach, expect, it } from 'vitest';
import { explainer } from '../../src/gateway/explain.ts';
import { build, Folder, line7 } from '../auth/support.ts';
import { openRoom, type Room } from '../broker/room.ts';

let room: Room;
let folder: Folder;
afterEach(async () => {
  await room.stop();
  folder.done();
});

const KEEP = { cleanStart: false, expiry: 3600 } as const;
const password = Buffer.from('p');

it('explain tells whose a client id is, and judges a client that is away as it was', async () => {
  folder = new Folder();
  const users = folder.put('users', `${line7('alice', 'p')}\n${line7('bob', 'p')}\n`);
  const acl = folder.put('acl', 'user alice\ntopic readwrite a/#\n');
  const listeners = new Map([
    ['tcp', {}],
    ['tcp.a', { passwordFile: users, aclFile: acl }],
  ]);
  const control = await build({ allowAnonymous: true, listeners });
  room = await openRoom({ control });
  await (await room.client('x', { ...KEEP, username: 'alice', password, listener: 'tcp.a' })).drop();
  const explain = explainer(room.broker, control, () => 'user');
  const ask = (action: 'connect' | 'publish', username: string | null, listener: string, topic = '') =>
    explain({ clientId: 'x', username, remoteAddress: '', listener, action, topic });
  expect(ask('connect', 'alice', 'tcp.a').allowed).toBe(true);
  expect(ask('connect', 'bob', 'tcp.a')).toMatchObject({ allowed: false, rule: expect.stringContaining('user alice') });
  expect(ask('connect', 'alice', 'tcp').allowed).toBe(false);
  expect(ask('publish', 'alice', 'tcp.a', 'a/1')).toMatchObject({
    allowed: true,
    rule: `${acl}:2: topic readwrite a/#`,
  });
  expect(ask('publish', 'alice', 'tcp.a', 'b').allowed).toBe(false);
  const open = explainer(room.broker, control, () => 'client_id');
  expect(
    open({ clientId: 'x', username: 'bob', remoteAddress: '', listener: 'tcp.a', action: 'connect', topic: '' }),
  ).toMatchObject({ allowed: true });
});

// Rights of what bridges bring in: `check` warns before, the log and the state tell while it is denied.
import { writeFileSync } from 'node:fs';
import { afterEach, expect, it } from 'vitest';
import { loadConfig } from '../../src/config/load.ts';
import { bridgeRights } from '../../src/gateway/bridgerights.ts';
import { build, Folder } from '../auth/support.ts';
import { openRoom, type Room } from '../broker/room.ts';

let folder: Folder;
let room: Room | null = null;
afterEach(async () => {
  await room?.stop();
  room = null;
  folder.done();
});

async function warnings(acl: string, rest = ''): Promise<string[]> {
  folder = new Folder();
  const file = folder.at('test.conf');
  writeFileSync(
    file,
    `auth { acl_file = "${folder.put('acl', acl)}" }
     bridges.nng.sub.in { enable = true, sub_url = "tcp://127.0.0.1:7001", subscription = [ { remote_topic = "x", local_topic = "in/x" } ] }
     bridges.mqtt.up { server = "mqtt-tcp://127.0.0.1:1", enable = true, proto_ver = 4, subscription = [ { remote_topic = "cmd", local_topic = "cmd", qos = 1 } ] }
     ${rest}`,
  );
  const { config } = loadConfig({ file, set: [], env: {}, cwd: folder.path });
  return (await bridgeRights(config)).map(({ key, message }) => `${key}: ${message}`);
}

it('check warns of every bridge whose messages an ACL file will deny, and of none that it grants', async () => {
  const found = await warnings('user alice\ntopic readwrite #\n');
  expect(found).toEqual([
    'bridges.nng.sub.in: its messages will be denied: user nngproxy_bridge may not publish "in/x"',
    'bridges.mqtt.up: its messages will be denied: user mqtt_bridge may not publish "cmd"',
  ]);
  folder.done();
  const granted = 'user nngproxy_bridge\ntopic write in/#\nuser mqtt_bridge\ntopic write cmd\n';
  expect(await warnings(granted)).toEqual([]);
});

it('a bridge whose message is denied says so in the log once a minute, and for a minute in its state', async () => {
  folder = new Folder();
  const control = await build({ aclFile: folder.put('acl', 'user nngproxy_bridge\ntopic write ok/#\n') });
  const made = await openRoom({ control });
  room = made;
  const client = made.broker.attach({
    clientId: 'b',
    username: 'nngproxy_bridge',
    kind: 'bridge',
    bridge: 'nng:in',
    trusted: false,
  });
  const publish = (topic: string) => client.publish(topic, Buffer.from('x'), 0, 1, 1, false);
  expect(publish('ok/1')).not.toBe('denied');
  expect(client.deniedTopic()).toBeNull();
  for (let n = 0; n < 50; n++) expect(publish('no/1')).toBe('denied');
  const told = (): number => made.log.filter(({ id, level }) => id === 'BRG-DENIED' && level === 'warn').length;
  expect([client.deniedTopic(), told()]).toEqual(['no/1', 1]);
  await made.advance(61_000);
  expect(client.deniedTopic()).toBeNull();
  publish('no/1');
  expect(told()).toBe(2);
  client.close();
});

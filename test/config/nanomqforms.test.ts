// Files as NanoMQ ships them, its documentation shows them and older releases wrote them: all start or are converted, and mean the same.
import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { loadConfig } from '../../src/config/load.ts';
import { ConfigError } from '../../src/config/problem.ts';
import { config, folder, load, problems, warnings } from '../harness/configfiles.ts';
import { converted } from '../harness/converting.ts';
import { caught } from '../harness/thrown.ts';

const file = (name: string): string => readFileSync(new URL(`../vectors/nanomq/${name}`, import.meta.url), 'utf8');
const INCLUDED = { 'pwd.conf': file('pwd.conf'), 'acl.conf': file('acl.conf') };
const needless = (text: string): string[] => warnings(text).filter((line) => line.includes('needless here'));

describe('files that NanoMQ ships', () => {
  test('start: nanomq.conf', () => {
    const { config: shipped } = load(file('shipped.conf'));
    expect(shipped.listeners.map((l) => l.bind)).toEqual(['0.0.0.0:1883', '0.0.0.0:8083/mqtt']);
    expect(shipped.mqtt).toMatchObject({ maxPacketSize: 268_435_460, maxMqueueLen: 2048, keepaliveMultiplier: 1.25 });
    expect(shipped.auth.allowAnonymous).toBe(true);
    expect(needless(file('shipped.conf'))).toHaveLength(1);
    expect(needless(file('shipped.conf'))[0]).toMatch(/mqtt\.property_size.*mqtt\.retry_interval.*auth\.cache/);
  });

  test('start: the annotated example', () => {
    const { config: example } = load(file('example.conf'), { files: INCLUDED });
    expect(example.listeners).toHaveLength(7);
    expect(example.auth.users.map((user) => user.username)).toEqual(['admin', 'client']);
    expect(example.auth.acl).toHaveLength(4);
    const [bridge] = example.bridges.mqtt;
    expect(bridge.will).toMatchObject({
      topic: 'will_topic',
      responseTopic: null,
      contentType: null,
      correlationData: null,
    });
    expect(bridge.forwards.map((rule) => rule.retain)).toEqual([null, null]);
    expect(bridge.subscription[0]).toMatchObject({ retain: null, retainAsPublished: true, retainHandling: 2 });
  });

  test('start: bridges of the documentation, empty texts being not given', () => {
    const [bridge] = config(file('bridge.conf')).bridges.mqtt;
    expect(bridge).toMatchObject({ clientId: null, username: null, password: null, tls: null });
    expect(bridge.forwards.map((rule) => rule.retain)).toEqual([true, null]);
  });
});

describe('older forms', () => {
  test('the first HOCON form is read', () => {
    const { config: old } = load(file('v014.conf'));
    expect(old.mqtt).toMatchObject({ maxMqueueLen: 2048, maxPacketSize: 10 * 1024 * 1024, keepaliveMultiplier: 1.25 });
    expect(old.auth).toMatchObject({
      allowAnonymous: false,
      noMatch: 'deny',
      denyAction: 'disconnect',
      httpAuth: null,
    });
    expect(old.auth.users.map((user) => user.username)).toEqual(['admin', 'client']);
    expect(old.auth.acl?.map((rule) => rule.permit)).toEqual(['allow', 'deny']);
    expect(old.listeners[1].tls).toMatchObject({
      keyfile: '/etc/certs/key.pem',
      keyPassword: 'secret',
      failIfNoPeerCert: true,
    });
    expect(old.bridges.mqtt.map((b) => [b.name, b.enable, b.server])).toEqual([
      ['emqx', true, 'mqtt-tcp://broker.example.org:1883'],
      ['spare', false, 'mqtt-tcp://spare.example.org:1883'],
    ]);
    expect(old.bridges.mqtt[0].forwards.map((rule) => rule.localTopic)).toEqual(['forward1/#', 'forward2/#']);
    expect(old.bridges.mqtt[0].subscription.map((rule) => [rule.remoteTopic, rule.qos])).toEqual([
      ['recv/topic1', 1],
      ['recv/topic2', 2],
    ]);
  });

  test('an authorization of an unknown kind stops the start', () => {
    expect(problems('authorization.sources = [ { type = mongo } ]')[0]).toContain(
      'a source of type mongo is not known',
    );
  });

  test('the form of lines with key=value is recognised, and converted', () => {
    const cwd = folder({ 'nanomq.conf': file('keyvalue.conf') });
    const error = caught(() => loadConfig({ file: 'nanomq.conf', env: {}, cwd }));
    expect(error).toBeInstanceOf(ConfigError);
    expect(String(error)).toContain(
      'nanomq.conf:1:1: syntax: this is a nanomq.conf in its old key=value form; `tidegate convert',
    );
    const { code, told, load: loaded } = converted(file('keyvalue.conf'), 'nanomq.conf');
    expect(code).toBe(0);
    const { config: old } = loaded();
    expect(old.listeners.map((l) => `${l.kind} ${l.bind}`)).toEqual([
      'tcp 0.0.0.0:1883',
      'ssl 0.0.0.0:8883',
      'ws 0.0.0.0:8083/mqtt',
      'wss 0.0.0.0:8084/mqtt',
    ]);
    expect(old.auth).toMatchObject({ allowAnonymous: false, noMatch: 'deny', denyAction: 'disconnect' });
    expect(old.auth.users).toEqual([
      { username: 'admin', password: 'public' },
      { username: 'client', password: 'p=1#x' },
    ]);
    expect(old.auth.acl).toHaveLength(2);
    expect(old.auth.httpAuth?.authReq?.params).toEqual([
      ['clientid', '%c'],
      ['username', '%u'],
      ['password', '%P'],
    ]);
    expect(old.httpServer).toBeNull();
    expect(old.webhook?.events).toEqual([
      { event: 'on_client_connack', topic: null },
      { event: 'on_message_publish', topic: 'a/#' },
    ]);
    expect(old.bridges.mqtt[0]).toMatchObject({
      enable: true,
      keepaliveMs: 60_000,
      cleanStart: false,
      tls: null,
      will: { topic: 'will_topic', messageExpiryIntervalSeconds: 100 },
    });
    expect(told.join('\n')).toMatch(/nanomq\.conf:108:1: aws\.bridge\.mqtt\.aws\.host: not carried over/);
  });

  test('a bridge of that form runs with bridge_mode=true only', () => {
    const text = 'url=nmq-tcp://127.0.0.1:1\nbridge.mqtt.a.address=mqtt-tcp://h:1\nbridge.mqtt.a.bridge_mode=false';
    const { load: loaded, told } = converted(text, 'nanomq.conf');
    expect(loaded().config.bridges.mqtt[0].enable).toBe(false);
    expect(told[0]).toContain('nanomq.conf:3:1: bridge.mqtt.a: does not run without bridge_mode=true');
  });
});

describe('what is not written', () => {
  const FILE = 'system { parallel = 0 }\nhttp_server { username = admin, password = public }';

  test('is narrower than in NanoMQ, which one line says', () => {
    const { config: narrow } = load(FILE);
    expect(narrow.listeners[0].host).toBe('127.0.0.1');
    expect(warnings(FILE).filter((line) => line.includes('NanoMQ would take'))).toEqual([
      '1:1 defaults: NanoMQ would take MQTT on 0.0.0.0:1883, here on 127.0.0.1:1883; http_server on 0.0.0.0, here on 127.0.0.1; anonymous clients, here only on loopback. --nanomq-defaults takes its defaults',
    ]);
    expect(warnings('mqtt { max_qos = 1 }').filter((line) => line.includes('NanoMQ'))).toEqual([]);
  });

  test('is NanoMQ’s when asked for', () => {
    const cwd = folder({ 'c.conf': FILE });
    const { config: wide } = loadConfig({ file: 'c.conf', env: {}, cwd, nanomqDefaults: true });
    expect(wide.listeners).toMatchObject([{ host: '0.0.0.0', port: 1883, allowAnonymous: true }]);
    expect(wide.httpServer?.ipAddr).toBe('0.0.0.0');
  });
});

describe('what is not known', () => {
  test('warns where it is a block of something else, and stops where it could be ours or guards something', () => {
    expect(warnings('gateway_zmq { a = 1 }')).toEqual(['1:1 gateway_zmq: unknown key; it has no effect']);
    for (const text of ['listener { }', 'authentication { }', 'access_control { }', 'tls_options { }', 'nonsense = 1'])
      expect(problems(text)[0]).toContain('unknown key');
  });

  test('auth.http is auth.http_auth', () => {
    const text = 'auth.http { auth_req { url = "http://127.0.0.1:1/a" } }';
    expect(config(text).auth.httpAuth?.authReq?.url).toBe('http://127.0.0.1:1/a');
    expect(warnings(text)[0]).toContain('auth.http: is read as auth.http_auth');
  });

  test('an include elsewhere names the folder and the way out', () => {
    expect(problems('auth.password = {include "/etc/hostname"}')[0]).toMatch(
      /only files below \/\S+, the folder of the main file, can be included: move the file there/,
    );
  });
});

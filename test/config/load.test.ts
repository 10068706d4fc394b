// biome-ignore-all lint/suspicious/noTemplateCurlyInString: ${...} is HOCON here
import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { GatewayError } from '../../src/base/errors.ts';
import { loadConfig } from '../../src/config/load.ts';
import { formatProblem } from '../../src/config/problem.ts';
import { config, folder, load, problems, warnings } from '../harness/configfiles.ts';
import { caught } from '../harness/thrown.ts';

describe('loadConfig', () => {
  test('without a file gives MQTT on 127.0.0.1:1883 and nothing else', () => {
    const { config: c, file, warnings: w } = loadConfig({ cwd: folder(), env: {} });
    expect(file).toBeNull();
    expect(w).toEqual([]);
    expect(c.listeners.map((l) => [l.name, l.host, l.port, l.allowAnonymous])).toEqual([
      ['tcp', '127.0.0.1', 1883, true],
    ]);
    expect([c.httpServer, c.metrics, c.webhook, c.persistence.enable]).toEqual([null, null, null, false]);
    expect([c.bridges.nng.pub, c.bridges.nng.sub, c.bridges.mqtt, c.proxy, c.upstreams]).toEqual([[], [], [], [], []]);
  });

  test('without -c takes tidegate.conf before tidegate.toml', () => {
    const dir = folder({ 'tidegate.conf': 'mqtt.max_qos = 1', 'tidegate.toml': '[mqtt]\nmax_qos = 0\n' });
    expect(loadConfig({ cwd: dir, env: {} })).toMatchObject({
      file: './tidegate.conf',
      config: { mqtt: { maxQos: 1 } },
    });
    expect(loadConfig({ cwd: folder({ 'tidegate.toml': '[mqtt]\nmax_qos = 0\n' }), env: {} })).toMatchObject({
      config: { mqtt: { maxQos: 0 } },
    });
  });

  test('takes a later source over an earlier one: defaults, file, environment, --set', () => {
    const text = 'mqtt { max_qos = 1, max_mqueue_len = 10, max_topic_levels = 20 }';
    const env = { TIDEGATE__mqtt__max_mqueue_len: '11', TIDEGATE__mqtt__max_topic_levels: '21' };
    const { mqtt } = config(text, { env, set: ['mqtt.max_topic_levels=22'] });
    expect([mqtt.maxTopicAlias, mqtt.maxQos, mqtt.maxMqueueLen, mqtt.maxTopicLevels]).toEqual([64, 1, 11, 22]);
  });

  test('takes values of the environment and of --set literally', () => {
    const odd = 'a#b // ${HOME} "q" = {x} \\u2192 é ';
    const given = { env: { TIDEGATE__auth__password__u: odd }, set: [`auth.password."v.w"=${odd}=`] };
    expect(config('auth.allow_anonymous = false', given).auth.users).toEqual([
      { username: 'u', password: odd },
      { username: 'v.w', password: `${odd}=` },
    ]);
  });

  test('reads a secret from the file that ..._FILE names, without its last line end', () => {
    const dir = folder({ pw: 'from file#1\n', crlf: 'x\r\n', two: 'x\n\n' });
    const read = (name: string) =>
      config('', { env: { TIDEGATE__auth__password__u_FILE: join(dir, name) } }).auth.users[0].password;
    expect([read('pw'), read('crlf'), read('two')]).toEqual(['from file#1', 'x', 'x\n']);
  });

  test('names the variable whose file is missing, and never shows what is in one', () => {
    expect(problems('', { env: { TIDEGATE__auth__password__u_FILE: '/nonexistent' } })).toEqual([
      'environment TIDEGATE__auth__password__u_FILE auth.password.u: no such file',
    ]);
    const dir = folder({ pw: 's3cret' });
    expect(problems('', { env: { TIDEGATE__mqtt__max_qos_FILE: join(dir, 'pw') } }).join()).toContain('max_qos');
  });

  test('refuses overrides that are none, and wrong values by name', () => {
    expect(problems('', { set: ['x', 'a..b=1', '__proto__.x=1'] })).toHaveLength(3);
    expect(problems('', { env: { TIDEGATE__: 'x', TIDEGATE__a____b: 'x', TIDEGATE____proto____x: 'x' } })).toHaveLength(
      3,
    );
    expect(problems('', { env: { TIDEGATE__mqtt__max_qos: '9' } })).toEqual([
      'environment TIDEGATE__mqtt__max_qos mqtt.max_qos: 0 to 2 expected',
    ]);
    expect(problems('', { set: ['persistence.syncc=ack'] })).toEqual([
      '--set persistence.syncc persistence.syncc: unknown key; did you mean sync?',
    ]);
  });

  test('an override does not reach what shares its value by reference', () => {
    const text =
      'base { enable = true, pub_url = "inproc://x", forwards = [] }\nbridges.nng.pub { a = ${base}, b = ${base} }';
    expect(config(text).bridges.nng.pub.map((p) => p.urls)).toEqual([['inproc://x'], ['inproc://x']]);
    expect(warnings(text)[0]).toContain('base: unknown key');
    const shared =
      'bridges.nng.pub { a { enable = true, pub_url = "inproc://a", overflow = block }, b = ${bridges.nng.pub.a} }';
    const { pub } = config(shared, { set: ['bridges.nng.pub.a.overflow=drop_newest'] }).bridges.nng;
    expect(pub.map((p) => p.overflow)).toEqual(['drop_newest', 'block']);
  });

  test('a file that is missing or a folder ends with CFG-READ and its name', () => {
    const missing = caught(() => loadConfig({ file: '/nonexistent/x.conf', env: {} }));
    expect(missing).toBeInstanceOf(GatewayError);
    expect(missing).toMatchObject({
      code: 'CFG-READ',
      exit: 78,
      message: 'configuration cannot be read: /nonexistent/x.conf: no such file',
    });
    expect(caught(() => loadConfig({ file: folder(), env: {} }))).toMatchObject({ code: 'CFG-READ' });
  });

  test.skipIf(process.getuid?.() === 0)(
    'a file that may not be read is not passed over for another (not shown as root: root reads everything)',
    () => {
      const dir = folder({ 'tidegate.conf': '', 'tidegate.toml': '' });
      chmodSync(join(dir, 'tidegate.conf'), 0);
      expect(caught(() => loadConfig({ cwd: dir, env: {} }))).toMatchObject({ code: 'CFG-READ' });
    },
  );

  test('a configuration cannot be changed afterwards', () => {
    const c = config('bridges.nng.pub.p { enable = true, pub_url = "inproc://x", forwards = [ { local_topic = a } ] }');
    expect(() => Object.assign(c.mqtt, { maxQos: 0 })).toThrow(TypeError);
    expect(() => Object.assign(c.bridges.nng.pub[0].forwards[0], { qos: 2 })).toThrow(TypeError);
  });

  test('lists the files it has read', () => {
    const { files } = load('include "a/b.conf"', { files: { 'a/b.conf': 'mqtt.max_qos = 1' } });
    expect(files.map((f) => f.split('/').at(-1))).toEqual(['c.conf', 'b.conf']);
  });

  test('.json and .hocon are read as HOCON', () => {
    expect(config('{"mqtt": {"max_qos": 1}}', { ext: 'json' }).mqtt.maxQos).toBe(1);
    expect(config('mqtt.max_qos = 1', { ext: 'hocon' }).mqtt.maxQos).toBe(1);
  });

  test('CRLF, a byte order mark, blanks at line ends and no last new line change nothing', () => {
    const text = 'mqtt {\n max_qos = 1\n}\nauth.password { u = "p" }';
    expect(load(`\ufeff${text.replaceAll('\n', ' \t\r\n')}`).tree).toEqual(load(text).tree);
  });

  test('a problem shown on a terminal holds no control sequence', () => {
    const text = formatProblem({ at: { file: 'f', line: 1, column: 2 }, key: 'a\u001b[31m', message: 'x\u009by' });
    expect(text).toBe('f:1:2: a\\u001b[31m: x\\u009by');
  });
});

describe('the schema', () => {
  const errors: [string, string, string][] = [
    [
      'an unknown block',
      'listners.tcp.two { bind = "127.0.0.1:1884" }',
      '1:1 listners: unknown key; did you mean listeners?',
    ],
    [
      'an unknown key of persistence',
      'persistence {\n  syncc = ack\n}',
      '2:3 persistence.syncc: unknown key; did you mean sync?',
    ],
    [
      'an unknown key deep in a list',
      'upstreams.u {\n servers = [\n  { addr = "h:1" }\n  { addr = "h:2", wieght = 5 }\n ]\n}',
      '4:19 upstreams.u.servers[1].wieght: unknown key; did you mean weight?',
    ],
    [
      'an unknown word',
      'persistence.sync = sometimes',
      '1:20 persistence.sync: ack | interval | off expected, not sometimes',
    ],
    [
      'a list where a word belongs',
      'persistence {\n sync = [ ack ]\n}',
      '2:9 persistence.sync: ack | interval | off expected, not a list',
    ],
    [
      'no duration',
      'mqtt.send_timeout = 5 parsecs',
      '1:21 mqtt.send_timeout: a duration such as 500ms, 5s, 10m expected, not "5 parsecs"',
    ],
    [
      'no size',
      'mqtt.max_packet_size = banana',
      '1:24 mqtt.max_packet_size: a size such as 512B, 16KB, 8MB expected, not banana',
    ],
    [
      'neither true nor false',
      'mqtt.queue_qos0 = perhaps',
      '1:19 mqtt.queue_qos0: true or false expected, not perhaps',
    ],
    ['a number out of range', 'mqtt.max_qos = 3', '1:16 mqtt.max_qos: 0 to 2 expected'],
    ['a broken number', 'mqtt.max_qos = 1.5', '1:16 mqtt.max_qos: a whole number expected, not 1.5'],
    ['a port out of range', 'http_server {\n port = 70000\n}', '2:9 http_server.port: 0 to 65535 expected'],
    [
      'a packet size no packet fits',
      'mqtt.max_packet_size = 19',
      '1:24 mqtt.max_packet_size: at least 20 bytes are required',
    ],
    ['a missing key', 'bridges.nng.pub.p {\n enable = true\n}', '1:19 bridges.nng.pub.p.pub_url: is missing'],
    [
      'an empty list of servers',
      'upstreams.u { servers = [ ] }',
      '1:25 upstreams.u.servers: at least one is required, or discover',
    ],
    [
      'a block where a value belongs',
      'log.level { x = 1 }',
      '1:11 log.level: trace | debug | info | warn | error | fatal expected, not a block',
    ],
    ['a value where a block belongs', 'mqtt = 1', '1:8 mqtt: a block { ... } expected, not a single value'],
    [
      'an unknown key of a rule of rights',
      'auth.acl {\n enable = true\n conf = "/etc/acl.conf"\n}',
      '3:2 auth.acl.conf: unknown key',
    ],
    ['an empty rule of rights', 'auth.acl.rules = [ { } ]', '1:20 auth.acl.rules[0].permit: is missing'],
  ];
  for (const [name, text, want] of errors) {
    test(`${name} is refused with place and key`, () => {
      expect(problems(text)).toEqual([want]);
    });
  }

  test('every problem is told at once, in the order of the file', () => {
    expect(
      problems('metrics.auth = x\nlog.level = y\nmqtt { max_qos = 7, max_keepalive = -1 }').map((p) => p.split(' ')[0]),
    ).toEqual(['1:16', '2:13', '3:18', '3:37']);
  });

  test('unknown keys in blocks that NanoMQ has are warned about', () => {
    const text =
      'mqtt.max_packt_size = 1MB\nlisteners.tcp { bind = "127.0.0.1:0", x = 1 }\nauth.y = 1\nlog.z = 1\nsqlite.v = 1\nwebhook { url = "http://h", w = 1 }';
    expect(warnings(text).filter((w) => w.includes('unknown key'))).toEqual([
      '1:1 mqtt.max_packt_size: unknown key; did you mean max_packet_size? It has no effect',
      '2:39 listeners.tcp.x: unknown key; it has no effect',
      '3:1 auth.y: unknown key; it has no effect',
      '4:1 log.z: unknown key; it has no effect',
      '5:1 sqlite.v: unknown key; it has no effect',
      '6:29 webhook.w: unknown key; it has no effect',
    ]);
  });

  test('null means as if the key were not there', () => {
    expect(load('mqtt.max_qos = null\nlog = null\nhttp_server = null\nbridges.nng.pub.x = null').tree).toEqual(
      load('').tree,
    );
  });

  test('words are taken in any case, truth values in all their spellings', () => {
    const { mqtt, log } = config(
      'log.level = WARN\nmqtt { queue_qos0 = yes, retain_available = off, wildcard_available = 0, shared_available = "TRUE" }',
    );
    expect([log.level, mqtt.queueQos0, mqtt.retainAvailable, mqtt.wildcardAvailable, mqtt.sharedAvailable]).toEqual([
      'warn',
      true,
      false,
      false,
      true,
    ]);
  });

  test('a number stands for the text it was written as', () => {
    expect(config('auth.password { a = 007, b = 1.10, c = 42, d = true }').auth.users.map((u) => u.password)).toEqual([
      '007',
      '1.10',
      '42',
      'true',
    ]);
  });

  test('TOML gives the same tree as HOCON', () => {
    const toml =
      '[mqtt]\nmax_packet_size = "2MB"\n[[bridges.nng.pub.p.forwards]]\nlocal_topic = "a/#"\n[bridges.nng.pub.p]\nenable = true\npub_url = "inproc://x"\n';
    const hocon =
      'mqtt.max_packet_size = 2MB\nbridges.nng.pub.p { enable = true, pub_url = "inproc://x", forwards = [ { local_topic = "a/#" } ] }';
    expect(load(toml, { ext: 'toml' }).tree).toEqual(load(hocon).tree);
  });

  test('TOML wants quotes where a delimiter is a text', () => {
    const text =
      '[bridges.nng.pub.p]\nenable = true\npub_url = "inproc://x"\n[[bridges.nng.pub.p.forwards]]\nlocal_topic = "a"\nnng_delimiter = 5\n';
    expect(problems(text, { ext: 'toml' })).toEqual([
      '6:17 bridges.nng.pub.p.forwards[0].nng_delimiter: a text in quotes expected, not 5',
    ]);
  });
});

describe('secrets', () => {
  const text = [
    'auth { allow_anonymous = false, password { alice = "s3cret-a" } }',
    'http_server { username = op, password = "s3cret-b" }',
    'bridges.mqtt.up { enable = false, server = "mqtt-tcp://h:1", password = ${PW} }',
    'proxy.p { bind = "127.0.0.1:0", default = local, set { password = "s3cret-c" } }',
    'broker { engine = aedes, redis = "redis://user:s3cret-d@h:6379" }',
    'listeners.ssl { enable = false, key_password = "s3cret-e" }',
    'upstreams.u { servers = [ { addr = "h:1" } ], tls { key_password = "s3cret-f" } }',
    'bridges.nng.pub.n { enable = false, pub_url = "inproc://x", mode = dial, tls { key_password = "s3cret-g" } }',
    'listeners.tcp { }',
  ].join('\n');

  test('are masked in the tree that is shown, users are not', () => {
    const loaded = load(text, { env: { PW: 's3cret-h', TIDEGATE__auth__password__bob: 's3cret-i' } });
    const shown = JSON.stringify(loaded.masked);
    expect(shown).not.toContain('s3cret');
    expect(shown).toContain('alice');
    expect(shown).toContain('redis://user:***@h:6379');
    expect(JSON.stringify(loaded.tree)).toContain('s3cret-a');
    expect(loaded.warnings.map(formatProblem).join()).not.toContain('s3cret');
  });

  test('in headers are masked by the name of the header', () => {
    const headers = 'headers { Authorization = "Bearer s3cret", X-Api-Key = s3cret, content-type = "a/b" }';
    const { masked } = load(
      `webhook { url = "http://u:s3cret@h/x", ${headers} }\nauth.http_auth.auth_req { url = "http://h", ${headers} }`,
    );
    expect(JSON.stringify(masked)).not.toContain('s3cret');
    expect(JSON.stringify(masked)).toContain('a/b');
  });

  test('are not in the message about a wrong one', () => {
    for (const wrong of [
      'auth.password { a { s3cret = 1 } }',
      'http_server { username = u, password = ["s3cret"] }',
      'proxy.p { bind = "h:1", default = local, set { password = "${s3cret" } }',
    ]) {
      expect(caughtText(wrong)).not.toMatch(/"s3cret|= s3cret/);
    }
  });
});

function caughtText(text: string): string {
  try {
    load(text);
    return '';
  } catch (error) {
    return String(error);
  }
}

describe('names', () => {
  test('a bridge, proxy or user may have any name but __proto__', () => {
    const names = ['constructor', 'my.bridge', 'with blank', '桥', '7', 'toString', 'prototype'];
    const text = names
      .map(
        (n) =>
          `bridges.nng.pub.${JSON.stringify(n)} { enable = true, pub_url = ${JSON.stringify(`inproc://${n}`)}, forwards = [ { local_topic = a } ] }\nauth.password.${JSON.stringify(n)} = x`,
      )
      .join('\n');
    const c = config(text);
    expect(c.bridges.nng.pub.map((p) => p.name)).toEqual(names);
    expect(c.auth.users.map((u) => u.username)).toEqual(names);
    expect(problems('bridges.nng.pub.__proto__ { enable = true }')).toEqual([
      '1:1 bridges.nng.pub.__proto__: this name cannot be used',
    ]);
  });

  test('blocks named like members of objects are unknown keys, nothing more', () => {
    expect(warnings('constructor { prototype { polluted = true } }')).toEqual([
      '1:1 constructor: unknown key; it has no effect',
    ]);
    expect(({} as { polluted?: boolean }).polluted).toBeUndefined();
  });
});

test('the file is not read again when a folder lies in its place later', () => {
  const dir = folder({ 'x.conf': 'mqtt.max_qos = 1' });
  const { config: c } = loadConfig({ file: 'x.conf', cwd: dir, env: {} });
  writeFileSync(join(dir, 'x.conf'), 'mqtt.max_qos = 0');
  expect(c.mqtt.maxQos).toBe(1);
});

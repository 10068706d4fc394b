// From file to Config: bridges to SP peers and remote brokers, loops between them, documents of single bridges.
import { describe, expect, test } from 'vitest';
import type { Tree } from '../../src/config/config.ts';
import { readForward, readMqttBridge, readNngPub, readNngSub, readSubscription } from '../../src/config/documents.ts';
import { BROKER_URLS } from '../harness/brokerurls.ts';
import { config, load, problems, warnings } from '../harness/configfiles.ts';

const pub = (rules: string, more = '') =>
  `bridges.nng.pub.p { enable = true, pub_url = "tcp://127.0.0.1:9900", ${more}\n forwards = [ ${rules} ] }`;
const sub = (rules: string, more = '') =>
  `bridges.nng.sub.s { enable = true, sub_url = "tcp://127.0.0.1:9901", ${more}\n subscription = [ ${rules} ] }`;

describe('bridges.nng', () => {
  test('bridges and rules keep names, order, defaults and places', () => {
    const { nng } = config(
      `${pub('{ local_topic = "a/#" }, { enable = false, local_topic = "b", remote_topic = r, nng_delimiter = "\\t", qos = 2, retain = live, from = mqtt }')}\n${sub('{ remote_topic = "x/" }')}`,
    ).bridges;
    expect(nng.pub[0]).toMatchObject({
      name: 'p',
      type: 'pub',
      mode: 'listen',
      driver: 'native',
      overflow: 'drop_oldest',
      sendBuffer: 4194304,
      recvMaxSize: 16777216,
      reconnectMaxMs: 30000,
      clientId: null,
      compat: 'documented',
      urls: ['tcp://127.0.0.1:9900'],
    });
    expect(nng.pub[0].forwards).toMatchObject([
      {
        enable: true,
        localTopic: 'a/#',
        remoteTopic: '',
        nngDelimiter: '/',
        qos: 0,
        retain: 'any',
        from: 'any',
        source: { line: 2 },
      },
      { enable: false, localTopic: 'b', remoteTopic: 'r', nngDelimiter: '\t', qos: 2, retain: 'live', from: 'mqtt' },
    ]);
    expect(nng.sub[0].subscription).toMatchObject([
      { remoteTopic: 'x/', nngDelimiter: '/', localTopic: '', qos: 0, retain: false, match: 'prefix' },
    ]);
  });

  test('an empty delimiter is "/", one URL or several are taken', () => {
    const c = config(
      'bridges.nng.pub.p { enable = true, pub_url = ["inproc://a", "ipc:///b"], forwards = [ { local_topic = a, nng_delimiter = "" } ] }',
    );
    expect(c.bridges.nng.pub[0].urls).toEqual(['inproc://a', 'ipc:///b']);
    expect(c.bridges.nng.pub[0].forwards[0].nngDelimiter).toBe('/');
  });

  test('without enable a bridge is off as documented and on as NanoMQ does, with a warning', () => {
    const text = 'bridges.nng.pub.p { pub_url = "inproc://a", forwards = [ { local_topic = a } ] }';
    expect(config(text).bridges.nng.pub[0].enable).toBe(false);
    expect(warnings(text)).toEqual(['1:19 bridges.nng.pub.p.enable: is not set, so this bridge is off']);
    for (const compat of ['0.25.5', '0.25.6']) {
      expect(config(`bridges.nng.compat = ${compat}\n${text}`).bridges.nng.pub[0]).toMatchObject({
        enable: true,
        compat,
      });
      expect(warnings(`bridges.nng.compat = "${compat}"\n${text}`)[0]).toContain('so this bridge is on');
    }
  });

  const refused: [string, string, string][] = [
    [
      'a release that is not known',
      'bridges.nng.compat = 0.24',
      '1:22 bridges.nng.compat: documented | "0.25.5" | "0.25.6" expected, not 0.24',
    ],
    [
      'an unknown scheme',
      'bridges.nng.pub.p { enable = true, pub_url = "udp://h:1" }',
      'pub_url: unknown scheme udp://',
    ],
    [
      'a relative ipc path in a list',
      'bridges.nng.sub.s { enable = true, sub_url = [ "inproc://x", "ipc://gw.ipc" ] }',
      'sub_url[1]: an absolute path is required',
    ],
    [
      'a rule without local_topic',
      pub('{ remote_topic = r }'),
      '2:15 bridges.nng.pub.p.forwards[0].local_topic: is missing',
    ],
    ['an empty local_topic', pub('{ local_topic = "" }'), 'local_topic: a topic cannot be empty'],
    ['a shared filter', pub('{ local_topic = "$share/g/a" }'), 'local_topic: shared subscriptions are not possible'],
    ['a broken filter', pub('{ local_topic = "a/#/b" }'), 'local_topic: "#" may only be the last level'],
    ['QoS 3', pub('{ local_topic = a, qos = 3 }'), 'qos: 0 to 2 expected'],
    [
      'a delimiter that is a number',
      pub('{ local_topic = a, nng_delimiter = 58 }'),
      'nng_delimiter: a text in quotes expected, not 58',
    ],
    [
      'a wildcard to publish to',
      sub('{ remote_topic = r, local_topic = "l/#" }'),
      'local_topic: a topic to publish to cannot contain',
    ],
    [
      'a template nobody fills in',
      sub('{ remote_topic = r, local_topic = "l/{x}" }'),
      'only {topic}, {suffix} and {json:field}',
    ],
    [
      'no topic at all',
      sub('{ }'),
      '2:19 bridges.nng.sub.s.subscription[0].local_topic: is required when remote_topic is empty',
    ],
    ['a delimiter as the whole remote_topic', sub('{ remote_topic = "/" }'), 'local_topic: is required'],
    [
      'TLS without a certificate',
      'bridges.nng.pub.p { enable = true, pub_url = "tls+tcp://h:1" }',
      'tls: pub_url needs TLS',
    ],
    [
      'dialling nowhere',
      'bridges.nng.sub.s { enable = true, mode = dial, sub_url = "tcp://*:9900" }',
      'requires a host and a port',
    ],
    [
      'dialling port 0',
      'bridges.nng.sub.s { enable = true, mode = dial, sub_url = "tcp://h:0" }',
      'requires a host and a port',
    ],
    [
      'a scheme the driver lacks',
      'bridges.nng.sub.s { enable = true, driver = nanomsg, sub_url = "abstract://x" }',
      'driver = nanomsg has no abstract://',
    ],
    [
      'an unknown key',
      pub('{ local_topic = a, local_topics = b }'),
      'local_topics: unknown key; did you mean local_topic?',
    ],
    [
      'wrong permissions',
      'bridges.nng.sub.s { enable = true, sub_url = "ipc:///x", ipc_mode = "999" }',
      'ipc_mode: permissions in octal',
    ],
  ];
  for (const [name, text, want] of refused) {
    test(`${name} is refused`, () => {
      expect(problems(text)).toHaveLength(1);
      expect(problems(text)[0]).toContain(want);
    });
  }

  test('TLS is built for the side the bridge is on', () => {
    const listen = config(
      'bridges.nng.pub.p { enable = true, pub_url = "tls+tcp://h:1", tls { keyfile = k, certfile = c } }',
    ).bridges.nng.pub[0];
    expect([listen.tlsServer?.certfile, listen.tlsClient]).toEqual(['c', null]);
    const dial = config(
      'bridges.nng.pub.p { enable = true, mode = dial, pub_url = "wss://h:1", tls { cacertfile = a, servername = n } }',
    ).bridges.nng.pub[0];
    expect([dial.tlsServer, dial.tlsClient]).toMatchObject([
      null,
      { ca: 'a', cert: null, key: null, keyPassword: null, verify: true, serverName: 'n' },
    ]);
    const bare = config('bridges.nng.pub.p { enable = true, mode = dial, pub_url = "tls+tcp://h:1" }').bridges.nng
      .pub[0];
    expect(bare.tlsClient?.verify).toBe(true);
  });

  const doubted: [string, string, RegExp][] = [
    ['no rules', pub(''), /forwards: there are no rules/],
    [
      'a rule that an earlier one hides',
      sub('{ remote_topic = a, local_topic = x }, { remote_topic = "a/", local_topic = y }'),
      /an earlier rule takes the same frames/,
    ],
    ['a topic that cannot become one', sub('{ remote_topic = "a/#", nng_delimiter = ":" }'), /which cannot contain/],
    ['match with the delimiter "/"', sub('{ remote_topic = a, match = exact }'), /match: no effect/],
    [
      'an empty remote_topic with compat 0.25.6',
      `bridges.nng.compat = 0.25.6\n${sub('{ nng_delimiter = ":" }')}`,
      /never matches/,
    ],
    [
      'two bridges on one address',
      `${pub('{ local_topic = a }')}\nbridges.nng.sub.s { enable = true, sub_url = "tcp://localhost:9900", subscription = [ { remote_topic = z } ] }`,
      /has this address already/,
    ],
  ];
  for (const [name, text, want] of doubted) {
    test(`${name} is warned about`, () => {
      expect(warnings(text).join('\n')).toMatch(want);
    });
  }
});

describe('loops of NNG bridges', () => {
  const loop = (rule: string, forward: string, urls = ['tcp://127.0.0.1:9900', 'tcp://localhost:9900']) =>
    warnings(
      `bridges.nng.pub.p { enable = true, pub_url = "${urls[0]}", forwards = [ ${forward} ] }\n` +
        `bridges.nng.sub.s { enable = true, mode = dial, sub_url = "${urls[1]}", subscription = [ ${rule} ] }`,
    ).filter((w) => w.includes('could come back'));

  test('are warned about where the frames can come back', () => {
    expect(
      loop(
        '{ remote_topic = r, nng_delimiter = ":", local_topic = "a/x" }',
        '{ local_topic = "a/#", remote_topic = r, nng_delimiter = ":" }',
      ),
    ).toEqual([
      '2:100 bridges.nng.sub.s: what this rule publishes is forwarded by bridges.nng.pub.p (line 1) and could come back',
    ]);
    expect(
      loop('{ remote_topic = "a", nng_delimiter = ":" }', '{ local_topic = "a/#", nng_delimiter = ":" }'),
    ).toHaveLength(1);
    expect(
      loop(
        '{ remote_topic = r, nng_delimiter = ":", local_topic = "in/{topic}" }',
        '{ local_topic = "in/#", remote_topic = rr }',
      ),
    ).toHaveLength(1);
  });

  test('are not where topics, prefixes, addresses or sources part', () => {
    expect(loop('{ remote_topic = r, local_topic = "b/x" }', '{ local_topic = "a/#", remote_topic = r }')).toEqual([]);
    expect(loop('{ remote_topic = r, local_topic = "a/x" }', '{ local_topic = "a/#", remote_topic = q }')).toEqual([]);
    expect(
      loop('{ remote_topic = r, local_topic = "a/x" }', '{ local_topic = "a/#", remote_topic = r, from = mqtt }'),
    ).toEqual([]);
    expect(
      loop('{ remote_topic = r, local_topic = "a/x" }', '{ local_topic = "a/#", remote_topic = r }', [
        'tcp://127.0.0.1:1',
        'tcp://127.0.0.1:2',
      ]),
    ).toEqual([]);
  });

  test('of bridges with one name are warned about', () => {
    const text =
      `${pub('{ local_topic = "a/#", remote_topic = r }')}\n${sub('{ remote_topic = r, local_topic = "a/x" }')}`.replace(
        'sub.s',
        'sub.p',
      );
    expect(warnings(text).join()).toContain('could come back');
  });
});

describe('bridges.mqtt', () => {
  test('keeps the units, defaults and names of the files it knows', () => {
    const b = config(`bridges.mqtt.up {
      server = "tls+mqtt-tcp://broker.example.org", proto_ver = 5, clientid = c, username = u, password = p, keepalive = 30, backoff_max = 1m, clean_start = false
      ssl { cacertfile = ca, certfile = cc, keyfile = kk }
      will { topic = w, payload = x, qos = 1, properties.will_delay_interval = 5 }
      conn_properties { session_expiry_interval = 60, request_problem_infomation = 0, user_property { a = b } }
      forwards = [ { local_topic = "l/#", remote_topic = "", qos = 1, prefix = "p/" } ]
      subscription = [ { remote_topic = "r/#", local_topic = "", retain = 1 } ]
      resend_interval = 5000, hybrid_bridging = true, hybrid_servers = [ "mqtt-tcp://b:1" ]
    }`).bridges.mqtt[0];
    expect(b).toMatchObject({
      name: 'up',
      enable: true,
      server: 'tls+mqtt-tcp://broker.example.org',
      protoVer: 5,
      keepaliveMs: 30000,
      backoffMaxMs: 60000,
      cleanStart: false,
      resendIntervalMs: 5000,
      tls: { ca: 'ca', cert: 'cc', key: 'kk', verify: true },
      will: { topic: 'w', qos: 1, willDelayIntervalSeconds: 5 },
      hybridServers: ['mqtt-tcp://b:1'],
      connProperties: {
        sessionExpiryIntervalSeconds: 60,
        requestProblemInformation: false,
        userProperty: [['a', 'b']],
        receiveMaximum: 65535,
      },
      forwards: [{ localTopic: 'l/#', remoteTopic: '', qos: 1, retain: null, prefix: 'p/' }],
      subscription: [{ remoteTopic: 'r/#', localTopic: '', qos: 0, retain: true, noLocal: true }],
    });
  });

  test('a server that is none is refused, QUIC is warned about and does not run', () => {
    expect(problems('bridges.mqtt.x.server = "http://h"')[0]).toContain('mqtt-tcp://host:port or');
    expect(config('bridges.mqtt.x.server = "mqtt-quic://h:1"').bridges.mqtt[0].enable).toBe(false);
    expect(warnings('bridges.mqtt.x.server = "mqtt-quic://h:1"')[0]).toContain('QUIC is not supported');
  });

  test.each([...BROKER_URLS.refused])('a server that cannot be dialled is refused: %s', (url) => {
    expect(problems(`bridges.mqtt.x.server = ${JSON.stringify(url)}`)[0]).toContain('bridges.mqtt.x.server:');
    const other = `bridges.mqtt.x { server = "mqtt://h", hybrid_servers = [ ${JSON.stringify(url)} ] }`;
    expect(problems(other)[0]).toContain('bridges.mqtt.x.hybrid_servers:');
  });

  test.each([...BROKER_URLS.taken.keys()])('a server that can be dialled is taken: %s', (url) => {
    expect(config(`bridges.mqtt.x.server = ${JSON.stringify(url)}`).bridges.mqtt[0].server).toBe(url);
  });

  test('the name cache and keys of old files are warned about, not taken for bridges', () => {
    const text = 'bridges.mqtt { cache { disk_cache_size = 1 }, nodes = 1, up { server = "mqtt://h" } }';
    expect(config(text).bridges.mqtt.map((b) => b.name)).toEqual(['up']);
    expect(warnings(text).map((w) => w.split(' ')[1])).toEqual(['defaults:', 'needless', 'bridges.mqtt.nodes:']);
  });
});

describe('documents of bridges', () => {
  const document = {
    enable: true,
    pub_url: 'tcp://127.0.0.1:1',
    reconnect_max: 5,
    forwards: [{ local_topic: 'a/#', remote_topic: 'r' }],
  };

  test('are read like the block of a file', () => {
    const read = readNngPub('n', document, 'documented', null);
    expect(read).toMatchObject({
      ok: true,
      value: { name: 'n', reconnectMaxMs: 5000, forwards: [{ localTopic: 'a/#', remoteTopic: 'r' }] },
      tree: { overflow: 'drop_oldest' },
    });
    expect(
      readNngSub(
        'n',
        { enable: true, sub_url: ['inproc://x'], subscription: [{ remote_topic: 'a' }] },
        'documented',
        null,
      ),
    ).toMatchObject({ ok: true });
  });

  test('are refused with a pointer to each mistake', () => {
    const wrong: Tree = JSON.parse(
      JSON.stringify({
        ...document,
        pub_url: 7,
        colour: 'red',
        forwards: [{ local_topic: 'a/#/b', nng_delimiter: 5 }, { remote_topic: 'r' }],
      }),
    );
    const read = readNngPub('n', wrong, 'documented', null);
    expect(read.ok ? [] : read.problems.map((p) => p.pointer)).toEqual([
      '/pub_url',
      '/forwards/0/local_topic',
      '/forwards/0/nng_delimiter',
      '/forwards/1/local_topic',
      '/colour',
    ]);
    const loop: { forwards?: unknown } = {};
    let deep: Record<string, unknown> = loop;
    for (let i = 0; i < 100; i++) deep = deep.a = {};
    expect(readNngPub('n', JSON.parse(JSON.stringify(loop)), 'documented', null).ok).toBe(false);
    expect(readNngPub('n', JSON.parse('{"__proto__": {"enable": true}}'), 'documented', null)).toMatchObject({
      ok: false,
      problems: [{ pointer: '/__proto__' }, ...[]],
    });
  });

  test('keep a secret that reads ***', () => {
    const tree = load('bridges.mqtt.up { server = "mqtt://h", password = old, ssl.key_password = key }').tree as {
      bridges: { mqtt: { up: Record<string, never> } };
    };
    const now = tree.bridges.mqtt.up;
    const kept = readMqttBridge('up', { server: 'mqtts://h', password: '***', ssl: { key_password: '***' } }, now);
    expect(kept).toMatchObject({
      ok: true,
      value: { password: 'old', tls: { keyPassword: 'key' } },
      masked: { password: '***' },
    });
    expect(readMqttBridge('up', { server: 'mqtt://h', password: '***' }, null)).toMatchObject({
      ok: true,
      value: { password: '***' },
    });
  });

  test('single rules are read for a trial', () => {
    expect(readForward({ local_topic: 'a' }, 'documented')).toMatchObject({
      ok: true,
      value: { localTopic: 'a', nngDelimiter: '/' },
    });
    expect(readForward({ remote_topic: 'a' }, 'documented')).toMatchObject({
      ok: false,
      problems: [{ pointer: '/local_topic' }],
    });
    expect(readSubscription({ local_topic: 'a/#' }, 'documented')).toMatchObject({
      ok: false,
      problems: [{ pointer: '/local_topic' }],
    });
  });
});

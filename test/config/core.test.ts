// From file to Config: listeners, auth, mqtt, persistence, http_server, metrics, log, webhook, broker; what is refused or doubted.
import { describe, expect, test } from 'vitest';
import { config, problems, warnings } from '../harness/configfiles.ts';

const CERT = 'keyfile = "k.pem", certfile = "c.pem"';
const MUTUAL = 'verify_peer = true, cacertfile = "a.pem"';

describe('listeners', () => {
  test('only what is named is there, named and unnamed together, disabled ones not', () => {
    const { listeners } = config(`listeners {
      tcp { bind = "127.0.0.1:1", max_connections = 7, connect_timeout = 5s }
      tcp.two { bind = "127.0.0.1:2", proxy_protocol = true }
      tcp.off { bind = "127.0.0.1:3", enable = false }
      ws { bind = "127.0.0.1:4/x" }
      unix { path = "/run/m.sock", mode = "0600" }
    }`);
    expect(listeners.map((l) => [l.name, l.kind, l.host, l.port, l.path])).toEqual([
      ['tcp', 'tcp', '127.0.0.1', 1, ''],
      ['tcp.two', 'tcp', '127.0.0.1', 2, ''],
      ['ws', 'ws', '127.0.0.1', 4, '/x'],
      ['unix', 'unix', '', 0, '/run/m.sock'],
    ]);
    expect(listeners[0]).toMatchObject({ maxConnections: 7, connectTimeoutMs: 5000 });
    expect(listeners[1].proxyProtocol).toBe(true);
    expect(listeners[3].mode).toBe('0600');
  });

  test('a certificate from the PROXY header needs one, and proxies that are believed', () => {
    const text = (more: string): string =>
      `listeners.tcp { bind = "0.0.0.0:1", proxy_protocol_certificate = username ${more} }`;
    expect(problems(text(''))).toEqual([expect.stringContaining('needs proxy_protocol = true')]);
    expect(warnings(text(', proxy_protocol = true')).join()).toContain('may claim any certificate');
    const believed = text(', proxy_protocol = true, proxy_protocol_from = "10.0.0.1"');
    expect(warnings(believed).filter((line) => line.includes('certificate'))).toEqual([]);
    expect(config(believed).listeners).toMatchObject([{ proxyCertificate: true, identity: 'cn' }]);
  });

  test('each but that of a Unix socket may say whose PROXY header is believed', () => {
    const text = `listeners {
      tcp { bind = "0.0.0.0:1", proxy_protocol = true, proxy_protocol_from = [ "10.0.0.0/8", "::1" ] }
      ws { bind = "0.0.0.0:2", proxy_protocol = true }
      unix { path = "/run/m.sock", proxy_protocol = true }
    }`;
    expect(config(text).listeners.map((l) => l.proxyProtocolFrom)).toEqual([['10.0.0.0/8', '::1'], [], []]);
    const told = warnings(text).filter((line) => line.includes('proxy_protocol'));
    expect(told).toHaveLength(1);
    expect(told[0]).toContain('listeners.ws.proxy_protocol');
    expect(problems('listeners.tcp { proxy_protocol_from = [ "10.0.0.0/40" ] }')).toHaveLength(1);
  });

  test('a named listener alone opens no unnamed one, whatever the order of the file', () => {
    for (const text of [
      'mqtt.max_qos = 2\nlisteners.tcp.one.bind = "127.0.0.1:1"',
      'listeners.tcp.one.bind = "127.0.0.1:1"\nmqtt.max_qos = 2',
    ]) {
      expect(config(text).listeners.map((l) => l.name)).toEqual(['tcp.one']);
    }
  });

  test('an empty listeners block opens nothing', () => {
    expect(config('listeners { }').listeners).toEqual([]);
  });

  test('ssl needs a key and a certificate, wss takes those of ssl', () => {
    expect(problems('listeners.ssl { bind = "127.0.0.1:1" }')).toHaveLength(2);
    const { listeners } = config(
      `listeners { ssl { bind = "127.0.0.1:1", ${CERT}, verify_peer = true, cacertfile = "a.pem" }, wss { bind = "127.0.0.1:2" } }`,
    );
    expect(listeners.map((l) => [l.name, l.tls?.keyfile, l.tls?.verifyPeer, l.path])).toEqual([
      ['ssl', 'k.pem', true, ''],
      ['wss', 'k.pem', true, '/mqtt'],
    ]);
  });

  test('asking for client certificates without authorities is refused', () => {
    expect(problems(`listeners.ssl { bind = "127.0.0.1:1", ${CERT}, verify_peer = true }`)[0]).toContain(
      'verify_peer requires trusted certificate authorities',
    );
  });

  test('names from certificates that no client is asked for let nobody in, and are warned about', () => {
    for (const key of ['use_identity_as_username', 'use_subject_as_username'])
      expect(warnings(`listeners.ssl { bind = "127.0.0.1:1", ${CERT}, ${key} = true }`).join('\n')).toContain(
        `${key}: without verify_peer no client is asked for a certificate, so nobody gets in`,
      );
  });

  test('the username is the common name or the whole subject of a certificate, not both', () => {
    const open = (keys: string) => `listeners.ssl { bind = "127.0.0.1:1", ${CERT}, ${MUTUAL}, ${keys} }`;
    expect(config(open('enable = true')).listeners[0].identity).toBeNull();
    expect(config(open('use_identity_as_username = true')).listeners[0].identity).toBe('cn');
    expect(config(open('use_subject_as_username = true')).listeners[0].identity).toBe('subject');
    expect(problems(open('use_identity_as_username = true, use_subject_as_username = true'))[0]).toContain(
      'cannot be combined with use_identity_as_username',
    );
  });

  test('certificates by server name go with those of their listener, and wss takes those of ssl', () => {
    const other = { name: 'b.example', keyfile: 'k2', certfile: 'c2', keyPassword: null };
    const { listeners } = config(
      `listeners { ssl { bind = "127.0.0.1:1", ${CERT}, certificates = [ { servername = b.example, keyfile = k2, certfile = c2 } ] }, wss { bind = "127.0.0.1:2" } }`,
    );
    expect(listeners.map((l) => l.tlsNames)).toEqual([[other], [other]]);
  });

  test('origins of web pages are taken as browsers write them', () => {
    const open = (origins: string) => `listeners.ws { bind = "127.0.0.1:1", origins = ${origins} }`;
    expect(config(open('[]')).listeners[0].origins).toBeNull();
    expect(config(open('"*"')).listeners[0].origins).toEqual(['*']);
    expect(config(open('"https://a.example"')).listeners[0].origins).toEqual(['https://a.example']);
    expect(config(open('["a.example", "b.example:8080"]')).listeners[0].origins).toEqual([
      'a.example',
      'b.example:8080',
    ]);
    for (const wrong of ['https://a.example/', 'https://A.example', 'https://a.example:443', 'A.example', '**'])
      expect(problems(open(`"${wrong}"`))[0]).toContain('an origin such as');
  });

  test('a star is IPv4 and IPv6; two addresses of one port go together where they are of different families', () => {
    expect(config('listeners.tcp.bind = "*:1"').listeners[0]).toMatchObject({ host: '*', port: 1 });
    const both = (a: string, b: string, more = '') =>
      `listeners { tcp.a { bind = "${a}:1"${more} }, tcp.b { bind = "${b}:1" } }`;
    for (const [a, b] of [
      ['127.0.0.1', '127.0.0.2'],
      ['127.0.0.1', '[::1]'],
      ['0.0.0.0', '[::1]'],
    ])
      expect(config(both(a, b)).listeners).toHaveLength(2);
    expect(config(both('[::]', '0.0.0.0', ', ipv6_only = true')).listeners).toHaveLength(2);
    for (const [a, b] of [
      ['*', '127.0.0.1'],
      ['[::]', '0.0.0.0'],
      ['0.0.0.0', '127.0.0.1'],
      ['[::]', '[::1]'],
    ])
      expect(problems(both(a, b))[0]).toContain('has this address already');
  });

  test('WebSocket listeners take the path of bind, one of their own, any, or without one /mqtt and /', () => {
    const paths = (keys: string) => config(`listeners.ws { ${keys} }`).listeners[0].paths;
    expect(paths('bind = "127.0.0.1:1/x"')).toEqual(['/x']);
    expect(paths('bind = "127.0.0.1:1/x", path = "/y"')).toEqual(['/y']);
    expect(paths('bind = "127.0.0.1:1", path = any')).toBeNull();
    expect(paths('bind = "127.0.0.1:1"')).toEqual(['/mqtt', '/']);
    expect(problems('listeners.ws { bind = "127.0.0.1:1", path = y }')[0]).toContain('any, or a path');
  });

  test('one address for two servers is refused, any free port is not', () => {
    expect(problems('listeners { tcp.a.bind = "127.0.0.1:1", tcp.b.bind = "127.0.0.1:1" }')).toEqual([
      '1:24 listeners.tcp.b.bind: listeners.tcp.a has this address already'
        .replace('1:24', '1:41')
        .replace('tcp.a has', 'tcp.a.bind has'),
    ]);
    expect(problems('listeners { tcp.a.bind = "0.0.0.0:1" }\nmetrics.bind = "127.0.0.1:1"')[0]).toContain(
      'metrics.bind: listeners.tcp.a.bind has this address',
    );
    expect(problems('listeners.unix.a.path = "/a"\nlisteners.unix.b.path = "/a"')[0]).toContain(
      'has this path already',
    );
    expect(config('listeners { tcp.a.bind = "127.0.0.1:0", tcp.b.bind = "127.0.0.1:0" }').listeners).toHaveLength(2);
  });

  test('a named listener without an address is refused', () => {
    expect(problems('listeners.tcp.x { max_connections = 1 }')[0]).toContain('listeners.tcp.x.bind: is missing');
  });

  test('a proxy alone opens no listener, unless it leads to the broker here', () => {
    const pool = 'upstreams.a { servers = [ { addr = "h:1" } ] }\n';
    expect(config(`${pool}proxy.p { bind = "127.0.0.1:1", default = a }`).listeners).toEqual([]);
    expect(config(`${pool}proxy.p { bind = "127.0.0.1:1", default = local }`).listeners).toHaveLength(1);
    expect(
      config(
        `${pool}proxy.p { bind = "127.0.0.1:1", default = a, routes = [ { match { clientid = x }, upstream = local } ] }`,
      ).listeners,
    ).toHaveLength(1);
  });
});

describe('auth.allow_anonymous', () => {
  const open = (text: string) => config(text).listeners.map((l) => l.allowAnonymous);

  test('is true by default only while every listener is on loopback and there is no source of users', () => {
    expect(open('listeners { tcp.a.bind = "127.0.0.1:1", unix.path = "/a", tcp.b.bind = "[::1]:1" }')).toEqual([
      true,
      true,
      true,
    ]);
    expect(open('listeners { tcp.a.bind = "127.0.0.1:1", tcp.b.bind = "0.0.0.0:2" }')).toEqual([false, false]);
    expect(open('auth.password { u = p }')).toEqual([false]);
    expect(open('auth.password_file = "/x"')).toEqual([false]);
    expect(open('auth.http_auth.auth_req.url = "http://127.0.0.1:1/"')).toEqual([false]);
    expect(open('proxy.p { bind = "0.0.0.0:1", default = local }')).toEqual([false]);
  });

  test('is what a listener says for itself, and false for one with users of its own', () => {
    const text =
      'listeners { tcp.a { bind = "127.0.0.1:1", allow_anonymous = true }, tcp.b { bind = "127.0.0.1:2", allow_anonymous = false }, tcp.c.bind = "127.0.0.1:3" }\n';
    expect(open(`${text}auth.allow_anonymous = false`)).toEqual([true, false, false]);
    expect(open(`${text}auth.allow_anonymous = true`)).toEqual([true, false, true]);
    expect(open('listeners.tcp { bind = "127.0.0.1:1", password_file = "/x" }\nauth.allow_anonymous = true')).toEqual([
      false,
    ]);
  });

  test('is warned about where anybody or nobody gets in', () => {
    expect(warnings('listeners.tcp.bind = "0.0.0.0:1"\nauth.allow_anonymous = true')[0]).toContain(
      'anybody who reaches',
    );
    expect(warnings('auth.allow_anonymous = false')[0]).toContain('nobody can connect');
    expect(warnings('listeners.tcp.bind = "0.0.0.0:1"')[0]).toContain('nobody can connect');
    expect(warnings('listeners.tcp.bind = "127.0.0.1:1"')).toEqual([]);
  });
});

describe('auth', () => {
  test('rules keep their order, conditions and place', () => {
    const { auth } = config(`auth {
      allow_anonymous = true, no_match = deny, deny_action = disconnect
      acl { rules = [
        { permit = allow, username = u, action = publish, topics = ["a/#"] }
        { permit = "deny", ipaddr = "10.0.0.1", ipaddrs = ["10.0.0.2"], and = [ { clientid = c } ], or = [ { username = v }, { ipaddr = "::1" } ] }
      ] }
    }`);
    expect(auth).toMatchObject({ noMatch: 'deny', denyAction: 'disconnect' });
    expect(auth.acl).toMatchObject([
      {
        permit: 'allow',
        action: 'publish',
        topics: ['a/#'],
        username: 'u',
        clientId: null,
        ipaddrs: [],
        source: { line: 4 },
      },
      {
        permit: 'deny',
        action: 'pubsub',
        topics: [],
        username: null,
        ipaddrs: ['10.0.0.1', '10.0.0.2'],
        and: [{ clientId: 'c' }],
        or: [{ username: 'v' }, { ipaddrs: ['::1'] }],
        source: { line: 5 },
      },
    ]);
  });

  test('a SUBSCRIBE under an ACL file is granted as mosquitto does, or answered truthfully', () => {
    expect(config('').auth.aclSubscribe).toBe('mosquitto');
    expect(config('auth.acl_subscribe = mosquitto').auth.aclSubscribe).toBe('mosquitto');
    expect(config('auth.acl_subscribe = truthful').auth.aclSubscribe).toBe('truthful');
  });

  test('rules that are off or that allow everything are told', () => {
    expect(config('auth.acl { enable = false, rules = [ { permit = deny } ] }').auth.acl).toBeNull();
    expect(warnings('auth.acl.rules = []')[0]).toContain('everything is allowed');
    expect(problems('auth.acl.rules = [ { permit = deny, ipaddr = "10.0.0.300" } ]')[0]).toContain(
      'ipaddr: an address or network expected',
    );
    expect(
      config('auth.acl.rules = [ { permit = deny, ipaddrs = ["#", "10.0.0.0/8", "fe80::/10"] } ]').auth.acl,
    ).toHaveLength(1);
    expect(problems('auth.acl.rules = [ { permit = allow, and = [ { } ] } ]')[0]).toContain('a condition needs');
  });

  test('requests of http_auth are taken with their parameters', () => {
    const { httpAuth } = config(
      'auth.http_auth { timeout = 2s, auth_req { url = "http://h/a", method = GET, headers.x-y = z, params { clientid = "%c", username = "%u" } } }',
    ).auth;
    expect(httpAuth).toMatchObject({
      timeoutMs: 2000,
      cacheTtlMs: 0,
      authReq: {
        url: 'http://h/a',
        method: 'get',
        headers: [['x-y', 'z']],
        params: [
          ['clientid', '%c'],
          ['username', '%u'],
        ],
      },
      aclReq: null,
    });
    expect(problems('auth.http_auth { }')[0]).toContain('is required');
    expect(problems('auth.http_auth.auth_req.url = "ftp://h"')[0]).toContain('an http:// or https:// URL expected');
    expect(config('auth.http_auth.enable = false').auth.httpAuth).toBeNull();
  });
});

describe('mqtt', () => {
  test('limits of connections and memory have defaults, and 0 turns each off', () => {
    expect(config('').mqtt).toMatchObject({
      maxConnectRate: 0,
      maxPendingConnections: 10_000,
      memoryBudget: 0,
      keptBudget: 0,
      maxMatchingFilters: 1000,
      sysIntervalMs: 10_000,
    });
    expect(
      config('mqtt { max_connect_rate = 5, max_pending_connections = 0, memory_budget = 1MB, sys_interval = 0 }').mqtt,
    ).toMatchObject({ maxConnectRate: 5, maxPendingConnections: 0, memoryBudget: 1_048_576, sysIntervalMs: 0 });
    expect(problems('mqtt.memory_budget = 1KB')[0]).toContain('at least 1MB');
  });
});

describe('persistence', () => {
  test('a path turns it on, enable decides where both are given', () => {
    expect(config('persistence.path = "x.db"').persistence).toMatchObject({
      enable: true,
      path: 'x.db',
      sync: 'ack',
      intervalMs: 100,
      maxSize: 1073741824,
      onCorrupt: 'start',
      origin: 'persistence',
    });
    expect(config('persistence { path = "x.db", enable = false }').persistence.enable).toBe(false);
    expect(config('').persistence).toMatchObject({ enable: false, origin: 'default' });
    expect(problems('persistence.enable = true')[0]).toContain('persistence.path: is missing');
  });
});

describe('http_server and metrics', () => {
  test('without credentials the server listens on loopback, with a warning', () => {
    const text = 'http_server { ip_addr = "0.0.0.0", port = 1 }';
    expect(config(text).httpServer?.ipAddr).toBe('127.0.0.1');
    expect(warnings(text)[0]).toContain('listens on 127.0.0.1 only');
    expect(
      config('http_server { ip_addr = "0.0.0.0", auth_type = no_auth, username = u, password = p }').httpServer?.ipAddr,
    ).toBe('127.0.0.1');
    expect(config('http_server { ip_addr = "0.0.0.0", username = u, password = p }').httpServer?.ipAddr).toBe(
      '0.0.0.0',
    );
  });

  test('passwords in clear over the network are warned about', () => {
    expect(warnings('http_server { ip_addr = "0.0.0.0", username = u, password = p }')[0]).toContain('in clear');
    expect(warnings(`http_server { ip_addr = "0.0.0.0", username = u, password = p, tls { ${CERT} } }`)).toEqual([]);
  });

  test('half of the credentials, a key that is missing for jwt, basic without users are refused', () => {
    expect(problems('http_server.username = u')[0]).toContain(
      'http_server.password: username and password belong together',
    );
    expect(problems('http_server.auth_type = jwt')[0]).toContain('jwt.public.keyfile');
    expect(problems('metrics.auth = basic')[0]).toContain(
      'metrics.auth: basic needs username and password of http_server',
    );
  });

  test('metrics that others can read are warned about', () => {
    expect(warnings('metrics.bind = "0.0.0.0:9100"')[0]).toContain('can read the metrics');
  });
});

describe('log, webhook and broker', () => {
  test('a target that is not there is warned about and the console stays', () => {
    expect(config('log.to = [syslog]').log.to).toEqual(['console']);
    expect(warnings('log.to = [syslog, file]')[0]).toContain('syslog is not supported');
    expect(config('log { to = file, rotation.size = 1KB }').log).toMatchObject({
      to: ['file'],
      rotation: { size: 1024, count: 5 },
    });
  });

  test('a webhook keeps its events, headers and units', () => {
    expect(
      config(
        'webhook { url = "http://h/x", headers.content-type = "a/b", cancel_timeout = 2000, body.encoding = base64, events = [ { event = on_message_publish, topic = "a/#" }, { event = on_client_connack } ] }',
      ).webhook,
    ).toMatchObject({
      cancelTimeoutMs: 2000,
      batch: { size: 1, intervalMs: 100 },
      tls: null,
      body: { encoding: 'base64' },
      headers: [['content-type', 'a/b']],
      events: [
        { event: 'on_message_publish', topic: 'a/#' },
        { event: 'on_client_connack', topic: null },
      ],
    });
  });

  test('Redis goes with the engine that can share a broker', () => {
    expect(problems('broker.redis = "redis://h"')[0]).toContain('only engine = aedes');
    expect(problems('broker { engine = aedes, redis = "http://h" }')[0]).toContain(
      'a redis:// or rediss:// URL expected',
    );
  });

  test('what engine = aedes cannot do is refused where it is asked for', () => {
    const refused = (text: string) => problems(`broker.engine = aedes\n${text}`)[0];
    expect(config('broker { engine = aedes, redis = "redis://h" }').broker.engine).toBe('aedes');
    expect(refused('persistence.path = "x.db"')).toMatch(
      /^2:\d+ persistence\.path: engine = aedes keeps nothing on disk/,
    );
    expect(refused('sqlite { enable = true }')).toMatch(/^2:\d+ sqlite\.enable: /);
    expect(refused('mqtt.max_qos = 1')).toMatch(/^2:\d+ mqtt\.max_qos: /);
    expect(refused('mqtt.queue_qos0 = true')).toMatch(/^2:\d+ mqtt\.queue_qos0: /);
    expect(refused('mqtt.keepalive_multiplier = 2')).toMatch(/^2:\d+ mqtt\.keepalive_multiplier: /);
    expect(refused('mqtt.max_topic_levels = 0')).toMatch(/^2:\d+ mqtt\.max_topic_levels: /);
    expect(refused('mqtt.shared_available = true')).toMatch(/^2:\d+ mqtt\.shared_available: /);
    expect(refused('auth.scram_file = "x"')).toMatch(/^\S+ auth\.scram_file: /);
    expect(refused('mqtt.max_sessions = 10')).toMatch(/^2:\d+ mqtt\.max_sessions: /);
    expect(config('broker.engine = aedes\nmqtt.max_sessions = 0').mqtt.maxSessions).toBe(0);
    expect(refused('preset.session.a { clientid = "a" }')).toMatch(/^2:\d+ preset\.session: /);
  });
});

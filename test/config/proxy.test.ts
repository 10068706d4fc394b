// biome-ignore-all lint/suspicious/noTemplateCurlyInString: templates of the proxy are written like this
import { describe, expect, test } from 'vitest';
import { config, problems, warnings } from '../harness/configfiles.ts';

const POOLS =
  'upstreams.a { servers = [ { addr = "10.0.0.1:1883", weight = 5 }, { addr = "unix:/run/b.sock", backup = true } ] }\nupstreams.b { servers = [ { addr = "[::1]:1" } ] }\n';
const proxy = (body: string) => `${POOLS}proxy.p { bind = "127.0.0.1:1", ${body} }`;
const routes = (match: string) =>
  config(proxy(`default = a, routes = [ { match ${match}, upstream = b } ]`)).proxy[0].routes[0].match;

describe('proxy', () => {
  test('keeps defaults and units', () => {
    expect(config(proxy('default = a')).proxy[0]).toMatchObject({
      name: 'p',
      enable: true,
      host: '127.0.0.1',
      port: 1,
      tls: null,
      preread: true,
      prereadMaxBytes: 65536,
      prereadTimeoutMs: 10000,
      connectTimeoutMs: 5000,
      idleTimeoutMs: null,
      reject: 'close',
      set: { clientId: undefined, username: undefined, password: undefined },
      routes: [],
      default: 'a',
      limitConn: { perIp: 0, perClientId: 0 },
      limitRate: { connectsPerSecond: 0, perIpPerSecond: 0, perClientIdPerSecond: 0, burst: 10, banMs: 0 },
      accessLog: null,
    });
    expect(config(proxy('default = a, idle_timeout = 2s, limit_rate.connects = "120/m"')).proxy[0]).toMatchObject({
      idleTimeoutMs: 2000,
      limitRate: { connectsPerSecond: 2 },
    });
  });

  test('whose PROXY header is believed is a list of networks, or one', () => {
    const [edge] = config(proxy('default = a, proxy_protocol = true, proxy_protocol_from = "10.0.0.0/8"')).proxy;
    expect([edge.proxyProtocol, edge.proxyProtocolFrom]).toEqual([true, ['10.0.0.0/8']]);
    expect(problems(proxy('default = a, proxy_protocol = true, proxy_protocol_from = [ lb ]'))[0]).toContain(
      'an address or network expected',
    );
  });

  test('to believe anybody from other machines is warned about', () => {
    const doubts = (bind: string, more: string): string[] =>
      warnings(`${POOLS}proxy.p { bind = "${bind}", default = a, ${more} }`).filter((w) =>
        w.includes('proxy_protocol'),
      );
    expect(doubts('0.0.0.0:1', 'proxy_protocol = true')[0]).toContain('whoever can connect may claim any address');
    expect(doubts('127.0.0.1:1', 'proxy_protocol = true')).toEqual([]);
    expect(doubts('0.0.0.0:1', 'proxy_protocol = true, proxy_protocol_from = [ "10.0.0.1" ]')).toEqual([]);
    expect(doubts('127.0.0.1:1', 'proxy_protocol_from = [ "10.0.0.1" ]')[0]).toContain('has no effect');
  });

  test('binds to one address or several, each claimed once', () => {
    const bind = (written: string) => `${POOLS}proxy.p { bind = ${written}, default = a }`;
    const [several] = config(bind('[ "127.0.0.1:1", "[::1]:2", "10.0.0.9:3" ]')).proxy;
    expect([several.host, several.port, several.otherBinds]).toEqual([
      '127.0.0.1',
      1,
      [
        { host: '::1', port: 2 },
        { host: '10.0.0.9', port: 3 },
      ],
    ]);
    expect(config(bind('"127.0.0.1:1"')).proxy[0].otherBinds).toEqual([]);
    expect(problems(bind('[ "127.0.0.1:7", "127.0.0.1:7" ]'))[0]).toContain('has this address already');
    expect(problems(bind('[ "127.0.0.1:7", "127.0.0.1/x" ]'))[0]).toContain('proxy.p.bind[1]');
    expect(problems(bind('[]'))[0]).toContain('at least one');
    expect(problems(bind('[ "127.0.0.1:1", "127.0.0.1:2" ], protocol = udp, preread = false'))[0]).toContain(
      'takes one address',
    );
    const believed = warnings(bind('[ "127.0.0.1:1", "0.0.0.0:2" ], proxy_protocol = true'));
    expect(believed.join()).toContain('may claim any address');
  });

  test('a log format is a word, a template or a list of names that exist', () => {
    const format = (written: string) => proxy(`default = a, access_log { file = "/tmp/a.log", format = ${written} }`);
    const good = ['JSON', '"${clientid} ${ssl_client_serial}"', '[ time, "match.site" ]'].map((written) =>
      config(format(written)),
    );
    expect(good.map((one) => one.proxy[0].accessLog?.format)).toEqual([
      'json',
      '${clientid} ${ssl_client_serial}',
      ['time', 'match.site'],
    ]);
    for (const [written, problem] of [
      ['jsn', 'a template such as'],
      ['"${clientid"', 'a template such as'],
      ['"${client}"', 'did you mean clientid?'],
      ['"${env.SECRET}"', 'unknown field'],
      ['"${clientid}\\n"', 'no control characters'],
      ['[ time, time ]', 'twice'],
      ['[ password ]', 'unknown field'],
      ['[]', 'a text or a list expected'],
    ])
      expect(problems(format(written))[0]).toContain(problem);
  });

  test('variables of certificates are known everywhere, and warned of where nobody is asked for one', () => {
    expect(routes('= "ssl_client_fingerprint_sha256 == ab"')[0].field).toBe('ssl_client_fingerprint_sha256');
    const set = proxy('default = a, set { clientid = "${ssl_client_serial}" }');
    expect(warnings(set).join()).toContain('nobody is let in');
    expect(problems(proxy('default = a, set { clientid = "${ssl_client_seriall}" }'))[0]).toContain('unknown variable');
  });

  test('topics lead to pools, each with one client id', () => {
    const [front] = config(
      proxy('default = a, topics = [ { filter = "x/#", upstream = b, clientid = "${clientid}-b" } ]'),
    ).proxy;
    expect(front.topics).toEqual([{ filter: 'x/#', upstream: 'b', clientId: '${clientid}-b' }]);
    expect(front.topicRouting).toEqual({
      lost: 'close',
      maxSessions: 8,
      maxPacketBytes: 1_048_576,
      maxHeldBytes: 4_194_304,
      memoryBytes: 268_435_456,
    });
  });

  test.each([
    ['default = a, topics = [ { filter = "x/#", upstream = c } ]', 'there is no upstreams.c'],
    ['default = a, topics = [ { filter = "x/#", upstream = local } ]', 'local is not possible here'],
    ['default = local, topics = [ { filter = "x/#", upstream = a } ]', 'routes to local are not possible with topics'],
    ['default = a, topics = [ { filter = "x#", upstream = a } ]', 'not a topic filter'],
    ['default = a, topics = [ { filter = "$share/g/x", upstream = a } ]', 'no topics of its own'],
    [
      'default = a, topics = [ { filter = x, upstream = b, clientid = one }, { filter = y, upstream = b } ]',
      'another rule has another client id',
    ],
    ['default = a, topics = [ { filter = x, upstream = b, clientid = "${nobody}" } ]', 'unknown variable'],
    ['default = a, preread = false, topics = [ { filter = x, upstream = b } ]', 'reads no packets'],
    ['default = a, non_mqtt = pass, topics = [ { filter = x, upstream = b } ]', 'close is needed with topics'],
    ['default = a, topic_routing.lost = wait', 'has no effect without topics'],
    [
      'default = a, topics = [ { filter = x, upstream = b } ], topic_routing { max_packet_bytes = 1MB, max_held_bytes = 1KB }',
      'is less than max_packet_bytes',
    ],
  ])('%s is refused', (body, problem) => {
    expect(problems(proxy(body)).join()).toContain(problem);
  });

  test('a match is a block of texts and patterns', () => {
    expect(
      routes('{ clientid = "~^sensor-", username = "~*^team-[ab]$", sni = "\\\\~x", cert_cn = "" }').map((c) => [
        c.field,
        c.op,
        c.value,
        c.pattern?.source,
      ]),
    ).toEqual([
      ['clientid', '=~', '^sensor-', '^sensor-'],
      ['username', '=~*', '^team-[ab]$', '^[tT][eE][aA][mM]-[aAbB]$'],
      ['sni', '==', '~x', undefined],
      ['cert_cn', '==', '', undefined],
    ]);
  });

  test('a match is a short text too', () => {
    const short: [string, string[]][] = [
      ['clientid =~ ^sensor-', ['clientid', '=~', '^sensor-']],
      ['username == admin', ['username', '==', 'admin']],
      ['username=="two words"', ['username', '==', 'two words']],
      ['clientid !~* ^x', ['clientid', '!~*', '^x']],
      ['clientid != gone', ['clientid', '!=', 'gone']],
    ];
    for (const [text, want] of short)
      expect(routes(`= ${JSON.stringify(text)}`).map((c) => [c.field, c.op, c.value])).toEqual([want]);
  });

  test('null and false remove a field, a template rewrites it', () => {
    expect(
      config(proxy('default = a, set { clientid = "ng-${clientid}", username = null, password = false }')).proxy[0].set,
    ).toEqual({ clientId: 'ng-${clientid}', username: null, password: null });
  });

  const refused: [string, string, string][] = [
    ['an unknown upstream', 'default = aa', 'proxy.p.default: upstreams.aa does not exist; did you mean a?'],
    [
      'an unknown upstream in a route',
      'default = a, routes = [ { match { clientid = x }, upstream = nope } ]',
      'routes[0].upstream: upstreams.nope does not exist',
    ],
    ['nowhere to go', 'reject = close', 'default: is missing'],
    [
      'a broken pattern',
      'default = a, routes = [ { match { clientid = "~(" }, upstream = b } ]',
      'match.clientid: not a regular expression (pattern)',
    ],
    [
      'a pattern without bounds',
      'default = a, routes = [ { match { clientid = "~(a)\\\\1" }, upstream = b } ]',
      'unbounded time',
    ],
    [
      'an unknown field',
      'default = a, routes = [ { match { clientidd = x }, upstream = b } ]',
      'match.clientidd: unknown field; did you mean clientid?',
    ],
    [
      'a match that is no condition',
      'default = a, routes = [ { match = "clientid", upstream = b } ]',
      '"field op value" expected',
    ],
    ['an empty match', 'default = a, routes = [ { match { }, upstream = b } ]', 'at least one field'],
    ['an unknown variable', 'default = a, set.clientid = "${client}"', 'set.clientid: unknown variable ${client}'],
    [
      'a variable of the environment that is not set',
      'default = a, set.password = "${env.NOT_SET}"',
      'set.password: environment variable NOT_SET is not set',
    ],
    ['an unknown key', 'default = a, idel_timeout = 3s', 'idel_timeout: unknown key; did you mean idle_timeout?'],
    ['no rate', 'default = a, limit_rate.connects = fast', 'a rate such as 100/s expected'],
    ['rewriting without preread', 'default = a, preread = false, set.username = x', 'set: preread = false'],
    [
      'routes without preread',
      'default = a, preread = false, routes = [ { match { clientid = x }, upstream = b } ]',
      'routes: preread = false',
    ],
    ['TLS without a key', 'default = a, tls { certfile = c }', 'tls.keyfile: TLS needs a private key'],
  ];
  for (const [name, body, want] of refused) {
    test(`${name} is refused`, () => {
      expect(problems(proxy(body)).join('\n')).toContain(want);
    });
  }

  test('a variable of the environment that is set is taken', () => {
    expect(config(proxy('default = a, set.password = "${env.PW}"'), { env: { PW: 'x' } }).proxy[0].set.password).toBe(
      '${env.PW}',
    );
  });
});

describe('upstreams', () => {
  test('keep servers with their defaults', () => {
    const [a] = config(proxy('default = a')).upstreams;
    expect(a).toMatchObject({
      name: 'a',
      balance: 'round_robin',
      hashKey: '${clientid}',
      health: null,
      tls: null,
      slowStartMs: 0,
      dnsRefreshMs: 30000,
      sendProxyProtocol: 'off',
    });
    expect(a.servers).toMatchObject([
      {
        addr: '10.0.0.1:1883',
        host: '10.0.0.1',
        port: 1883,
        path: null,
        weight: 5,
        backup: false,
        maxFails: 1,
        failTimeoutMs: 10000,
        maxConns: 0,
      },
      { addr: 'unix:/run/b.sock', path: '/run/b.sock', backup: true },
    ]);
    expect(config('upstreams.h { servers = [ { addr = "h:1" } ], health { } }').upstreams[0].health).toMatchObject({
      type: 'tcp',
      intervalMs: 5000,
      timeoutMs: 2000,
      fails: 1,
      passes: 1,
      anyConnack: false,
      username: null,
      password: null,
    });
  });

  test('an unknown method, a reserved name and no server are refused', () => {
    expect(problems('upstreams.a { balance = best, servers = [ { addr = "h:1" } ] }')[0]).toContain(
      'balance: round_robin |',
    );
    expect(problems('upstreams.local { servers = [ { addr = "h:1" } ] }')[0]).toContain('local is the built-in broker');
    expect(problems('upstreams.a { }')[0]).toContain('servers: at least one is required, or discover');
  });

  test('discovery keeps defaults and units, and needs no server of its own', () => {
    const text = 'upstreams.a { discover { type = consul, name = mqtt, url = "http://127.0.0.1:8500", refresh = 1m } }';
    expect(config(text).upstreams[0]).toMatchObject({
      servers: [],
      discover: { type: 'consul', name: 'mqtt', url: 'http://127.0.0.1:8500', refreshMs: 60_000, timeoutMs: 5000 },
    });
  });

  test.each([
    ['type = dns, name = h', 'port: required with type = dns'],
    ['type = dns, port = 1883', 'name: required with type = dns'],
    ['type = srv', 'name: required with type = srv'],
    ['type = file', 'path: required with type = file'],
    ['type = http', 'url: required with type = http'],
    ['type = http, url = "ftp://h/"', 'url: an http:// or https:// URL expected'],
    ['type = consul, url = "http://h"', 'name: required with type = consul'],
    ['type = zookeeper', 'type: dns | srv | file | http | consul'],
    ['name = x', 'type: is missing'],
  ])('discovery with %s is refused', (keys, problem) => {
    expect(problems(`upstreams.a { discover { ${keys} } }`).join()).toContain(problem);
  });

  test.each([
    ['default = a, protocol = wss', 'protocol: wss needs tls'],
    ['default = a, protocol = ws, half_close = true', 'half_close: WebSocket connections cannot be half-closed'],
    ['default = a, protocol = ws, non_mqtt = pass', 'non_mqtt: only MQTT is carried over WebSocket here'],
    ['default = a, websocket.path = "/x"', 'websocket: has no effect without protocol = ws or wss'],
    ['default = a, protocol = ws, websocket.path = x', 'websocket.path: any, or a path such as /mqtt expected'],
  ])('a proxy over WebSocket with %s is refused', (keys, problem) => {
    expect(problems(proxy(keys)).join()).toContain(problem);
  });

  test('servers that are spoken to over WebSocket have host and port', () => {
    const text = (keys: string) => `upstreams.a { ${keys} }`;
    expect(problems(text('servers = [ { addr = "unix:/run/s" } ], protocol = ws')).join()).toContain(
      'ws needs servers',
    );
    expect(problems(text('servers = [ { addr = "h:1" } ], path = "/x"')).join()).toContain(
      'no effect without protocol = ws',
    );
  });

  test('servers that are all down are warned about', () => {
    expect(warnings('upstreams.a { servers = [ { addr = "h:1", down = true } ] }').join()).toContain(
      'every server is down',
    );
  });
});

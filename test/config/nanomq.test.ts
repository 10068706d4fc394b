// biome-ignore-all lint/suspicious/noTemplateCurlyInString: ${...} is HOCON here
import { describe, expect, test } from 'vitest';
import { missingFeatures } from '../../src/config/features.ts';
import { config, load, problems, warnings } from '../harness/configfiles.ts';

/** As people keep it: blocks of everything, includes for users and rights. */
const FILE = `
# NanoMQ style
system { num_taskq_thread = 0, max_taskq_thread = 0, parallel = 0, daemon = false }
mqtt {
    property_size = 32
    max_packet_size = 1MB
    max_mqueue_len = 2048
    retry_interval = 10s
    keepalive_multiplier = 1.25
    max_inflight_window = 2048
    max_awaiting_rel = 10s
    await_rel_timeout = 10s
}
listeners.tcp { bind = "127.0.0.1:1883" }
listeners.ws { bind = "127.0.0.1:8083/mqtt" }
sqlite {
    disk_cache_size = 102400
    mounted_file_path = "/var/lib/nanomq/"
    flush_mem_threshold = 100
    resend_interval = 5000
}
http_server {
    ip_addr = "127.0.0.1"
    port = 8081
    limit_conn = 2
    username = admin
    password = public
    auth_type = basic
    jwt { public.keyfile = "/etc/certs/jwt/jwtRS256.key.pub" }
}
log { to = [file, console], level = warn, dir = "/tmp", file = "nanomq.log", rotation { size = 10MB, count = 5 } }
auth {
    allow_anonymous = false
    no_match = allow
    deny_action = ignore
    password = {include "pwd.conf"}
    acl = {include "acl.conf"}
}
webhook {
    url = "http://127.0.0.1:8888"
    headers.content-type = "application/json"
    body.encoding = plain
    events = [ { event = "on_message_publish", topic = "a/b/c" }, { event = "on_client_connack" } ]
}
bridges.mqtt.emqx1 {
    server = "mqtt-tcp://127.0.0.1:1884"
    proto_ver = 5
    keepalive = "60s"
    quic_keepalive = 120s
    tcp { nodelay = true, keepidle = 60 }
    forwards = [ { remote_topic = "fwd/topic1", local_topic = "topic1" } ]
    max_parallel_processes = 2
}
bridges.mqtt.cache { disk_cache_size = 102400 }
bridges.aws.x { server = "h:1" }
bridges.nng.sub.can {
    enable = true
    sub_url = "tcp://127.0.0.1:9901"
    clientid = "nng_proxy"
    subscription = [ { remote_topic = "topic_can", nng_delimiter = ":", local_topic = "can", qos = 1 }, { remote_topic = "ekuiper" } ]
}
rules.sqlite { path = "/x.db", rules = [ { sql = "SELECT * FROM \\"t/#\\" // no comment", table = broker } ] }
preset.session.s { clientid = c, topic = [ { remote_topic = "down/#", qos = 2, retain_as_published = true }, { remote_topic = "x", stream_id = 1 } ] }
plugin { libs = [ { path = "/x.so" } ] }
exchange_client.mq1 { exchange_url = "tcp://127.0.0.1:10000", exchange { topic = "t", ringbus = { name = "ring", cap = 1000 } } }
parquet { dir = "/x" }
`;
const files = {
  'pwd.conf': '"client1" : "passwd1"\n"client2" : "passwd2"\n',
  'acl.conf':
    '# rules\nrules = [\n  {"permit": "deny", "username": "client2", "action": "publish", "topics": ["secret/#"]}\n  {"permit": "allow"}\n]\n',
};

describe("a file of NanoMQ's", () => {
  test('starts unchanged, with what it means', () => {
    const c = config(FILE, { files });
    expect(c.mqtt).toMatchObject({
      maxPacketSize: 1048576,
      maxMqueueLen: 2048,
      keepaliveMultiplier: 1.25,
      maxAwaitingRel: 2048,
    });
    expect(c.listeners.map((l) => [l.name, l.allowAnonymous])).toEqual([
      ['tcp', false],
      ['ws', false],
    ]);
    expect(c.auth.users.map((u) => u.username)).toEqual(['client1', 'client2']);
    expect(c.auth.acl).toMatchObject([{ permit: 'deny', topics: ['secret/#'] }, { permit: 'allow' }]);
    expect(c.httpServer).toMatchObject({ port: 8081, username: 'admin', password: 'public', limitConn: 2 });
    expect(c.log).toMatchObject({
      to: ['file', 'console'],
      file: 'nanomq.log',
      rotation: { size: 10485760, count: 5 },
    });
    expect(c.bridges.mqtt).toMatchObject([{ name: 'emqx1', enable: true, protoVer: 5 }]);
    expect(c.bridges.nng.sub[0].subscription).toMatchObject([
      { localTopic: 'can' },
      { remoteTopic: 'ekuiper', qos: 0 },
    ]);
    expect(c.webhook?.events).toHaveLength(2);
    expect(c.presets).toMatchObject([
      {
        name: 's',
        clientId: 'c',
        subscriptions: [
          { topicFilter: 'down/#', qos: 2, retainAsPublished: true, retainHandling: 0 },
          { topicFilter: 'x', qos: 1, retainAsPublished: false, retainHandling: 0 },
        ],
      },
    ]);
  });

  test('turns persistence on with its sqlite block', () => {
    expect(config(FILE, { files }).persistence).toMatchObject({
      enable: true,
      path: '/var/lib/nanomq/tidegate.db',
      origin: 'sqlite',
    });
    expect(config('sqlite { }').persistence.path).toBe('./tidegate.db');
    expect(config('sqlite { }\npersistence.path = "x"').persistence).toMatchObject({
      path: 'x',
      origin: 'persistence',
    });
    expect(config('sqlite.enable = false').persistence.enable).toBe(false);
  });

  test('is told what is not here, each with its line', () => {
    const lines = FILE.split('\n');
    const told = warnings(FILE, { files });
    const [needless] = told.filter((line) => line.includes('needless here'));
    const quiet = [...needless.matchAll(/([\w.[\]]+) \(line (\d+)\)/g)].map(([, key, line]) => [line, key]);
    const loud = told
      .filter((line) => line !== needless)
      .map((line) => line.replace(/^(\d+):\d+ ([^:]*):.*$/, '$1 $2').split(' '));
    expect(quiet.map(([, key]) => key)).toEqual([
      'mqtt.max_awaiting_rel',
      'bridges.mqtt.cache',
      'mqtt.property_size',
      'mqtt.retry_interval',
      'mqtt.await_rel_timeout',
      'bridges.mqtt.emqx1.tcp.keepidle',
      'bridges.mqtt.emqx1.max_parallel_processes',
      'bridges.mqtt.emqx1.quic_keepalive',
      'system',
      'sqlite.disk_cache_size',
      'sqlite.flush_mem_threshold',
      'sqlite.resend_interval',
    ]);
    expect(loud.map(([, key]) => key)).toEqual([
      'bridges.aws',
      'rules.sqlite',
      'preset.session.s.topic[1].stream_id',
      'plugin',
      'exchange_client',
      'parquet',
    ]);
    for (const [line, key] of [...quiet, ...loud]) expect(lines[Number(line) - 1]).toContain(key.split('.').at(-1));
  });

  test('is never refused for a feature that is missing', () => {
    expect(missingFeatures(config(FILE, { files })).filter((f) => !f.warnOnly)).toEqual([]);
  });

  test('does not start when the files with its users and rights are missing', () => {
    expect(problems(FILE)[0]).toContain('there is no file pwd.conf');
  });

  test('keeps a number of max_awaiting_rel, which means another thing there', () => {
    expect(config('mqtt.max_awaiting_rel = 7').mqtt.maxAwaitingRel).toBe(7);
    expect(warnings('mqtt.max_awaiting_rel = "10s"').join()).toContain('mqtt.max_awaiting_rel (line 1)');
    expect(config('mqtt.max_awaiting_rel = "10s"').mqtt.maxAwaitingRel).toBe(2048);
  });
});

describe('features that are missing', () => {
  test('are told with place and key', () => {
    const of = (text: string) => missingFeatures(config(text)).map((f) => `${f.at.line} ${f.key} ${f.warnOnly}`);
    expect(of('')).toEqual([]);
    for (const feature of of('persistence.path = "x"\nwebhook.url = "http://h"'))
      expect(feature).toMatch(/^\d \S+ (true|false)$/);
    expect(load('persistence { path = "x", enable = false }').config.persistence.enable).toBe(false);
  });
});

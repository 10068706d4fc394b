// biome-ignore-all lint/suspicious/noTemplateCurlyInString: ${...} is HOCON here
import { describe, expect, test } from 'vitest';
import { diffConfig } from '../../src/config/reload.ts';
import { load } from '../harness/configfiles.ts';

const BASE = 'listeners.tcp { bind = "127.0.0.1:1" }\nlisteners.tcp.b { bind = "127.0.0.1:2" }\n';
const bridge = (name: string, topic: string) =>
  `bridges.nng.pub.${name} { enable = true, pub_url = "inproc://${name}", forwards = [ { local_topic = "${topic}" } ] }\n`;

function changes(before: string, after: string): string[] {
  return diffConfig(load(before), load(after)).map(
    ({ part, name, kind, restart, rebind }) =>
      `${part}${name === null ? '' : ` ${name}`} ${kind}${restart ? ' restart' : ''}${rebind ? ' rebind' : ''}`,
  );
}

describe('the difference of two configurations', () => {
  test('is nothing where only places, spelling or order of keys differ', () => {
    expect(changes(BASE, `\n\n# moved\n${BASE}`)).toEqual([]);
    expect(changes('mqtt.max_packet_size = 1MB', 'mqtt { max_packet_size = 1024KB }')).toEqual([]);
    const proxy =
      'upstreams.u { servers = [ { addr = "h:1" } ] }\nproxy.p { bind = "127.0.0.1:1", default = u, routes = [ { match { clientid = "~^x" }, upstream = u } ] }';
    expect(changes(proxy, `\n${proxy}`)).toEqual([]);
    expect(changes(proxy, proxy.replace('~^x', '~^y'))).toEqual(['proxy p changed']);
  });

  test('names listeners that come, go, move or let others in', () => {
    expect(changes(BASE, BASE.replace('.b', '.c'))).toEqual(['listeners tcp.b removed', 'listeners tcp.c added']);
    expect(changes(BASE, BASE.replace(':2', ':3'))).toEqual(['listeners tcp.b changed rebind']);
    expect(changes(BASE, BASE.replace(':2"', ':2", allow_anonymous = false'))).toEqual(['listeners tcp.b changed']);
    expect(changes(BASE, `${BASE}auth.password { u = p }`)).toEqual([
      'listeners tcp changed',
      'listeners tcp.b changed',
      'auth changed',
    ]);
  });

  test('names bridges one by one', () => {
    const before = bridge('a', 'x') + bridge('b', 'x');
    expect(changes(before, bridge('b', 'y') + bridge('c', 'x'))).toEqual([
      'bridges.nng.pub a removed',
      'bridges.nng.pub b changed',
      'bridges.nng.pub c added',
    ]);
    expect(changes('bridges.mqtt.m.server = "mqtt://h"', 'bridges.mqtt.m.server = "mqtt://i"')).toEqual([
      'bridges.mqtt m changed',
    ]);
  });

  test('tells what takes a restart', () => {
    expect(changes('', 'mqtt.max_qos = 1')).toEqual(['mqtt changed']);
    expect(changes('', 'log.level = info')).toEqual(['log changed']);
    expect(changes('', 'log.to = file')).toEqual(['log changed restart']);
    expect(changes('', 'persistence.path = "x"')).toEqual(['persistence changed restart']);
    expect(changes('', 'http_server { }')).toEqual(['http_server added restart']);
    expect(changes('metrics { }', '')).toEqual(['metrics removed restart']);
    expect(changes('', 'broker.engine = aedes')).toEqual(['broker changed restart']);
    expect(changes('', 'sqlite.mounted_file_path = "/x"')).toEqual(['persistence changed restart']);
  });

  const HTTP = 'http_server { username = a, password = b, tls { keyfile = k, certfile = c } }\n';
  test.each([
    ['metrics.auth = none', 'metrics.auth = basic'],
    ['http_server.tls.keyfile = k', 'http_server.tls.keyfile = other'],
    ['http_server.tls.alpn = []', 'http_server.tls.alpn = [ "http/1.1" ]'],
    ['http_server.auth_type = basic', 'http_server.auth_type = no_auth'],
    ['http_server.password = b', 'http_server { password = c, port = 1 }'],
  ])('tells that a restart is needed from %s to %s', (before, after) => {
    expect(changes(HTTP + before, HTTP + after)).toEqual([expect.stringMatching(/ changed restart$/)]);
  });

  test.each([
    ['http_server.password = b', 'http_server.password = c'],
    ['http_server.users { }', 'http_server.users.u { password = p }'],
    ['http_server.jwt { }', 'http_server.jwt.issuer = i'],
    ['webhook { url = "http://h" }', 'webhook { url = "http://i" }'],
  ])('tells that no restart is needed from %s to %s', (before, after) => {
    expect(changes(HTTP + before, HTTP + after)).toEqual([expect.stringMatching(/ changed$/)]);
  });

  test('tells what a section that comes takes', () => {
    expect(changes('', 'webhook { url = "http://h" }')).toEqual(['webhook added']);
  });
});

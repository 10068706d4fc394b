// biome-ignore-all lint/suspicious/noTemplateCurlyInString: substitutions of HOCON are written like this
// Whatever lines a file of mosquitto or NanoMQ has: an import that succeeds has written what `check` accepts, and what starts by itself is
// no more open than `convert` says. Random lines over every option there is, with the values people really write and odd ones.
// IMPORT_FILES=100000 IMPORT_SEED=7 for a long run.
import { describe, expect, test } from 'vitest';
import { GatewayError } from '../../src/base/errors.ts';
import { OPTION_KEYS } from '../../src/config/mosquitto/options.ts';
import { type Conversion, converted } from '../harness/converting.ts';
import { Random } from '../harness/random.ts';

const FILES = Number(process.env.IMPORT_FILES ?? 1500);
const SEED = Number(process.env.IMPORT_SEED ?? 1);

const VALUES = [
  ...['true', 'false', '0', '1', '2', '-1', '10', '65535', '65536', '1883', '8883', '99999999999', '1.5', ''],
  ...[
    '/etc/x.pem',
    'x y',
    '"quoted"',
    'a#b',
    '# note',
    'tcp',
    'websockets',
    'mqttv311',
    'mqttv50',
    'tlsv1.2',
    'tlsv1.3',
    'all',
  ],
  ...[
    '127.0.0.1',
    '::1',
    '0.0.0.0',
    'host.example',
    'host.example:1884',
    '[::1]:1884',
    'h1 h2:2',
    '%c/',
    'a/b/',
    'a/#',
    '+',
    '#',
  ],
  ...[
    '# out 1 l/ r/',
    'a/# both 2',
    'a in',
    '"" "" ""',
    'x both 0 "" r/',
    'topic',
    'lazy',
    'automatic',
    'once',
    'manual',
    '10 20',
    '1d',
    '2h',
    'never',
  ],
  ...[
    'file /var/log/m.log',
    'syslog',
    'stdout',
    'none',
    'dlt',
    'ü',
    '\u0000',
    '${x}',
    '\\',
    '"',
    '{',
    '}',
    '[',
    ']',
    '=',
    'null',
    '__proto__',
  ],
];
const ENDS = ['\n', '\n', '\n', '\r\n', ' \n', '\t\n', '\n\n'];

function mosquittoFile(random: Random): string {
  const lines = Array.from({ length: 1 + random.below(14) }, () => {
    if (random.below(3) === 0)
      return random.pick(['listener 1884', 'listener 0 /run/x', 'connection c', 'address h:1', 'topic # both']);
    return `${random.pick(['', '', '', ' ', '\t', '#'])}${random.pick(OPTION_KEYS)} ${random.pick(VALUES)}`;
  });
  return (random.below(10) === 0 ? '\ufeff' : '') + lines.map((line) => line + random.pick(ENDS)).join('');
}

const BLOCKS = [
  'listeners.tcp',
  'listeners.ssl',
  'listeners.ws',
  'mqtt',
  'auth',
  'sqlite',
  'log',
  'http_server',
  'system',
  'webhook',
];
const BRIDGES = [
  'bridges.mqtt.x',
  'bridges.aws.y',
  'bridges.mqtt.nodes',
  'rules.sqlite',
  'rules.repub',
  'exchange_client.e',
];
const KEYS =
  'bind enable property_size max_packet_size max_mqueue_len retry_interval keepalive_multiplier allow_anonymous no_match deny_action cache server proto_ver clean_start username password forwards subscription ssl tls keyfile certfile cacertfile verify_peer port limit_conn auth_type jwt rotation level to dir file url max_send_queue_len resend_interval parallel'.split(
    ' ',
  );
const HOCON_VALUES = [
  ...[
    'true',
    'false',
    '0',
    '1',
    '2',
    '"x"',
    '[]',
    '{}',
    '[ "a" ]',
    '10s',
    '5KB',
    '260MB',
    'infinity',
    '"0.0.0.0:1883"',
    '"mqtt-tcp://h:1883"',
  ],
  ...[
    '[ { remote_topic = "a", local_topic = "b" } ]',
    '[ { topic = "#", qos = 3 } ]',
    'null',
    '"tls+mqtt-tcp://h"',
    '${x}',
    '-1',
    '""',
  ],
];

function nanomqFile(random: Random): string {
  if (random.below(6) === 0)
    return Array.from(
      { length: 1 + random.below(8) },
      () =>
        `${random.pick(['url', 'parallel', 'http_server.enable', 'tls.enable', 'bridge.mqtt.x.address', 'bridge.mqtt.x.forwards.1.topic', 'max_packet_size', 'allow_anonymous', 'auth.1.login'])}=${random.pick([...VALUES, 'nmq-tcp://0.0.0.0:1883'])}`,
    ).join('\n');
  const block = (): string => {
    const keys = Array.from(
      { length: 1 + random.below(5) },
      () => `  ${random.pick(KEYS)} = ${random.pick(HOCON_VALUES)}`,
    );
    return `${random.pick([...BLOCKS, ...BLOCKS, ...BRIDGES])} {\n${keys.join('\n')}\n}`;
  };
  return Array.from({ length: 1 + random.below(5) }, block).join(random.pick(['\n', '\r\n']));
}

/** The value of a call, or its error. */
function outcome<T>(call: () => T): { readonly value: T } | { readonly error: unknown } {
  try {
    return { value: call() };
  } catch (error) {
    return { error };
  }
}

describe('imports of random files', () => {
  test.each([
    ['mosquitto.conf', mosquittoFile],
    ['nanomq.conf', nanomqFile],
  ] as const)(
    '%s: exit 0 means that check accepts what was written, and nothing fails in another way',
    (name, make) => {
      let accepted = 0;
      for (let i = 0; i < FILES; i++) {
        const text = make(new Random(SEED * 1_000_003 + i));
        const at = `IMPORT_SEED=${SEED}, file ${i}:\n${text}`;
        for (const acceptWeaker of [false, true]) {
          const said = outcome<Conversion>(() => converted(text, name, {}, { acceptWeaker, to: 'hocon' }));
          if ('error' in said) {
            expect(said.error, at).toBeInstanceOf(GatewayError);
            continue;
          }
          const { code, out, load } = said.value;
          expect([0, 1, 3], at).toContain(code);
          if (code !== 0) {
            expect(out, at).toBe('');
            continue;
          }
          accepted++;
          const loaded = outcome(() => load());
          expect('error' in loaded ? String(loaded.error) : '', at).toBe('');
        }
      }
      // Files of which none is accepted would show nothing.
      expect(accepted).toBeGreaterThan(FILES / 50);
    },
    120_000,
  );
});

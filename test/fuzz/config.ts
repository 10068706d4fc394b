// biome-ignore-all lint/suspicious/noTemplateCurlyInString: ${...} is HOCON here
// Fuzz target: configuration texts in HOCON and TOML. Holds: a tree or a ConfigError, never another error; what loads can be shown, and
// what every object inherits is as it was.

import { treeOf } from '../../src/config/load.ts';
import { ConfigError } from '../../src/config/problem.ts';
import { ROOT } from '../../src/config/schema/schema.ts';
import { Sink } from '../../src/config/sink.ts';
import type { FuzzTarget } from '../harness/fuzz.ts';
import type { Random } from '../harness/random.ts';

const SEEDS = [
  'listeners { tcp { bind = "127.0.0.1:1883" }, tcp.two.bind = "[::1]:0" }\nmqtt { max_packet_size = 2MB, send_timeout = 5s }\n',
  'bridges.nng.pub.p { enable = true, pub_url = ["tcp://h:1", "ipc:///x"], forwards = [ { local_topic = "a/#", nng_delimiter = "\\u2192" } ] }\n',
  'base { x = 1 }\na = ${base} { y = ${?b} }\nlog.to += console\nauth.password { "u.v" : """p"w""" }\n',
  '[[bridges.nng.sub.s.subscription]]\nremote_topic = \'x\'\n[proxy.p.set]\nclientid = "ng-${clientid}"\n',
  '[auth.password]\nconstructor = "x" # y\n"a b" = """z"""\n[metrics]\nbind = "127.0.0.1:0"\n',
];
const PARTS = [
  '{',
  '}',
  '[',
  ']',
  '=',
  ':',
  ',',
  '"',
  '"""',
  "'",
  '\\',
  '#',
  '//',
  '\n',
  ' ',
  '${',
  '?',
  '+=',
  '.',
  '__proto__',
  'constructor',
  'toString',
  'include',
  '1e9',
  '-',
  '\0',
  '\ud83d',
  'é',
];

export const target: FuzzTarget = {
  once(random: Random): void {
    let text = random.pick(SEEDS);
    for (let count = random.below(6); count > 0; count--) {
      const at = random.below(text.length + 1);
      text = text.slice(0, at) + random.pick(PARTS) + text.slice(at + random.below(4));
    }
    if (random.below(3) === 0) text = random.mutated(Buffer.from(text)).toString('utf8');
    try {
      const tree = treeOf({ text, dialect: random.pick(['hocon', 'toml'] as const) }, '/', () => undefined, [], []);
      const sink = new Sink();
      const root = ROOT.read(tree, '', sink);
      if (root !== undefined && sink.problems.length === 0) JSON.stringify(ROOT.show(root, true));
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
    }
    const inherited = [Object.prototype, Object, Object.prototype.toString, Object.prototype.valueOf];
    if (Object.keys({}).length > 0 || inherited.some((object) => Object.keys(object).length > 0))
      throw new Error(`polluted by ${JSON.stringify(text)}`);
  },
};

// biome-ignore-all lint/suspicious/noTemplateCurlyInString: ${...} is HOCON here
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Writable } from 'node:stream';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type ConvertOptions, convert } from '../../src/cli/convert.ts';
import { treeOf } from '../../src/config/load.ts';
import { ConfigError } from '../../src/config/problem.ts';
import { blockNode, type Node } from '../../src/config/text/node.ts';
import { writeHocon, writeToml } from '../../src/config/text/write.ts';
import { folder, load } from '../harness/configfiles.ts';
import { caught } from '../harness/thrown.ts';

class Sink extends Writable {
  text = '';
  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    this.text += chunk.toString();
    done();
  }
}

function run(text: string, name: string, options: Partial<ConvertOptions> = {}, env: Record<string, string> = {}) {
  const cwd = folder({ [name]: text });
  const [stdout, stderr] = [new Sink(), new Sink()];
  const code = convert({ file: name, ...options }, { stdout, stderr }, { cwd, env });
  return { code, out: stdout.text, err: stderr.text, cwd };
}

const TEXT = `
listeners { tcp { bind = "127.0.0.1:1" }, tcp.two { bind = "127.0.0.1:2", enable = false }, unix { path = "/run/x" } }
mqtt { max_packet_size = 2MB, max_session_expiry = 2h, queue_qos0 = true }
auth { allow_anonymous = false, password { "a.b" : "p#1", "q\\"q" : "ü\\t", n = 1.10, t = true } }
bridges.nng.pub.x { enable = true, pub_url = ["tcp://127.0.0.1:3", "ipc:///tmp/x.ipc"], forwards = [ { local_topic = "a/#", remote_topic = "→", nng_delimiter = "\\t" }, { local_topic = b } ] }
upstreams.u { servers = [ { addr = "h:1", weight = 5 }, { addr = "h:2", backup = true } ], health { } }
proxy.p { bind = "127.0.0.1:4", default = u, set { password = null, clientid = "ng-x" }, routes = [ { match { clientid = "~^s", username = admin }, upstream = u } ] }
http_server { }
`;

describe('convert', () => {
  test('to TOML and back keeps the effective configuration', () => {
    const toml = run(TEXT, 'a.conf', { to: 'toml' }).out;
    expect(load(toml, { ext: 'toml' }).tree).toEqual(load(TEXT).tree);
    const hocon = run(toml, 'b.toml', { to: 'hocon' }).out;
    expect(load(hocon).tree).toEqual(load(TEXT).tree);
    expect(toml).toContain('[[bridges.nng.pub.x.forwards]]');
    expect(toml).toContain('password = false');
  });

  test('without --to writes the other dialect', () => {
    expect(run('mqtt.max_qos = 1', 'a.conf').out).toBe('[mqtt]\nmax_qos = 1\n');
    expect(run('[mqtt]\nmax_qos = 1\n', 'a.toml').out).toBe('mqtt {\n  max_qos = 1\n}\n');
  });

  test('tells what is lost: comments, values of the environment, keys without effect', () => {
    const { err, out } = run(
      '# why\nmqtt { retry_interval = 1s, max_qos = 1 }\nlog.dir = ${D}\nplugin { libs = [] }',
      'a.conf',
      {},
      { D: '/d' },
    );
    expect(err.split('\n').map((l) => l.replace(/^(\S+) (\S+) .*$/, '$1 $2'))).toEqual([
      'a.conf: ${D}:',
      'a.conf:2:1: defaults:',
      'a.conf:4:8: plugin:',
      'a.conf:2:25: needless',
      'a.conf: comments:',
      '',
    ]);
    expect(out).toBe('[mqtt]\nmax_qos = 1\n\n[log]\ndir = "/d"\n');
  });

  test('writes to a file that only its owner can read', () => {
    const { out, cwd } = run('mqtt.max_qos = 1', 'a.conf', { output: 'b.toml' });
    expect(out).toBe('');
    expect(readFileSync(join(cwd, 'b.toml'), 'utf8')).toBe('[mqtt]\nmax_qos = 1\n');
  });

  test('refuses a wrong configuration', () => {
    expect(caught(() => run('mqtt.max_qos = 7', 'a.conf'))).toBeInstanceOf(ConfigError);
  });

  test('any tree is written so that it is read again', () => {
    const at = { file: '', line: 0, column: 0 };
    const key = fc
      .string({ unit: 'grapheme', minLength: 1, maxLength: 8 })
      .filter((k) => k !== '__proto__' && !k.includes('\0'));
    const text = fc.string({ unit: 'grapheme', maxLength: 12 });
    const scalar = fc.oneof(
      text.map((value): Node => ({ kind: 'scalar', value, text: value, quoted: true, at })),
      fc
        .oneof(fc.integer(), fc.boolean())
        .map((value): Node => ({ kind: 'scalar', value, text: String(value), quoted: false, at })),
    );
    const { node } = fc.letrec<{ node: Node }>((tie) => ({
      node: fc.oneof(
        { depthSize: 'small' },
        scalar,
        fc.array(fc.oneof(scalar, tie('node')), { maxLength: 3 }).map((items): Node => ({ kind: 'list', items, at })),
        fc.dictionary(key, tie('node'), { maxKeys: 4 }).map(
          (entries): Node => ({
            kind: 'block',
            at,
            fields: new Map(Object.entries(entries).map(([k, value]) => [k, { at, value }])),
          }),
        ),
      ),
    }));
    const shape = (n: Node): unknown =>
      n.kind === 'scalar'
        ? n.text
        : n.kind === 'list'
          ? n.items.map(shape)
          : Object.fromEntries([...n.fields].map(([k, m]) => [k, shape(m.value)]));
    fc.assert(
      fc.property(fc.dictionary(key, node, { maxKeys: 5 }), (entries) => {
        const tree = blockNode(at);
        for (const [k, value] of Object.entries(entries)) tree.fields.set(k, { at, value });
        for (const [dialect, write] of [
          ['hocon', writeHocon],
          ['toml', writeToml],
        ] as const) {
          const written = write(tree);
          const read = treeOf({ text: written, dialect }, '', () => undefined, [], []);
          expect({ dialect, value: shape(read) }).toEqual({ dialect, value: shape(tree) });
        }
      }),
      { numRuns: 400 },
    );
  });
});

// Keys for local analytics processes: presets and what they fill in, frame, trace and fallback_topic, delimiters of any length.
import { describe, expect, test } from 'vitest';
import type { NngPairConfig } from '../../src/config/bridges.ts';
import type { Loaded } from '../../src/config/config.ts';
import { loadConfig } from '../../src/config/load.ts';
import { ConfigError } from '../../src/config/problem.ts';

function load(hocon: string): Loaded {
  return loadConfig({ text: { text: hocon, dialect: 'hocon' }, env: {} });
}
function pair(body: string): NngPairConfig {
  return load(`bridges.nng.pair.p { enable = true, ${body} }`).config.bridges.nng.pair[0];
}
function problems(hocon: string): string[] {
  try {
    load(hocon);
    return [];
  } catch (error) {
    if (error instanceof ConfigError) return error.problems.map((p) => `${p.key}: ${p.message}`);
    throw error;
  }
}
const warnings = (hocon: string): string[] =>
  load(hocon)
    .warnings.map((w) => `${w.key}: ${w.message}`)
    .sort();
const RULES = 'forwards = [ { local_topic = "out/#" } ], subscription = [ { local_topic = "in" } ]';

describe('preset', () => {
  test('ekuiper listens for a pair0 that speaks payloads, keeps frames for it and never holds a publisher', () => {
    expect(pair(`preset = ekuiper, ${RULES}`)).toMatchObject({
      urls: ['tcp://127.0.0.1:7081'],
      mode: 'listen',
      protocol: 'pair0',
      overflow: 'drop_oldest',
      spool: 64 << 20,
      forwards: [{ frame: 'payload', trace: 'keep', qos: 1 }],
      subscription: [{ frame: 'payload', trace: 'strip' }],
    });
  });
  test('neuron dials', () => {
    expect(pair(`preset = neuron, pair_url = "tcp://10.0.0.1:7081", ${RULES}`)).toMatchObject({
      urls: ['tcp://10.0.0.1:7081'],
      mode: 'dial',
      forwards: [{ frame: 'payload' }],
    });
  });
  test('nngproxy is for publishers and subscribers too', () => {
    const { nng } =
      load(`bridges.nng.pub.a { enable = true, preset = nngproxy, pub_url = "ipc:///tmp/a", forwards = [ { local_topic = a } ] }
      bridges.nng.sub.b { enable = true, preset = nngproxy, sub_url = "ipc:///tmp/b", subscription = [ { local_topic = b } ] }`)
        .config.bridges;
    expect(nng.pub[0]).toMatchObject({ spool: 64 << 20, forwards: [{ frame: 'payload' }] });
    expect(nng.sub[0]).toMatchObject({ subscription: [{ frame: 'payload', trace: 'keep' }] });
  });
  test('everything that is written counts more', () => {
    const text = `preset = ekuiper, pair_url = "ipc:///tmp/neuron-ekuiper.ipc", mode = dial, overflow = block, spool = 0,
      forwards = [ { local_topic = a, frame = topic, qos = 0, trace = add } ], subscription = [ { local_topic = in, trace = keep } ]`;
    expect(pair(text)).toMatchObject({
      urls: ['ipc:///tmp/neuron-ekuiper.ipc'],
      mode: 'dial',
      overflow: 'block',
      spool: 0,
      forwards: [{ frame: 'topic', qos: 0, trace: 'add' }],
      subscription: [{ frame: 'payload', trace: 'keep' }],
    });
  });
  test('one way alone warns of nothing', () => {
    const text = 'bridges.nng.pair.p { enable = true, preset = ekuiper, subscription = [ { local_topic = in } ] }';
    expect(warnings(text)).toEqual([]);
  });
  test('what it is not made for is refused', () => {
    expect(problems('bridges.nng.push.p { preset = ekuiper, push_url = "ipc:///tmp/x" }')).toEqual([
      'bridges.nng.push.p.preset: "ekuiper" is for bridges.nng.pair',
    ]);
    expect(problems('bridges.nng.pair.p { preset = kuiper, pair_url = "ipc:///tmp/x" }')[0]).toContain('preset');
  });
});

describe('frame', () => {
  test('payload needs a topic to publish to', () => {
    const text =
      'bridges.nng.sub.s { enable = true, sub_url = "ipc:///tmp/x", subscription = [ { frame = payload } ] }';
    expect(problems(text)).toEqual(['bridges.nng.sub.s.subscription[0].local_topic: is required with frame = payload']);
  });
  test('a topic may hold fields of the payload, but no wildcard', () => {
    const sub = (topic: string): string =>
      `bridges.nng.sub.s { enable = true, sub_url = "ipc:///tmp/x", subscription = [ { frame = payload, local_topic = "${topic}" } ] }`;
    expect(problems(sub('n/{json:node_name}/{json:values.a#b}'))).toEqual([]);
    expect(problems(sub('n/{json:a}/#'))).toHaveLength(1);
    expect(problems(sub('n/{json:}'))).toHaveLength(1);
  });
  test('what has no effect is pointed out', () => {
    const text = `bridges.nng.pair.p { enable = true, preset = ekuiper, forwards = [ { local_topic = a, remote_topic = b } ],
      subscription = [ { local_topic = "in/{topic}", remote_topic = c, fallback_topic = d } ] }`;
    expect(warnings(text)).toEqual([
      'bridges.nng.pair.p.forwards[0].remote_topic: no effect with frame = payload',
      'bridges.nng.pair.p.subscription[0].fallback_topic: no effect without {json:} in local_topic',
      'bridges.nng.pair.p.subscription[0].local_topic: {topic} and {suffix} are empty with frame = payload',
      'bridges.nng.pair.p.subscription[0].remote_topic: no effect with frame = payload',
    ]);
  });
});

describe('overflow = block', () => {
  const push = (more: string): string =>
    `bridges.nng.push.p { enable = true, push_url = "ipc:///tmp/x", ${more} forwards = [ { local_topic = a, qos = 1 } ] }`;
  test('warns where nothing bounds how long publishers wait', () => {
    expect(warnings(push(''))).toEqual([
      expect.stringContaining('bridges.nng.push.p.overflow: block holds publishers'),
    ]);
  });
  test.each(['overflow = drop_oldest,', 'spool = 1MB,'])('%s bounds it', (more) => {
    expect(warnings(push(more))).toEqual([]);
  });
  test('QoS 0 holds nobody', () => {
    expect(warnings(push('').replace('qos = 1', 'qos = 0'))).toEqual([]);
  });
});

describe('nng_delimiter', () => {
  const delimiterOf = (written: string): string =>
    load(
      `bridges.nng.pub.p { enable = true, pub_url = "ipc:///tmp/x", forwards = [ { local_topic = a, nng_delimiter = ${written} } ] }`,
    ).config.bridges.nng.pub[0].forwards[0].nngDelimiter;
  test.each([
    ['"\\u0000"', '\0'],
    ['":\\u0000:"', ':\0:'],
    [`"${'x'.repeat(256)}"`, 'x'.repeat(256)],
    [`"${'→'.repeat(5000)}"`, '→'.repeat(5000)],
    ['"\\t"', '\t'],
  ])('%s', (written, delimiter) => expect(delimiterOf(written)).toBe(delimiter));
  test('a NUL in TOML is an escape too', () => {
    const text = `[bridges.nng.pub.p]\nenable = true\npub_url = "ipc:///tmp/x"\nforwards = [ { local_topic = "a", nng_delimiter = "\\u0000" } ]\n`;
    const { config } = loadConfig({ text: { text, dialect: 'toml' }, env: {} });
    expect(config.bridges.nng.pub[0].forwards[0].nngDelimiter).toBe('\0');
  });
});

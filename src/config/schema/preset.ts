// Presets of NNG bridges: what a known peer needs, as other defaults. Everything that is written counts more. Used by
// nng.ts. A preset is filled into the block before it is read, so that checks, `check --print` and REST see what is
// in force. Sources: docs/local-analytics.md (what eKuiper, Neuron and NanoMQ's nngproxy speak).
import { type BlockNode, type Member, type Node, textNode } from '../text/node.ts';
import type { Key } from './key.ts';

interface Preset {
  /** Types of bridges it is made for; others are refused. */
  readonly types: readonly string[];
  /** Keys of the bridge; those that its type does not have are left out. */
  readonly bridge: Readonly<Record<string, string>>;
  readonly forwards: Readonly<Record<string, string>>;
  readonly subscription: Readonly<Record<string, string>>;
}

/** Bytes of frames kept while the peer is away: an hour of a hundred small messages a second. */
const SPOOL = '64MB';
const SENDING = { overflow: 'drop_oldest', spool: SPOOL } as const;
const OUT = { frame: 'payload', qos: '1' } as const;

export const PRESETS: Readonly<Record<string, Preset>> = {
  ekuiper: {
    types: ['pair'],
    bridge: { pair_url: 'tcp://127.0.0.1:7081', mode: 'listen', ...SENDING },
    forwards: OUT,
    subscription: { frame: 'payload', trace: 'strip' },
  },
  neuron: {
    types: ['pair'],
    bridge: { pair_url: 'tcp://127.0.0.1:7081', mode: 'dial', ...SENDING },
    forwards: OUT,
    subscription: { frame: 'payload', trace: 'strip' },
  },
  nngproxy: {
    types: ['pub', 'sub', 'pair'],
    bridge: SENDING,
    forwards: OUT,
    subscription: { frame: 'payload' },
  },
};

/** The same block, with the defaults of the preset that it names. */
export function withPreset<T>(key: Key<T>): Key<T> {
  const known = key.inside?.kind === 'fields' ? key.inside.fields : {};
  const type = ['pub', 'sub', 'push', 'pull', 'pair'].find((one) => Object.hasOwn(known, `${one}_url`)) ?? '';
  return {
    ...key,
    read(node, path, sink) {
      const name = presetOf(node);
      if (name === null || node.kind !== 'block') return key.read(node, path, sink);
      const preset = PRESETS[name];
      if (!preset.types.includes(type)) {
        const fits = preset.types.map((one) => `bridges.nng.${one}`).join(', ');
        return sink.problem(node.at, `${path}.preset`, `"${name}" is for ${fits}`);
      }
      return key.read(filled(node, preset, known), path, sink);
    },
  };
}

function presetOf(node: Node): string | null {
  if (node.kind !== 'block') return null;
  const value = node.fields.get('preset')?.value;
  return value?.kind === 'scalar' && Object.hasOwn(PRESETS, value.text) ? value.text : null;
}

function filled(node: BlockNode, preset: Preset, known: object): BlockNode {
  const bridge = Object.fromEntries(Object.entries(preset.bridge).filter(([name]) => Object.hasOwn(known, name)));
  const whole = withDefaults(node, bridge);
  const fields = new Map(whole.fields);
  for (const rules of ['forwards', 'subscription'] as const) {
    const member = fields.get(rules);
    if (member?.value.kind !== 'list') continue;
    const items = member.value.items.map((item) => withDefaults(item, preset[rules]));
    fields.set(rules, { ...member, value: { ...member.value, items } });
  }
  return { ...whole, fields };
}

function withDefaults<N extends Node>(node: N, defaults: Readonly<Record<string, string>>): N {
  if (node.kind !== 'block') return node;
  const fields = new Map<string, Member>(node.fields);
  for (const [name, text] of Object.entries(defaults))
    if (!fields.has(name)) fields.set(name, { at: node.at, value: textNode(text, node.at) });
  return { ...node, fields };
}

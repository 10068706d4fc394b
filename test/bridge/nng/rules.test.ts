// NNG bridge rules: src/bridge/nng/rules.ts against the truth tables of test/vectors.
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Compat, SubscriptionOptions } from '../../../src/bridge/bridge.ts';
import { buildFrame } from '../../../src/bridge/nng/outgoing.ts';
import { Extractor, ForwardHead } from '../../../src/bridge/nng/rules.ts';
import { matches } from '../../../src/mqtt/topic.ts';
import extractTable from '../../vectors/sp-extract.json' with { type: 'json' };
import forwardTable from '../../vectors/sp-forward.json' with { type: 'json' };

const bytesOf = (text: string): Buffer =>
  text.startsWith('hex:') ? Buffer.from(text.slice(4), 'hex') : Buffer.from(text);
const showBytes = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');

function subscription(row: {
  remote: string;
  delim: string;
  local: string;
  qos?: number;
  match?: string;
}): SubscriptionOptions {
  return {
    enable: true,
    remoteTopic: row.remote,
    nngDelimiter: row.delim,
    localTopic: row.local,
    qos: (row.qos ?? 0) as 0 | 1 | 2,
    retain: false,
    match: (row.match ?? 'prefix') as SubscriptionOptions['match'],
  };
}

type Got = [string, number, string] | string | null;

function run(extractor: Extractor, body: Buffer): Got {
  // Not at offset 0: positions in the chunk must not leak into the result.
  const chunk = Buffer.concat([Buffer.from('..'), body, Buffer.from('::/')]);
  const end = 2 + body.length;
  const result = extractor.extract(chunk, 2, end);
  if (result === 'invalid-topic') return result;
  if (result !== 'match' && result !== 'fallback') return null;
  return [extractor.topic, extractor.rule?.qos ?? 0, showBytes(chunk.subarray(extractor.payloadStart, end))];
}

describe('frames from messages', () => {
  for (const entry of forwardTable) {
    const [localTopic, remoteTopic, nngDelimiter] = entry.rule as [string, string, string];
    const compat = (('compat' in entry ? entry.compat : undefined) ?? 'documented') as Compat;
    for (const [topic, payload, frame] of entry.rows as [string, string, string | null][]) {
      test(`rule ${localTopic} -> "${remoteTopic}" "${nngDelimiter}" (${compat}) makes ${frame ?? 'nothing'} of ${topic}`, () => {
        expect(matches(localTopic, topic)).toBe(frame !== null);
        if (frame === null) return;
        const sample = { topic, payload: bytesOf(payload), qos: 0, retain: false } as const;
        const made = buildFrame({ localTopic, remoteTopic, nngDelimiter }, compat, sample);
        expect(showBytes(made)).toBe(showBytes(bytesOf(frame)));
      });
    }
  }
  test('head is made once for a topic, also when topics take turns', () => {
    const head = new ForwardHead({ localTopic: '#', remoteTopic: '', nngDelimiter: ':' }, 'documented');
    const a = head.of('a/1');
    const b = head.of('b/1');
    expect(head.of('a/1')).toBe(a);
    expect(head.of('b/1')).toBe(b);
  });
  test('head keeps working past the number of topics it remembers', () => {
    const head = new ForwardHead({ localTopic: '#', remoteTopic: '', nngDelimiter: ':' }, 'documented');
    for (let i = 0; i < 5000; i++) expect(Buffer.from(head.of(`t/${i}`)).toString()).toBe(`t/${i}:`);
  });
});

describe('messages from frames', () => {
  for (const [number, entry] of extractTable.entries()) {
    for (const compat of ['documented', '0.25.6', '0.25.5'] as const) {
      if ('only' in entry && entry.only !== compat) continue;
      const extractor = new Extractor(entry.rules.map(subscription), compat);
      for (const row of entry.rows) {
        const own = compat !== 'documented' && compat in row ? (row as Record<string, unknown>)[compat] : row.want;
        const want = Array.isArray(own) ? [own[0], own[1], showBytes(bytesOf(own[2]))] : own;
        test(`table ${number} (${compat}) takes "${row.body}" as ${JSON.stringify(own)}`, () => {
          const body = bytesOf(row.body);
          // A fresh extractor, one that has seen the table, and one that has just seen the same body: caches may not matter.
          expect(run(new Extractor(entry.rules.map(subscription), compat), body)).toEqual(want);
          expect(run(extractor, body)).toEqual(want);
          expect(run(extractor, body)).toEqual(want);
        });
      }
    }
  }
  test('a disabled rule does not match and does not move the others', () => {
    const rules = [
      subscription({ remote: 'a', delim: ':', local: 'l/1' }),
      subscription({ remote: 'a', delim: ':', local: 'l/2' }),
    ];
    const extractor = new Extractor([{ ...rules[0], enable: false }, rules[1]], 'documented');
    expect(run(extractor, Buffer.from('a:x'))).toEqual(['l/2', 0, '78']);
    expect(extractor.index).toBe(1);
  });
  test('caches never change what a body means', () => {
    const piece = fc.constantFrom('a', 'b', '/', ':', ';', '::', 'a/b');
    const text = fc.array(piece, { maxLength: 5 }).map((parts) => parts.join(''));
    const rule = fc.record({
      remote: text,
      delim: fc.constantFrom(':', '/', '::', ';'),
      local: fc.constantFrom('', 'l/x', 'in/{topic}', 'o{suffix}'),
      match: fc.constantFrom('prefix', 'level', 'exact'),
    });
    const compats = fc.constantFrom<Compat>('documented', '0.25.6', '0.25.5');
    fc.assert(
      fc.property(
        fc.array(rule, { maxLength: 5 }),
        fc.array(text, { minLength: 1, maxLength: 20 }),
        compats,
        (rows, bodies, compat) => {
          const rules = rows.map(subscription);
          const warm = new Extractor(rules, compat);
          for (const body of bodies) {
            const fresh = new Extractor(rules, compat);
            expect(run(warm, Buffer.from(body))).toEqual(run(fresh, Buffer.from(body)));
            if (fresh.index >= 0) expect(warm.index).toBe(fresh.index);
          }
        },
      ),
      { numRuns: 2000 },
    );
  });
});

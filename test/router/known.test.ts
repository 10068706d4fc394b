// Topics known by their bytes: found as they are, bounded in number, forgotten without a trace.
import { expect, it } from 'vitest';
import { TopicTable } from '../../src/router/known.ts';

function add(table: TopicTable, name: string) {
  const bytes = Buffer.from(`--${name}--`);
  return table.add(name, bytes, 2, bytes.length - 2);
}

function find(table: TopicTable, name: string, before: ReturnType<typeof add> | null = null) {
  const bytes = Buffer.from(name);
  return table.find(bytes, 0, bytes.length, before);
}

it('a topic is found by its bytes, wherever they lie, with its levels and a serial of its own', () => {
  const table = new TopicTable();
  const made = ['a', 'a/b', 'ab', 'ü/+x'.replace('+', ''), '/'].map((name) => add(table, name));
  for (const topic of made) expect(find(table, topic.name)).toBe(topic);
  expect(made.map(({ levels }) => levels)).toEqual([1, 2, 1, 2, 2]);
  expect(new Set(made.map(({ serial }) => serial)).size).toBe(made.length);
  expect(find(table, 'a/c')).toBeNull();
});

it('a topic that follows another is found behind it, also when the order changes', () => {
  const table = new TopicTable();
  const [a, b, c] = ['a', 'b', 'c'].map((name) => add(table, name));
  for (const order of ['abcabc', 'acbacb', 'aabbcc']) {
    let before = c;
    for (const name of order) {
      const found = find(table, name, before);
      expect(found?.name).toBe(name);
      before = found ?? before;
    }
  }
  expect([a, b, c].map(({ name }) => name)).toEqual(['a', 'b', 'c']);
});

it('the number of topics is bounded, and one that was forgotten is not found behind another', () => {
  const table = new TopicTable();
  const first = add(table, 'first');
  const last = add(table, 'last');
  expect(find(table, 'first', last)).toBe(first);
  for (let n = 0; n < 200_000; n++) add(table, `t/${n}`);
  let known = 0;
  for (let n = 0; n < 200_000; n++) if (find(table, `t/${n}`) !== null) known++;
  expect(known).toBeLessThanOrEqual(16_384);
  expect(find(table, 't/199999')?.name).toBe('t/199999');
  expect(find(table, 'first', last)).toBeNull();
});

it('a long topic is known to its finder only', () => {
  const table = new TopicTable();
  const name = 'x'.repeat(1000);
  expect(add(table, name).name).toBe(name);
  expect(find(table, name)).toBeNull();
});

it('the text of checked bytes is found whether the table has them or not', () => {
  const table = new TopicTable();
  add(table, 'known');
  const bytes = Buffer.from('known/grün');
  expect([table.nameAt(bytes, 0, 5), table.nameAt(bytes, 0, bytes.length)]).toEqual(['known', 'known/grün']);
});

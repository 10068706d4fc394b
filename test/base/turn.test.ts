// One flush per object and turn: src/base/turn.ts.
import { expect, test } from 'vitest';
import { type Flushable, Turn } from '../../src/base/turn.ts';

function counting(more: () => void = () => {}): Flushable & { count: number } {
  return {
    dirty: false,
    count: 0,
    flush() {
      this.count++;
      more();
    },
  };
}

test('what is touched many times in a turn is flushed once at its end', () => {
  const turn = new Turn();
  const f = counting();
  turn.enter();
  turn.enter();
  turn.touch(f);
  turn.touch(f);
  turn.leave();
  expect(f.count).toBe(0);
  turn.leave();
  expect(f.count).toBe(1);
});
test('what is touched outside a turn is flushed soon', async () => {
  const turn = new Turn();
  const f = counting();
  turn.touch(f);
  expect(f.count).toBe(0);
  await new Promise<void>((resolve) => setImmediate(resolve));
  expect(f.count).toBe(1);
});
test('what a flush touches is flushed in the same walk', () => {
  const turn = new Turn();
  const second = counting();
  const first = counting(() => turn.touch(second));
  turn.enter();
  turn.touch(first);
  turn.leave();
  expect([first.count, second.count]).toEqual([1, 1]);
});
test('a turn inside a flush does not start a second walk', () => {
  const turn = new Turn();
  const second = counting();
  const first = counting(() => {
    turn.enter();
    turn.touch(second);
    turn.leave();
  });
  turn.enter();
  turn.touch(first);
  turn.leave();
  expect([first.count, second.count]).toEqual([1, 1]);
});

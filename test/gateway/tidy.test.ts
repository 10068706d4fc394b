// When memory is given back: never while there is much to do, and not again and again for nothing.
import { expect, test } from 'vitest';
import { Tidy } from '../../src/gateway/tidy.ts';
import { FakeClock } from '../harness/clock.ts';

const MB = 1024 * 1024;

class Engine {
  readonly clock = new FakeClock();
  total = 40 * MB;
  used = 20 * MB;
  /** Of one processor. */
  busy = 0;
  collections = 0;
  /** What a collection leaves. */
  least = 40 * MB;
  private cpuUs = 0;

  constructor() {
    new Tidy({
      clock: this.clock,
      collect: () => {
        this.collections++;
        this.total = this.least;
      },
      heap: () => this,
      cpuUs: () => this.cpuUs,
    }).start();
  }

  pass(seconds: number): void {
    for (let n = 0; n < seconds; n += 5) {
      this.cpuUs += this.busy * 5_000_000;
      this.clock.advance(5000);
    }
  }
}

test('a heap that has grown is collected when there is little to do, once', () => {
  const engine = new Engine();
  engine.total = 100 * MB;
  engine.busy = 0.6;
  engine.pass(60);
  expect(engine.collections).toBe(0);
  engine.busy = 0.05;
  engine.pass(10);
  expect(engine.collections).toBe(1);
  engine.pass(600);
  expect(engine.collections).toBe(1);
});

test('a heap that has not grown is left alone', () => {
  const engine = new Engine();
  engine.total = 45 * MB;
  engine.pass(600);
  expect(engine.collections).toBe(0);
});

test('a large heap is collected only when there is nothing to do', () => {
  const engine = new Engine();
  engine.total = 600 * MB;
  engine.used = 500 * MB;
  engine.busy = 0.1;
  engine.pass(600);
  expect(engine.collections).toBe(0);
  engine.busy = 0.01;
  engine.pass(10);
  expect(engine.collections).toBe(1);
});

test('collections that are of no use become rare', () => {
  const engine = new Engine();
  for (let n = 0; n < 720; n++) {
    // Grows at once by more than is left alone, and none of it is garbage.
    engine.total *= 1.3;
    engine.least = engine.total;
    engine.pass(5);
  }
  expect(engine.collections).toBeGreaterThan(2);
  expect(engine.collections).toBeLessThan(20);
});

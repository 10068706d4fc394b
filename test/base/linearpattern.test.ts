// Patterns on texts of strangers: bounded in steps of the engine, so in time, whatever the pattern and the text.
import { describe, expect, test } from 'vitest';
import { LinearPattern, statesOf, TextTooLong } from '../../src/base/linearpattern.ts';
import { compilePattern } from '../../src/config/pattern.ts';

function compiled(source: string): LinearPattern {
  const pattern = compilePattern(source, false);
  if (!(pattern instanceof LinearPattern)) throw new Error(String(pattern));
  return pattern;
}

/** Processor time of this process in milliseconds. */
function busyMs(work: () => void): number {
  const from = process.cpuUsage();
  work();
  const { user, system } = process.cpuUsage(from);
  return (user + system) / 1000;
}

describe('a pattern', () => {
  test.each([
    '^(a?){500}$',
    '(a?){500}b',
    '[a-z]{16}[a-z]{16}0',
    `^${'a?'.repeat(400)}$`,
    '(a|aa|aaa|aaaa){100}b',
    'a*a*a*a*a*a*a*a*b',
  ])('%s takes bounded time on any text of 64 KB, or does not read it', (source) => {
    const pattern = compiled(source);
    const read = (text: string): void => {
      try {
        pattern.test(text);
      } catch (error) {
        if (!(error instanceof TextTooLong)) throw error;
      }
    };
    read('x');
    const longest = 'a'.repeat(Math.min(pattern.most, 65_535));
    expect(busyMs(() => read(longest))).toBeLessThan(1000);
    expect(busyMs(() => read('a'.repeat(65_535)))).toBeLessThan(1000);
  });

  test.each(['^dev-[0-9]+$', '^(?:plant)-[a-z0-9]{4}$', '^sensor-', '^[A-Za-z0-9+/=]+$'])(
    '%s reads all of the longest client id that MQTT has',
    (source) => {
      expect(compiled(source).most).toBeGreaterThanOrEqual(65_535);
    },
  );

  test('says that it did not read a text that is too long, in exec() and in test()', () => {
    const pattern = new LinearPattern('a', 1000);
    expect(() => pattern.test('a'.repeat(501))).toThrow(TextTooLong);
    expect(() => pattern.exec('a'.repeat(501))).toThrow('a text of 501 characters, its pattern reads 500');
    expect(pattern.test('a'.repeat(500))).toBe(true);
  });

  test('without ^ counts all its characters, with it only its choices; classes and escapes are one', () => {
    expect(['abc', '^abc', '^a?b*c', '[abc]\\d', '^a|b'].map(statesOf)).toEqual([5, 1, 3, 4, 5]);
  });
});

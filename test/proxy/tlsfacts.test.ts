// Alternative names of certificates as Node writes them: texts made to look like several names stay one.
import { expect, it } from 'vitest';
import { altNames } from '../../src/proxy/tlsfacts.ts';

it('keeps a quoted name in one piece, drops one with a NUL, and ends at what cannot be read', () => {
  const found = altNames(
    'DNS:a.test, URI:"http://x/, DNS:b.test", DNS:"c\\u0000.test", IP Address:::1, email:"broken, DNS:d.test',
  );
  expect(found).toEqual([
    { kind: 'DNS', value: 'a.test' },
    { kind: 'URI', value: 'http://x/, DNS:b.test' },
    { kind: 'IP Address', value: '::1' },
  ]);
  expect(altNames(undefined)).toEqual([]);
  expect(altNames('')).toEqual([]);
});

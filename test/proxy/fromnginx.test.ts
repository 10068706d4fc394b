// docs/from-nginx.md: each of its examples is a configuration that loads without a problem or a warning, and it names every directive.
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { load } from '../harness/configfiles.ts';

const page = readFileSync(new URL('../../docs/from-nginx.md', import.meta.url), 'utf8');
const examples = [...page.matchAll(/^## ([^\n]+)$|^```hocon\n(.*?)^```$/gms)].reduce<[string, string][]>(
  (found, [, heading, text]) => {
    if (heading !== undefined) found.push([heading, '']);
    else found[found.length - 1][1] += `${text}\0`;
    return found;
  },
  [],
);
const texts = examples.flatMap(([heading, text]) =>
  text
    .split('\0')
    .filter((one) => one !== '')
    .map((one): [string, string] => [heading, one]),
);

describe('examples for those who come from NGINX and HAProxy', () => {
  it('stand under every heading that has a form here', () => {
    expect(texts.map(([heading]) => heading)).toEqual(
      examples.map(([heading]) => heading).filter((heading) => heading !== 'What is not there'),
    );
  });

  it.each(texts)('%s: loads, with a proxy in it', (_heading, text) => {
    const { config, warnings } = load(text);
    expect(config.proxy).toHaveLength(1);
    expect(warnings).toEqual([]);
  });

  it.each([
    'mqtt_preread',
    'mqtt',
    'mqtt_buffers',
    'mqtt_rewrite_buffer_size',
    'mqtt_set_connect',
    'mqtt_is_valid',
    'mqtt_field_value',
  ])('the directive %s is named', (name) => {
    expect(page).toMatch(new RegExp(`\`[^\`]*\\b${name}\\b[^\`]*\``));
  });
});

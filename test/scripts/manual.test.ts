// Manual pages: one for each command and one for the configuration, that a formatter reads without a complaint.
import { spawnSync } from 'node:child_process';
import { expect, it } from 'vitest';
import { manualPages } from '../../scripts/manual.ts';

const pages = await manualPages('1.2.3');

it('there is a page for each command and for the configuration', () => {
  expect([...pages.keys()]).toEqual(
    expect.arrayContaining(['tidegate.1', 'tidegate-start.1', 'tidegate-ctl.1', 'tidegate-pub.1', 'tidegate.conf.5']),
  );
  expect(pages.get('tidegate.conf.5')).toContain('mqtt.max_packet_size');
  expect(pages.get('tidegate-ctl.1')).toContain('bridge add');
});

it('texts that begin with a dot or hold a backslash are shown as they are', () => {
  for (const [name, text] of pages) expect(text, name).not.toMatch(/^\.(?!TH|SH|SS|TP|PP|EX|EE|B|BR|I)/m);
});

const hasGroff = spawnSync('groff', ['--version']).status === 0;

it.skipIf(!hasGroff).each([...pages])('%s is formatted without a warning (skipped without groff)', (_, text) => {
  const { stderr } = spawnSync('groff', ['-man', '-Tutf8', '-ww', '-z'], { input: text, encoding: 'utf8' });
  expect(stderr).toBe('');
});

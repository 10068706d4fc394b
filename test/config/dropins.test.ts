// tidegate.d beside the main file: what is read, in which order, and what happens when it cannot be.
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { loadConfig } from '../../src/config/load.ts';
import { config, folder, load } from '../harness/configfiles.ts';
import { caught } from '../harness/thrown.ts';

const LIMIT = 'mqtt.max_mqueue_len';

test('files of tidegate.d win over the main file, in the order of their names', () => {
  const files = { 'tidegate.d/20-b.conf': `${LIMIT} = 20`, 'tidegate.d/10-a.conf': `${LIMIT} = 10\nmqtt.max_qos = 1` };
  const { mqtt } = config(`${LIMIT} = 1\nmqtt.max_topic_levels = 9`, { files });
  expect([mqtt.maxMqueueLen, mqtt.maxQos, mqtt.maxTopicLevels]).toEqual([20, 1, 9]);
});

test('environment and --set win over tidegate.d', () => {
  const given = { files: { 'tidegate.d/a.conf': `${LIMIT} = 10\nmqtt.max_qos = 1` }, set: ['mqtt.max_qos=0'] };
  const { mqtt } = config('', { ...given, env: { TIDEGATE__mqtt__max_mqueue_len: '11' } });
  expect([mqtt.maxMqueueLen, mqtt.maxQos]).toEqual([11, 0]);
});

test('a file of tidegate.d refers to values of the main file', () => {
  const files = { 'tidegate.d/a.conf': `mqtt.max_topic_levels = \${${LIMIT}}` };
  expect(config(`${LIMIT} = 77`, { files }).mqtt.maxTopicLevels).toBe(77);
});

test('a TOML main file takes tidegate.d too', () => {
  const files = { 'tidegate.d/a.conf': `${LIMIT} = 10` };
  const { mqtt } = config('[mqtt]\nmax_mqueue_len = 1\nmax_qos = 1\n', { ext: 'toml', files });
  expect([mqtt.maxMqueueLen, mqtt.maxQos]).toEqual([10, 1]);
});

test('other names and hidden files of tidegate.d are not read', () => {
  const files = { 'tidegate.d/a.conf.bak': '{', 'tidegate.d/.b.conf': '{', 'tidegate.d/README': '{' };
  expect(load('', { files }).files).toHaveLength(1);
});

test('mistakes name the file of tidegate.d they are in', () => {
  const dir = folder({ 'c.conf': '', 'tidegate.d/a.conf': '\nmqtt.max_qos = 7' });
  const error = caught(() => loadConfig({ file: 'c.conf', env: {}, cwd: dir }));
  expect(String(error)).toContain(join(dir, 'tidegate.d/a.conf'));
});

test('every file that was read is listed', () => {
  const { files } = load('', { files: { 'tidegate.d/a.conf': '' } });
  expect(files.map((file) => file.split('/').at(-1))).toEqual(['c.conf', 'a.conf']);
});

test('a tidegate.d that is no folder is an error, not passed over', () => {
  expect(caught(() => load('', { files: { 'tidegate.d': '' } }))).toMatchObject({ code: 'CFG-READ' });
});

test('a file of tidegate.d that leads out of the folder of the main file is refused', () => {
  const outside = folder({ 'x.conf': `${LIMIT} = 10` });
  const dir = folder({ 'c.conf': '' });
  mkdirSync(join(dir, 'tidegate.d'));
  symlinkSync(join(outside, 'x.conf'), join(dir, 'tidegate.d/a.conf'));
  expect(String(caught(() => loadConfig({ file: 'c.conf', env: {}, cwd: dir })))).toContain('can be included');
});

test('more than 100 files are refused', () => {
  const dir = folder({ 'c.conf': '', 'tidegate.d/a.conf': '' });
  for (let i = 0; i < 100; i++) writeFileSync(join(dir, 'tidegate.d', `${i}.conf`), '');
  expect(caught(() => loadConfig({ file: 'c.conf', env: {}, cwd: dir }))).toMatchObject({ code: 'CFG-READ' });
});

test('a text without a file reads no tidegate.d', () => {
  const dir = folder({ 'tidegate.d/a.conf': `${LIMIT} = 10` });
  const { config: read } = loadConfig({ text: { text: '', dialect: 'hocon' }, env: {}, cwd: dir });
  expect(read.mqtt.maxMqueueLen).not.toBe(10);
});

test('kept stands in the place of 50-console.conf without being written', () => {
  const dir = folder({ 'c.conf': `${LIMIT} = 1`, 'tidegate.d/50-console.conf': `${LIMIT} = 2` });
  const read = (kept?: string) => loadConfig({ file: 'c.conf', env: {}, cwd: dir, kept }).config.mqtt.maxMqueueLen;
  expect([read(), read(`${LIMIT} = 3`), read('')]).toEqual([2, 3, 1]);
});

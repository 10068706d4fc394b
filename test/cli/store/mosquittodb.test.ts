// `tidegate store import FILE mosquitto.db`: what a real mosquitto has stored is in the store of a gateway.
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { runCli } from '../../../src/cli/cli.ts';
import { readMosquittoDb } from '../../../src/cli/store/mosquittodb.ts';
import { dial } from '../../harness/dynsec.ts';
import { fakeIo } from '../../harness/io.ts';
import { storePath, testJournal } from '../../harness/journal.ts';
import { Mosquitto, programPath } from '../../harness/mosquitto.ts';

it.skipIf(programPath('mosquitto') === null)('the database of mosquitto comes into a store', async () => {
  const lines = [
    'allow_anonymous true',
    'persistence true',
    'persistence_location {dir}/',
    'autosave_on_changes true',
    'autosave_interval 1',
  ];
  const broker = await Mosquitto.start(lines);
  const session = { clean: false, properties: { sessionExpiryInterval: 3600 } };
  const away = await dial(broker.port, { clientId: 'away', username: 'bob', ...session });
  await away.subscribeAsync({ 'a/#': { qos: 2, rap: true, nl: true }, b: { qos: 1 } });
  await away.endAsync();
  const writer = await dial(broker.port, { clientId: 'writer' });
  const properties = { contentType: 'text/plain', userProperties: { k: 'v' } };
  await writer.publishAsync('r/1', 'kept', { qos: 1, retain: true, properties });
  await writer.publishAsync('a/1', 'first', { qos: 1 });
  await writer.publishAsync('a/2', 'second', { qos: 2 });
  await writer.endAsync();
  const file = join(broker.folder, 'mosquitto.db');
  await expect.poll(() => readText(file), { timeout: 10_000 }).toContain('second');
  const path = storePath();
  const io = fakeIo();
  const copy = join(mkdtempSync(join(tmpdir(), 'mosquitto-db-')), 'mosquitto.db');
  writeFileSync(copy, readFileSync(file));
  await broker.stop();
  expect(await runCli(['store', 'import', path, copy], io)).toBe(0);
  const { journal } = testJournal(path);
  const { sessions, retained } = await journal.load();
  await journal.close();
  expect(retained.map(({ topic, payload, properties: p }) => [topic, String(payload), p?.contentType])).toEqual([
    ['r/1', 'kept', 'text/plain'],
  ]);
  const [{ session: stored, subscriptions, queue }] = sessions;
  expect(stored).toMatchObject({ clientId: 'away', username: 'bob', expiryInterval: 3600 });
  expect(subscriptions).toEqual(
    expect.arrayContaining([
      expect.objectContaining({ topicFilter: 'a/#', qos: 2, noLocal: true, retainAsPublished: true }),
      expect.objectContaining({ topicFilter: 'b', qos: 1 }),
    ]),
  );
  expect(queue.map(({ message, qos, state }) => [message.topic, String(message.payload), qos, state])).toEqual([
    ['a/1', 'first', 1, 'queued'],
    ['a/2', 'second', 2, 'queued'],
  ]);
  // Cut anywhere, it is refused or read as the whole chunks before the cut, never anything else.
  const bytes = readFileSync(copy);
  const time = { wallMs: Date.now(), steadyMs: 0 };
  for (let end = 0; end < bytes.length; end++) {
    try {
      expect(readMosquittoDb(bytes.subarray(0, end), time).restored.retained.length).toBeLessThanOrEqual(1);
    } catch (error) {
      expect(String(error)).toContain('the database of mosquitto cannot be read');
    }
  }
});

function readText(file: string): string {
  try {
    return readFileSync(file, 'latin1');
  } catch {
    return '';
  }
}

// What any stranger can cause is logged a bounded number of times, and that lines are left out is told.
import { expect, it } from 'vitest';
import { budgetLog, type Fields } from '../../src/base/log.ts';
import type { MsgId } from '../../src/base/messages.ts';

it('lines of a stranger are bounded for each id, told to be so once, counted, and written again later', () => {
  let nowMs = 0;
  const lines: { id: MsgId; fields?: Fields }[] = [];
  const log = budgetLog(
    (_level, id, fields) => lines.push({ id, fields }),
    () => nowMs,
    new Set<MsgId>(['CON-REFUSED', 'CON-NOT-MQTT']),
  );
  const count = (id: MsgId): number => lines.filter((line) => line.id === id).length;
  for (let n = 0; n < 5000; n++) log('info', 'CON-REFUSED', { n });
  log('warn', 'CON-NOT-MQTT', {});
  for (let n = 0; n < 200; n++) log('info', 'CLI-CONNECT', {});
  expect([count('CON-REFUSED'), count('GW-LOG-LIMIT'), count('CON-NOT-MQTT'), count('CLI-CONNECT')]).toEqual([
    100, 1, 1, 200,
  ]);
  nowMs = 10_000;
  log('info', 'CON-REFUSED', { n: 1 });
  expect(lines.at(-1)?.fields).toEqual({ n: 1, suppressed: 4900 });
});

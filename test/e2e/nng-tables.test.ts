// The truth tables of the bridges over the wire: a whole gateway, a real socket, on both drivers. What rules mean is tested in
// test/bridge/rules.test.ts; here every row goes through sockets, router and bridge.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Compat, ForwardOptions, SubscriptionOptions } from '../../src/bridge/bridge.ts';
import type { LocalClient } from '../../src/broker/broker.ts';
import type { SpSocket } from '../../src/sp/sp.ts';
import { forward, pubBridge, subBridge, taking } from '../harness/bridges.ts';
import { type TestGateway, testGateway } from '../harness/gateway.ts';
import { SP_DEFAULTS, sendText, testDriver, Watch } from '../harness/spsockets.ts';
import extractTable from '../vectors/sp-extract.json' with { type: 'json' };
import forwardTable from '../vectors/sp-forward.json' with { type: 'json' };

const bytesOf = (text: string): Buffer =>
  text.startsWith('hex:') ? Buffer.from(text.slice(4), 'hex') : Buffer.from(text);
const latin = (text: string): string => bytesOf(text).toString('latin1');
const MARK = 'the-mark';

const addon: string = 'nanomsg';
const missing = await import(addon).then(
  () => false,
  () => true,
);

for (const driver of ['native', 'nanomsg'] as const) {
  const skipped = driver === 'nanomsg' && missing;
  describe.skipIf(skipped)(
    skipped ? 'driver nanomsg (skipped: the package is not installed)' : `driver ${driver}`,
    () => {
      let gateway: TestGateway;
      let client: LocalClient;
      let folder: string;
      let seen: [string, number, string][] = [];
      let look = (): void => {};
      beforeAll(async () => {
        gateway = await testGateway();
        folder = mkdtempSync(join(tmpdir(), 'tables-'));
        client = gateway.gateway.broker.attach({
          clientId: 't',
          username: null,
          kind: 'api',
          bridge: null,
          trusted: true,
        });
        client.subscribe({
          topicFilter: '#',
          qos: 2,
          retainHandling: 2,
          receiver: {
            receive: (publication, qos) => {
              seen.push([publication.topic, qos, Buffer.from(publication.payload()).toString('hex')]);
              look();
            },
          },
        });
      });
      afterAll(async () => {
        await gateway.stop();
        rmSync(folder, { recursive: true, force: true });
      });

      /** Sends marks until one arrives: nobody tells when both ends are ready. */
      const linked = async (send: () => void, arrived: Promise<void>): Promise<void> => {
        const timer = setInterval(send, 10);
        await arrived;
        clearInterval(timer);
      };
      const publish = (topic: string, payload: Buffer): void => {
        client.publish(topic, payload, 0, payload.length, 0, false);
      };

      test.each(forwardTable.map((entry, number) => ({ number: number + 1, entry })))(
        'forward table $number',
        async ({ number, entry }) => {
          const [localTopic, remoteTopic, nngDelimiter] = entry.rule as [string, string, string];
          const compat = (('compat' in entry ? entry.compat : undefined) ?? 'documented') as Compat;
          const rules: ForwardOptions[] = [
            forward(localTopic, remoteTopic, nngDelimiter),
            forward('mark', 'mark', ':'),
          ];
          const url = `ipc://${folder}/f${number}.ipc`;
          await gateway.gateway.bridges.add(pubBridge('f', rules, { driver, compat, urls: [url] }));
          const socket: SpSocket = testDriver().open('sub0', SP_DEFAULTS);
          const watch = new Watch(socket);
          socket.subscribe(new Uint8Array(0));
          socket.dial(url);
          const marks = (): number => watch.bodies.filter((body) => body === `mark:${MARK}`).length;
          await linked(
            () => publish('mark', Buffer.from(MARK)),
            watch.until(() => marks() > 0),
          );
          const real = (): string[] => watch.bodies.filter((body) => !body.endsWith(MARK));
          const expected: string[] = [];
          for (const [topic, payload, frame] of entry.rows as [string, string, string | null][]) {
            publish(topic, bytesOf(payload));
            if (frame !== null) expected.push(latin(frame));
            await watch.until(() => real().length >= expected.length);
          }
          const before = marks();
          publish('mark', Buffer.from(MARK));
          await watch.until(() => marks() > before);
          await socket.stop(50);
          await gateway.gateway.bridges.remove('pub', 'f');
          expect(real()).toEqual(expected);
        },
      );

      for (const compat of ['documented', '0.25.6', '0.25.5'] as const) {
        const entries = extractTable.filter((entry) => !('only' in entry) || entry.only === compat);
        test.each(entries.map((entry, number) => ({ number: number + 1, entry })))(
          `extract table $number (${compat})`,
          async ({ number, entry }) => {
            const rules: SubscriptionOptions[] = entry.rules.map((row) => {
              const more = row as { remote: string; delim: string; local: string; qos?: number; match?: string };
              const match = (more.match ?? 'prefix') as SubscriptionOptions['match'];
              return taking(more.remote, more.local, more.delim, { qos: (more.qos ?? 0) as 0 | 1 | 2, match });
            });
            rules.push(taking('~~', 'mark', ':'));
            const url = `ipc://${folder}/e${compat}${number}.ipc`;
            await gateway.gateway.bridges.add(subBridge('e', rules, { driver, compat, urls: [url] }));
            const socket = testDriver().open('pub0', SP_DEFAULTS);
            socket.dial(url);
            const markHex = Buffer.from(MARK).toString('hex');
            const marked = (): Promise<void> =>
              new Promise((resolve) => {
                look = () => seen.at(-1)?.[2].endsWith(markHex) === true && resolve();
              });
            await linked(() => sendText(socket, `~~:${MARK}`), marked());
            seen = [];
            const expected: unknown[] = [];
            for (const row of entry.rows) {
              const own =
                compat !== 'documented' && compat in row ? (row as Record<string, unknown>)[compat] : row.want;
              if (Array.isArray(own)) expected.push([own[0], own[1], bytesOf(own[2]).toString('hex')]);
              sendText(socket, latin(row.body));
            }
            // Marks of before may still be on their way: the one that ends it is another text.
            const end = Buffer.from(`end-${MARK}`).toString('hex');
            const ended = new Promise<void>((resolve) => {
              look = () => seen.at(-1)?.[2].endsWith(end) === true && resolve();
            });
            sendText(socket, `~~:end-${MARK}`);
            await ended;
            await socket.stop(50);
            await gateway.gateway.bridges.remove('sub', 'e');
            expect(seen.filter(([, , payload]) => !payload.endsWith(markHex))).toEqual(expected);
          },
        );
      }
    },
  );
}

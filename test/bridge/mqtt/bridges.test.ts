// Bridges to remote brokers as the supervisor has them: what waits outlives workers and processes, and goes with the bridge.
import { expect, test } from 'vitest';
import { systemClock } from '../../../src/base/clock.ts';
import { Metrics } from '../../../src/base/metrics.ts';
import { Turn } from '../../../src/base/turn.ts';
import { BlockPool } from '../../../src/base/writer.ts';
import { MqttBridges } from '../../../src/bridge/mqtt/bridges.ts';
import { encodeSpooled } from '../../../src/bridge/mqtt/spool.ts';
import { Supervisor } from '../../../src/bridge/supervisor.ts';
import type { SpoolEntry } from '../../../src/store/store.ts';
import { Backoff } from '../../../src/transport/backoff.ts';
import { mqttForward, mqttOptions } from '../../harness/mqttremote.ts';
import { testDriver } from '../../harness/spsockets.ts';
import { StubBroker } from '../../harness/stubbroker.ts';

class Place {
  readonly broker = new StubBroker();
  readonly metrics = new Metrics();
  readonly deleted: [string, number][] = [];
  readonly lines: { id: string; fields: Record<string, unknown> }[] = [];
  readonly supervisor: Supervisor;

  constructor(spools: ReadonlyMap<string, readonly SpoolEntry[]> = new Map()) {
    const shared = {
      clock: systemClock,
      turn: new Turn(),
      metrics: this.metrics,
      log: (_level: unknown, id: string, fields?: object) => this.lines.push({ id, fields: { ...fields } }),
    };
    const mqtt = new MqttBridges(
      {
        ...shared,
        broker: { attach: (local) => this.broker.attach(local), onEvent: () => () => {}, subscriptions: () => [] },
        dial: () => Promise.reject(new Error('nobody there')),
        retry: (maxMs) => new Backoff({ clock: systemClock, random: () => 0, maxMs }),
        journal: {
          durable: spools.size > 0,
          accepting: true,
          spoolPut: () => {},
          spoolDelete: (bridge, upTo) => this.deleted.push([bridge, upTo]),
          sessionPut: () => {},
          sessionDelete: () => {},
          inboundPut: () => {},
          inboundDelete: () => {},
          gather: () => {},
          barrier: () => {},
          barrierAll: () => {},
        },
        maxPacketSize: () => 1 << 20,
        maxQueueBytes: () => 1 << 20,
        pool: new BlockPool(),
        spools,
        sessions: [],
      },
      ['up'],
    );
    const driver = testDriver();
    this.supervisor = new Supervisor({ ...shared, broker: this.broker, driver: () => driver, mqtt }, [
      mqttOptions({ forwards: [mqttForward('up/#')] }),
    ]);
  }

  queued(): number | undefined {
    return this.supervisor.get('mqtt', 'up')?.remote?.queued;
  }
}

function spooled(payload: string, sequence: number): SpoolEntry {
  const message = { topic: 'a', payload: Buffer.from(payload), qos: 1, retain: false, properties: null } as const;
  return { sequence, bytes: encodeSpooled({ ...message, expiresAt: 0, rule: 0 }) };
}

test('what waits outlives a bridge that is disabled or gets other options', async () => {
  const place = new Place();
  await place.supervisor.start();
  place.broker.publish('up/a', 'x', 1);
  await place.supervisor.enable('mqtt', 'up', false);
  expect(place.supervisor.get('mqtt', 'up')?.state).toBe('disabled');
  await place.supervisor.enable('mqtt', 'up', true);
  expect(place.queued()).toBe(1);
  await place.supervisor.change(mqttOptions({ server: 'mqtt-tcp://elsewhere' }));
  expect(place.queued()).toBe(1);
  await place.supervisor.stop(0);
});

test('what waits goes with a bridge that is removed', async () => {
  const place = new Place();
  await place.supervisor.start();
  place.broker.publish('up/a', 'x', 1);
  expect(await place.supervisor.remove('mqtt', 'up')).toBe('ok');
  await place.supervisor.add(mqttOptions());
  expect(place.queued()).toBe(0);
  await place.supervisor.stop(0);
});

test('the spool of a configured bridge is taken over, that of another one dropped with a line in the log', async () => {
  const place = new Place(
    new Map([
      ['mqtt:up', [spooled('1', 5), spooled('2', 6)]],
      ['mqtt:gone', [spooled('3', 9)]],
      ['nng:pub:other', [spooled('4', 1)]],
    ]),
  );
  expect(place.deleted).toEqual([['mqtt:gone', Number.POSITIVE_INFINITY]]);
  await place.supervisor.start();
  expect(place.queued()).toBe(2);
  const told = place.lines.filter(({ id }) => id === 'MQB-SPOOL').map(({ fields }) => [fields.bridge, fields.kept]);
  expect(told).toEqual([
    ['up', true],
    ['gone', false],
  ]);
  await place.supervisor.stop(0);
});

test('removing a bridge that was never started drops its spool', async () => {
  const place = new Place(new Map([['mqtt:up', [spooled('1', 5)]]]));
  await place.supervisor.remove('mqtt', 'up');
  expect(place.deleted).toEqual([
    ['mqtt:up', Number.POSITIVE_INFINITY],
    ['mqtt-received:up', Number.POSITIVE_INFINITY],
  ]);
});

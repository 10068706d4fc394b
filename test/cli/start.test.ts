// `tidegate start` with a stand-in for the gateway: signals, exit codes, the last resort.
import { EventEmitter, once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { GatewayError } from '../../src/base/errors.ts';
import type { Fields, Level } from '../../src/base/log.ts';
import { type GatewayParts, type RunnableGateway, type StartParts, start } from '../../src/cli/start.ts';
import { fakeIo } from '../harness/io.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(path.join(os.tmpdir(), 'start-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** A gateway that only says what was asked of it. */
class StandIn extends EventEmitter implements RunnableGateway {
  readonly calls: string[] = [];
  parts: GatewayParts | null = null;
  startFails: Error | null = null;
  stopWaits: Promise<void> = Promise.resolve();

  async start(): Promise<void> {
    this.calls.push('start');
    if (this.startFails !== null) throw this.startFails;
    setImmediate(() => this.emit('started'));
  }

  async stop(): Promise<void> {
    this.calls.push('stop');
    this.emit('stopping');
    await this.stopWaits;
  }

  async reload(): Promise<void> {
    this.calls.push('reload');
    this.emit('reloaded');
  }
}

function bench(gateway: StandIn) {
  const signals = new EventEmitter();
  const lines: { level: Level; id: string; fields?: Fields }[] = [];
  const deaths: number[] = [];
  const logger = { reopened: 0, flushed: 0 };
  const parts: StartParts = {
    make: async () => (_loaded, given) => {
      gateway.parts = given;
      return gateway;
    },
    signals,
    env: {},
    cwd: folder,
    tty: false,
    die: (code) => {
      deaths.push(code);
      signals.emit('died');
    },
    openLog: async () => ({
      log: (level, id, fields) => lines.push({ level, id, fields }),
      setLevel: () => {},
      reopen: () => logger.reopened++,
      flush: () => logger.flushed++,
    }),
  };
  return { signals, lines, deaths, logger, parts };
}

describe('the speed of the engine', () => {
  const speed = async (conf: string): Promise<string[]> => {
    const file = path.join(folder, 'a.conf');
    writeFileSync(file, conf);
    const gateway = new StandIn();
    const { signals, parts } = bench(gateway);
    const fullSpeed = (small: boolean): number => gateway.calls.push(small ? 'full speed, small' : 'full speed');
    const running = start({ config: file }, fakeIo(), { ...parts, fullSpeed });
    await Promise.race([once(gateway, 'started'), running]);
    signals.emit('SIGTERM');
    await running;
    return gateway.calls;
  };

  it('is full when the gateway has started', async () => {
    expect(await speed('persistence.enable = false')).toEqual(['start', 'full speed', 'stop']);
  });

  it('is full from the beginning when a large database is read', async () => {
    writeFileSync(path.join(folder, 'a.db'), Buffer.alloc(2 * 1024 * 1024));
    expect(await speed('persistence.path = "a.db"')).toEqual(['full speed', 'start', 'stop']);
  });

  it('knows a small machine', async () => {
    const calls = await speed('broker.profile = small\npersistence.path = "none.db"');
    expect(calls).toEqual(['start', 'full speed, small', 'stop']);
  });
});

describe('the log of a start', () => {
  it.each([
    [{}, true],
    [{ NO_COLOR: '1' }, false],
    [{ NO_COLOR: '' }, true],
    [{ TERM: 'dumb' }, false],
  ])('on a terminal with %j has colours: %j', async (env, expected) => {
    const gateway = new StandIn();
    const { signals, parts } = bench(gateway);
    let colours: boolean | undefined;
    const openLog: StartParts['openLog'] = (options) => {
      colours = options.colours;
      return parts.openLog(options);
    };
    const running = start({}, fakeIo(), { ...parts, env, tty: true, openLog });
    await Promise.race([once(gateway, 'started'), running]);
    signals.emit('SIGTERM');
    await running;
    expect(colours).toBe(expected);
  });
});

describe('start', () => {
  it.each(['SIGTERM', 'SIGINT'])('stops cleanly at %s and ends with 0', async (name) => {
    const gateway = new StandIn();
    const { signals, parts, logger } = bench(gateway);
    const running = start({}, fakeIo(), parts);
    await Promise.race([once(gateway, 'started'), running]);
    signals.emit(name);
    expect(await running).toBe(0);
    expect(gateway.calls).toEqual(['start', 'stop']);
    expect(logger.flushed).toBe(1);
  });

  it('ends at once at the second signal', async () => {
    const gateway = new StandIn();
    let release = (): void => {};
    gateway.stopWaits = new Promise((resolve) => {
      release = resolve;
    });
    const { signals, parts, deaths, logger } = bench(gateway);
    const running = start({}, fakeIo(), parts);
    await Promise.race([once(gateway, 'started'), running]);
    const stopping = once(gateway, 'stopping');
    signals.emit('SIGTERM');
    await stopping;
    expect(deaths).toEqual([]);
    signals.emit('SIGTERM');
    expect(deaths).toEqual([1]);
    expect(logger.flushed).toBe(1);
    release();
    await running;
  });

  it('reloads and opens the log anew at SIGHUP', async () => {
    const gateway = new StandIn();
    const { signals, parts, logger } = bench(gateway);
    const running = start({}, fakeIo(), parts);
    await Promise.race([once(gateway, 'started'), running]);
    signals.emit('SIGHUP');
    expect(gateway.calls).toEqual(['start', 'reload']);
    expect(logger.reopened).toBe(1);
    signals.emit('SIGTERM');
    await running;
  });

  it('gives the gateway a way to read the same configuration again', async () => {
    const gateway = new StandIn();
    const file = path.join(folder, 'a.conf');
    writeFileSync(file, 'mqtt { max_qos = 1 }\n');
    const { signals, parts } = bench(gateway);
    const running = start({ config: file }, fakeIo(), parts);
    await Promise.race([once(gateway, 'started'), running]);
    writeFileSync(file, 'mqtt { max_qos = 0 }\n');
    expect(gateway.parts?.load().config.mqtt.maxQos).toBe(0);
    signals.emit('SIGTERM');
    await running;
  });

  it.each(['uncaughtException', 'unhandledRejection'])('logs and ends with 1 at %s', async (name) => {
    const gateway = new StandIn();
    const { signals, parts, lines, deaths } = bench(gateway);
    const running = start({}, fakeIo(), parts);
    await Promise.race([once(gateway, 'started'), running]);
    const error = new Error('broken');
    signals.emit(name, error);
    expect(deaths).toEqual([1]);
    expect(lines).toContainEqual({ level: 'fatal', id: 'GW-INTERNAL', fields: { error } });
    signals.emit('SIGTERM');
    await running;
  });

  it('undoes a start that failed and passes the failure on', async () => {
    const gateway = new StandIn();
    gateway.startFails = new GatewayError('TRANSPORT-BIND', '127.0.0.1:1883 is in use');
    const { signals, parts } = bench(gateway);
    await expect(start({}, fakeIo(), parts)).rejects.toThrow('127.0.0.1:1883');
    expect(gateway.calls).toEqual(['start', 'stop']);
    expect(signals.eventNames()).toEqual([]);
  });

  it('stops as soon as it has started when the signal came earlier', async () => {
    const gateway = new StandIn();
    const { signals, parts } = bench(gateway);
    const make = parts.make;
    const running = start({}, fakeIo(), {
      ...parts,
      make: async () => {
        signals.emit('SIGTERM');
        return make();
      },
    });
    expect(await running).toBe(0);
    expect(gateway.calls).toEqual(['start', 'stop']);
  });
});

// A whole gateway inside the test's process, on ports the system chooses. Used where a command or a client needs a real broker.
// stop() undoes everything; `messages` are the log lines so far.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { systemClock } from '../../src/base/clock.ts';
import type { Fields, Level } from '../../src/base/log.ts';
import type { MsgId } from '../../src/base/messages.ts';
import { loadConfig } from '../../src/config/load.ts';
import { createGateway, type Gateway } from '../../src/gateway/gateway.ts';

const QUIET = 'listeners.tcp { bind = "127.0.0.1:0" }\npersistence { enable = false }\n';

export interface TestGateway {
  readonly gateway: Gateway;
  /** The port of the first listener. */
  readonly port: number;
  readonly folder: string;
  readonly messages: { level: Level; id: MsgId; fields?: Fields }[];
  stop(): Promise<void>;
}

/** Starts a gateway with this configuration: one loopback listener and nothing else unless the text says more. */
export async function testGateway(conf = QUIET): Promise<TestGateway> {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'gateway-'));
  const file = path.join(folder, 'test.conf');
  writeFileSync(file, conf);
  const messages: TestGateway['messages'] = [];
  const load = (set?: readonly string[], kept?: string): ReturnType<typeof loadConfig> =>
    loadConfig({ file, set, env: {}, cwd: folder, kept });
  const gateway = createGateway(load(), {
    log: (level, id, fields) => messages.push({ level, id, fields }),
    clock: systemClock,
    load,
    relog: () => {},
  });
  await gateway.start();
  return {
    gateway,
    port: gateway.bound[0].port,
    folder,
    messages,
    stop: async () => {
      await gateway.stop(2000);
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

// The driver over libnanomsg: the common contract as far as the library goes. Skipped, with the reason, where the package is not built.
import { describe, expect, test } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import { errorText, GatewayError } from '../../src/base/errors.ts';
import { Turn } from '../../src/base/turn.ts';
import { nanomsgDriver } from '../../src/sp/nanomsg.ts';
import type { SpDriver } from '../../src/sp/sp.ts';
import { spContract } from '../contract/sp.ts';
import { freePort } from '../harness/port.ts';
import { SP_DEFAULTS } from '../harness/spsockets.ts';

const load = (): Promise<SpDriver> => nanomsgDriver({ clock: systemClock, turn: new Turn() });
const missing = await load().then(
  () => null,
  (error: unknown) => error,
);

if (missing !== null) {
  test('a missing addon is one clear line with its code', () => {
    expect(missing).toBeInstanceOf(GatewayError);
    expect((missing as GatewayError).code).toBe('SP-DRIVER');
    expect(errorText(missing)).not.toContain('\n');
  });
  test.skip(`SP contract: nanomsg (${errorText(missing)})`, () => {});
} else {
  let names = 0;
  spContract({
    name: 'nanomsg',
    open: load,
    cannot: new Map([
      ['pair1', 'libnanomsg has no pair1'],
      ['abstract', 'libnanomsg has no abstract names'],
      ['pipes', 'libnanomsg does not tell who is connected'],
      ['burst', 'libnanomsg drops for a subscriber that is not ready at once'],
    ]),
    url: async (scheme, folder) => {
      names++;
      if (scheme === 'ipc') return `ipc://${folder}/s${names}.ipc`;
      if (scheme === 'tcp') return `tcp://127.0.0.1:${await freePort()}`;
      return `${scheme}://contract-${process.pid}-${names}`;
    },
  });
  describe('nanomsg driver', () => {
    test('says what it cannot do', async () => {
      const driver = await load();
      expect(driver.supports('tcp', 'pub0')).toBe(true);
      expect(driver.supports('tls+tcp', 'pub0')).toBe(false);
      expect(driver.supports('tcp', 'pair1')).toBe(false);
      expect(() => driver.open('pair1', SP_DEFAULTS)).toThrowError(/pair1/);
      const socket = driver.open('pub0', SP_DEFAULTS);
      expect(() => socket.listen('abstract://x')).toThrowError(/driver = native/);
      await socket.stop(0);
    });
    test('binds a host name on its addresses', async () => {
      const driver = await load();
      const socket = driver.open('pub0', SP_DEFAULTS);
      const url = `tcp://localhost:${await freePort()}`;
      const listening = new Promise<void>((resolve) => {
        socket.onEvent((event) => {
          if (event.kind === 'endpoint' && event.endpoint.state === 'listening') resolve();
        });
      });
      socket.listen(url);
      await listening;
      await socket.stop(0);
    });
  });
}

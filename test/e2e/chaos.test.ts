// Every path of a gateway under every fault: nothing acknowledged is lost, QoS 2 comes once, order is kept. The long form is `make chaos`.
// A fault of its own each round: kill, orderly stop, flapping link, stalls on either side, reload, jumping clock, full store.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Chaos, FAULTS } from '../harness/chaos.ts';
import { gatewayProgram, type Program } from '../harness/killgateway.ts';
import { programPath } from '../harness/mosquitto.ts';

const SEED = Number(process.env.CHAOS_SEED ?? Date.now() % 1_000_000);

let program: Program;
beforeAll(async () => {
  program = await gatewayProgram();
});
afterAll(() => program.remove());

test.skipIf(programPath('mosquitto') === null)(
  `mixed traffic over all paths survives every fault (seed ${SEED}) [mosquitto]`,
  async () => {
    const rounds = FAULTS.length;
    const chaos = new Chaos({ program, seed: SEED, rounds, settleEvery: 4, faults: FAULTS });
    const { tally, faults } = await chaos.run();
    expect(faults).toEqual([]);
    expect(tally).toMatchObject({ rounds, lost: 0, duplicatesQos2: 0, outOfOrder: 0, wrongRetained: 0 });
    expect(tally.acknowledged).toBeGreaterThan(0);
  },
  120_000,
);

// A gateway with all its paths under mixed traffic, and what can go wrong with it, round after round: what it has promised is checked every
// few rounds. Called by test/e2e/chaos.test.ts (a few rounds) and test/chaos/run.ts (as many as asked for). The seed decides which faults come.
import { ChaosFar } from './chaosfar.ts';
import { KillCrew, type Tally } from './killcrew.ts';
import { KillGateway, type Program, type Surroundings } from './killgateway.ts';
import { KillRemote } from './killremote.ts';
import { type Rewritten, rewrittenClock } from './rewrittenclock.ts';

export const FAULTS = ['kill', 'stop', 'flap', 'stall', 'remote stall', 'reload', 'clock', 'full'] as const;
export type Fault = (typeof FAULTS)[number];

export interface ChaosOptions {
  readonly program: Program;
  readonly seed: number;
  readonly rounds: number;
  /** Rounds until everything is let arrive and is checked. */
  readonly settleEvery: number;
  readonly faults: readonly Fault[];
  /** All rounds are done, whatever is found. */
  readonly goOn?: boolean;
  /** Called after each round. */
  readonly told?: (round: number, fault: Fault, tally: Tally) => void;
}

export interface Outcome {
  readonly tally: Tally;
  readonly faults: readonly string[];
}

/** A day forward or back: whatever expires by the wall clock would. */
const JUMP_MS = 86_400_000;

function pseudoRandom(seed: number): () => number {
  let x = seed * 2654435761 + 1;
  return () => {
    x = (Math.imul(x, 1664525) + 1013904223) >>> 0;
    return x / 2 ** 32;
  };
}

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

export class Chaos {
  private readonly options: ChaosOptions;
  private readonly random: () => number;
  private readonly remote = new KillRemote();
  private remotePort = 0;
  private variant = 0;
  private gateway: KillGateway | null = null;
  private far: ChaosFar | null = null;
  private clock: Rewritten | null = null;

  constructor(options: ChaosOptions) {
    this.options = options;
    this.random = pseudoRandom(options.seed);
  }

  async run(): Promise<Outcome> {
    const { program, rounds, settleEvery, told, goOn = false } = this.options;
    try {
      this.remotePort = await this.remote.start();
      this.far = await ChaosFar.start(() => this.running);
      this.clock = this.options.faults.includes('clock') ? rewrittenClock() : null;
      const surroundings: Surroundings = this.clock === null ? {} : { env: this.clock.env };
      this.gateway = new KillGateway(program, this.conf(), surroundings);
      await this.gateway.start();
      const crew = new KillCrew(this.gateway, this.remote, this.random, this.far);
      await crew.begin();
      for (let round = 1; round <= rounds && (goOn || crew.faults.length === 0); round++) {
        const fault = this.next(round);
        await crew.round(() => this.happen(fault, crew));
        if (round % settleEvery === 0 || round === rounds) await crew.settle();
        told?.(round, fault, crew.tally);
      }
      const { tally, faults } = crew;
      return { tally, faults: faults.length > 0 ? [...faults, this.gateway.log.slice(-2000), this.far.log] : faults };
    } finally {
      await this.gateway?.remove();
      await this.far?.stop();
      this.remote.stop();
      this.clock?.remove();
    }
  }

  private get running(): KillGateway {
    if (this.gateway === null) throw new Error('there is no gateway');
    return this.gateway;
  }

  /** Every fault comes once before chance decides; a kill is as likely as all others together. */
  private next(round: number): Fault {
    const { faults } = this.options;
    if (round <= faults.length) return faults[round - 1];
    return this.random() < 0.5 ? 'kill' : faults[Math.floor(this.random() * faults.length)];
  }

  private async happen(fault: Fault, crew: KillCrew): Promise<void> {
    const { running: gateway, far } = this;
    const after = this.random();
    switch (fault) {
      case 'kill':
        await gateway.kill();
        return;
      case 'stop': {
        const code = await gateway.stop();
        if (code !== 0) throw new Error(`an orderly stop ended with ${code}: ${gateway.log}`);
        return;
      }
      case 'flap':
        for (let i = 0; i < 4; i++) {
          far?.link.cut();
          await pause(20 + 150 * this.random());
        }
        break;
      case 'stall':
        await gateway.stall(200 + 600 * after);
        break;
      case 'remote stall':
        await far?.stall(200 + 600 * after);
        break;
      case 'reload':
        this.variant++;
        await gateway.reload(this.conf());
        break;
      case 'clock':
        this.clock?.set(after < 0.5 ? JUMP_MS : -JUMP_MS);
        await pause(150);
        this.clock?.set(0);
        break;
      case 'full':
        await gateway.kill();
        gateway.conf = this.conf('max_size = 4KB');
        await gateway.start();
        // Those before 5.0: they are closed, come again, and repeat what was refused. 5.0 clients would give it up.
        for (let i = 0; i < 3; i++) {
          crew.returnOld();
          await pause(150);
        }
        await gateway.kill();
        gateway.conf = this.conf();
        return;
    }
    // Half of the time the fault is not alone.
    if (after < 0.5) await gateway.kill();
  }

  private conf(more = ''): string {
    return `
listeners.tcp { bind = "127.0.0.1:0" }
persistence { path = "{dir}/data/t.db", sync = ack, ${more} }
mqtt { max_mqueue_len = 0, max_mqueue_bytes = 0 }
bridges.mqtt.up {
  enable = true, server = "mqtt-tcp://127.0.0.1:${this.remotePort}", proto_ver = 4, clientid = "gw", keepalive = 60s, clean_start = false
  forwards = [ { local_topic = "up/#", remote_topic = "", qos = 1 } ]
}
bridges.nng.pub.kept {
  enable = true, mode = listen, pub_url = "ipc://{dir}/nng.ipc", spool = 64MB
  forwards = [ { local_topic = "nng/#", remote_topic = "", nng_delimiter = ":", qos = 1 } ]
}
${this.far?.conf(this.variant) ?? ''}
log { level = warn, format = json }
`;
  }
}

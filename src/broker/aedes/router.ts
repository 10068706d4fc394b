// The router of the engine aedes: finds receivers like any other, and hands what was published on to where it has to go
// beyond this turn: stored queues, clients at QoS 1 and 2, other gateways. Built by engine.ts. Used by clients inside
// the process through the same seam.
import type { Clock } from '../../base/clock.ts';
import type { Ledger } from '../../base/ledger.ts';
import type { Publication } from '../../mqtt/message.ts';
import type { Qos } from '../../mqtt/packet.ts';
import type { Route } from '../../router/router.ts';
import { Routes } from '../../router/routes.ts';
import type { Journal } from '../../store/store.ts';
import type { Packets } from './packets.ts';
import type { AedesPacket } from './parts.ts';
import type { AedesSession } from './session.ts';

/** A receiver at QoS 1 or 2. */
export interface Later {
  readonly session: AedesSession;
  readonly qos: Qos;
}

const NONE: readonly Later[] = [];

export class AedesRouter extends Routes {
  /**
   * Called for each publication after its receivers in this process have it; `later` are those at QoS 1 and 2,
   * `foreign` is the packet of another gateway that brought it.
   */
  onward: (publication: Publication, later: readonly Later[], foreign: AedesPacket | null) => void = () => {};
  /** Whether messages of QoS 0 go on to other gateways. */
  sharing = false;
  private pending: Later[] = [];
  private shared: AedesPacket | null = null;
  private readonly packets: Packets;

  constructor(journal: Journal, clock: Clock, ledger: Ledger, packets: Packets) {
    super(journal, clock, ledger);
    this.packets = packets;
  }

  /** For sessions: they take the publication that is being routed at QoS 1 or 2. */
  readonly later = (session: AedesSession, qos: Qos): void => {
    this.pending.push({ session, qos });
  };

  /** The QoS 0 packet of the publication that is being routed. */
  readonly packet = (publication: Publication): AedesPacket => (this.shared ??= this.packets.of(publication));

  override publish(publication: Publication, route: Route): number {
    return this.spread(publication, route, null);
  }

  /** A message of another gateway. */
  publishForeign(publication: Publication, packet: AedesPacket): void {
    this.spread(publication, this.route(publication.topic), packet);
  }

  private spread(publication: Publication, route: Route, foreign: AedesPacket | null): number {
    const [pending, shared] = [this.pending, this.shared];
    const mine: Later[] = [];
    this.pending = mine;
    this.shared = null;
    const receivers = super.publish(publication, route);
    // A receiver may have published meanwhile: each publication has its own list.
    this.pending = pending;
    this.shared = shared;
    this.onward(publication, mine, foreign);
    return receivers;
  }

  override publishRun(
    publication: Publication,
    route: Route,
    start: number,
    end: number,
    count: number,
    longest: number,
  ): number {
    const receivers = super.publishRun(publication, route, start, end, count, longest);
    if (!this.sharing) return receivers;
    for (let at = start; at < end; ) {
      at = publication.step(at);
      this.onward(publication, NONE, null);
    }
    return receivers;
  }
}

// What becomes of a message that a client of aedes publishes, or that another gateway tells of: it is routed at once,
// and handed on to relay.ts where it goes beyond this turn. Its publisher is answered when it is where it has to be.
// Built by engine.ts, which passes it to those that bring messages.
import { errorText } from '../../base/errors.ts';
import { type Origin, Publication } from '../../mqtt/message.ts';
import type { Core } from '../../session/session.ts';
import type { Front } from './front.ts';
import type { Incoming } from './incoming.ts';
import { asBuffer, type Packets, tell } from './packets.ts';
import type { Aedes, AedesClient, AedesPacket, Callback } from './parts.ts';
import type { Relay } from './relay.ts';
import type { AedesRouter, Later } from './router.ts';
import { foreignOrigin } from './whose.ts';

/** What is there once the broker has started. */
export interface Started {
  readonly aedes: Aedes;
  readonly relay: Relay;
  readonly incoming: Incoming;
}

export class Publishing {
  private readonly core: Core & { readonly router: AedesRouter };
  private readonly packets: Packets;
  /** Whether a packet was taken or dropped when it was judged. */
  private readonly settled: (packet: AedesPacket) => boolean;
  private started: Started | null = null;

  constructor(
    core: Core & { readonly router: AedesRouter },
    packets: Packets,
    settled: (packet: AedesPacket) => boolean,
  ) {
    this.core = core;
    this.packets = packets;
    this.settled = settled;
    core.router.onward = (publication, later, foreign) => this.onward(publication, later, foreign);
  }

  start(started: Started): void {
    this.started = started;
  }

  /** In the place of aedes' own publish. */
  published(packet: AedesPacket, client: AedesClient | Callback | null | undefined, callback?: Callback): void {
    const done = (typeof client === 'function' ? client : callback) ?? (() => {});
    const from = typeof client === 'function' || client === undefined ? null : client;
    const { aedes } = this.packets;
    if (aedes === null) {
      done(new Error('stopped'));
      return;
    }
    if (from === null && packet.topic.startsWith('$SYS/')) {
      // What brokers tell each other.
      tell(aedes, packet.topic, packet.payload).then(() => done(null), done);
      return;
    }
    const settled = this.settled(packet);
    const front = from === null ? null : (from.conn as Front);
    if (from !== null && packet.qos === 2 && !front?.destroyed) this.exactlyOnce(packet, from, settled, done);
    else if (settled) done(null);
    else this.take(packet, front, done);
  }

  /** A message of a client: routed at once; `done` when its receivers in this process and the queues have it. */
  take(packet: AedesPacket, front: Front | null, done: Callback, from: Front | null = front): void {
    const { stats } = this.core;
    const session = from?.session ?? null;
    stats.received++;
    stats.receivedBytes += packet.payload.length + packet.topic.length;
    if (session !== null) session.messagesIn++;
    const origin = session?.origin ?? foreignOrigin(packet);
    const settle = front === null ? done : front.acknowledge((error) => done(error));
    this.core.turn.enter();
    const publication = publicationOf(packet, origin);
    this.core.router.publish(publication, this.core.router.route(packet.topic));
    this.core.turn.leave();
    const { held } = publication;
    if (held === null) settle(null);
    else held.whenDone((code) => settle(code === 0 ? null : new Error(`not accepted: 0x${code.toString(16)}`)));
    if (from !== null && this.core.budget.exceeded)
      this.core.budget.hold({ pause: () => from.hold(), resume: () => from.go() });
  }

  /** A message of another gateway, which has queued it. */
  takeForeign(packet: AedesPacket): void {
    const { topic, payload, qos } = packet;
    const publication = publicationOf({ ...packet, topic, payload: asBuffer(payload), qos }, foreignOrigin(packet));
    this.core.router.publishForeign(publication, packet);
  }

  /**
   * PUBREC leaves when the message and then its identifier are where they have to be, in the order of the packets
   * [MQTT-4.6.0-3].
   */
  private exactlyOnce(packet: AedesPacket, client: AedesClient, settled: boolean, done: Callback): void {
    const front = client.conn as Front;
    const answer = front.acknowledge((error) => done(error));
    const taken = new Promise<void>((resolve, reject) => {
      if (settled) resolve();
      else this.take(packet, null, (error) => (error ? reject(error) : resolve()), front);
    });
    const remembered = this.started?.incoming.published(client, packet, taken) ?? taken;
    remembered.then(
      () => answer(null),
      (error: unknown) => answer(error instanceof Error ? error : new Error(errorText(error))),
    );
  }

  /** What goes on to queues, to clients at QoS 1 and 2, and to other gateways. */
  private onward(publication: Publication, later: readonly Later[], foreign: AedesPacket | null): void {
    if (this.started === null || publication.origin.kind === 'server') return;
    const { aedes, relay } = this.started;
    const away = this.packets.shared && foreign === null;
    if (publication.qos === 0 && later.length === 0 && !away) return;
    const message = publication.message();
    const packet = foreign ?? this.packets.of(publication);
    if (foreign === null) {
      packet.qos = publication.qos;
      packet.retain = publication.retain;
      if (publication.qos > 0) packet.counters = [0, ++aedes.counter, ++aedes.counter];
    }
    relay.push({
      packet,
      message,
      later,
      hold: publication.qos > 0 && foreign === null ? publication.hold() : null,
      foreign: foreign !== null,
      retained: publication.retain && away ? this.retainedNow(publication.topic, packet) : null,
      full: null,
      state: 'working',
    });
  }

  /** What is to be kept for a topic after a retained publish: limits may have refused it. */
  private retainedNow(topic: string, packet: AedesPacket): AedesPacket {
    const kept = this.core.router.retained(topic).next();
    const payload = kept.done === true ? Buffer.alloc(0) : asBuffer(kept.value.payload);
    return { ...packet, payload };
  }
}

function publicationOf(packet: AedesPacket, origin: Origin): Publication {
  const publication = new Publication(origin);
  publication.topic = packet.topic;
  publication.qos = packet.qos;
  publication.retain = packet.retain;
  publication.buffer = packet.payload;
  publication.payloadEnd = packet.payload.length;
  return publication;
}

// What it means for a client of an exchange that one of its servers comes, comes back, refuses it or is lost: the
// client is closed, or the server's topics are refused, or they wait, as `topic_routing.lost` says. Made by
// exchange.ts. Sources: MQTT 5.0 sections 3.2.2.1.1 (Session Present), 4.1, 4.13; docs/proxy.md.
import { type ConnackPacket, PUBLISH, type Qos } from '../../mqtt/packet.ts';
import {
  NOT_AUTHORIZED,
  SERVER_BUSY,
  SERVER_SHUTTING_DOWN,
  SERVER_UNAVAILABLE,
  UNSPECIFIED_ERROR,
} from '../../mqtt/reason.ts';
import type { Status } from '../accesslog.ts';
import type { Entrance } from '../entrance.ts';
import type { Ends } from './ends.ts';
import type { Leg } from './leg.ts';
import type { Opening } from './opening.ts';
import type { Publishes } from './publishes.ts';
import type { Requests } from './requests.ts';

export interface AttendanceParts {
  readonly ends: Ends;
  readonly home: Entrance;
  readonly opening: Opening;
  readonly publishes: Publishes;
  readonly requests: Requests;
  /** Whether the client still waits for its CONNACK. */
  readonly isConnecting: () => boolean;
  readonly isOver: () => boolean;
  /** Ends a client that has had no CONNACK; `answer` is what a server says, code 0 = it is told nothing. */
  readonly turnAway: (status: Status, reason: string, code: number, answer: ConnackPacket | null) => void;
}

export class Attendance {
  private readonly parts: AttendanceParts;

  constructor(parts: AttendanceParts) {
    this.parts = parts;
  }

  /** A server has accepted the client; `again` = not for the first time. */
  up(leg: Leg, answer: ConnackPacket, again: boolean): void {
    const { ends, home, isConnecting, opening, requests } = this.parts;
    if (ends.version === 5) home.exchanges.learn(ends.table.upstreams[leg.index], answer.properties);
    home.connackSeen(answer.reasonCode);
    if (isConnecting()) {
      opening.up(leg, answer);
      return;
    }
    if (answer.sessionPresent || (!again && !opening.presumed(leg))) return;
    // The client has to know that a session is lost, and that nobody can say what became of its exchanges of QoS 2.
    if (leg.persistent || leg.backlog.hasQos2 || ends.deliveries.hasQos2(leg.index)) {
      ends.close(SERVER_BUSY, 'a server has lost the session');
      return;
    }
    ends.deliveries.forget(leg.index);
    requests.again(leg);
  }

  /** A server has refused the client. */
  refused(leg: Leg, answer: ConnackPacket): void {
    const { ends, home, isConnecting, turnAway } = this.parts;
    home.connackSeen(answer.reasonCode);
    if (isConnecting()) turnAway(200, 'refused by server', answer.reasonCode, answer);
    else if (ends.options.topicRouting.lost === 'close') ends.close(NOT_AUTHORIZED, 'refused by a server');
    else this.refuseAll(leg, NOT_AUTHORIZED);
  }

  /** A server is away, or gone; `broken` = it makes no sense to try again. */
  lost(leg: Leg, reason: string, broken: boolean): void {
    const { ends, home, isConnecting } = this.parts;
    if (isConnecting()) {
      this.lostEarly(leg, reason);
      return;
    }
    const { lost } = ends.options.topicRouting;
    ends.cells.lost.value++;
    const upstream = ends.table.upstreams[leg.index];
    home.parts.log('debug', 'PXY-TOPICS-LOST', { proxy: ends.options.name, upstream, reason });
    if (lost === 'close' || broken) ends.close(broken ? UNSPECIFIED_ERROR : SERVER_SHUTTING_DOWN, reason);
    else if (lost === 'refuse') this.refuseAll(leg, UNSPECIFIED_ERROR);
  }

  private lostEarly(leg: Leg, reason: string): void {
    const { ends, opening, turnAway } = this.parts;
    if (leg.index !== 0 && ends.options.topicRouting.lost !== 'close') opening.away(leg);
    // A server that closes in the place of a CONNACK has given its answer: the client gets the same.
    else if (leg.closedUnanswered) turnAway(200, reason, 0, null);
    else turnAway(502, 'no server can be reached', SERVER_UNAVAILABLE, null);
  }

  private refuseAll(leg: Leg, code: number): void {
    const { isOver, publishes, requests } = this.parts;
    for (const { first, packetId } of leg.backlog.takeBack()) {
      if (isOver()) return;
      if (first >> 4 === PUBLISH) publishes.refuse(((first >> 1) & 3) as Qos, packetId, code);
      else requests.failed(leg.index, packetId, code);
    }
  }
}

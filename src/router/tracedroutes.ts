// The router where messages are traced: those that are chosen are delivered one by one with their times taken, all
// others as ever. Made by gateway/tracing.ts in the place of Routes, only where tracing is configured, so that the
// router of everybody else does not know of it.
import type { Clock } from '../base/clock.ts';
import type { Ledger } from '../base/ledger.ts';
import type { Receiver, Target } from '../delivery/delivery.ts';
import type { Publication } from '../mqtt/message.ts';
import type { Journal } from '../store/store.ts';
import type { GroupTargets, Route, RouteTracer, TracedMessage } from './router.ts';
import { Routes } from './routes.ts';

export class TracedRoutes extends Routes {
  private readonly tracer: RouteTracer;

  constructor(journal: Journal, clock: Clock, ledger: Ledger, tracer: RouteTracer) {
    super(journal, clock, ledger);
    this.tracer = tracer;
  }

  override publish(publication: Publication, route: Route): number {
    const traced = this.tracer.begin(publication);
    if (traced === null) return super.publish(publication, route);
    const receivers = super.publish(publication, watched(route, traced));
    traced.routed(publication);
    return receivers;
  }

  override publishRun(
    publication: Publication,
    route: Route,
    start: number,
    _end: number,
    count: number,
    longest: number,
  ): number {
    let receivers = 0;
    let at = start;
    for (let left = count; left > 0; ) {
      const before = this.tracer.before(left);
      if (before > 0) {
        const next = pass(publication, at, before);
        receivers = this.untraced(publication, route, at, next, before, longest);
        at = next;
        left -= before;
      }
      if (left === 0) break;
      const next = publication.step(at);
      receivers = this.alone(publication, route);
      at = next;
      left--;
    }
    return receivers;
  }

  /** A part of a run. The publication is afterwards the view of the same bytes as before. */
  private untraced(
    publication: Publication,
    route: Route,
    start: number,
    end: number,
    count: number,
    longest: number,
  ): number {
    const { buffer, shared } = publication;
    publication.step(start);
    const receivers = super.publishRun(publication, route, start, end, count, longest);
    publication.buffer = buffer;
    publication.shared = shared;
    return receivers;
  }

  /** The packet of a run that the publication is at, traced. */
  private alone(publication: Publication, route: Route): number {
    const { buffer, shared } = publication;
    const traced = this.tracer.chosen(publication);
    // Its topic has been counted with the run.
    const once = { ...route, count: { messages: 0, bytes: 0 } };
    const receivers = super.publish(publication, traced === null ? once : watched(once, traced));
    traced?.routed(publication);
    publication.buffer = buffer;
    publication.shared = shared;
    publication.properties = null;
    return receivers;
  }
}

/** The offset behind `count` packets from `at` on. */
function pass(publication: Publication, at: number, count: number): number {
  let next = at;
  for (let i = 0; i < count; i++) next = publication.step(next);
  return next;
}

/** The same route, with each receiver timed. */
function watched(route: Route, traced: TracedMessage): Route {
  return {
    ...route,
    targets: route.targets.map((target) => timed(target, traced)),
    groups: route.groups.map((group) => watchedGroup(group, traced)),
  };
}

function watchedGroup(group: GroupTargets, traced: TracedMessage): GroupTargets {
  return {
    pick: (publication) => {
      const target = group.pick(publication);
      return target === null ? null : timed(target, traced);
    },
    peek: () => group.peek(),
  };
}

function timed(target: Target, traced: TracedMessage): Target {
  const { own } = target;
  const made: Target = { ...target, receiver: new TimedReceiver(target, traced), own: null };
  if (own !== null) made.own = own === target ? made : timed(own, traced);
  return made;
}

/** A receiver of one message: hands it to the one behind it, with the target as that one knows it. */
class TimedReceiver implements Receiver {
  private readonly target: Target;
  private readonly traced: TracedMessage;

  constructor(target: Target, traced: TracedMessage) {
    this.target = target;
    this.traced = traced;
  }

  get clientId(): string {
    return this.target.receiver.clientId;
  }

  get online(): boolean {
    return this.target.receiver.online;
  }

  get ready(): boolean {
    return this.target.receiver.ready;
  }

  get stores(): boolean {
    return this.target.receiver.stores;
  }

  get control(): boolean {
    return this.target.receiver.control === true;
  }

  mayReceive(topic: string): boolean {
    return this.target.receiver.mayReceive(topic);
  }

  deliver(publication: Publication): void {
    const { target, traced } = this;
    traced.handing();
    target.receiver.deliver(publication, target);
    traced.handed(target.receiver);
  }

  deliverRun(): void {
    // One message is no run.
  }
}

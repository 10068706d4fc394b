// The rights of clients that are not here: restored sessions, kept wills, publishers of stored messages. Built by
// chain.ts. A client is judged by the listener it came through. If that listener is not configured any more, or is not
// known, only what every listener with the same users would allow is allowed. Nothing is cached: what holds now
// decides.
import type { Access, Authenticator, Authorizer, DenyAction, EnhancedMethod, Identity, Verdict } from './auth.ts';
import type { Action } from './rules.ts';
import { allOf } from './verdict.ts';

const REFUSED = { accepted: false, reasonCode: 0x87, why: 'absent' } as const;
const NOBODY_COMES: Authenticator = { authenticate: () => REFUSED };
const NO_METHODS: readonly EnhancedMethod[] = [];

/** All of them have to agree. */
class Unanimous implements Authorizer {
  private readonly ways: () => readonly Access[];

  constructor(ways: () => readonly Access[]) {
    this.ways = ways;
  }

  get version(): number {
    let version = 0;
    for (const { authorizer } of this.ways()) version += authorizer.version;
    return version;
  }

  publish(identity: Identity, topicName: string, qos: number, retain: boolean): Verdict {
    return allOf(this.ways().map(({ authorizer }) => authorizer.publish(identity, topicName, qos, retain)));
  }

  subscribe(identity: Identity, topicFilter: string, qos: number): Verdict {
    return allOf(this.ways().map(({ authorizer }) => authorizer.subscribe(identity, topicFilter, qos)));
  }

  deliver(identity: Identity, topicName: string): boolean {
    return this.ways().every(({ authorizer }) => authorizer.deliver(identity, topicName));
  }

  explain(identity: Identity, action: Action, topic: string): { allowed: boolean; rule: string } {
    const found = this.ways().map(({ authorizer }) => authorizer.explain(identity, action, topic));
    return (
      found.find(({ allowed }) => !allowed) ?? found[0] ?? { allowed: false, rule: 'its listener is not configured' }
    );
  }
}

/** Access of clients whose listener is not there: nobody comes in by it. */
export class AbsentAccess implements Access {
  readonly realm: string;
  readonly authenticator = NOBODY_COMES;
  readonly authorizer: Authorizer;
  readonly enhanced = NO_METHODS;
  readonly denyAction: DenyAction = 'ignore';
  private readonly ways: () => readonly Access[];

  /**
   * @param ways every way in by which users of `realm` may come, or every way where none is of that realm; never empty
   */
  constructor(realm: string, ways: () => readonly Access[]) {
    this.realm = realm;
    this.ways = ways;
    this.authorizer = new Unanimous(ways);
  }

  vouches(identity: Identity): boolean {
    return this.ways().some((access) => access.vouches(identity));
  }
}

// One session: what MQTT keeps for a client id, connected or not (MQTT 5.0 section 4.1, 3.1.1 section 3.1.2.4).
// Owned by registry.ts, used by served.ts and opening.ts. Must not touch connections except through `client`.

import type { Access, Identity } from '../auth/auth.ts';
import type { Timer } from '../base/clock.ts';
import type { SessionOutbox } from '../delivery/delivery.ts';
import type { Hold, Origin } from '../mqtt/message.ts';
import type { Version, Will } from '../mqtt/packet.ts';
import type { Usage } from '../policy/policy.ts';
import type { StoredSubscription } from '../store/store.ts';
import { lasting, originOf, sameArrival } from './origin.ts';
import type { Peer } from './peer.ts';
import type { Core } from './session.ts';
import { Verdicts } from './verdicts.ts';

/** Session Expiry Interval that means never (MQTT 5.0 section 3.1.2.11.2). */
export const NEVER = 0xffff_ffff;

export class Session {
  readonly clientId: string;
  readonly outbox: SessionOutbox;
  readonly subscriptions = new Map<string, StoredSubscription>();
  /**
   * Packet ids of QoS 2 publishes received and not yet released [MQTT-4.3.3-10], each with what its message still waits
   * for.
   */
  readonly inbound = new Map<number, Hold | null>();
  /** Bytes in the ledger; see weight.ts. */
  bytes = 0;
  identity: Identity;
  origin: Origin;
  version: Version;
  cleanStart: boolean;
  /** The client says it is a bridge: it gets no message of its own back, and RETAIN as published. */
  bridge = false;
  keepAlive = 0;
  /** Seconds; NEVER = does not end. */
  expiryInterval = 0;
  client: Peer | null = null;
  /** Made by the configuration: the first user that continues it owns it. */
  unclaimed = false;
  will: Will | null = null;
  /** Runs while no client is connected: session end or will, whichever comes next. */
  expiryTimer: Timer | null = null;
  willTimer: Timer | null = null;
  /** Wall-clock milliseconds of the last connect or disconnect. */
  since: number;
  remote = '';
  listener = '';
  /** The scopes of quotas that it counts in. */
  scopes: readonly Usage[] = [];
  /** Begins all topics of its client, which does not see it; a message on another topic is not for it. */
  mount = '';
  lastError: string | null = null;
  messagesIn = 0;
  /** A will whose delay is running. */
  pendingWill: Will | null = null;
  /** SUBSCRIBE packets whose SUBACK waits for the store. */
  unsettled = 0;
  /** The client as it is judged while it is away: what vouched for it is asked for again when it comes. */
  private lasting: Identity;
  private access: (() => Access) | null = null;
  private readVersion = -1;
  private readonly readVerdicts: Verdicts;

  constructor(core: Core, identity: Identity, version: Version, cleanStart: boolean) {
    this.clientId = identity.clientId;
    this.identity = identity;
    this.origin = originOf(identity);
    this.lasting = lasting(identity);
    this.version = version;
    this.cleanStart = cleanStart;
    this.since = core.clock.now();
    this.readVerdicts = new Verdicts(core.ledger);
    this.outbox = core.makeOutbox(
      {
        clientId: identity.clientId,
        clock: core.clock,
        journal: core.journal,
        limits: core.limits.outbox,
        stats: core.delivery,
        mayReceive: (topic) => this.mayReceive(topic),
        redeliver: (share, message, except) => core.router.redeliver(share, message, except),
        onTrouble: (reason) => this.trouble(core, reason),
        later: (go) => core.pace.later(go),
      },
      false,
    );
  }

  get kept(): boolean {
    return this.expiryInterval > 0;
  }

  /** Whether a client may continue this session: it is that of the same user, of the same realm. */
  isFor(identity: Identity): boolean {
    if (this.unclaimed) return true;
    const { username, realm = '' } = this.identity;
    // Whose it is may not be known: then it is nobody's who comes now.
    return username === identity.username && realm !== null && realm === (identity.realm ?? '');
  }

  /** Another connection of the same user continues the session: rights are those of now. */
  adopt(identity: Identity, version: Version, cleanStart: boolean): void {
    // Messages and stored values keep their origin: the same client coming again the same way does not make another.
    if (!sameArrival(this.identity, identity)) this.origin = originOf(identity);
    this.identity = identity;
    this.lasting = lasting(identity);
    this.version = version;
    this.cleanStart = cleanStart;
    this.readVersion = -1;
    this.unclaimed = false;
  }

  /** The client has come or gone: its reading rights are looked at again. */
  moved(): void {
    this.readVersion = -1;
  }

  /** What was remembered of rights is forgotten: the session has ended. */
  forgetVerdicts(): void {
    this.readVerdicts.clear();
  }

  /** How this client's rights are found; those of its listener when it was last here, while it is absent. */
  setAccess(access: () => Access): void {
    this.access = access;
    this.readVersion = -1;
  }

  get currentAccess(): Access | null {
    return this.access === null ? null : this.access();
  }

  private mayReceive(topic: string): boolean {
    const { access, mount } = this;
    if (access === null || !isBelow(topic, mount)) return false;
    const authorizer = access().authorizer;
    if (authorizer.version !== this.readVersion) {
      this.readVerdicts.clear();
      this.readVersion = authorizer.version;
    }
    let verdict = this.readVerdicts.get(topic);
    if (verdict === undefined) {
      verdict = authorizer.deliver(this.client === null ? this.lasting : this.identity, topic);
      this.readVerdicts.set(topic, verdict);
    }
    return verdict;
  }

  private trouble(core: Core, reason: 'queue-full' | 'slow'): void {
    core.log('warn', reason === 'slow' ? 'CLI-SLOW' : 'SES-QUEUE-FULL', { clientId: this.clientId });
    core.emit({ kind: 'dropped', clientId: this.clientId, reason, count: 1 });
  }
}

/** Whether a topic has something left when the mount point is taken off. */
function isBelow(topic: string, mount: string): boolean {
  return mount === '' || (topic.length > mount.length && topic.startsWith(mount));
}

// This end of the session that a remote broker keeps for a bridge: which of the remote's QoS 2 messages have come and
// are not released. Made by bridges.ts, one for a bridge; outlives connections and workers, through the journal the
// process too. Used by remote.ts and bridge.ts. An identifier is stored with its message before PUBREC leaves, and
// forgotten before PUBCOMP does: after a crash the remote's repetition is known as one, and an identifier it uses again
// is not. Messages to the remote are outbox.ts's. Sources: MQTT 5.0 and 3.1.1 sections 4.1 and 4.3.3.
import { Hold } from '../../mqtt/message.ts';
import type { Journal, RestoredSession } from '../../store/store.ts';

export type SessionJournal = Pick<
  Journal,
  'durable' | 'sessionPut' | 'sessionDelete' | 'inboundPut' | 'inboundDelete' | 'gather' | 'barrier' | 'barrierAll'
>;

/** It ends with its bridge alone. */
const ENDLESS = {
  expiresAt: Number.POSITIVE_INFINITY,
  expiryInterval: 0xffff_ffff,
  version: 5,
  arrival: null,
  validUntil: 0,
} as const;

export class RemoteSession {
  private readonly key: string;
  private readonly journal: SessionJournal;
  private readonly inbound: Set<number>;
  /** Which broker knows it under which client id; null = not known yet. */
  private identity: string | null;

  /**
   * @param key of the session in the journal
   * @param restored what an earlier process has left
   */
  constructor(key: string, journal: SessionJournal, restored: RestoredSession | null) {
    this.key = key;
    this.journal = journal;
    this.inbound = new Set(restored?.inbound);
    this.identity = restored?.session.username ?? null;
  }

  /**
   * A connection is open. True when both sides go on with what they know of each other: the remote has kept its session
   * (`present`), and it is the one that this is the other end of.
   */
  opened(identity: string, present: boolean): boolean {
    const { journal, key } = this;
    const resumed = present && (this.identity === null || this.identity === identity);
    if (!resumed) this.clear();
    if (this.identity === identity) return resumed;
    this.identity = identity;
    if (journal.durable) journal.sessionPut({ ...ENDLESS, clientId: key, username: identity });
    return resumed;
  }

  has(packetId: number): boolean {
    return this.inbound.has(packetId);
  }

  /**
   * What is published from here on belongs to one message of the remote, until received() or the end (`on` = false).
   */
  gather(on: boolean): void {
    if (this.journal.durable) this.journal.gather(on);
  }

  /**
   * A message has been accepted under this identifier. Gives what PUBREC waits for; `hold` is what the message itself
   * waits for.
   */
  received(packetId: number, hold: Hold | null): Hold | null {
    // A message that somebody has not taken comes again: it is a new one then.
    if (hold?.refused === true) return hold;
    this.inbound.add(packetId);
    return this.store(packetId, hold);
  }

  /** The same message again: what its PUBREC waits for. */
  again(packetId: number): Hold | null {
    // The first one may still be on its way to the disk, on a connection that has gone.
    return this.store(packetId, null);
  }

  /** PUBREL: the remote may use the identifier for another message once it has PUBCOMP. Gives what that waits for. */
  released(packetId: number): Hold | null {
    const { journal } = this;
    const known = this.inbound.delete(packetId);
    if (!journal.durable) return null;
    const hold = new Hold();
    if (known) {
      journal.inboundDelete(this.key, packetId);
      journal.barrier(hold);
    } else journal.barrierAll(hold);
    return hold;
  }

  /** The message of this identifier was not kept after all. */
  refused(packetId: number): void {
    if (this.inbound.delete(packetId) && this.journal.durable) this.journal.inboundDelete(this.key, packetId);
  }

  /** The bridge is no more. */
  forget(): void {
    this.inbound.clear();
    this.identity = null;
    if (this.journal.durable) this.journal.sessionDelete(this.key);
  }

  private store(packetId: number, hold: Hold | null): Hold | null {
    const { journal } = this;
    if (!journal.durable) return hold;
    const both = hold ?? new Hold();
    // Behind the message, in the same group of the journal: neither is ever stored without the other.
    journal.inboundPut(this.key, packetId);
    journal.barrier(both);
    return both;
  }

  private clear(): void {
    if (this.journal.durable) for (const packetId of this.inbound) this.journal.inboundDelete(this.key, packetId);
    this.inbound.clear();
  }
}

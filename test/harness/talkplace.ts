// A native broker on connections inside the process and a clock that stands still, for conversations (conversation.ts).
import type { Access, EnhancedMethod, Identity } from '../../src/auth/auth.ts';
import { Metrics } from '../../src/base/metrics.ts';
import { Turn } from '../../src/base/turn.ts';
import { BlockPool } from '../../src/base/writer.ts';
import type { ListenerContext } from '../../src/broker/broker.ts';
import { NativeBroker } from '../../src/broker/native/engine.ts';
import { NOT_AUTHORIZED } from '../../src/mqtt/reason.ts';
import type { SessionLimits } from '../../src/session/session.ts';
import { memoryJournal } from '../../src/store/memory.ts';
import { memoryPair } from '../../src/transport/memory.ts';
import type { Connection } from '../../src/transport/transport.ts';
import { FakeClock } from './clock.ts';
import type { Peer, Place } from './conversation.ts';

/** What a broker of these tests allows where the conversation says nothing else. */
const LIMITS: SessionLimits = {
  maxPacketSize: 1 << 20,
  maxConnectSize: 1 << 20,
  maxTopicAlias: 10,
  keepaliveMultiplier: 1.5,
  maxKeepaliveSeconds: 0,
  maxAwaitingRel: 100,
  maxSessionExpiryMs: 0,
  maxQos: 2,
  retainAvailable: true,
  wildcardAvailable: true,
  sharedAvailable: true,
  maxTopicLevels: 128,
  maxPayloadSize: 0,
  clientIdPrefix: '',
  maxSessions: 0,
  maxSubscriptions: 0,
  maxTotalSubscriptions: 0,
  retained: { messages: 0, bytes: 0 },
  sendTimeoutMs: 30_000,
  checkRetainSource: false,
  sessionOwner: 'user',
  maxConnectRate: 0,
  maxPendingConnections: 0,
  memoryBudget: 0,
  keptBudget: 0,
  maxMatching: 0,
  outbox: {
    inflight: 100,
    queueLength: 1000,
    queueBytes: 1 << 20,
    queueQos0: false,
    writeBuffer: 1 << 20,
    topicAliases: 0,
  },
};

/** Two steps, or one when the client says "ok" or "no" at once. */
const TEST_METHOD: EnhancedMethod = {
  name: 'TEST',
  begin: () => ({
    step: (data) => {
      const said = data === null ? '' : Buffer.from(data).toString();
      if (said === 'ok') return { kind: 'accept', data: null, username: 'tester' };
      if (said === 'no') return { kind: 'refuse', reasonCode: NOT_AUTHORIZED, why: 'test' };
      return { kind: 'continue', data: Buffer.from('more?') };
    },
  }),
};

/** Everybody may do everything, but nobody touches secret/. */
const OPEN: Access = {
  realm: '',
  vouches: () => true,
  authenticator: {
    authenticate: ({ clientId, username, remoteAddress, listener }) => {
      const identity: Identity = { clientId, username, remoteAddress, listener, claims: null, internal: false };
      return { accepted: true, identity };
    },
  },
  authorizer: {
    version: 1,
    publish: (_, topic) => !topic.startsWith('secret/'),
    subscribe: (_, filter) => !filter.startsWith('secret/'),
    deliver: () => true,
    explain: () => ({ allowed: true, rule: 'test' }),
  },
  enhanced: [TEST_METHOD],
  denyAction: 'ignore',
};

/** Limits that differ, those of the outbox one by one. */
export type TalkLimits = Partial<Omit<SessionLimits, 'outbox'>> & {
  readonly outbox?: Partial<SessionLimits['outbox']>;
  /** What a PUBLISH or SUBSCRIBE that is not allowed does. */
  readonly denyAction?: Access['denyAction'];
};

export interface TalkPlace extends Place {
  /** Log lines of level error: internal errors, of which there must be none. */
  readonly errors: string[];
  stop(): Promise<void>;
}

/** Starts a broker with the limits of a conversation; all bytes travel in pieces of `chunkBytes`, 0 = as they were written. */
export async function talkPlace(limits: TalkLimits = {}, chunkBytes = 0): Promise<TalkPlace> {
  const clock = new FakeClock();
  const errors: string[] = [];
  const { denyAction = 'ignore', outbox, ...others } = limits;
  const access: Access = { ...OPEN, denyAction };
  const listener: ListenerContext = { name: 'test', connectTimeoutMs: 10_000, access: () => access };
  const broker = new NativeBroker({
    clock,
    turn: new Turn(),
    pool: new BlockPool(),
    log: (level, id, fields) => {
      if (level === 'error') errors.push(`${id} ${JSON.stringify(fields)}`);
    },
    metrics: new Metrics(),
    journal: memoryJournal(),
    limits: { ...LIMITS, ...others, outbox: { ...LIMITS.outbox, ...outbox } },
    localAccess: () => OPEN,
    absentees: { access: () => OPEN, realmOf: () => '' },
    sys: { version: 'test', intervalMs: 0, more: () => [] },
  });
  await broker.start();
  return {
    open: () => {
      const [near, far] = memoryPair({ chunkBytes });
      const peer = new MemoryPeer(near);
      broker.accept(far, listener);
      return peer;
    },
    errors,
    advance: (ms) => advance(clock, ms),
    stop: () => broker.stop(0),
  };
}

/** Long times in few jumps: a broker that looks at its clients twice a second would take an hour for an hour. */
const JUMP_MS = 250_000;

async function advance(clock: FakeClock, ms: number): Promise<void> {
  await settled();
  if (ms <= JUMP_MS) return clock.advanceAsync(ms);
  clock.advance(ms);
  await settled();
}

/** Lets what was written before be read. */
async function settled(): Promise<void> {
  for (let turn = 0; turn < 4; turn++) await new Promise((resolve) => setImmediate(resolve));
}

class MemoryPeer implements Peer {
  private readonly connection: Connection;
  private readonly chunks: Buffer[] = [];
  private closed = false;
  private wake: (() => void) | null = null;

  constructor(connection: Connection) {
    this.connection = connection;
    connection.onData((chunk) => this.came(Buffer.from(chunk)));
    connection.onClose(() => this.came(null));
  }

  private came(chunk: Buffer | null): void {
    if (chunk === null) this.closed = true;
    else this.chunks.push(chunk);
    this.wake?.();
    this.wake = null;
  }

  send(bytes: Buffer): void {
    this.connection.write(bytes, () => {});
  }

  async next(): Promise<Buffer | null> {
    for (;;) {
      const chunk = this.chunks.shift();
      if (chunk !== undefined) return chunk;
      if (this.closed) return null;
      await new Promise<void>((resolve) => {
        this.wake = resolve;
      });
    }
  }

  async drop(): Promise<void> {
    this.connection.destroy(true);
    await settled();
  }
}

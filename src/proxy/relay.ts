// One client of a proxy, from its acceptance to its line in the access log.
// Made by entrance.ts. The rules are those of the moment it came: a reload does not change them under a connection.
//
//   reading --CONNECT--> judged --local--> handed to the broker (tap.ts)
//      |                   |-----server--> dialing --connected--> open (splice.ts) --> over
//      |  time, bytes      |  rights, limits, route   | no server left
//      '------------ refused (closed, or CONNACK with a reason) ------------> over
//
// Must not log, keep or show a password. Sources: MQTT 5.0 sections 3.1, 3.2, 4.13; NGINX stream phases (docs/proxy.md).
import type { Timer } from '../base/clock.ts';
import type { ProtocolError } from '../base/errors.ts';
import { ConnectError, encodeConnack, encodeRefusal } from '../codec/connect.ts';
import { encodeDisconnect } from '../codec/session.ts';
import { CONNACK, DISCONNECT, type Version } from '../mqtt/packet.ts';
import { NOT_AUTHORIZED, SERVER_UNAVAILABLE, UNSUPPORTED_PROTOCOL_VERSION } from '../mqtt/reason.ts';
import type { Connection } from '../transport/transport.ts';
import type { Entry, Status } from './accesslog.ts';
import { helloName } from './clienthello.ts';
import { ConnackWatch } from './connack.ts';
import { Dialing } from './dialing.ts';
import type { Entrance } from './entrance.ts';
import { connectionFacts, type Facts, takeConnect } from './facts.ts';
import { Guard } from './guard.ts';
import { type ConnectLayout, readLayout } from './layout.ts';
import type { Peer } from './peer.ts';
import type { Pool } from './pool.ts';
import { Preread } from './preread.ts';
import { LOCAL } from './proxy.ts';
import { chooseUpstream, isAllowed } from './route.ts';
import type { Rules } from './rules.ts';
import { Splice, type SpliceEnd } from './splice.ts';
import { Tally } from './tally.ts';
import { Tap } from './tap.ts';
import { Counted, judge, type Passage } from './verdict.ts';

const OUT_OF_DESCRIPTORS = 'out of file descriptors';

type State = 'reading' | 'dialing' | 'open' | 'local' | 'over';

/** What `idle_timeout = auto` adds to one and a half keep alives: the server, who knows better, closes first. */
const IDLE_GRACE_MS = 10_000;
/** One side has ended, the other takes nothing of what is left for it: after this it gets no more. */
const ENDING_MS = 30_000;

const END_REASONS: Readonly<Record<SpliceEnd, string>> = {
  client: 'closed by client',
  server: 'closed by server',
  'client-error': 'client connection lost',
  'server-error': 'server connection lost',
};

/** What goes to a server: null stands for bytes that nobody has read. */
interface Load {
  readonly bytes: Buffer | null;
  /** null = the client speaks something else, or nothing is known of it. */
  readonly passage: Passage | null;
}

export class Relay {
  private state: State = 'reading';
  private readonly home: Entrance;
  private readonly rules: Rules;
  private readonly client: Connection;
  private readonly facts: Facts;
  private readonly startMs: number;
  private readonly counted: Counted;
  private timer: Timer | null = null;
  private rewrittenId: string | null = null;
  private tried: readonly string[] = [];
  private readonly tally: Tally;
  private pool: Pool | null = null;
  private peer: Peer | null = null;
  private dialing: Dialing | null = null;
  private splice: Splice | null = null;
  private tap: Tap | null = null;
  private guard: Guard | null = null;
  /** Milliseconds without a byte that end an open session; 0 = never. */
  private idleMs = 0;
  private seenMark = 0;
  private seenMs = 0;

  constructor(home: Entrance, rules: Rules, client: Connection) {
    this.home = home;
    this.rules = rules;
    this.client = client;
    this.facts = connectionFacts(rules.options.name, client);
    this.startMs = home.parts.clock.mono();
    this.counted = new Counted(home);
    this.tally = new Tally(home.cells.bytesIn, home.cells.bytesOut);
  }

  get remoteAddress(): string {
    return this.client.remoteAddress;
  }

  start(): void {
    const { client } = this;
    const { options } = this.rules;
    client.onClose(() => this.leftEarly());
    client.onEnd(() => this.leftEarly());
    if (!options.preread) {
      client.pause();
      this.send(options.default, { bytes: null, passage: null });
      return;
    }
    const preread = new Preread(options.prereadMaxBytes);
    this.timer = this.home.parts.clock.after(options.prereadTimeoutMs, () =>
      this.refuse(400, 'no CONNECT in time', null, 0),
    );
    const lent = client.kind === 'memory';
    client.onData((chunk) => {
      this.tally.ownIn += chunk.length;
      this.read(preread, lent ? Buffer.from(chunk) : chunk);
    });
  }

  /** Called now and then: ends a session that has been silent for too long. Also brings the byte metrics up to date. */
  sweep(nowMs: number): void {
    const { splice, tally } = this;
    tally.tell();
    if (this.state !== 'open' || splice === null) return;
    // What one side takes moves it on as well as what the other sends.
    const mark = tally.bytesIn + tally.bytesOut - splice.waiting;
    if (mark !== this.seenMark) {
      this.seenMark = mark;
      this.seenMs = nowMs;
      return;
    }
    const silentMs = nowMs - this.seenMs;
    if (splice.ending && silentMs >= ENDING_MS) {
      splice.destroy();
      this.finish(200, 'the other side takes nothing more');
    } else if (this.idleMs > 0 && silentMs >= this.idleMs) {
      void splice.stop();
      this.finish(200, 'idle');
    }
  }

  /** Ends the session because the proxy stops; resolves when its connections are closed. Those of the built-in broker go on, they are the broker's. */
  async stop(): Promise<void> {
    const gone = this.splice?.stop();
    if (this.splice === null && this.tap === null) this.client.destroy();
    this.finish(200, 'proxy stops');
    await gone;
  }

  /** Closes at once what stop() has left lingering. */
  destroy(): void {
    if (this.tap !== null) return;
    this.splice?.destroy();
    this.client.destroy();
  }

  // ---- reading

  private read(preread: Preread, chunk: Buffer): void {
    if (this.state !== 'reading') return;
    const result = preread.push(chunk);
    switch (result) {
      case 'more':
        return;
      case 'complete':
        this.connect(preread);
        return;
      case 'tls':
      case 'not-mqtt':
        if (this.rules.options.nonMqtt === 'pass') this.foreign(preread.bytes, result === 'tls');
        else this.refuse(400, result === 'tls' ? 'TLS on a port for plain connections' : 'not MQTT', null, 0);
        return;
      case 'malformed':
        this.refuse(400, 'malformed CONNECT', null, 0);
        return;
      case 'too-large':
        this.refuse(400, 'CONNECT is too large', null, 0);
    }
  }

  private leftEarly(): void {
    if (this.state !== 'reading' && this.state !== 'dialing') return;
    this.client.destroy();
    this.finish(200, this.tally.ownIn === 0 ? 'client sent nothing' : 'client left before it was connected');
  }

  /** `preread` holds a whole packet. */
  private connect(preread: Preread): void {
    const { facts, home, rules } = this;
    this.timer?.cancel();
    // Nothing more is read until the server is there: what came along is all that is held.
    this.client.pause();
    let layout: ConnectLayout;
    try {
      layout = readLayout(preread.bytes, preread.end);
    } catch (error) {
      if (!(error instanceof ConnectError)) throw error;
      this.malformed(error);
      return;
    }
    takeConnect(facts, layout);
    const verdict = judge(layout, rules, facts, this.counted, home, home.parts.clock.mono());
    if (verdict.refused) {
      this.refuse(verdict.status, verdict.reason, layout.packet.version, verdict.code);
      return;
    }
    if (verdict.rewritten) home.cells.rewritten.value++;
    this.rewrittenId = verdict.clientId;
    const rest = preread.bytes.subarray(preread.end);
    const bytes = !verdict.rewritten
      ? preread.bytes
      : rest.length === 0
        ? verdict.connect
        : Buffer.concat([verdict.connect, rest]);
    this.send(verdict.upstream, { bytes, passage: verdict });
  }

  private malformed(error: ConnectError): void {
    this.answer(this.rules.options.reject === 'connack' ? encodeRefusal(error) : null);
    const unsupported = error.reasonCode === UNSUPPORTED_PROTOCOL_VERSION;
    this.finish(400, unsupported ? error.message : `malformed CONNECT: ${error.message}`);
  }

  /** Another protocol, passed on as it is; of TLS the server name is read first. */
  private foreign(bytes: Buffer, tls: boolean): void {
    const { facts, rules } = this;
    if (tls) {
      const hello = helloName(bytes);
      if (hello === 'more') return;
      facts.sni = hello.name;
    }
    this.timer?.cancel();
    this.client.pause();
    if (isAllowed(rules, facts)) this.send(chooseUpstream(rules, facts), { bytes, passage: null });
    else this.refuse(403, 'client is not allowed', null, 0);
  }

  // ---- towards a server

  private send(upstream: string | null, load: Load): void {
    const version = this.facts.version === 0 ? null : this.facts.version;
    if (upstream === null) {
      this.refuse(403, 'no route fits', null, 0);
      return;
    }
    if (upstream === LOCAL) {
      this.toBroker(load);
      return;
    }
    const pool = this.home.pool(upstream);
    if (pool === undefined) {
      this.refuse(500, `no upstream ${upstream}`, version, SERVER_UNAVAILABLE);
      return;
    }
    this.state = 'dialing';
    this.pool = pool;
    void this.dial(pool, load);
  }

  private toBroker({ bytes, passage }: Load): void {
    const { client, home } = this;
    const { name, prereadTimeoutMs } = this.rules.options;
    this.state = 'local';
    this.tried = [LOCAL];
    const connection = bytes === null ? client : home.parts.transports.pushBack(client, bytes);
    const tap = new Tap(connection, () => this.finish(200, 'closed'));
    this.tap = tap;
    // What was read counts once, as it came: the tap sees it again in the form the broker gets.
    this.tally.stage = tap;
    if (bytes !== null) this.tally.ownIn -= bytes.length;
    if (passage?.filter) tap.filter((out, back) => this.guarding(passage, out, back, (on) => tap.hold(on)));
    home.parts.local(tap, name, prereadTimeoutMs);
    tap.resume();
  }

  /** Never rejects. */
  private async dial(pool: Pool, load: Load): Promise<void> {
    const dialing = new Dialing(pool, this.client, this.home.parts.clock);
    this.dialing = dialing;
    this.tried = dialing.tried;
    const reached = await dialing.reach(this.facts, this.rules.options);
    this.dialing = null;
    if (this.state !== 'dialing') {
      reached?.server.destroy();
      if (reached !== null) pool.release(reached.peer);
      return;
    }
    if (reached === null) {
      if (dialing.outOfDescriptors) {
        this.home.outOfDescriptors();
        this.refuse(503, OUT_OF_DESCRIPTORS, this.facts.version === 0 ? null : this.facts.version, SERVER_UNAVAILABLE);
        return;
      }
      if (this.tried.length === 0) this.tried = [pool.options.name];
      const { version } = this.facts;
      this.refuse(502, 'no server can be reached', version === 0 ? null : version, SERVER_UNAVAILABLE);
      return;
    }
    this.peer = reached.peer;
    this.join(reached.server, load);
  }

  private join(server: Connection, { bytes, passage }: Load): void {
    const { client, facts, home } = this;
    const { idleTimeoutMs, halfClose } = this.rules.options;
    this.state = 'open';
    this.seenMs = this.home.parts.clock.mono();
    this.idleMs = idleTimeoutMs ?? idleOf(facts.keepAlive);
    const splice = new Splice(client, server, halfClose, (end) => this.finish(200, END_REASONS[end]));
    this.splice = splice;
    this.tally.stage = splice;
    splice.start();
    const filter = this.guarding(
      passage,
      (out) => splice.up.send(out),
      (out) => splice.down.send(out),
      (on) => splice.up.hold(on),
    );
    if (bytes !== null) {
      if (filter === null) splice.up.send(bytes);
      else filter.fromClient(bytes);
    }
    if (passage === null) splice.down.read(home.parts.transports.buffers);
    else this.watchConnack(server, splice, filter);
    if (filter === null) splice.up.read(home.parts.transports.buffers);
    else client.onData(splice.up.counting((chunk) => filter.fromClient(chunk)));
    splice.up.resume();
  }

  /** The server's first packet is looked at; what is behind it only by a filter. */
  private watchConnack(server: Connection, splice: Splice, filter: Guard | null): void {
    const { facts, home } = this;
    if (facts.version === 0) return;
    const watch = new ConnackWatch(facts.version, facts.clientId === '' ? this.rewrittenId : null);
    const { down } = splice;
    const pass = (bytes: Buffer): void => {
      if (filter === null) down.send(bytes);
      else filter.fromServer(bytes);
    };
    splice.beforeServerEnd = () => {
      const rest = watch.rest();
      if (rest !== null) pass(rest);
    };
    server.onData(
      down.counting((chunk) => {
        const seen = watch.push(chunk);
        if (seen === null) return;
        if (seen.reasonCode !== null) home.connackSeen(seen.reasonCode);
        if (seen.serverKeepAlive !== null && this.rules.options.idleTimeoutMs === null)
          this.idleMs = idleOf(seen.serverKeepAlive); // [MQTT-3.2.2-21]
        splice.beforeServerEnd = null;
        if (filter === null) down.read(home.parts.transports.buffers);
        else server.onData(down.counting((next) => filter.fromServer(next)));
        pass(seen.bytes);
      }),
    );
  }

  /** Reads every packet of this client from now on; null = nothing is to be looked at. */
  private guarding(
    passage: Passage | null,
    toServer: (bytes: Buffer) => void,
    toClient: (bytes: Buffer) => void,
    hold: (on: boolean) => void,
  ): Guard | null {
    const { home } = this;
    const { version } = this.facts;
    if (passage === null || passage.filter === null || version === 0) return null;
    this.guard = new Guard({
      filter: passage.filter,
      version,
      connectBytes: passage.connect.length,
      cells: home.cells.filtered,
      clock: home.parts.clock,
      toServer,
      toClient,
      hold,
      onBroken: (error) => this.broken(error, toClient),
    });
    return this.guard;
  }

  // ---- the end

  /** The filter met what is no MQTT, or what the rules end a session for. */
  private broken(error: ProtocolError, toClient: (bytes: Buffer) => void): void {
    const { facts } = this;
    if (facts.version === 5)
      toClient(encodeDisconnect(5, { type: DISCONNECT, reasonCode: error.reasonCode, properties: null })); // [MQTT-4.13.1-1]
    if (this.splice === null) this.client.end();
    else void this.splice.stop();
    this.finish(error.reasonCode === NOT_AUTHORIZED ? 403 : 400, error.message);
  }

  /** `code`: what a client is told with `reject = connack`, 0 = nothing; `version` null = its version is not known. */
  private refuse(status: Status, reason: string, version: Version | null, code: number): void {
    if (this.state === 'over') return;
    const tell = this.rules.options.reject === 'connack' && version !== null && code !== 0;
    const answer = { type: CONNACK, sessionPresent: false, reasonCode: code, properties: null } as const;
    this.answer(tell ? encodeConnack(version, answer) : null);
    this.finish(status, reason);
  }

  private answer(bytes: Buffer | null): void {
    const { client } = this;
    if (bytes === null) {
      client.destroy();
      return;
    }
    this.tally.ownOut += bytes.length;
    client.write(bytes, () => {});
    client.end();
  }

  /** Once: gives back what was counted, writes the line. */
  private finish(status: Status, reason: string): void {
    if (this.state === 'over') return;
    this.state = 'over';
    this.timer?.cancel();
    this.guard?.stop();
    this.dialing?.giveUp();
    this.counted.release();
    if (this.pool !== null && this.peer !== null) this.pool.release(this.peer);
    this.tally.tell();
    this.home.over(this, this.rules, this.entry(status, reason));
  }

  private entry(status: Status, reason: string): Entry {
    const { facts } = this;
    const { clock } = this.home.parts;
    return {
      timeMs: clock.now(),
      remoteAddress: facts.remoteAddress,
      remotePort: facts.remotePort,
      listener: facts.listener,
      version: facts.version,
      clientId: facts.version === 0 ? null : facts.clientId,
      username: facts.username,
      rewrittenClientId: this.rewrittenId,
      upstreams: this.tried,
      bytesReceived: this.tally.bytesIn,
      bytesSent: this.tally.bytesOut,
      sessionMs: clock.mono() - this.startMs,
      status,
      reason,
    };
  }
}

/** Seconds to the milliseconds of silence that end a session; without keep alive the kernel's own probes have to do. */
function idleOf(keepAlive: number): number {
  return keepAlive === 0 ? 0 : keepAlive * 1500 + IDLE_GRACE_MS;
}

// One client of a proxy, from its acceptance to its line in the access log. Made by entrance.ts. The rules are those of
// the moment it came: a reload does not change them under a connection.
//
//   reading --CONNECT--> judged --local--> handed to the broker (tap.ts)
//      |                   |-----server--> dialing --connected--> open (session.ts) --> over
//      |  time, bytes      |  rights, limits, route   | no server left
//      '------------ refused (closed, or CONNACK with a reason) ------------> over
//
// Must not log, keep or show a password. Sources: MQTT 5.0 sections 3.1, 3.2, 4.13; NGINX stream phases
// (docs/proxy.md).
import type { Timer } from '../base/clock.ts';
import type { ProtocolError } from '../base/errors.ts';
import { ConnectError, encodeConnack, encodeRefusal } from '../codec/connect.ts';
import { encodeDisconnect } from '../codec/session.ts';
import { CONNACK, DISCONNECT, type Version } from '../mqtt/packet.ts';
import { NOT_AUTHORIZED, SERVER_UNAVAILABLE, UNSUPPORTED_PROTOCOL_VERSION } from '../mqtt/reason.ts';
import type { Connection } from '../transport/transport.ts';
import type { Entry, Status } from './accesslog.ts';
import { helloName } from './clienthello.ts';
import { Dialing } from './dialing.ts';
import type { Entrance } from './entrance.ts';
import { connectionFacts, type Facts, takeConnect } from './facts.ts';
import { Guard } from './guard.ts';
import { type ConnectLayout, readLayout } from './layout.ts';
import type { Out } from './packetstream.ts';
import type { Pool } from './pool.ts';
import { Preread, UNTAKEN } from './preread.ts';
import { LOCAL } from './proxy.ts';
import type { Rules } from './rules.ts';
import { type Load, Session } from './session.ts';
import { Tally } from './tally.ts';
import { Tap } from './tap.ts';
import { Exchange } from './topics/exchange.ts';
import type { TopicRules } from './topics/table.ts';
import { Counted, judge, judgeForeign, type Passage } from './verdict.ts';

const OUT_OF_DESCRIPTORS = 'out of file descriptors';

type State = 'reading' | 'dialing' | 'open' | 'local' | 'over';

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
  /** Gives the server back to its pool. */
  private release: (() => void) | null = null;
  private dialing: Dialing | null = null;
  private session: Session | Exchange | null = null;
  private tap: Tap | null = null;
  private guard: Guard | null = null;

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

  /** null = no CONNECT has been read. */
  private get version(): Version | null {
    return this.facts.version === 0 ? null : this.facts.version;
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
    this.tally.tell();
    if (this.state === 'open') this.session?.sweep(nowMs);
  }

  /**
   * Ends the session because the proxy stops; resolves when its connections are closed. Those of the built-in broker go
   * on, they are the broker's.
   */
  async stop(): Promise<void> {
    const gone = this.session?.stop();
    if (this.session === null && this.tap === null) this.client.destroy();
    this.finish(200, 'proxy stops');
    await gone;
  }

  /** Closes at once what stop() has left lingering. */
  destroy(): void {
    if (this.tap !== null) return;
    this.session?.destroy();
    this.client.destroy();
  }

  // ---- reading

  private read(preread: Preread, chunk: Buffer): void {
    if (this.state !== 'reading') return;
    const result = preread.push(chunk);
    if (result === 'more') return;
    if (result === 'complete') {
      this.connect(preread);
      return;
    }
    const isForeign = result === 'tls' || result === 'not-mqtt';
    if (isForeign && this.rules.options.nonMqtt === 'pass') {
      this.foreign(preread.bytes, result === 'tls');
      return;
    }
    if (isForeign) this.home.strangerSeen(this.client.remote, preread.bytes);
    this.refuse(400, UNTAKEN[result], null, 0);
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
    const verdict = judgeForeign(rules, facts);
    if ('refused' in verdict) this.refuse(verdict.status, verdict.reason, null, 0);
    else this.send(verdict.upstream, { bytes, passage: null });
  }

  // ---- towards a server

  private send(upstream: string | null, load: Load): void {
    if (upstream === null) {
      this.refuse(403, 'no route fits', null, 0);
      return;
    }
    if (upstream === LOCAL) {
      this.toBroker(load);
      return;
    }
    const { topics } = this.rules;
    if (topics !== null && load.passage !== null && load.bytes !== null) {
      this.byTopic(topics, load.passage, load.bytes);
      return;
    }
    const pool = this.home.pool(upstream);
    if (pool === undefined) {
      this.refuse(500, `no upstream ${upstream}`, this.version, SERVER_UNAVAILABLE);
      return;
    }
    this.state = 'dialing';
    void this.dial(pool, load);
  }

  /** One client, several servers. */
  private byTopic(topics: TopicRules, passage: Passage, bytes: Buffer): void {
    const { client, facts, home, rewrittenId, rules } = this;
    this.state = 'open';
    const exchange = new Exchange({
      home,
      rules,
      topics,
      client,
      facts,
      upstream: passage.upstream,
      connect: passage.connect,
      rewrittenId,
      guarding: (toServer, toClient, hold) => this.guarding(passage, toServer, toClient, hold),
      onOver: (status, reason) => this.finish(status, reason),
    });
    this.session = exchange;
    this.tried = exchange.tried;
    // What was read until now counts once.
    this.tally.stage = exchange;
    exchange.start(bytes);
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
      reached?.release();
      return;
    }
    if (reached === null) {
      if (dialing.outOfDescriptors) {
        this.home.outOfDescriptors();
        this.refuse(503, OUT_OF_DESCRIPTORS, this.version, SERVER_UNAVAILABLE);
        return;
      }
      if (this.tried.length === 0) this.tried = [pool.options.name];
      this.refuse(502, 'no server can be reached', this.version, SERVER_UNAVAILABLE);
      return;
    }
    this.release = reached.release;
    this.join(reached.server, load);
  }

  private join(server: Connection, load: Load): void {
    const { client, facts, home, rewrittenId } = this;
    const { idleTimeoutMs, halfClose } = this.rules.options;
    this.state = 'open';
    const session = new Session({
      home,
      client,
      server,
      facts,
      idleTimeoutMs,
      halfClose,
      rewrittenId,
      guarding: (toServer, toClient, hold) => this.guarding(load.passage, toServer, toClient, hold),
      onOver: (status, reason) => this.finish(status, reason),
    });
    this.session = session;
    this.tally.stage = session;
    session.start(load);
  }

  /** Reads every packet of this client from now on; null = nothing is to be looked at. */
  private guarding(passage: Passage | null, toServer: Out, toClient: Out, hold: (on: boolean) => void): Guard | null {
    const { home, version } = this;
    if (passage === null || passage.filter === null || version === null) return null;
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
  private broken(error: ProtocolError, toClient: Out): void {
    if (this.version === 5)
      // [MQTT-4.13.1-1]
      toClient(encodeDisconnect(5, { type: DISCONNECT, reasonCode: error.reasonCode, properties: null }));
    if (this.session === null) this.client.end();
    else void this.session.stop();
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
    this.release?.();
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
      facts,
    };
  }
}

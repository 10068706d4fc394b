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
import { ProtocolError } from '../base/errors.ts';
import { ConnectError, encodeConnack, encodeRefusal } from '../codec/connect.ts';
import { CONNACK, type Version } from '../mqtt/packet.ts';
import {
  BAD_USER_NAME_OR_PASSWORD,
  CLIENT_IDENTIFIER_NOT_VALID,
  CONNECTION_RATE_EXCEEDED,
  MALFORMED_PACKET,
  NOT_AUTHORIZED,
  QUOTA_EXCEEDED,
  SERVER_UNAVAILABLE,
  UNSUPPORTED_PROTOCOL_VERSION,
} from '../mqtt/reason.ts';
import type { Connection } from '../transport/transport.ts';
import type { Entry, Status } from './accesslog.ts';
import type { Selection } from './balance.ts';
import { ConnackWatch } from './connack.ts';
import type { Entrance } from './entrance.ts';
import { connectionFacts, type Facts, takeConnect } from './facts.ts';
import { type ConnectLayout, readLayout } from './layout.ts';
import type { Peer } from './peer.ts';
import type { Pool } from './pool.ts';
import { Preread, type PrereadResult } from './preread.ts';
import { LOCAL } from './proxy.ts';
import { type RewriteFailure, rewriteConnect } from './rewrite.ts';
import { chooseRoute } from './route.ts';
import type { Rules } from './rules.ts';
import { Splice, type SpliceEnd } from './splice.ts';
import { Tap } from './tap.ts';

type State = 'reading' | 'dialing' | 'open' | 'local' | 'over';

/** What `idle_timeout = auto` adds to one and a half keep alives: the server, who knows better, closes first. */
const IDLE_GRACE_MS = 10_000;

const REWRITE_REASONS: Readonly<Record<RewriteFailure, readonly [Status, number]>> = {
  'bad-value': [500, CLIENT_IDENTIFIER_NOT_VALID],
  'empty-clientid': [400, CLIENT_IDENTIFIER_NOT_VALID],
  'password-without-username': [403, BAD_USER_NAME_OR_PASSWORD],
};

const END_REASONS: Readonly<Record<SpliceEnd, string>> = {
  client: 'closed by client',
  server: 'closed by server',
  'client-error': 'client connection lost',
  'server-error': 'server connection lost',
};

export class Relay {
  private state: State = 'reading';
  private readonly home: Entrance;
  private readonly rules: Rules;
  private readonly client: Connection;
  private readonly facts: Facts;
  private readonly startMs: number;
  private preread: Preread | null;
  private timer: Timer | null = null;
  private countedId: string | null = null;
  private rewrittenId: string | null = null;
  private readonly tried: string[] = [];
  private pool: Pool | null = null;
  private peer: Peer | null = null;
  private readonly abort = new AbortController();
  private splice: Splice | null = null;
  private tap: Tap | null = null;
  /** Bytes besides those of the splice: CONNECT with what came along, and what we answered. */
  private ownIn = 0;
  private ownOut = 0;
  /** Milliseconds without a byte that end an open session; 0 = never. */
  private idleMs = 0;
  private seenBytes = 0;
  private seenMs = 0;
  private toldIn = 0;
  private toldOut = 0;

  constructor(home: Entrance, rules: Rules, client: Connection) {
    this.home = home;
    this.rules = rules;
    this.client = client;
    this.facts = connectionFacts(rules.options.name, client);
    this.startMs = home.parts.clock.mono();
    this.preread = rules.options.preread ? new Preread(rules.options.prereadMaxBytes) : null;
  }

  get remoteAddress(): string {
    return this.client.remoteAddress;
  }

  start(): void {
    const { client, preread } = this;
    const { options } = this.rules;
    client.onClose(() => this.leftEarly());
    if (preread === null) {
      this.plain();
      return;
    }
    client.onEnd(() => this.leftEarly());
    this.timer = this.home.parts.clock.after(options.prereadTimeoutMs, () =>
      this.refuse(400, 'no CONNECT in time', null, 0),
    );
    const lent = client.kind === 'memory';
    client.onData((chunk) => {
      this.ownIn += chunk.length;
      this.read(preread.push(lent ? Buffer.from(chunk) : chunk), preread);
    });
  }

  /** Called now and then: ends a session that has been silent for too long. Also brings the byte metrics up to date. */
  sweep(nowMs: number): void {
    const bytes = this.bytesIn() + this.bytesOut();
    this.tellBytes();
    if (this.state !== 'open') return;
    if (bytes !== this.seenBytes) {
      this.seenBytes = bytes;
      this.seenMs = nowMs;
    } else if (this.idleMs > 0 && nowMs - this.seenMs >= this.idleMs) this.close('idle', nowMs);
  }

  /** Ends the session because the proxy stops. Clients of the built-in broker are the broker's. */
  stop(): void {
    if (this.state === 'local') return;
    if (this.splice !== null) this.splice.stop();
    else this.client.destroy();
    this.finish(200, 'proxy stops');
  }

  /** Closes at once what stop() has left lingering. */
  destroy(): void {
    this.splice?.destroy();
    this.client.destroy();
  }

  // ---- reading

  private read(result: PrereadResult, preread: Preread): void {
    if (this.state !== 'reading') return;
    switch (result) {
      case 'more':
        return;
      case 'complete':
        this.connect(preread);
        return;
      case 'tls':
        this.refuse(400, 'TLS on a port for plain connections', null, 0);
        return;
      case 'not-mqtt':
        this.refuse(400, 'not MQTT', null, 0);
        return;
      case 'malformed':
        this.refuse(400, 'malformed CONNECT', null, MALFORMED_PACKET);
        return;
      case 'too-large':
        this.refuse(400, 'CONNECT is too large', null, 0);
    }
  }

  private leftEarly(): void {
    if (this.state === 'reading' || this.state === 'dialing') {
      this.client.destroy();
      this.finish(200, this.ownIn === 0 ? 'client sent nothing' : 'client left before it was connected');
    }
  }

  /** `preread` holds a whole packet. */
  private connect(preread: Preread): void {
    const { client, facts } = this;
    this.timer?.cancel();
    // Nothing more is read until the server is there: what came along is all that is held.
    client.pause();
    let layout: ConnectLayout;
    try {
      layout = readLayout(preread.bytes, preread.end);
    } catch (error) {
      if (error instanceof ConnectError) this.malformed(error);
      else if (error instanceof ProtocolError) this.refuse(400, error.message, null, error.reasonCode);
      else throw error;
      return;
    }
    takeConnect(facts, layout);
    const { packet } = layout;
    if (packet.clientId === '' && (packet.version === 3 || (packet.version === 4 && !packet.cleanStart))) {
      this.refuse(400, 'empty client id', packet.version, CLIENT_IDENTIFIER_NOT_VALID); // [MQTT-3.1.3-8 of 3.1.1]
      return;
    }
    if (this.admitted(packet.version)) this.route(layout, preread);
  }

  private malformed(error: ConnectError): void {
    const answer = this.rules.options.reject === 'connack' ? encodeRefusal(error) : null;
    const unsupported = error.reasonCode === UNSUPPORTED_PROTOCOL_VERSION;
    this.answer(answer);
    this.finish(400, unsupported ? error.message : `malformed CONNECT: ${error.message}`);
  }

  /** Rights and limits, in the order in which they cost; refuses and gives false when one of them says no. */
  private admitted(version: Version): boolean {
    const { facts, home, rules } = this;
    const { options } = rules;
    if (options.useIdentityAsUsername) {
      if (facts.certCn === null) {
        this.refuse(403, 'no client certificate with a name', version, NOT_AUTHORIZED);
        return false;
      }
      facts.username = facts.certCn;
    }
    if (!home.connects.take(options.limitRate.connectsPerSecond, home.parts.clock.mono())) {
      this.refuse(503, 'too many connects a second', version, CONNECTION_RATE_EXCEEDED);
      return false;
    }
    if (facts.clientId !== '') {
      if (!home.byClientId.enter(facts.clientId, options.limitConn.perClientId)) {
        this.refuse(503, 'too many connections of this client id', version, QUOTA_EXCEEDED);
        return false;
      }
      this.countedId = facts.clientId;
    }
    return true;
  }

  private route(layout: ConnectLayout, preread: Preread): void {
    const { facts, rules } = this;
    const { version } = layout.packet;
    const upstream = chooseRoute(rules.options, facts);
    if (upstream === null) {
      this.refuse(403, 'no route fits', version, NOT_AUTHORIZED);
      return;
    }
    let bytes = preread.bytes;
    const identity = rules.options.useIdentityAsUsername ? facts.certCn : null;
    if (rules.set !== null) {
      const made = rewriteConnect(layout, rules.set, facts, identity);
      if (typeof made === 'string') {
        const [status, code] = REWRITE_REASONS[made];
        this.refuse(status, made, version, code);
        return;
      }
      this.home.cells.rewritten.value++;
      if (made.clientId !== facts.clientId) this.rewrittenId = made.clientId;
      const rest = preread.bytes.subarray(preread.end);
      bytes = rest.length === 0 ? made.bytes : Buffer.concat([made.bytes, rest]);
    }
    this.preread = null;
    if (upstream === LOCAL) this.toBroker(bytes);
    else this.toPool(upstream, bytes, version);
  }

  // ---- towards a server

  private plain(): void {
    const { options } = this.rules;
    this.client.pause();
    if (options.default === null) this.refuse(500, 'no default', null, 0);
    else if (options.default === LOCAL) this.toBroker(null);
    else this.toPool(options.default, null, null);
  }

  private toBroker(bytes: Buffer | null): void {
    const { client, home } = this;
    const { name, prereadTimeoutMs } = this.rules.options;
    this.state = 'local';
    this.tried.push(LOCAL);
    const connection = bytes === null ? client : home.parts.transports.pushBack(client, bytes);
    this.tap = new Tap(connection, () => this.finish(200, 'closed'));
    // Read already, and not as the broker gets it: counted once.
    this.tap.bytesIn = bytes === null ? 0 : this.ownIn - bytes.length;
    this.ownIn = 0;
    home.parts.local(this.tap, name, prereadTimeoutMs);
    client.resume();
  }

  private toPool(name: string, bytes: Buffer | null, version: Version | null): void {
    const pool = this.home.pool(name);
    if (pool === undefined) {
      this.refuse(500, `no upstream ${name}`, version, SERVER_UNAVAILABLE);
      return;
    }
    this.state = 'dialing';
    this.pool = pool;
    void this.tryServers(pool, pool.select(this.facts), bytes, version);
  }

  /** Dials one server after the other; each gets the whole CONNECT. Never rejects. */
  private async tryServers(
    pool: Pool,
    selection: Selection,
    bytes: Buffer | null,
    version: Version | null,
  ): Promise<void> {
    const { clock } = this.home.parts;
    while (selection.triesLeft > 0) {
      const peer = selection.next(clock.mono());
      if (peer === null) break;
      selection.triesLeft--;
      this.tried.push(peer.address);
      let server: Connection;
      try {
        server = await pool.dial(peer, this.rules.options.connectTimeoutMs, this.client, this.abort.signal);
      } catch (error) {
        // Given up by us: nobody's fault.
        if (this.state === 'over') pool.release(peer);
        else pool.failed(peer, error);
        if (this.state === 'over') return;
        continue;
      }
      pool.connected(peer);
      if (this.state !== 'dialing') {
        server.destroy();
        pool.release(peer);
        return;
      }
      this.peer = peer;
      this.join(server, bytes, version);
      return;
    }
    if (this.state !== 'dialing') return;
    if (this.tried.length === 0) this.tried.push(pool.options.name);
    this.refuse(502, 'no server can be reached', version, SERVER_UNAVAILABLE);
  }

  private join(server: Connection, bytes: Buffer | null, version: Version | null): void {
    const { client, facts } = this;
    const { options } = this.rules;
    this.state = 'open';
    this.seenMs = this.home.parts.clock.mono();
    this.idleMs = options.idleTimeoutMs ?? idleOf(facts.keepAlive);
    const splice = new Splice(client, server, false, (end) => this.finish(200, END_REASONS[end]));
    this.splice = splice;
    splice.start();
    if (bytes !== null) splice.up.send(bytes);
    if (version === null) server.onData(splice.down.onChunk);
    else this.watchConnack(server, splice, version);
    client.onData(splice.up.onChunk);
    client.resume();
  }

  /** The server's first packet is looked at, everything behind it is not. */
  private watchConnack(server: Connection, splice: Splice, version: Version): void {
    const { facts, home } = this;
    const watch = new ConnackWatch(version, facts.clientId === '' ? this.rewrittenId : null);
    const lent = server.kind === 'memory';
    splice.beforeServerEnd = () => {
      const rest = watch.rest();
      if (rest !== null) splice.down.send(rest);
    };
    server.onData((chunk) => {
      const seen = watch.push(lent ? Buffer.from(chunk) : chunk);
      if (seen === null) return;
      if (seen.reasonCode !== null) home.connackSeen(seen.reasonCode);
      if (seen.serverKeepAlive !== null && this.rules.options.idleTimeoutMs === null)
        this.idleMs = idleOf(seen.serverKeepAlive); // [MQTT-3.2.2-21]
      splice.down.pass(seen.bytes);
      splice.beforeServerEnd = null;
      server.onData(splice.down.onChunk);
    });
  }

  // ---- the end

  private close(reason: string, _nowMs: number): void {
    this.splice?.stop();
    this.finish(200, reason);
  }

  /** `code`: what a client is told with `reject = connack`, 0 = nothing; `version` null = its version is not known. */
  private refuse(status: Status, reason: string, version: Version | null, code: number): void {
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
    this.ownOut += bytes.length;
    client.write(bytes, () => {});
    client.end();
  }

  /** Once: gives back what was counted, writes the line. */
  private finish(status: Status, reason: string): void {
    if (this.state === 'over') return;
    this.state = 'over';
    this.timer?.cancel();
    this.abort.abort();
    if (this.countedId !== null) this.home.byClientId.leave(this.countedId);
    if (this.pool !== null && this.peer !== null) this.pool.release(this.peer);
    this.tellBytes();
    this.home.over(this, this.rules, this.entry(status, reason));
    this.preread = null;
  }

  private bytesIn(): number {
    return this.ownIn + (this.splice?.up.bytes ?? 0) + (this.tap?.bytesIn ?? 0);
  }

  private bytesOut(): number {
    return this.ownOut + (this.splice?.down.bytes ?? 0) + (this.tap?.bytesOut ?? 0);
  }

  private tellBytes(): void {
    const { bytesIn, bytesOut } = this.home.cells;
    const [now, out] = [this.bytesIn(), this.bytesOut()];
    bytesIn.value += now - this.toldIn;
    bytesOut.value += out - this.toldOut;
    this.toldIn = now;
    this.toldOut = out;
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
      bytesReceived: this.bytesIn(),
      bytesSent: this.bytesOut(),
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

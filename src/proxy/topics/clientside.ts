// The client's end of an exchange: its bytes cut into packets on the way in, through the client's filter where it has
// one; packets in one order on the way out; no reading while a server, the filter or CONNACK is waited for. Made by
// exchange.ts, which deals with the packets. Sources: MQTT 5.0 sections 2.1, 3.1.2.10.
import { ProtocolError } from '../../base/errors.ts';
import type { Connection } from '../../transport/transport.ts';
import type { Guard } from '../guard.ts';
import type { Out } from '../packetstream.ts';
import { Cutter, type TakePacket } from './cutter.ts';
import type { Held } from './held.ts';
import type { Loan } from './loan.ts';
import { Outlet } from './outlet.ts';
import { Run } from './run.ts';
import { Silence } from './silence.ts';

export interface ClientSideParts {
  readonly client: Connection;
  readonly held: Held;
  readonly loan: Loan;
  readonly maxPacketBytes: number;
  readonly keepAliveMs: number;
  /** 0 = never idle. */
  readonly idleTimeoutMs: number;
  readonly nowMs: number;
  /** Makes the filter of this client where it has one. */
  readonly guarding: (toServer: Out, toClient: Out, hold: (on: boolean) => void) => Guard | null;
  /** One packet; false = not now, go() says when. */
  readonly take: TakePacket;
  /** All packets of a chunk have been given. */
  readonly onDone: () => void;
  /** The client takes no more for now, or does again. */
  readonly onFull: (full: boolean) => void;
  /** It has sent what may not be. */
  readonly onBroken: (error: ProtocolError) => void;
  /** Called for the end of what it sends and for the end of its connection. */
  readonly onGone: (reason: string) => void;
}

export class ClientSide {
  readonly silence: Silence;
  bytesIn = 0;
  private readonly parts: ClientSideParts;
  private readonly outlet: Outlet;
  private readonly cutter: Cutter;
  private readonly run = new Run<Outlet>((_, bytes) => this.out(bytes));
  private guard: Guard | null = null;
  private fullServers = 0;
  private guardHolds = false;
  private paused = false;
  private over = false;
  private isConnected = true;
  private onClosed: (() => void) | null = null;

  constructor(parts: ClientSideParts) {
    this.parts = parts;
    this.silence = new Silence(parts.keepAliveMs, parts.idleTimeoutMs, parts.nowMs);
    this.outlet = new Outlet(parts.client, parts.loan, parts.onFull);
    this.cutter = new Cutter(parts.maxPacketBytes, parts.held, parts.take, parts.onDone);
  }

  get bytesOut(): number {
    return this.outlet.sentBytes;
  }

  /** It takes no more for now. */
  get isFull(): boolean {
    return this.outlet.isFull;
  }

  /** Makes ready for what the client sends; nothing is read yet. */
  attach(): void {
    const { client, guarding, loan, onGone } = this.parts;
    client.onEnd(() => onGone('closed by client'));
    client.onClose(({ by }) => {
      this.isConnected = false;
      this.onClosed?.();
      onGone(by === 'error' ? 'client connection lost' : 'closed by client');
    });
    this.guard = guarding(
      (out) => this.push(out),
      (out) => this.outlet.write(out),
      (on) => {
        this.guardHolds = on;
        this.regulate();
      },
    );
    if (this.guard !== null) loan.refuse();
  }

  /** Takes what was read before, then reads. */
  begin(bytes: Buffer): void {
    const { client, loan } = this.parts;
    this.read(bytes);
    const take = (chunk: Buffer): void => {
      this.bytesIn += chunk.length;
      this.silence.heard();
      this.read(chunk);
    };
    loan.read(client, take);
    this.regulate();
  }

  /** Goes on with what was not taken; packets that are larger are refused from now on. */
  go(maxPacketBytes: number): void {
    this.cutter.limit(maxPacketBytes);
    this.guarded(() => this.cutter.go());
    this.regulate();
  }

  /** Asked now and then: why the client is to go. */
  sweep(nowMs: number): 'keep alive' | 'idle' | null {
    return this.silence.verdict(nowMs, this.bytesIn + this.bytesOut, !this.paused);
  }

  /** A server takes no more for now, or does again. */
  serverFull(full: boolean): void {
    this.fullServers += full ? 1 : -1;
    this.regulate();
  }

  // ---- to the client

  /** Sends whole packets. */
  send(bytes: Buffer): void {
    this.run.flush();
    this.out(bytes);
  }

  /** Sends a range of a buffer that stays as it is, with what follows it there. */
  pass(bytes: Buffer, start: number, end: number): void {
    this.run.add(this.outlet, bytes, start, end);
  }

  /** Sends what pass() was given. */
  flush(): void {
    this.run.flush();
  }

  /** Sends what no filter sees: a refusal. */
  answer(bytes: Buffer): void {
    this.outlet.write(bytes);
  }

  /** Takes and shows nothing more; what was sent is on its way. */
  leave(): void {
    this.run.flush();
    this.over = true;
    this.cutter.stop();
  }

  /** Ends the connection after what is under way; resolves when it has ended. */
  end(): Promise<void> {
    this.parts.client.end();
    return this.isConnected
      ? new Promise((resolve) => {
          this.onClosed = resolve;
        })
      : Promise.resolve();
  }

  destroy(): void {
    this.parts.client.destroy();
  }

  // ---- inside

  private read(chunk: Buffer): void {
    if (this.guard === null) this.push(chunk);
    else this.guard.fromClient(chunk);
  }

  private push(bytes: Buffer): void {
    if (this.over) return;
    this.guarded(() => this.cutter.push(bytes));
    if (!this.cutter.isBlocked) return;
    this.parts.loan.kept = true;
    this.regulate();
  }

  private guarded(work: () => void): void {
    try {
      work();
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      this.parts.onBroken(error);
    }
  }

  private out(bytes: Buffer): void {
    if (this.guard === null || this.over) this.outlet.write(bytes);
    else this.guard.fromServer(bytes);
  }

  private regulate(): void {
    if (this.over) return;
    const { client } = this.parts;
    this.paused = this.fullServers > 0 || this.guardHolds || this.cutter.isBlocked;
    if (this.paused) client.pause();
    else client.resume();
  }
}

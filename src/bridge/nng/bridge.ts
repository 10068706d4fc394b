// One NNG bridge: a socket (link.ts), a client of the broker, and the halves that its type has: out.ts sends, in.ts
// receives, ask.ts asks, answer.ts answers. Made by the supervisor. Knows no rules and no frames; what its halves do is
// their matter.
//
//   pub, push    MQTT -> nngout -> socket
//   sub, pull    socket -> nngin -> MQTT
//   pair         both, over one socket with one peer
//   req          MQTT requests -> ask.ts -> socket, replies back
//   rep          requests of peers -> answer.ts -> retained messages, publishes
import { randomBytes } from 'node:crypto';
import type { LocalClient } from '../../broker/broker.ts';
import type { Publication } from '../../mqtt/message.ts';
import type { Qos } from '../../mqtt/packet.ts';
import {
  type BridgeOptions,
  type BridgeStatus,
  type BridgeWorker,
  deniedText,
  type NngBridgeOptions,
} from '../bridge.ts';
import { NngAnswer } from './answer.ts';
import { NngAsk } from './ask.ts';
import { NngIn } from './in.ts';
import { type BridgeParts, Link, sameSocket } from './link.ts';
import { NngOut } from './out.ts';

export class NngBridge implements BridgeWorker {
  options: NngBridgeOptions;
  readonly clientId: string;
  private readonly parts: BridgeParts;
  private readonly link: Link;
  private readonly out: NngOut | null;
  private readonly in: NngIn | null;
  private readonly asks: NngAsk | null;
  private readonly answers: NngAnswer | null;
  private client: LocalClient | null = null;

  constructor(options: NngBridgeOptions, parts: BridgeParts) {
    this.options = options;
    this.parts = parts;
    this.clientId = options.clientId ?? `nng-${options.name}-${randomBytes(4).toString('hex')}`;
    this.link = new Link(
      options,
      parts,
      () => this.out?.waitingBytes ?? 0,
      () => this.out?.peerUp(),
    );
    this.out = 'forwards' in options ? new NngOut(options, parts, this.link) : null;
    this.in = 'subscription' in options ? new NngIn(options, parts) : null;
    this.asks = 'requests' in options ? new NngAsk(options, parts) : null;
    this.answers = 'topics' in options ? new NngAnswer(options, parts) : null;
  }

  take(): void {
    this.client = this.parts.broker.attach({
      clientId: this.clientId,
      username: 'nngproxy_bridge',
      kind: 'bridge',
      bridge: `nng:${this.options.name}`,
      // What may be published has been asked of the publisher: a bridge out needs no right to read. What comes in is
      // asked.
      trusted: this.out !== null && this.in === null,
    });
    this.out?.start(this.client);
    this.in?.start(this.client);
    this.asks?.start(this.client);
    this.answers?.start(this.client);
    this.showRules();
  }

  start(): Promise<void> {
    this.out?.adopt();
    return this.link.open(this.options, (socket) => {
      this.out?.attach(socket);
      this.in?.attach(socket);
      this.asks?.attach(socket);
      this.answers?.attach(socket);
    });
  }

  change(options: BridgeOptions): boolean {
    const before = this.options;
    if (options.type === 'mqtt' || options.type !== before.type || !sameSocket(before, options)) return false;
    if (options.compat !== before.compat) return false;
    this.options = options;
    this.link.change(before, options);
    if ('forwards' in options) this.out?.change(options);
    if ('subscription' in options) this.in?.change(options);
    if ('requests' in options) this.asks?.change(options);
    if ('topics' in options) this.answers?.change(options);
    this.showRules();
    return true;
  }

  leave(): void {
    this.out?.leave();
    this.asks?.leave();
  }

  quiet(): void {
    this.in?.quiet();
  }

  async stop(deadlineMs: number): Promise<void> {
    const { clock } = this.parts;
    const endMs = clock.mono() + deadlineMs;
    // Half of the time for frames that wait here, the rest for what the peers' connections hold.
    await this.out?.finish(deadlineMs / 2);
    await this.link.stop(Math.max(0, endMs - clock.mono()));
    this.out?.stop();
    this.in?.stop();
    this.asks?.stop();
    this.answers?.stop();
    this.client?.close();
    this.client = null;
  }

  status(): BridgeStatus {
    const { options, link } = this;
    const denied = this.client?.deniedTopic() ?? null;
    const rules = (this.out ?? this.in ?? this.asks ?? this.answers)?.views() ?? [];
    return {
      type: options.type,
      name: options.name,
      enabled: options.enable,
      // The peers are well, but the gateway does not let in what they send.
      state: denied !== null && link.state() !== 'error' ? 'denied' : link.state(),
      lastError: link.lastError() ?? deniedText(denied),
      options,
      clientId: this.clientId,
      endpoints: link.endpoints(),
      peers: link.socket?.pipes() ?? [],
      rules,
      ...(this.out !== null && this.in !== null ? { taking: this.in.views() } : {}),
      ...(this.out === null ? {} : { waiting: this.out.waiting() }),
      refused: link.socket?.stats.refused ?? 0,
      unmatched: this.in?.unmatched.value ?? 0,
      dropped: this.out === null ? 0 : (link.socket?.stats.dropped ?? 0),
    };
  }

  /** Sends a message that a rule of the gateway has chosen this bridge for; false where the bridge does not send. */
  inject(publication: Publication, qos: Qos): boolean {
    if (this.out === null || this.client === null) return false;
    this.out.inject(publication, qos);
    return true;
  }

  private showRules(): void {
    const { name, type, compat } = this.options;
    const halves = [this.out, this.in, this.asks, this.answers];
    const rules = halves.flatMap((half) => half?.describe() ?? []);
    this.parts.log('info', 'NNG-RULES', { bridge: name, type, clientid: this.clientId, compat, rules });
  }
}

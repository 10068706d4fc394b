// Packet identifiers of messages on their way from several servers to one client: each server counts for itself, the
// client needs one count. Made by exchange.ts for each client. What a client has of QoS 2 outlives its connection:
// exchanges.ts keeps it for the next one. Source: MQTT 5.0 sections 2.2.1 and 4.3.3.
import type { Qos } from '../../mqtt/packet.ts';

/** One delivery that is not complete. */
export interface Delivery {
  /** Index of the upstream. */
  readonly upstream: number;
  /** As the server counts. */
  readonly serverId: number;
  /** As the client is told. */
  readonly clientId: number;
  readonly qos: Qos;
}

const ID_MAX = 65_535;
const QOS_2 = 0x1000000;

/** Numbers for what is looked up: upstream, then identifier. */
function keyOf(upstream: number, serverId: number): number {
  return upstream * 65_536 + serverId;
}

export class Deliveries {
  /** Server's key with the QoS by the client's identifier, and the way back. */
  private readonly byClient = new Map<number, number>();
  private readonly byServer = new Map<number, number>();
  private last = 0;

  get size(): number {
    return this.byClient.size;
  }

  /** The client's identifier for a server's, 0 when it has none. */
  known(upstream: number, serverId: number): number {
    return this.byServer.get(keyOf(upstream, serverId)) ?? 0;
  }

  /** An identifier for a new delivery, the server's own where nobody has it; 0 = all are in use. */
  take(upstream: number, serverId: number, qos: Qos): number {
    let id = serverId;
    if (this.byClient.has(id)) {
      if (this.byClient.size >= ID_MAX) return 0;
      do this.last = this.last === 0 ? ID_MAX : this.last - 1;
      while (this.last === 0 || this.byClient.has(this.last));
      id = this.last;
    }
    this.put(upstream, serverId, id, qos);
    return id;
  }

  /** Upstream of what the client calls `id`, -1 = nothing is. */
  upstreamOf(id: number): number {
    const found = this.byClient.get(id);
    return found === undefined ? -1 : Math.floor((found % QOS_2) / 65_536);
  }

  /** What the server of upstreamOf(id) calls it. */
  serverIdOf(id: number): number {
    return (this.byClient.get(id) ?? 0) % 65_536;
  }

  /** It is complete. */
  free(id: number): void {
    const found = this.byClient.get(id);
    if (found === undefined) return;
    this.byClient.delete(id);
    this.byServer.delete(found % QOS_2);
  }

  /** Forgets what an upstream has under way: its server knows nothing of it any more. */
  forget(upstream: number): void {
    for (const id of [...this.byClient.keys()]) if (this.upstreamOf(id) === upstream) this.free(id);
  }

  hasQos2(upstream: number): boolean {
    for (const [id, found] of this.byClient) if (found >= QOS_2 && this.upstreamOf(id) === upstream) return true;
    return false;
  }

  /** What the client has to be reminded of under the same identifiers after it comes back. */
  unfinished(): Delivery[] {
    const list: Delivery[] = [];
    for (const [clientId, found] of this.byClient)
      if (found >= QOS_2)
        list.push({ upstream: this.upstreamOf(clientId), serverId: found % 65_536, clientId, qos: 2 });
    return list;
  }

  restore(list: readonly Delivery[]): void {
    for (const { upstream, serverId, clientId, qos } of list) this.put(upstream, serverId, clientId, qos);
  }

  private put(upstream: number, serverId: number, clientId: number, qos: Qos): void {
    const key = keyOf(upstream, serverId);
    this.byClient.set(clientId, key + (qos === 2 ? QOS_2 : 0));
    this.byServer.set(key, clientId);
  }
}

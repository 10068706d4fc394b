// Sessions of a shared broker that are at other gateways, or at none: shown beside those of this one. Made by
// sharing.ts; asked for every list of clients. Knows their client ids from Redis, and who is connected from what the
// gateways tell each other while this one runs.
import type { ClientView } from '../broker.ts';

/** What aedes tells of its clients: $SYS/<broker>/new/clients and $SYS/<broker>/disconnect/clients. */
const CAME = '/new/clients';
const WENT = '/disconnect/clients';

export class Elsewhere {
  private known: readonly string[] = [];
  /** Connected clients by id, with the gateway they are at. */
  private readonly connected = new Map<string, string>();

  /** Client ids with a kept session, as Redis has them now. */
  refresh(clientIds: readonly string[]): void {
    this.known = clientIds;
  }

  /** Something that gateways tell each other. */
  heard(topic: string, clientId: string): void {
    const gateway = topic.split('/')[1];
    if (topic.endsWith(CAME)) this.connected.set(clientId, gateway);
    else if (topic.endsWith(WENT) && this.connected.get(clientId) === gateway) this.connected.delete(clientId);
  }

  /** Those that are not `here`. */
  *views(here: (clientId: string) => boolean): Iterable<ClientView> {
    for (const clientId of this.known) if (!here(clientId)) yield this.view(clientId, true);
    const kept = new Set(this.known);
    for (const clientId of this.connected.keys())
      if (!kept.has(clientId) && !here(clientId)) yield this.view(clientId, false);
  }

  private view(clientId: string, kept: boolean): ClientView {
    const gateway = this.connected.get(clientId);
    return {
      clientId,
      username: null,
      connected: gateway !== undefined,
      remote: '',
      listener: gateway === undefined ? '' : `gateway ${gateway}`,
      version: 4,
      cleanStart: !kept,
      keepAlive: 0,
      since: 0,
      sessionExpiryInterval: kept ? 0xffffffff : 0,
      subscriptions: 0,
      inflight: 0,
      queued: 0,
      queuedBytes: 0,
      unsentBytes: 0,
      messagesIn: 0,
      messagesOut: 0,
      dropped: 0,
      willTopic: null,
      lastError: null,
    };
  }
}

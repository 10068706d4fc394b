// Which rules a message has been through, so that no rule gets what it made itself and no chain of rules goes on for
// ever. Used by engine.ts. A rule publishes as a client of its own for each chain that leads to it: the origin of a
// message names the chain.
import type { Broker, LocalClient } from '../broker/broker.ts';
import type { Origin } from '../mqtt/message.ts';

/** Rules that one message may go through. */
export const LONGEST_CHAIN = 8;
/** Different chains at once: far more than any sensible set of rules has. */
const MOST_CHAINS = 4096;

export interface Chain {
  readonly names: readonly string[];
  readonly client: LocalClient;
}

export class Chains {
  private readonly broker: Pick<Broker, 'attach'>;
  /** By the clientid of their client. */
  private readonly byClient = new Map<string, Chain>();
  private readonly byNames = new Map<string, Chain>();

  constructor(broker: Pick<Broker, 'attach'>) {
    this.broker = broker;
  }

  /** The chain a message came through, null when no rule made it. */
  of(origin: Origin): Chain | null {
    return origin.kind === 'api' ? (this.byClient.get(origin.clientId) ?? null) : null;
  }

  /** The chain with one more rule; null when it would be too long, or the rule is in it already. */
  extend(chain: Chain | null, name: string): Chain | null {
    const names = chain === null ? [name] : [...chain.names, name];
    if (names.length > LONGEST_CHAIN || chain?.names.includes(name) === true) return null;
    const key = JSON.stringify(names);
    const known = this.byNames.get(key);
    if (known !== undefined) return known;
    if (this.byNames.size >= MOST_CHAINS) return null;
    const clientId = names.length === 1 ? `rule:${name}` : `rule:${name}~${this.byNames.size}`;
    const client = this.broker.attach({ clientId, username: null, kind: 'api', bridge: null, trusted: true });
    const made = { names, client };
    this.byNames.set(key, made);
    this.byClient.set(clientId, made);
    return made;
  }

  /** Forgets every chain that leads through a rule. */
  forget(name: string): void {
    for (const [key, chain] of this.byNames) {
      if (!chain.names.includes(name)) continue;
      this.byNames.delete(key);
      for (const [clientId, one] of this.byClient) if (one === chain) this.byClient.delete(clientId);
      chain.client.close();
    }
  }
}

// Who wants the messages that come in through NNG bridges, by the name of the bridge, whether it runs or not. Made by
// gateway/; in.ts looks at its list for each frame it publishes, rules put their takers in. A taker must not throw.
import type { Qos } from '../../mqtt/packet.ts';

/** Gets payload = bytes[start, end), valid until it returns. */
export type Taker = (topic: string, bytes: Uint8Array, start: number, end: number, qos: Qos, retain: boolean) => void;

export class Taps {
  private readonly byName = new Map<string, Taker[]>();

  /** The takers of a bridge: the same list for as long as the gateway runs. */
  of(name: string): readonly Taker[] {
    return this.list(name);
  }

  /** Gives the function that ends it. */
  add(name: string, taker: Taker): () => void {
    const list = this.list(name);
    list.push(taker);
    return () => {
      const at = list.indexOf(taker);
      if (at >= 0) list.splice(at, 1);
    };
  }

  private list(name: string): Taker[] {
    const known = this.byName.get(name);
    if (known !== undefined) return known;
    const made: Taker[] = [];
    this.byName.set(name, made);
    return made;
  }
}

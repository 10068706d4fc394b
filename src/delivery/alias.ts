// Topic aliases towards one client (MQTT 5.0 section 3.3.2.3.4): the first topics get one each, for as long as the
// connection lasts. Used by sender.ts for clients that offer aliases. Must never be used before the alias has been sent
// with its topic [MQTT-3.3.2-8].

const LONG_CHARACTERS = 256;

export class AliasTable {
  private readonly maximum: number;
  private readonly aliases = new Map<string, number>();

  constructor(maximum: number) {
    this.maximum = maximum;
  }

  /** The alias the client knows for this topic, 0 when none. */
  find(topic: string): number {
    return this.aliases.get(topic) ?? 0;
  }

  /** An alias that is not used yet, 0 when all are or the topic is long: a connection remembers little. */
  nextFree(topic: string): number {
    return this.aliases.size < this.maximum && topic.length <= LONG_CHARACTERS ? this.aliases.size + 1 : 0;
  }

  /** The PUBLISH that tells the client has been written. */
  assign(topic: string, alias: number): void {
    this.aliases.set(topic, alias);
  }
}

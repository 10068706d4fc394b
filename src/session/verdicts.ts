// Verdicts of the authorizer kept per client, so that rights cost a map look-up and not a rule walk.
// Used by publish.ts and state.ts; emptied when the authorizer's version rises. Its memory is bounded whatever topics come.

/** Topics remembered for one client; above that all are forgotten. */
const TOPICS = 1000;
/** Of topics longer than this only the last one is remembered: a thousand of 64 KB each would be a client's way to fill memory. */
const LONG_CHARACTERS = 256;

export class Verdicts {
  private readonly map = new Map<string, boolean>();
  private long = '';
  private longVerdict = false;

  get(topic: string): boolean | undefined {
    if (topic.length <= LONG_CHARACTERS) return this.map.get(topic);
    return topic === this.long ? this.longVerdict : undefined;
  }

  set(topic: string, verdict: boolean): void {
    if (topic.length > LONG_CHARACTERS) {
      this.long = topic;
      this.longVerdict = verdict;
      return;
    }
    if (this.map.size >= TOPICS) this.map.clear();
    this.map.set(topic, verdict);
  }

  clear(): void {
    this.map.clear();
    this.long = '';
  }
}

// Packet Identifiers of one session's outgoing QoS 1 and 2 messages and what each waits for (MQTT 5.0 section 4.3,
// 3.1.1 section 4.3). Used by outbox.ts for every such message: no object per message unless one has to be kept. Ring
// indexed by identifier.
import type { Entry } from './entry.ts';

/** What a slot waits for. */
export const FREE = 0;
/** PUBACK of a QoS 1 PUBLISH. */
export const SENT_QOS1 = 1;
/** PUBREC of a QoS 2 PUBLISH. */
export const SENT_QOS2 = 2;
/** PUBCOMP: PUBREL has been sent. */
export const RELEASED = 3;
export type SlotState = 0 | 1 | 2 | 3;

const SMALLEST = 16;
const LARGEST = 65_536;

export class Inflight {
  count = 0;
  private states = new Uint8Array(0);
  private ids = new Uint16Array(0);
  private entries: (Entry | null)[] = [];
  private next = 1;

  /** Takes a free Packet Identifier [MQTT-2.2.1-3] for a message in `state`. Callers keep count below 65,535. */
  take(state: SlotState, entry: Entry | null): number {
    if (this.count * 4 >= this.states.length * 3 && this.states.length < LARGEST) this.grow();
    const mask = this.states.length - 1;
    for (;;) {
      const packetId = this.next;
      this.next = packetId === 65_535 ? 1 : packetId + 1;
      const i = packetId & mask;
      // A slot that is still taken belongs to an older identifier that was never acknowledged: it is passed over.
      if (this.states[i] === FREE) {
        this.set(i, packetId, state, entry);
        return packetId;
      }
    }
  }

  /** Puts back a message of a restored session under the identifier it had. */
  restore(packetId: number, state: SlotState, entry: Entry): void {
    while (this.count * 4 >= this.states.length * 3 || this.states[packetId & (this.states.length - 1)] !== FREE) {
      if (this.states.length >= LARGEST) break;
      this.grow();
    }
    this.set(packetId & (this.states.length - 1), packetId, state, entry);
    this.next = packetId === 65_535 ? 1 : packetId + 1;
  }

  state(packetId: number): SlotState {
    const i = packetId & (this.states.length - 1);
    return i < this.states.length && this.ids[i] === packetId ? (this.states[i] as SlotState) : FREE;
  }

  setState(packetId: number, state: SlotState): void {
    this.states[packetId & (this.states.length - 1)] = state;
  }

  entry(packetId: number): Entry | null {
    return this.entries[packetId & (this.states.length - 1)];
  }

  /** Frees the identifier; the slot must be taken by it. */
  free(packetId: number): Entry | null {
    const i = packetId & (this.states.length - 1);
    const entry = this.entries[i];
    this.states[i] = FREE;
    this.entries[i] = null;
    this.count--;
    return entry;
  }

  /** All entries that were kept, in the order they were first sent. O(n log n). */
  kept(): Entry[] {
    const kept: Entry[] = [];
    for (let i = 0; i < this.states.length; i++) {
      const entry = this.entries[i];
      if (this.states[i] !== FREE && entry !== null) kept.push(entry);
    }
    return kept.sort((a, b) => a.sequence - b.sequence);
  }

  clear(): void {
    this.count = 0;
    this.states = new Uint8Array(0);
    this.ids = new Uint16Array(0);
    this.entries = [];
  }

  private set(i: number, packetId: number, state: SlotState, entry: Entry | null): void {
    this.states[i] = state;
    this.ids[i] = packetId;
    this.entries[i] = entry;
    this.count++;
  }

  /** Doubling keeps slots apart: identifiers that differ modulo n differ modulo 2n. */
  private grow(): void {
    const size = Math.max(SMALLEST, this.states.length * 2);
    const states = new Uint8Array(size);
    const ids = new Uint16Array(size);
    const entries: (Entry | null)[] = new Array(size).fill(null);
    for (let i = 0; i < this.states.length; i++) {
      // A free slot has no identifier of its own: a stale or zero one would fall on the place of another.
      if (this.states[i] === FREE) continue;
      const j = this.ids[i] & (size - 1);
      states[j] = this.states[i];
      ids[j] = this.ids[i];
      entries[j] = this.entries[i];
    }
    this.states = states;
    this.ids = ids;
    this.entries = entries;
  }
}

// A journal that writes nothing and commits when the test says so: what waits for durability waits for commit().
// Used with room.ts. Keeps the names of what it was told, in order.
import type { Hold } from '../../src/mqtt/message.ts';
import { memoryJournal } from '../../src/store/memory.ts';
import type { Journal, Restored } from '../../src/store/store.ts';

export class Diary implements Journal {
  readonly durable = true;
  accepting = true;
  writing = true;
  readonly steadyMs = null;
  /** Every call that tells something: its name and the client id or topic. */
  readonly told: string[] = [];
  /** Commits come at once, at commit(), or fail. */
  mode: 'at once' | 'held' | 'failing' = 'at once';
  private readonly holds: Hold[] = [];
  private readonly restored: Partial<Restored>;

  constructor(restored: Partial<Restored> = {}) {
    this.restored = restored;
  }

  async load(): Promise<Restored> {
    return { sessions: [], retained: [], spools: new Map(), ...this.restored };
  }

  async close(): Promise<void> {
    this.commit();
  }

  /** Releases everything that waits. */
  commit(reasonCode = 0): void {
    for (const hold of this.holds.splice(0)) hold.done(reasonCode);
  }

  get waiting(): number {
    return this.holds.length;
  }

  barrier(hold: Hold): void {
    if (this.mode === 'at once') return;
    hold.add();
    if (this.mode === 'failing') hold.done(0x97);
    else this.holds.push(hold);
  }

  gather(): void {}

  barrierAll(hold: Hold): void {
    this.barrier(hold);
  }

  sessionPut: Journal['sessionPut'] = ({ clientId }) => this.tell('sessionPut', clientId);
  sessionDelete: Journal['sessionDelete'] = (clientId) => this.tell('sessionDelete', clientId);
  subscriptionPut: Journal['subscriptionPut'] = (clientId) => this.tell('subscriptionPut', clientId);
  subscriptionDelete: Journal['subscriptionDelete'] = (clientId) => this.tell('subscriptionDelete', clientId);
  messageQueued: Journal['messageQueued'] = (clientId) => this.tell('messageQueued', clientId);
  messageState: Journal['messageState'] = (clientId) => this.tell('messageState', clientId);
  messageDone: Journal['messageDone'] = (clientId) => this.tell('messageDone', clientId);
  inboundPut: Journal['inboundPut'] = (clientId) => this.tell('inboundPut', clientId);
  inboundDelete: Journal['inboundDelete'] = (clientId) => this.tell('inboundDelete', clientId);
  retainedPut: Journal['retainedPut'] = ({ topic }) => this.tell('retainedPut', topic);
  retainedDelete: Journal['retainedDelete'] = (topic) => this.tell('retainedDelete', topic);
  willPut: Journal['willPut'] = (clientId) => this.tell('willPut', clientId);
  willDelete: Journal['willDelete'] = (clientId) => this.tell('willDelete', clientId);
  spoolPut = memoryJournal().spoolPut;
  spoolDelete = memoryJournal().spoolDelete;

  private tell(what: string, whom: string): void {
    this.told.push(`${what} ${whom}`);
  }
}

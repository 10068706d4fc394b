// The journal of a gateway without persistence: it forgets everything and never makes anybody wait. Built by
// gateway/gateway.ts when no persistence.path is set. Must not keep anything: the state lives in session/, router/ and
// delivery/.
import type { Journal } from './store.ts';

const nothing = (): void => {};

export function memoryJournal(): Journal {
  return {
    durable: false,
    accepting: true,
    writing: true,
    steadyMs: null,
    load: async () => ({ sessions: [], retained: [], spools: new Map() }),
    close: async () => {},
    sessionPut: nothing,
    sessionDelete: nothing,
    subscriptionPut: nothing,
    subscriptionDelete: nothing,
    messageQueued: nothing,
    messageState: nothing,
    messageDone: nothing,
    inboundPut: nothing,
    inboundDelete: nothing,
    retainedPut: nothing,
    retainedDelete: nothing,
    willPut: nothing,
    willDelete: nothing,
    spoolPut: nothing,
    spoolDelete: nothing,
    gather: nothing,
    barrier: nothing,
    barrierAll: nothing,
  };
}

// Client Identifiers that no client can have. Used by broker/native/engine.ts, session/delayed.ts and
// bridge/mqtt/bridges.ts to tell stored sessions apart.

/**
 * Begins those of the sessions that bridges keep at remote brokers: CONNECT with a control character in it is refused
 * (codec/connect.ts).
 */
export const BRIDGE_SESSION = '\u0001';
/** Begins those that stand for one delayed message each (session/delayed.ts). */
export const DELAYED_SESSION = '\u0002delayed:';

// Every log line there is: a stable id and what it means. Ids are never reused for something else.
// `log(level, id, fields)` takes an id of this table, so a misspelt one does not compile; docs/reference lists the table.
// Fields carry the particulars; never payloads, never passwords.

export const MESSAGES = {
  'GW-START': 'gateway starts',
  'GW-READY': 'ready',
  'GW-STOP': 'gateway stops',
  'GW-STOPPED': 'gateway has stopped',
  'GW-RELOAD': 'configuration reloaded',
  'GW-RELOAD-FAILED': 'configuration not reloaded, the running one stays',
  'GW-BUDGET': 'memory budget reached, publishers wait',
  'GW-INTERNAL': 'internal error',
  'CFG-WARNING': 'configuration warning',
  'LSN-UP': 'listening',
  'LSN-FAILED': 'cannot listen',
  'LSN-ANONYMOUS': 'this listener lets anybody in and is reachable from other machines',
  'LSN-FULL': 'connection refused, the listener is full',
  'CON-REFUSED': 'connection refused',
  'CON-NOT-MQTT': 'the peer does not speak MQTT here',
  'CLI-CONNECT': 'client connected',
  'CLI-DISCONNECT': 'client disconnected',
  'CLI-PROTOCOL': 'client closed for a protocol error',
  'CLI-SLOW': 'client reads too slowly, messages are dropped or held',
  'SES-TAKEOVER': 'client id connected again, the older connection is closed',
  'SES-EXPIRED': 'session ended',
  'SES-QUEUE-FULL': 'session queue is full, messages are dropped',
  'SES-WILL': 'will published',
} as const satisfies Record<string, string>;

export type MsgId = keyof typeof MESSAGES;

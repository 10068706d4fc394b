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
  'AUTH-WARNING': 'a file of users or rights deserves a look',
  'AUTH-LOCKED': 'too many failed logins, more are refused for a while',
  'AUTH-SOURCE-DOWN': 'a source of users or rights does not answer, clients are refused',
  'AUTH-SOURCE-UP': 'a source of users or rights answers again',
  'WEB-UP': 'HTTP server listens',
  'WEB-DENIED': 'HTTP request with wrong credentials refused',
  'WEB-LOCKED': 'too many failed logins from one address, it has to wait',
  'WEB-CHANGE': 'changed through the HTTP API',
  'WEB-LOGIN': 'logged in at the console',
  'WEB-FAILED': 'HTTP request failed inside the gateway',
  'WEB-SLOW': 'event stream dropped, its reader is too slow',
} as const satisfies Record<string, string>;

export type MsgId = keyof typeof MESSAGES;

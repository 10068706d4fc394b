// The one table of failures: a stable code, the exit code a command ends with, the text a person reads.
// Called by every stage. Expected outcomes (refused, dropped, queued) are return values, never these.
// Wire errors are ProtocolError: they carry the MQTT 5.0 reason code (section 2.4) and nothing else decides it.

interface ErrorRow {
  readonly text: string;
  /** sysexits(3): 64 usage, 78 configuration, 1 anything at run time. */
  readonly exit: 1 | 64 | 78;
}

export const ERRORS = {
  'CLI-USAGE': { text: 'invalid command line', exit: 64 },
  'CLI-FAILED': { text: 'command failed', exit: 1 },
  'CFG-INVALID': { text: 'invalid configuration', exit: 78 },
  'CFG-READ': { text: 'configuration cannot be read', exit: 78 },
  'CFG-NOT-BUILT': { text: 'feature not available in this version', exit: 78 },
  'TRANSPORT-BIND': { text: 'cannot listen', exit: 1 },
  'TRANSPORT-DIAL': { text: 'cannot connect', exit: 1 },
  'TRANSPORT-TLS': { text: 'TLS failure', exit: 1 },
  'AUTH-SOURCE': { text: 'an authentication source cannot be used', exit: 78 },
  'STORE-OPEN': { text: 'the store cannot be opened', exit: 1 },
  'STORE-WRITE': { text: 'the store cannot write', exit: 1 },
  'SP-URL': { text: 'invalid SP URL', exit: 78 },
  'SP-DRIVER': { text: 'the SP driver cannot be loaded', exit: 1 },
  'BROKER-ENGINE': { text: 'the broker engine cannot be used', exit: 1 },
  'BRIDGE-NAME': { text: 'no such bridge', exit: 1 },
  'GW-DESCRIPTORS': { text: 'too few file descriptors', exit: 1 },
  'GW-STATE': { text: 'not possible in this state', exit: 1 },
} as const satisfies Record<string, ErrorRow>;

export type ErrorCode = keyof typeof ERRORS;

/** A failure with a code from ERRORS; `detail` says what exactly, `cause` keeps the error below it. */
export class GatewayError extends Error {
  readonly code: ErrorCode;

  constructor(code: ErrorCode, detail: string, cause?: unknown) {
    super(`${ERRORS[code].text}: ${detail}`, cause === undefined ? undefined : { cause });
    this.name = 'GatewayError';
    this.code = code;
  }

  get exit(): number {
    return ERRORS[this.code].exit;
  }
}

/** A peer broke its protocol. `reasonCode` is the MQTT 5.0 reason code to answer with; older versions just close. */
export class ProtocolError extends Error {
  readonly reasonCode: number;

  constructor(reasonCode: number, text: string) {
    super(text);
    this.name = 'ProtocolError';
    this.reasonCode = reasonCode;
  }
}

/** What OpenSSL writes: library, function and reason between colons, then the place in its source. */
const OPENSSL = /:error:[0-9A-F]{8}:[^:]{0,80}:[^:]{0,80}:([^:]{1,160})/;

/** The message of anything that was thrown, for logs and answers. */
export function errorText(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  // A host with several addresses of which none answers: Node.js gives one error each, and no message for all.
  if (error instanceof AggregateError && error.message === '' && error.errors.length > 0)
    return errorText(error.errors[0]);
  const reason = OPENSSL.exec(error.message)?.[1];
  if (reason === undefined) return error.message;
  return reason === 'wrong version number' ? 'the peer does not speak TLS (wrong version number)' : reason;
}

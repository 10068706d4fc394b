// Failures to reach a server that are this process's own: they say nothing about the server, which must not rest or be
// called ill for them. Asked by pool.ts, dialing.ts and health.ts. Source: connect(2), socket(2).
import { GatewayError } from '../base/errors.ts';

const OURS: ReadonlySet<string> = new Set(['EMFILE', 'ENFILE', 'ENOBUFS', 'ENOMEM', 'EADDRNOTAVAIL']);

/** The errno name of a failed dial() when the failure is our own, else null. */
export function ownFault(error: unknown): string | null {
  const cause: unknown = error instanceof GatewayError ? error.cause : error;
  if (typeof cause !== 'object' || cause === null || !('code' in cause)) return null;
  return typeof cause.code === 'string' && OURS.has(cause.code) ? cause.code : null;
}

/** Whether file descriptors have run out: no other server can be dialled either. */
export function outOfDescriptors(error: unknown): boolean {
  const fault = ownFault(error);
  return fault === 'EMFILE' || fault === 'ENFILE';
}

// What SP sockets need of the transports: somebody else makes them (gateway/gateway.ts from transport/, tests from a
// stand-in) and hands them in. Used by native.ts through endpoint.ts. Contract of what comes back:
// transport/transport.ts. Over ws and wss a Connection carries messages: each write() is one binary message, each
// onData one whole message.
import type { Connection, DialTarget, Listener, ListenerOptions, TlsServerOptions } from '../transport/transport.ts';

/** Where to listen. A host may be a name (every address of it), "*" (every address of the machine) or an address. */
export type ListenTarget =
  | { readonly kind: 'tcp'; readonly host: string; readonly port: number }
  | { readonly kind: 'tls'; readonly host: string; readonly port: number; readonly tls: TlsServerOptions }
  | {
      readonly kind: 'ws' | 'wss';
      readonly host: string;
      readonly port: number;
      readonly path: string;
      readonly subprotocol: string;
      /** Bytes of the largest message taken, 0 = no limit. */
      readonly maxMessage: number;
      readonly tls?: TlsServerOptions;
    }
  /** A path (a dead socket there is replaced, anything else stays), or an abstract name with a leading NUL. */
  | { readonly kind: 'unix'; readonly path: string; readonly mode: string | null; readonly group: string | null }
  | { readonly kind: 'memory'; readonly name: string }
  | ProgramTarget;

/** A transport of the program that embeds the gateway, for both roles. */
export interface ProgramTarget {
  readonly kind: 'program';
  readonly name: string;
}

export interface Transports {
  listen(target: ListenTarget, options: ListenerOptions): Listener;
  /**
   * Connects once. Rejects with the reason, also after `timeoutMs`. `maxMessage`: bytes, for ws and wss, 0 = no limit.
   */
  dial(target: DialTarget | ProgramTarget, timeoutMs: number, maxMessage: number): Promise<Connection>;
}

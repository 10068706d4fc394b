// What is used of libnanomsg, the C library, and how it is loaded: the bindings of the npm package nanomsg, without its
// Socket class, which queues without bound and throws errors as events. Used by nanomsg.ts only. Optional: loaded when
// a bridge first asks for it. Source: nanomsg(7) and the manual page of each function (nn_socket, nn_setsockopt,
// nn_bind, nn_send, nn_recv).
import { errorText, GatewayError } from '../base/errors.ts';
import type { Protocol } from './sp.ts';

/** What is used of the package's bindings. Calls give a number below 0 on failure; Err() and Errno() then say why. */
export interface Library {
  Socket(domain: number, protocol: number): number;
  Close(socket: number): number;
  Setopt(socket: number, level: number, option: number, value: number): number;
  Chan(socket: number, option: number, prefix: string): number;
  Bind(socket: number, url: string): number;
  Connect(socket: number, url: string): number;
  Shutdown(socket: number, endpoint: number): number;
  Send(socket: number, body: Buffer, flags: number): number;
  Recv(socket: number, flags: number): Buffer | number;
  PollSocket(socket: number, sender: boolean, ready: (events: number) => void): unknown;
  PollStop(poll: unknown): void;
  Errno(): number;
  Err(): string;
  readonly AF_SP: number;
  readonly NN_PAIR: number;
  readonly NN_PUB: number;
  readonly NN_SUB: number;
  readonly NN_PUSH: number;
  readonly NN_PULL: number;
  readonly NN_SOL_SOCKET: number;
  readonly NN_RCVMAXSIZE: number;
  readonly NN_IPV4ONLY: number;
  readonly NN_RECONNECT_IVL: number;
  readonly NN_RECONNECT_IVL_MAX: number;
  readonly NN_SUB_SUBSCRIBE: number;
  readonly NN_DONTWAIT: number;
  readonly EAGAIN: number;
}

/**
 * Loads the package. Rejects with SP-DRIVER and one line that says what to do when it is not there or was built for
 * another Node.
 */
export async function loadLibrary(): Promise<Library> {
  // Not a literal: bundlers and the type checker must not look for an optional package.
  const name: string = 'nanomsg';
  try {
    const loaded = (await import(name)) as { default: { _bindings: Library } };
    return loaded.default._bindings;
  } catch (error) {
    const why = errorText(error).split('\n', 1)[0];
    throw new GatewayError(
      'SP-DRIVER',
      `driver = nanomsg needs the npm package nanomsg, built for this Node (${why}); driver = native needs nothing`,
      error,
    );
  }
}

const NAMES: Readonly<Partial<Record<Protocol, 'NN_PAIR' | 'NN_PUB' | 'NN_SUB' | 'NN_PUSH' | 'NN_PULL'>>> = {
  pair0: 'NN_PAIR',
  pub0: 'NN_PUB',
  sub0: 'NN_SUB',
  push0: 'NN_PUSH',
  pull0: 'NN_PULL',
};

/** Whether this driver serves a protocol: those of bridges; requests, surveys and buses need the native one. */
export function hasProtocol(protocol: Protocol): boolean {
  return NAMES[protocol] !== undefined;
}

/** The library's number of a protocol. Throws SP-DRIVER for one that this driver does not serve. */
export function protocolNumber(nn: Library, protocol: Protocol): number {
  const name = NAMES[protocol];
  if (name === undefined)
    throw new GatewayError('SP-DRIVER', `the driver nanomsg has no ${protocol}, use driver = native`);
  return nn[name];
}

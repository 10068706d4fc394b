// The library: what a Node.js program gets from `import ... from 'tidegate'`. A gateway inside the program, its configuration, and SP sockets.
// Holds no code of its own but the one function that puts an SP driver together; nothing inside src/ imports this file.
import { systemClock } from './base/clock.ts';
import { Turn } from './base/turn.ts';
import { BlockPool } from './base/writer.ts';
import { nativeDriver } from './sp/native.ts';
import type { SpDriver } from './sp/sp.ts';
import { MemoryNetwork } from './transport/memory.ts';
import { spTransports } from './transports.ts';

export { type Clock, systemClock } from './base/clock.ts';
export { ERRORS, type ErrorCode, GatewayError } from './base/errors.ts';
export { type Fields, type Level, type Log, nullLog } from './base/log.ts';
export { createLogger, type Logger, type LoggerOptions } from './base/logger.ts';
export type { Broker, LocalClient, LocalReceiver, LocalSubscription } from './broker/broker.ts';
export { version } from './cli/version.ts';
export { type Config, type Loaded, type LoadOptions, loadConfig } from './config/config.ts';
export { ConfigError, formatProblem, type Problem } from './config/problem.ts';
export { createGateway, type Gateway, type GatewayParts } from './gateway.ts';
export type { Message, Publication } from './mqtt/message.ts';
export type { OnMessage, Overflow, PipeView, Protocol, SpDriver, SpEvent, SpOptions, SpSocket } from './sp/sp.ts';

/** SP sockets in TypeScript, with inproc names of their own: `spDriver().open('sub0', options)`. */
export function spDriver(): SpDriver {
  return nativeDriver({
    transports: spTransports(new MemoryNetwork()),
    clock: systemClock,
    turn: new Turn(),
    pool: new BlockPool(),
  });
}

// The options of `tidegate nng ...`: what each command takes. Whatever does not fit together is CLI-USAGE.
// Called by nng.ts. Pure. Source: docs/nng-bridges.md (command line).
import type { Command } from 'commander';
import { errorText } from '../../base/errors.ts';
import { parseDuration } from '../../config/values.ts';
import { PROTOCOLS } from '../../sp/protocol.ts';
import type { Protocol } from '../../sp/sp.ts';
import { parseSpUrl } from '../../sp/url.ts';
import type { TlsClientOptions, TlsServerOptions } from '../../transport/transport.ts';
import { usage } from '../usage.ts';

/** What a message is: topic + delimiter + payload, or the payload alone. */
export type Frame = 'topic' | 'payload';
/** The 26 bytes of a trace in front of a payload: taken off, left as they are, put on. */
export type Trace = 'strip' | 'keep' | 'add';

export interface NngCommon {
  readonly dial: readonly string[];
  readonly listen: readonly string[];
  readonly protocol: Protocol;
  readonly raw: boolean;
  readonly hex: boolean;
  readonly frame: Frame;
  readonly trace: Trace;
  /** Milliseconds until it gives up, 0 = never. */
  readonly timeoutMs: number;
  readonly tlsClient: TlsClientOptions | null;
  readonly tlsServer: TlsServerOptions | null;
}
export interface NngPubOptions extends NngCommon {
  readonly topic: string | null;
  readonly delimiter: string;
  /** null: every line of standard input is a message. */
  readonly data: string | null;
  readonly count: number;
  readonly intervalMs: number;
}
export interface NngSubOptions extends NngCommon {
  /** Prefixes; none = everything. */
  readonly topics: readonly string[];
  /** null: a topic is a plain prefix; else it has to be followed by this. */
  readonly delimiter: string | null;
  /** 0 = no end. */
  readonly count: number;
}
export interface NngPairOptions extends NngCommon {
  readonly topic: string | null;
  readonly delimiter: string;
  /** null: every line of standard input is a message. */
  readonly data: string | null;
  /** Messages to print before it ends, 0 = no end. */
  readonly count: number;
}

export interface NngFlags {
  readonly dial?: string[];
  readonly listen?: string[];
  readonly topic?: string[];
  readonly delimiter?: string;
  readonly data?: string;
  readonly raw?: true;
  readonly hex?: true;
  readonly frame?: string;
  readonly trace?: string;
  readonly count?: string;
  readonly interval?: string;
  readonly timeout?: string;
  readonly protocol: string;
  readonly cafile?: string;
  readonly cert?: string;
  readonly key?: string;
  readonly insecure?: true;
}

/** `otherwise` where the option is not given. Throws CLI-USAGE. */
export function wholeNumber(text: string | undefined, option: string, otherwise: number): number {
  if (text === undefined) return otherwise;
  if (!/^[0-9]{1,15}$/.test(text)) throw usage(`${option} takes a whole number`);
  return Number(text);
}

/** Milliseconds, 0 where the option is not given. Throws CLI-USAGE. */
export function duration(text: string | undefined, option: string): number {
  if (text === undefined) return 0;
  const ms = parseDuration(text, 's');
  if (ms === null) throw usage(`${option} takes a duration such as 200ms, 5s or 1m`);
  return ms;
}

/** One of a few words, the first where the option is not given. Throws CLI-USAGE. */
function word<T extends string>(text: string | undefined, option: string, words: readonly [T, ...T[]]): T {
  if (text === undefined) return words[0];
  const found = words.find((one) => one === text);
  if (found === undefined) throw usage(`${option} takes ${words.join(', ')}`);
  return found;
}

/** What all commands take; `allowed` are the protocols of this one. Throws CLI-USAGE. */
export function commonOf(flags: NngFlags, allowed: readonly Protocol[]): NngCommon {
  const { dial = [], listen = [], raw, hex, cafile, cert, key, insecure } = flags;
  if (dial.length + listen.length === 0) throw usage('--dial URL or --listen URL is missing');
  for (const url of [...dial, ...listen]) {
    try {
      parseSpUrl(url);
    } catch (error) {
      throw usage(errorText(error));
    }
  }
  const protocol = (Object.keys(PROTOCOLS) as Protocol[]).find(
    (name) => name === flags.protocol && allowed.includes(name),
  );
  if (protocol === undefined) throw usage(`--protocol takes ${allowed.join(', ')}`);
  const tlsClient = {
    ca: cafile ?? null,
    cert: cert ?? null,
    key: key ?? null,
    keyPassword: null,
    verify: insecure !== true,
    serverName: null,
  };
  const server = cert === undefined || key === undefined ? null : { certfile: cert, keyfile: key };
  const tlsServer: TlsServerOptions | null =
    server === null
      ? null
      : {
          ...server,
          cacertfile: cafile ?? null,
          crlfile: null,
          keyPassword: null,
          verifyPeer: cafile !== undefined,
          failIfNoPeerCert: false,
          alpn: [],
        };
  return {
    dial,
    listen,
    protocol,
    raw: raw === true,
    hex: hex === true,
    frame: frameOf(flags),
    trace: word<Trace>(flags.trace, '--trace', ['keep', 'strip', 'add']),
    timeoutMs: duration(flags.timeout, '--timeout'),
    tlsClient,
    tlsServer,
  };
}

function frameOf(flags: NngFlags): Frame {
  const frame = word<Frame>(flags.frame, '--frame', ['topic', 'payload']);
  if (frame === 'payload' && (flags.topic !== undefined || flags.delimiter !== undefined))
    throw usage('--frame payload has no place for --topic and --delimiter');
  return frame;
}

/** For options that may be repeated. */
export function collect(value: string, before: string[] | undefined): string[] {
  return [...(before ?? []), value];
}

/** Options that both commands have. */
export function withCommon(command: Command, protocol: string): Command {
  return command
    .option('--dial <url>', 'connect to this address, again whenever the link is lost (may be repeated)', collect)
    .option('--listen <url>', 'wait for peers at this address (may be repeated)', collect)
    .option('--protocol <name>', 'SP protocol of the socket', protocol)
    .option('--timeout <duration>', 'give up after this time (bare numbers are seconds; default: never)')
    .option('--cafile <file>', 'TLS: certificates to trust')
    .option('--cert <file>', 'TLS: own certificate')
    .option('--key <file>', 'TLS: its key')
    .option('--insecure', 'TLS: take any certificate');
}

/** Options of what is sent. */
export function withSending(command: Command): Command {
  return command
    .option('--topic <text>', 'what the message begins with', collect)
    .option('--delimiter <text>', 'stands between topic and data (default: /)')
    .option('--frame <topic|payload>', 'topic + delimiter + data, or the data alone (default: topic)')
    .option('--data <text>', 'the message; without it each line of standard input is one');
}

/** The topic of what is sent, null = none. Throws CLI-USAGE. */
export function singleTopic(flags: NngFlags): string | null {
  if ((flags.topic ?? []).length > 1) throw usage('--topic may be given once');
  return flags.topic?.[0] ?? null;
}

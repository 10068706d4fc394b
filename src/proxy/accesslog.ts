// The access log of the proxy: one line for each connection, in NGINX's escaping or as JSON, to a file that others may
// move away. Opened by proxies.ts, one writer for each path however many proxies write to it. Lines wait in memory
// while the disk is busy, up to a bound; beyond that they are lost and counted. A password is never in an entry.
// Source: NGINX, ngx_stream_log_module (escape=default: bytes below 32, above 126, quote and backslash as \xXX; - for
// what is missing).
import { closeSync, fstatSync, mkdirSync, openSync, renameSync, write, writeSync } from 'node:fs';
import path from 'node:path';
import type { Cell } from '../base/metrics.ts';
import type { Facts } from './facts.ts';

/**
 * 200 ended normally, 400 bytes that cannot be taken, 403 not allowed, 500 nowhere to go, 502 no server, 503 a limit.
 */
export type Status = 200 | 400 | 403 | 500 | 502 | 503;
/** Of connections that reached no server. */
export const FAULTS = [400, 403, 500, 502, 503] as const;

export interface Entry {
  /** Wall-clock ms of the end. */
  readonly timeMs: number;
  readonly remoteAddress: string;
  readonly remotePort: string;
  readonly listener: string;
  /** 0 = no CONNECT was read. */
  readonly version: 0 | 3 | 4 | 5;
  readonly clientId: string | null;
  readonly username: string | null;
  /** null = as it came. */
  readonly rewrittenClientId: string | null;
  /** Every server that was tried. */
  readonly upstreams: readonly string[];
  /** From the client, and to it. */
  readonly bytesReceived: number;
  readonly bytesSent: number;
  readonly sessionMs: number;
  readonly status: Status;
  readonly reason: string;
  /** More of the client, for formats that name it. */
  readonly facts: Facts;
}

export function jsonFields(entry: Entry): Record<string, string | number | null> {
  return {
    time: new Date(entry.timeMs).toISOString(),
    remote_addr: entry.remoteAddress,
    remote_port: entry.remotePort === '' ? null : Number(entry.remotePort),
    listener: entry.listener,
    mqtt_version: entry.version === 0 ? null : entry.version,
    clientid: entry.clientId,
    username: entry.username,
    rewritten_clientid: entry.rewrittenClientId,
    upstream_addr: entry.upstreams.length === 0 ? null : entry.upstreams.join(', '),
    bytes_received: entry.bytesReceived,
    bytes_sent: entry.bytesSent,
    session_time: entry.sessionMs / 1000,
    status: entry.status,
    reason: entry.reason,
  };
}

export function jsonLine(entry: Entry): string {
  return jsonText(jsonFields(entry));
}

/** One line. */
export function jsonText(fields: Readonly<Record<string, string | number | null>>): string {
  const line = JSON.stringify(fields);
  return `${line.replace(ODD, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`)}\n`;
}

/**
 * What JSON leaves as it is and terminals do not: DEL and C1, line separators, bidirectional and zero-width controls.
 */
const ODD = /[\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;

/**
 * remote [time] listener version "client id" "username" "rewritten id" "servers" status received sent seconds "reason"
 */
export function textLine(entry: Entry): string {
  const remote = entry.remotePort === '' ? entry.remoteAddress : `${entry.remoteAddress}:${entry.remotePort}`;
  const servers = entry.upstreams.length === 0 ? null : entry.upstreams.join(', ');
  const words = [
    escapeText(remote === '' ? '-' : remote),
    `[${new Date(entry.timeMs).toISOString()}]`,
    escapeText(entry.listener),
    entry.version === 0 ? '-' : String(entry.version),
    quoted(entry.clientId),
    quoted(entry.username),
    quoted(entry.rewrittenClientId),
    quoted(servers),
    String(entry.status),
    String(entry.bytesReceived),
    String(entry.bytesSent),
    (entry.sessionMs / 1000).toFixed(3),
    quoted(entry.reason),
  ];
  return `${words.join(' ')}\n`;
}

function quoted(text: string | null): string {
  return text === null ? '"-"' : `"${escapeText(text)}"`;
}

const PLAIN = /^[ !#-[\]-~]*$/;

/** As NGINX escapes by default. */
export function escapeText(text: string): string {
  if (PLAIN.test(text)) return text;
  let out = '';
  for (const byte of Buffer.from(text)) {
    const plain = byte >= 32 && byte <= 126 && byte !== 0x22 && byte !== 0x5c;
    out += plain ? String.fromCharCode(byte) : `\\x${byte.toString(16).toUpperCase().padStart(2, '0')}`;
  }
  return out;
}

/** Bytes of lines that may wait for a slow disk. */
const MAX_WAITING = 4 * 1024 * 1024;
/** Readable by the service's group, not by everybody: addresses and client ids are in it. */
const FILE_MODE = 0o640;

export interface Rotation {
  /** Bytes after which a file becomes <file>.1; 0 = never. */
  readonly size: number;
  /** Old files kept. */
  readonly count: number;
}

export class AccessLog {
  private readonly file: string;
  private rotation: Rotation;
  private readonly lost: Cell;
  private readonly onError: (text: string) => void;
  private fd = -1;
  private sizeBytes = 0;
  private waiting: string[] = [];
  private waitingBytes = 0;
  private writing = false;
  private failing = false;

  /** `onError` is told the first of a run of failures. */
  constructor(file: string, rotation: Rotation, lost: Cell, onError: (text: string) => void) {
    this.file = path.resolve(file);
    this.rotation = rotation;
    this.lost = lost;
    this.onError = onError;
  }

  /** Throws the system's error when the file cannot be opened. */
  open(): void {
    mkdirSync(path.dirname(this.file), { recursive: true });
    this.fd = openSync(this.file, 'a', FILE_MODE);
    this.sizeBytes = fstatSync(this.fd).size;
  }

  setRotation(rotation: Rotation): void {
    this.rotation = rotation;
  }

  write(line: string): void {
    if (this.waitingBytes > MAX_WAITING) {
      this.lost.value++;
      return;
    }
    this.waiting.push(line);
    this.waitingBytes += line.length;
    if (!this.writing) this.writeNext();
  }

  /**
   * Goes on in a new file of that name, after somebody has moved the old one away; in the old one when that cannot be
   * opened.
   */
  reopen(): void {
    const old = this.fd;
    try {
      this.open();
    } catch (error) {
      this.report(error);
      return;
    }
    // A write that is under way has its own copy of the descriptor's number: it is closed when that is done.
    if (this.writing) this.closing.push(old);
    else if (old >= 0) closeSync(old);
  }

  /** Writes what is waiting and closes. Never throws. */
  close(): void {
    try {
      if (this.fd >= 0 && this.waiting.length > 0) writeSync(this.fd, this.waiting.join(''));
    } catch (error) {
      this.lost.value += this.waiting.length;
      this.report(error);
    }
    this.waiting = [];
    this.waitingBytes = 0;
    if (this.writing) this.closing.push(this.fd);
    else if (this.fd >= 0) closeSync(this.fd);
    this.fd = -1;
  }

  private readonly closing: number[] = [];

  private writeNext(): void {
    const lines = this.waiting;
    if (lines.length === 0 || this.fd < 0) return;
    if (this.rotation.size > 0 && this.sizeBytes >= this.rotation.size) this.rotate();
    const bytes = Buffer.from(lines.join(''));
    this.waiting = [];
    this.waitingBytes = 0;
    this.writing = true;
    this.sizeBytes += bytes.length;
    this.writeAll(this.fd, bytes, 0, lines.length);
  }

  private writeAll(fd: number, bytes: Buffer, from: number, lines: number): void {
    write(fd, bytes, from, bytes.length - from, null, (error, written) => {
      if (error === null && from + written < bytes.length) {
        this.writeAll(fd, bytes, from + written, lines);
        return;
      }
      if (error === null) this.failing = false;
      else {
        this.lost.value += lines;
        this.report(error);
      }
      this.writing = false;
      for (const old of this.closing.splice(0)) closeSync(old);
      this.writeNext();
    });
  }

  private rotate(): void {
    try {
      for (let n = this.rotation.count - 1; n >= 1; n--) moveAway(`${this.file}.${n}`, `${this.file}.${n + 1}`);
      moveAway(this.file, `${this.file}.1`);
    } catch (error) {
      // Tried again after as many bytes as a file should have, not at every line.
      this.sizeBytes = 0;
      this.report(error);
      return;
    }
    this.reopen();
  }

  private report(error: unknown): void {
    if (!this.failing) this.onError(`${this.file}: ${error instanceof Error ? error.message : String(error)}`);
    this.failing = true;
  }
}

function moveAway(from: string, to: string): void {
  try {
    renameSync(from, to);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
  }
}

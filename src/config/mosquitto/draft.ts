// A mosquitto.conf with every line where it belongs: the broker, a listener, a bridge, a plugin. Made by read.ts, built
// into a tree by place.ts, security.ts, remote.ts and general.ts's rows. Plain data: what a line means is not decided
// here.
import type { Position } from '../problem.ts';
import { flagOf, type Line, numberOf } from './lines.ts';

/** The last line of each option, by its first name. */
export class Settings {
  private readonly lines = new Map<string, Line>();

  set(key: string, line: Line): void {
    this.lines.set(key, line);
  }

  line(key: string): Line | undefined {
    return this.lines.get(key);
  }

  has(key: string): boolean {
    return this.lines.has(key);
  }

  /** Null where it is not written. */
  text(key: string): string | null {
    return this.lines.get(key)?.value ?? null;
  }

  flag(key: string): boolean | null {
    const line = this.lines.get(key);
    return line === undefined ? null : flagOf(line.value);
  }

  number(key: string): number | null {
    const line = this.lines.get(key);
    return line === undefined ? null : (numberOf(line.value)?.value ?? null);
  }

  keys(): Iterable<string> {
    return this.lines.keys();
  }
}

export interface PluginDraft {
  readonly at: Position;
  readonly key: string;
  readonly path: string;
  readonly options: Map<string, Line>;
}

export interface SecurityDraft {
  readonly settings: Settings;
  readonly plugins: PluginDraft[];
}

export interface ListenerDraft {
  readonly at: Position;
  readonly port: number;
  /** Null: every address. The path for port 0. */
  readonly host: string | null;
  readonly settings: Settings;
  readonly origins: Line[];
  readonly security: SecurityDraft;
}

export interface BridgeDraft {
  readonly at: Position;
  readonly name: string;
  readonly settings: Settings;
  readonly topics: Line[];
}

export interface Draft {
  readonly at: Position;
  perListener: boolean;
  readonly global: Settings;
  readonly security: SecurityDraft;
  /** What stands before the first listener. `port` and `bind_address` are among its settings. */
  readonly first: ListenerDraft;
  readonly listeners: ListenerDraft[];
  readonly bridges: BridgeDraft[];
  readonly logDests: Line[];
  readonly logTypes: Line[];
  /** plugin_load, by name. */
  readonly loaded: Map<string, PluginDraft>;
}

export function newSecurity(): SecurityDraft {
  return { settings: new Settings(), plugins: [] };
}

export function newListener(at: Position, port: number, host: string | null): ListenerDraft {
  return { at, port, host, settings: new Settings(), origins: [], security: newSecurity() };
}

export function newDraft(at: Position): Draft {
  return {
    at,
    perListener: false,
    global: new Settings(),
    security: newSecurity(),
    first: newListener(at, 1883, null),
    listeners: [],
    bridges: [],
    logDests: [],
    logTypes: [],
    loaded: new Map(),
  };
}

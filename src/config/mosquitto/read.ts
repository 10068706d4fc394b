// Reads the lines of a mosquitto.conf and of the folders it includes into a draft: scopes, values of the right kind,
// and what its table says of options that have no counterpart. Called by mosquitto.ts. As mosquitto does, each file
// begins without a listener and without a bridge of its own. Sources: mosquitto.conf(5), mosquitto 2.0.11 on the wire.
import { join } from 'node:path';
import type { Report } from '../report.ts';
import { nearest } from '../values.ts';
import {
  type BridgeDraft,
  type Draft,
  type ListenerDraft,
  newDraft,
  newListener,
  type PluginDraft,
  type SecurityDraft,
  Settings,
} from './draft.ts';
import { flagOf, type Line, linesOf, numberOf, words } from './lines.ts';
import type { Option } from './option.ts';
import { OPTION_KEYS, optionNamed } from './options.ts';

/** The files an import may read. */
export interface Files {
  /** Throws ConfigError or CFG-READ. */
  read(file: string): string;
  /** Names in a folder, or why it cannot be read. */
  names(folder: string): string[] | string;
}

/** Reads a whole configuration. Throws what `files.read` throws. */
export function readDraft(text: string, file: string, files: Files, report: Report): Draft {
  const draft = newDraft({ file, line: 1, column: 1 });
  new FileReader(draft, files, report, true).read(text, file);
  return draft;
}

/**
 * The files of include_dir: mosquitto 2.0.11 sorts without regard to case, and by case where that is all that differs.
 */
export function includedNames(names: readonly string[]): string[] {
  const fold = (name: string): string => name.replace(/[A-Z]/g, (c) => c.toLowerCase());
  const order = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);
  return names
    .filter((name) => name.length > 5 && name.endsWith('.conf'))
    .sort((a, b) => order(fold(a), fold(b)) || order(a, b));
}

/** One file: what it says goes to the listener and the bridge that it has named last. */
class FileReader {
  private readonly draft: Draft;
  private readonly files: Files;
  private readonly report: Report;
  private readonly isMain: boolean;
  private listener: ListenerDraft;
  private bridge: BridgeDraft | null = null;
  private plugin: PluginDraft | null = null;

  constructor(draft: Draft, files: Files, report: Report, isMain: boolean) {
    this.draft = draft;
    this.files = files;
    this.report = report;
    this.isMain = isMain;
    this.listener = draft.first;
  }

  read(text: string, file: string): void {
    const { lines, odd } = linesOf(text, file);
    for (const { at, message } of odd) this.report.change(at, 'line', message);
    for (const line of lines) this.take(line);
  }

  private take(line: Line): void {
    const option = optionNamed(line.key);
    if (option === undefined) this.unknown(line);
    else if (this.isValid(option, line)) this.put(option, line);
  }

  /** A name that is close to one of security may be meant for it; others say nothing that could be kept. */
  private unknown({ at, key }: Line): void {
    const close = nearest(key, OPTION_KEYS);
    const guess = close === null ? '' : `; did you mean ${close}?`;
    const option = close === null ? undefined : optionNamed(close);
    const guards = option?.scope === 'security' || option?.verdict === 'refused' || close === 'require_certificate';
    if (guards) this.report.refuse(at, key, `no option of mosquitto, which does not start with it${guess}`);
    else this.report.change(at, key, `not carried over: no option of mosquitto, which does not start with it${guess}`);
  }

  private isValid(option: Option, line: Line): boolean {
    const { at, key, value } = line;
    const wrong = (message: string): boolean => {
      this.report.invalid(at, key, message);
      return false;
    };
    if (value === '') return wrong('has no value');
    if (option.kind === 'flag' && flagOf(value) === null) return wrong('true or false expected');
    if (option.kind !== 'int') return true;
    const number = numberOf(value);
    if (number === null) return wrong('a number expected');
    const { min = -Infinity, max = 2 ** 31 - 1 } = option;
    // What 2.0.11 writes as "no limit" is taken, whatever the range.
    const isNone = key === 'max_packet_size' && number.value === 0;
    if (!isNone && (number.value < min || number.value > max)) return wrong(`${min} to ${max} expected`);
    if (!number.exact) this.report.change(at, key, `read as ${number.value}; mosquitto 2.1 does not start with it`);
    return true;
  }

  private put(option: Option, line: Line): void {
    switch (option.scope) {
      case 'structure':
        this.structure(option, line);
        return;
      case 'plugin':
        this.ofPlugin(option, line);
        return;
      case 'bridge':
        this.ofBridge(option, line);
        return;
      case 'security':
        this.keep(option, line, this.security().settings);
        return;
      case 'listener':
        if (option.key === 'websockets_origin') this.listener.origins.push(line);
        else this.keep(option, line, this.listener.settings);
        return;
      default:
        if (option.key === 'log_dest') this.draft.logDests.push(line);
        else if (option.key === 'log_type') this.draft.logTypes.push(line);
        else this.keep(option, line, this.draft.global);
    }
  }

  private security(): SecurityDraft {
    return this.draft.perListener ? this.listener.security : this.draft.security;
  }

  private keep(option: Option, line: Line, settings: Settings): void {
    if (option.kind === 'text' && settings.has(option.key))
      this.report.change(
        line.at,
        line.key,
        'is given twice, with which mosquitto 2.0 does not start; the last one counts',
      );
    settings.set(option.key, line);
    if (!isHarmless(option, line)) this.tell(option, line);
  }

  /** What the table says of an option without a counterpart. */
  private tell(option: Option, { at, key }: Line): void {
    if (option.verdict === 'lost') this.report.change(at, key, `not carried over: ${option.text}`);
    else if (option.verdict === 'cosmetic') this.report.cosmetic(at, key);
    else if (option.verdict === 'refused') this.report.refuse(at, key, option.text);
  }

  // ---- structure

  private structure(option: Option, line: Line): void {
    switch (option.key) {
      case 'listener':
        this.startListener(line);
        return;
      case 'connection':
        this.startBridge(line);
        return;
      case 'include_dir':
        this.include(line);
        return;
      case 'per_listener_settings':
        this.perListener(line);
        return;
      default:
        this.draft.first.settings.set(option.key, line);
    }
  }

  private startListener({ at, key, value }: Line): void {
    const [portWord, second] = words(value);
    const host = second === undefined || second.startsWith('#') ? null : second;
    const port = numberOf(portWord)?.value ?? -1;
    if (port < 0 || port > 65535) this.report.invalid(at, key, 'a port expected, 0 to 65535');
    if (port === 0 && host === null) this.report.invalid(at, key, 'port 0 needs the path of a Unix socket');
    this.listener = newListener(at, port, host);
    this.draft.listeners.push(this.listener);
  }

  private startBridge({ at, key, value }: Line): void {
    const [name] = words(value);
    if (this.draft.bridges.some((bridge) => bridge.name === name))
      this.report.invalid(at, key, 'another bridge has this name');
    this.bridge = { at, name, settings: new Settings(), topics: [] };
    this.draft.bridges.push(this.bridge);
  }

  private perListener({ at, key, value }: Line): void {
    if (flagOf(value) !== true || this.draft.perListener) return;
    this.draft.perListener = true;
    const { settings, plugins } = this.draft.security;
    if (plugins.length > 0 || [...settings.keys()].length > 0)
      this.report.invalid(
        at,
        key,
        'has to stand before all settings of security; mosquitto does not start with it here',
      );
  }

  private include({ at, key, value }: Line): void {
    if (!this.isMain) {
      this.report.invalid(at, key, 'is possible in the main file only');
      return;
    }
    const names = this.files.names(value);
    if (typeof names === 'string') {
      this.report.invalid(at, key, `${value}: ${names}`);
      return;
    }
    for (const name of includedNames(names)) {
      const file = join(value, name);
      new FileReader(this.draft, this.files, this.report, false).read(this.files.read(file), file);
    }
  }

  // ---- bridges and plugins

  private ofBridge(option: Option, line: Line): void {
    const { bridge } = this;
    if (bridge === null) {
      this.report.invalid(line.at, line.key, 'no connection stands before it in this file');
      return;
    }
    if (option.key === 'topic') bridge.topics.push(line);
    else if (option.key === 'address' && bridge.settings.has('address'))
      this.report.invalid(line.at, line.key, 'may be given only once; write the addresses in one line');
    else this.keep(option, line, bridge.settings);
  }

  private ofPlugin(option: Option, line: Line): void {
    const { at, key, value } = line;
    if (option.verdict === 'cosmetic') {
      this.report.cosmetic(at, key);
      return;
    }
    if (option.key === 'plugin_opt_*') {
      if (this.plugin === null) this.report.invalid(at, key, 'no plugin stands before it');
      else this.plugin.options.set(key.replace(/^(?:plugin|auth)_opt_/, ''), line);
      return;
    }
    if (option.key === 'plugin_use') {
      const known = this.draft.loaded.get(value);
      if (known === undefined) this.report.invalid(at, key, 'no plugin_load has this name');
      else this.listener.security.plugins.push(known);
      return;
    }
    const path = option.key === 'plugin_load' ? words(value).slice(1).join(' ') : value;
    this.plugin = { at, key, path, options: new Map() };
    if (option.key === 'plugin_load') this.draft.loaded.set(words(value)[0], this.plugin);
    else if (key === 'global_plugin') this.draft.security.plugins.push(this.plugin);
    else this.security().plugins.push(this.plugin);
  }
}

/** Whether a line says what holds anyway. */
function isHarmless(option: Option, { value }: Line): boolean {
  const { harmless, kind } = option;
  if (harmless === undefined) return false;
  if (kind === 'flag') return flagOf(value) === flagOf(harmless);
  if (kind === 'int') return numberOf(value)?.value === numberOf(harmless)?.value;
  return words(value)[0] === harmless;
}

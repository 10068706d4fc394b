// Runs the sessions that a page shows: `console` blocks with lines "(one)$ command" or "$ command", the lines below a command being what it
// prints. "..." stands for any text in a line, and alone for any lines. `hocon` blocks named by a first line "# file NAME" are written.
// The commands of one terminal follow each other; one that still runs is interrupted by the next of its terminal. Used by tours.test.ts
// and `make newcomer`, in a network of its own, so that the usual ports are free. Usage: tsx tour.ts PAGE FOLDER; prints each command.
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';

const ROOT = path.join(import.meta.dirname, '../..');
/** How long a command may take to print what the page shows. */
const MOST_MS = 60_000;
/** How long one that stays may take to connect. */
const MOST_START_MS = 10_000;
/** A command that stays is given this long after it has a connection, before the next command of another terminal. */
const SETTLE_MS = 1000;

export interface Command {
  readonly terminal: string;
  readonly text: string;
  readonly output: readonly string[];
}
export interface Block {
  readonly file: { readonly name: string; readonly text: string } | null;
  readonly commands: readonly Command[];
}

/** The files and sessions of a page, in their order. */
export function blocksOf(page: string): Block[] {
  const blocks: Block[] = [];
  for (const [, language, body] of page.matchAll(/^```(\w+)\n([\s\S]*?)^```$/gm)) {
    const named = /^# file (\S+)\n/.exec(body);
    if (named !== null) blocks.push({ file: { name: named[1], text: body }, commands: [] });
    else if (language === 'console') blocks.push({ file: null, commands: commandsOf(body) });
  }
  return blocks;
}

function commandsOf(body: string): Command[] {
  const commands: { terminal: string; text: string; output: string[] }[] = [];
  let goesOn = false;
  for (const line of body.split('\n').slice(0, -1)) {
    const start = /^(?:\((\w+)\))?\$ (.*)$/.exec(line);
    const last = commands.at(-1);
    if (goesOn && last !== undefined) last.text += `\n${line}`;
    else if (start !== null) commands.push({ terminal: start[1] ?? '', text: start[2], output: [] });
    else if (last === undefined) throw new Error(`a session begins with "$ ", not ${line}`);
    else if (line !== '') last.output.push(line);
    goesOn = line.endsWith('\\');
  }
  return commands;
}

/** Whether these lines are those the page shows. Empty lines and trailing blanks do not count. */
export function matches(expected: readonly string[], actual: readonly string[]): boolean {
  if (expected.length === 0) return actual.length === 0;
  const [first, ...rest] = expected;
  if (first === '...') {
    for (let i = 0; i <= actual.length; i++) if (matches(rest, actual.slice(i))) return true;
    return false;
  }
  if (actual.length === 0) return false;
  return lineMatches(first, actual[0]) && matches(rest, actual.slice(1));
}

function lineMatches(expected: string, actual: string): boolean {
  const parts = expected.split('...');
  let at = 0;
  for (const [i, part] of parts.entries()) {
    const found = i === 0 ? (actual.startsWith(part) ? 0 : -1) : actual.indexOf(part, at);
    if (found < 0) return false;
    at = found + part.length;
  }
  return parts.at(-1) === '' || actual.endsWith(parts.at(-1) ?? '');
}

class Running {
  readonly command: Command;
  private text = '';
  private readonly child: ChildProcess;
  private readonly ended: Promise<unknown>;
  hasEnded = false;
  private interrupted = false;
  /** It has printed what the page shows, and goes on: a gateway logs more later. */
  private shown = false;

  constructor(command: Command, folder: string, env: NodeJS.ProcessEnv) {
    this.command = command;
    this.child = spawn('bash', ['-c', command.text], {
      cwd: folder,
      env,
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: true,
    });
    for (const stream of [this.child.stdout, this.child.stderr])
      stream?.on('data', (chunk: Buffer) => {
        this.text += chunk.toString();
      });
    this.ended = new Promise((resolve) => this.child.once('close', resolve)).then(() => {
      this.hasEnded = true;
    });
  }

  /** The lines it has printed; one that is not complete does not count while it runs. */
  lines(): string[] {
    const lines = this.text.split('\n').map((line) => line.trimEnd());
    if (!this.hasEnded) lines.pop();
    return lines.filter((line) => line !== '');
  }

  /** Waits until it has printed what the page shows; a command that ends must have printed just that. */
  async asShown(): Promise<void> {
    if (this.interrupted || this.shown) return;
    const endMs = Date.now() + MOST_MS;
    while (!matches(this.command.output, this.lines())) {
      if (this.hasEnded || Date.now() > endMs)
        throw new Error(
          `$ ${this.command.text}\nthe page shows:\n${this.command.output.join('\n')}\nit printed:\n${this.lines().join('\n')}`,
        );
      await Promise.race([this.ended, pause(20)]);
    }
    this.shown = true;
  }

  /** Waits until it has ended, or has stayed: then with its first line, where the page shows one, or a connection. */
  async started(connections: () => number): Promise<void> {
    // Connections of the terminal's last command may still be closing.
    let fewest = connections();
    const endMs = Date.now() + MOST_START_MS;
    while (!this.hasEnded && Date.now() < endMs) {
      await Promise.race([this.ended, pause(50)]);
      if (this.command.output.length > 0 && matches(this.command.output, this.lines())) {
        this.shown = true;
        return;
      }
      const now = connections();
      if (now > fewest) break;
      fewest = now;
    }
    await Promise.race([this.ended, pause(SETTLE_MS)]);
  }

  /** Waits for the end of a command that ends, and looks at what it printed. */
  async end(): Promise<void> {
    await Promise.race([this.ended, pause(MOST_MS, undefined, { ref: false })]);
    await this.asShown();
  }

  /** Ends it as Ctrl-C does. What it prints then is not looked at. */
  async interrupt(): Promise<void> {
    this.interrupted = true;
    if (!this.hasEnded && this.child.pid !== undefined) process.kill(-this.child.pid, 'SIGINT');
    await this.ended;
  }
}

/** Established TCP connections and connected Unix sockets of this network. */
function connections(): number {
  const tcp = readFileSync('/proc/net/tcp', 'utf8').split('\n');
  const unix = readFileSync('/proc/net/unix', 'utf8').split('\n');
  return (
    tcp.filter((line) => / 01 /.test(line.slice(30, 40))).length + unix.filter((line) => / 0001 03 /.test(line)).length
  );
}

/** Runs a page in a folder. Throws for the first command that does not do what the page shows. */
export async function runTour(page: string, folder: string, log: (line: string) => void): Promise<void> {
  const bin = path.join(folder, '.bin');
  mkdirSync(bin, { recursive: true });
  const program = `#!/bin/sh\nexec ${process.execPath} ${path.join(ROOT, 'dist/main.js')} "$@"\n`;
  writeFileSync(path.join(bin, 'tidegate'), program, { mode: 0o755 });
  const env = {
    ...process.env,
    PATH: `${bin}:${process.env.PATH}:/usr/sbin`,
    NO_COLOR: '1',
    NODE_NO_WARNINGS: '1',
    LANG: 'C.UTF-8',
  };
  const terminals = new Map<string, Running>();
  try {
    for (const block of blocksOf(page)) {
      if (block.file !== null) writeFileSync(path.join(folder, block.file.name), block.file.text);
      const here: Running[] = [];
      for (const command of block.commands) {
        const last = terminals.get(command.terminal);
        if (last !== undefined) {
          await last.asShown();
          await last.interrupt();
        }
        log(`${command.terminal === '' ? '' : `(${command.terminal})`}$ ${command.text}`);
        const running = new Running(command, folder, env);
        terminals.set(command.terminal, running);
        here.push(running);
        if (command.terminal === '') await running.end();
        else await running.started(connections);
      }
      for (const running of here) await running.asShown();
    }
  } finally {
    for (const running of terminals.values()) await running.interrupt();
  }
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const [page, folder] = process.argv.slice(2);
  await runTour(readFileSync(page, 'utf8'), folder, console.log);
  console.log('tour: everything is as the page shows');
}

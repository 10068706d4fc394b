// Every command has an example at the end of its help, and each example is a command line that parses.
import type { Command } from 'commander';
import { describe, expect, it } from 'vitest';
import { runCli, wholeProgram } from '../../src/cli/cli.ts';
import { EXAMPLES } from '../../src/cli/examples.ts';
import { fakeIo } from '../harness/io.ts';

interface Found {
  readonly path: string;
  readonly command: Command;
}

function all(command: Command, path: string): Found[] {
  const inner = command.commands.filter((child) => child.name() !== 'help');
  const name = path === '' ? 'tidegate' : path;
  return [{ path: name, command }, ...inner.flatMap((child) => all(child, `${path} ${child.name()}`.trim()))];
}

/** The words of the last command of a line, as a shell has them; what follows > is the shell's. */
function words(line: string): string[] {
  const last = line.split(' | ').at(-1)?.split(' > ')[0] ?? '';
  return [...last.matchAll(/'([^']*)'|(\S+)/g)].map((found) => found[1] ?? found[2]);
}

describe('examples', async () => {
  const commands = all(await wholeProgram(), '');

  it('are there for every command, and for no other', () => {
    expect(Object.keys(EXAMPLES).sort()).toEqual(commands.map(({ path }) => path).sort());
  });

  it('end the help of a command', async () => {
    for (const argv of [['ctl', 'bridge', 'add', '--help'], ['pub', '--help'], ['completion', '--help'], ['--help']]) {
      const io = fakeIo();
      expect(await runCli(argv, io)).toBe(0);
      expect(io.stdout.text()).toMatch(/\nExamples?:\n {2}tidegate /);
    }
  });

  it.each(Object.entries(EXAMPLES).flatMap(([path, lines]) => lines.map((line) => [path, line] as const)))(
    '%s: %s',
    async (_, line) => {
      const [program, ...rest] = words(line);
      expect(program).toBe('tidegate');
      const parsed = await wholeProgram();
      const ran: string[] = [];
      const quiet = (command: Command): void => {
        command.exitOverride();
        if (command.commands.length === 0) command.action(() => void ran.push(command.name()));
        for (const child of command.commands) quiet(child);
      };
      quiet(parsed);
      await parsed.parseAsync(rest, { from: 'user' });
      expect(ran).toHaveLength(1);
    },
  );
});

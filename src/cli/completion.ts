// `tidegate completion bash|zsh|fish`: prints a completion script for a shell, made from the definitions of all
// commands. Called by cli.ts, which hands in the whole program. Pure text: nothing of the machine or of a running
// gateway goes in. Sources: bash(1) "Programmable Completion", zshcompsys(1), fish complete(1).
import type { Command, Option } from 'commander';
import type { Context } from './cli.ts';

export type Shell = 'bash' | 'zsh' | 'fish';
export const SHELLS: readonly Shell[] = ['bash', 'zsh', 'fish'];

interface Word {
  readonly name: string;
  readonly text: string;
}

/** One command as completion sees it. */
interface Place {
  /** "tidegate ctl bridge": the words that lead here. */
  readonly path: string;
  readonly subcommands: readonly Word[];
  /** Every option in each of its spellings. */
  readonly options: readonly (Word & { readonly takesValue: boolean; readonly choices: readonly string[] })[];
}

function spellings(option: Option): string[] {
  return [option.long, option.short].filter((name) => name !== undefined && name !== null);
}

/** The first sentence of a description on one line. */
function brief(text: string): string {
  return text.split('\n')[0].replace(/\s+/g, ' ').trim();
}

/** All commands below `command`, in the order of --help. */
export function placesOf(command: Command, path: string = command.name()): Place[] {
  const help = command.createHelp();
  const options = help.visibleOptions(command).flatMap((option) =>
    spellings(option).map((name) => ({
      name,
      text: brief(option.description),
      takesValue: option.required || option.optional,
      choices: option.argChoices ?? [],
    })),
  );
  const children = help.visibleCommands(command).filter((child) => child.name() !== 'help');
  const subcommands = children.map((child) => ({ name: child.name(), text: brief(child.description()) }));
  const here = { path, subcommands, options };
  return [here, ...children.flatMap((child) => placesOf(child, `${path} ${child.name()}`))];
}

const WRITERS: Readonly<Record<Shell, (places: readonly Place[]) => string>> = { bash, zsh, fish };

export function completionScript(shell: Shell, program: Command): string {
  return WRITERS[shell](placesOf(program));
}

/** Text within single quotes of a POSIX shell; fish reads it the same way when it holds no backslash. */
function quoted(text: string): string {
  return `'${text.replaceAll('\\', '').replaceAll("'", "'\\''")}'`;
}

/** The lines that bash and zsh share: from the words typed to the command they name, and what may follow it. */
function tables(places: readonly Place[]): string[] {
  const subs = places.filter(({ subcommands }) => subcommands.length > 0);
  const valued = places.map(({ path, options }) => ({
    path,
    names: options.filter(({ takesValue }) => takesValue).map(({ name }) => name),
  }));
  return [
    ...subs.map(
      ({ path, subcommands }) => `  subs[${quoted(path)}]=${quoted(subcommands.map(({ name }) => name).join(' '))}`,
    ),
    ...places.map(
      ({ path, options }) => `  opts[${quoted(path)}]=${quoted(options.map(({ name }) => name).join(' '))}`,
    ),
    ...valued
      .filter(({ names }) => names.length > 0)
      .map(({ path, names }) => `  valued[${quoted(path)}]=${quoted(` ${names.join(' ')} `)}`),
    ...places.flatMap(({ path, options }) =>
      options
        .filter(({ choices }) => choices.length > 0)
        .map(({ name, choices }) => `  choices[${quoted(`${path} ${name}`)}]=${quoted(choices.join(' '))}`),
    ),
  ];
}

function bash(places: readonly Place[]): string {
  return `# Completion of tidegate for bash: source it, or put it into /usr/share/bash-completion/completions/tidegate.
_tidegate() {
  local -A subs opts valued choices
  local path=tidegate word i cur=\${COMP_WORDS[COMP_CWORD]} last=\${COMP_WORDS[COMP_CWORD-1]}
${tables(places).join('\n')}
  for ((i = 1; i < COMP_CWORD; i++)); do
    word=\${COMP_WORDS[i]}
    if [[ \${valued[$path]:-} == *" $word "* ]]; then ((i++)); continue; fi
    if [[ " \${subs[$path]:-} " == *" $word "* ]]; then path="$path $word"; fi
  done
  if [[ -n \${choices["$path $last"]:-} ]]; then
    COMPREPLY=($(compgen -W "\${choices["$path $last"]}" -- "$cur"))
  elif [[ \${valued[$path]:-} == *" $last "* ]]; then
    COMPREPLY=($(compgen -f -- "$cur"))
  elif [[ $cur == -* ]]; then
    COMPREPLY=($(compgen -W "\${opts[$path]}" -- "$cur"))
  elif [[ -n \${subs[$path]:-} ]]; then
    COMPREPLY=($(compgen -W "\${subs[$path]}" -- "$cur"))
  else
    COMPREPLY=($(compgen -f -- "$cur"))
  fi
}
complete -o filenames -F _tidegate tidegate
`;
}

function zsh(places: readonly Place[]): string {
  const described = places.flatMap(({ path, subcommands, options }) =>
    [...subcommands, ...options].map(({ name, text }) => `  texts[${quoted(`${path} ${name}`)}]=${quoted(text)}`),
  );
  return `#compdef tidegate
# Completion of tidegate for zsh: put it as _tidegate into a folder of $fpath.
_tidegate() {
  local -A subs opts valued choices texts
  local path_=tidegate word i cur=$words[CURRENT] last=$words[CURRENT-1]
${tables(places).join('\n')}
${described.join('\n')}
  for ((i = 2; i < CURRENT; i++)); do
    word=$words[i]
    if [[ -n $valued[$path_] && $valued[$path_] == *" $word "* ]]; then ((i++)); continue; fi
    if [[ " $subs[$path_] " == *" $word "* ]]; then path_="$path_ $word"; fi
  done
  local -a names rows
  local name
  if [[ -n $choices["$path_ $last"] ]]; then
    names=(\${=choices["$path_ $last"]})
    compadd -- $names
    return
  fi
  if [[ -n $valued[$path_] && $valued[$path_] == *" $last "* ]]; then _files; return; fi
  if [[ $cur == -* ]]; then names=(\${=opts[$path_]}); else names=(\${=subs[$path_]}); fi
  if (( \${#names} == 0 )); then _files; return; fi
  for name in $names; do rows+=("\${name//:/\\\\:}:$texts["$path_ $name"]"); done
  _describe tidegate rows
}
_tidegate "$@"
`;
}

function fish(places: readonly Place[]): string {
  const lines = places.flatMap(({ path, subcommands, options }) => {
    const when = `-n ${quoted(`__tidegate_at ${quoted(path)}`)}`.replaceAll("'\\''", '"');
    return [
      ...subcommands.map(({ name, text }) => `complete -c tidegate -f ${when} -a ${name} -d ${quoted(text)}`),
      ...options.map(({ name, text, takesValue, choices }) => {
        const flag = name.startsWith('--') ? `-l ${name.slice(2)}` : `-s ${name.slice(1)}`;
        const value = choices.length > 0 ? ` -x -a ${quoted(choices.join(' '))}` : takesValue ? ' -r' : '';
        return `complete -c tidegate ${when} ${flag}${value} -d ${quoted(text)}`;
      }),
    ];
  });
  const valued = places.flatMap(({ path, options }) =>
    options.filter(({ takesValue }) => takesValue).map(({ name }) => quoted(`${path} ${name}`)),
  );
  const paths = places.map(({ path }) => quoted(path));
  return `# Completion of tidegate for fish: put it into ~/.config/fish/completions/tidegate.fish.
function __tidegate_at
  set -l paths ${paths.join(' ')}
  set -l valued ${valued.join(' ')}
  set -l path tidegate
  set -l skip 0
  for word in (commandline -opc)[2..-1]
    if test $skip = 1
      set skip 0
    else if contains -- "$path $word" $valued
      set skip 1
    else if contains -- "$path $word" $paths
      set path "$path $word"
    end
  end
  test "$path" = "$argv[1]"
end
${lines.join('\n')}
`;
}

/** Adds \`completion\`; \`whole\` gives the program with every command in full. */
export function registerCompletion(whole: () => Promise<Command>) {
  return (program: Command, { io }: Context): void => {
    program
      .command('completion')
      .description('print a completion script for a shell')
      .argument('<shell>', SHELLS.join(', '))
      .action(async (shell: string) => {
        const known = SHELLS.find((name) => name === shell);
        if (known === undefined) program.error(`error: a shell is one of ${SHELLS.join(', ')}`);
        else io.stdout.write(completionScript(known, await whole()));
      });
  };
}

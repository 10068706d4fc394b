// Makes docs/from-mosquitto.md out of the table that the import obeys, so that page and program cannot differ. Called by docs.ts.
import { MOSQUITTO_CHOICES } from '../src/config/mosquitto/choices.ts';
import type { Option, Verdict } from '../src/config/mosquitto/option.ts';
import { OPTIONS } from '../src/config/mosquitto/options.ts';

const SCOPES: readonly (readonly [string, (option: Option) => boolean])[] = [
  [
    'The broker, security and log',
    ({ scope, key }) =>
      ['global', 'security', 'plugin'].includes(scope) || key === 'per_listener_settings' || key === 'include_dir',
  ],
  ['Listeners', ({ scope, key }) => scope === 'listener' || ['listener', 'port', 'bind_address'].includes(key)],
  ['Bridges', ({ scope, key }) => scope === 'bridge' || key === 'connection'],
];

const WORDS: Readonly<Record<Verdict, string>> = {
  carried: 'carried',
  changed: 'changed',
  lost: 'left out',
  cosmetic: 'not needed',
  refused: 'refused',
};

function row(option: Option): string {
  const names = [option.key, ...(option.aliases ?? [])].map((name) => `\`${name}\``).join(', ');
  const since = option.since === undefined ? '' : ` (${option.since})`;
  const to = option.to === undefined ? '' : `becomes \`${option.to}\``;
  const harmless = option.harmless === undefined ? '' : `nothing to do with \`${option.harmless}\``;
  const text = [to, option.text, harmless].filter((part) => part !== '').join('; ');
  return `| ${names}${since} | ${WORDS[option.verdict]} | ${text} |`;
}

function table(title: string, fits: (option: Option) => boolean): string {
  const options = OPTIONS.filter(fits);
  return [`### ${title}`, '', '| option | | |', '|---|---|---|', ...options.map(row)].join('\n');
}

const INTRO = `# From mosquitto

\`tidegate convert /etc/mosquitto/mosquitto.conf -o tidegate.conf\` takes a mosquitto.conf over, with the folders it includes. Password files
and ACL files are used as they are. The command keeps the meaning of every line, or prints the line with its file and number and says what is
different; the written file begins with the same list. What would make security weaker is refused: the exit code is 3 and nothing is
written. \`--accept-weaker\` leaves such lines out instead. Files that mosquitto itself does not start with end with code 78 and the line.
What is written has passed every check of \`tidegate check\`.

Where mosquitto 2.0 and 2.1 differ, the import does what 2.0.11 does and says so, except where 2.1 is the safer one. Options before the
first \`listener\` open port 1883 on every address, as there. The order of \`include_dir\` is that of 2.0.11, without regard to case.
The database is not taken over: sessions begin anew, retained messages have to be published again.

\`tidegate check\` and \`tidegate start\` recognise a mosquitto.conf and name the command.`;

export function fromMosquitto(): string {
  const choices = MOSQUITTO_CHOICES.map((line) => `- ${line}`).join('\n');
  const legend =
    '**carried** means the same here. **changed** means something else, and is reported. **left out** has the consequence beside it, and is reported. **not needed** makes no difference to any client. **refused** would leave security weaker.';
  return [
    INTRO,
    '## Differences by choice',
    choices,
    '## Every option',
    legend,
    ...SCOPES.map(([title, fits]) => table(title, fits)),
  ]
    .join('\n\n')
    .concat('\n');
}

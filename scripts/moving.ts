// Makes docs/from-mosquitto.md out of the tables that the import obeys, and docs/from-nanomq.md out of the schema, so
// that pages and program cannot differ. Called by docs.ts.
import { MOSQUITTO_CHOICES } from '../src/config/mosquitto/choices.ts';
import type { Option, Verdict } from '../src/config/mosquitto/option.ts';
import { OPTIONS } from '../src/config/mosquitto/options.ts';
import { NANOMQ_CHOICES } from '../src/config/nanomq/choices.ts';
import type { Inside, Key } from '../src/config/schema/key.ts';
import { ROOT } from '../src/config/schema/schema.ts';
import { NANOMQ_KEYS } from './nanomqkeys.ts';

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
The database is a step of its own, with both brokers stopped: \`tidegate store import tidegate.db /var/lib/mosquitto/mosquitto.db\` takes
retained messages, sessions, subscriptions and queued messages over (see below).

\`tidegate check\` and \`tidegate start\` recognise a mosquitto.conf and name the command.`;

const DATABASE = `## The database

| in mosquitto.db (format 6, of 2.0 and 2.1) | in the store |
|---|---|
| retained messages with properties, publisher and expiry | the same; expired ones are left out and counted |
| sessions with user name and expiry | the same; a session belongs to the user of its name, or to clients without one |
| subscriptions with QoS and options | the same |
| queued and unacknowledged outgoing messages | the same, with packet id and state; subscription identifiers are left out |
| incoming QoS 2 messages whose PUBREL is missing | delivered now, the packet id remembered: they are not delivered twice |
| sessions of mosquitto's own bridges | come as sessions; end them with \`tidegate ctl kick ID --session\` |
| wills of connected clients, $SYS | not in it, not taken |
`;

const DYNAMIC_SECURITY = `## Dynamic security

\`plugin mosquitto_dynamic_security.so\` for all listeners becomes \`auth.dynamic_security\`; its JSON file is copied to
\`FILE.dynamic-security.json\`, in the same format. \`mosquitto_ctrl dynsec\` works as it is, with all its commands. As there, an account decides
alone on its name; \`password_file\` and \`acl_file\` are asked about what it leaves open
([Users at run time](authentication.md#users-at-run-time)).

| case | mosquitto 2.0.11 | Tidegate |
|---|---|---|
| role, group or priority changed | disconnects the clients concerned | clients stay connected; rights and subscriptions they lose end at once |
| password, client id changed, disabled, deleted | disconnects | disconnects |
| subscription made before its right was lost | stays in a stored session | ends, also in a stored session |
| \`$share/name/filter\` | compared as text: a denial of \`filter\` is evaded | a denial of \`filter\` counts too |
| \`%u\`, \`%c\` in a topic | plain text (2.1 replaces them) | replaced where they are a whole level; a name with \`+\`, \`#\` or \`/\` gets no right |
| \`setDefaultACLAccess\` by \`mosquitto_ctrl\` | answers and changes nothing | changes it |
| unknown acltype, wrong topic, wrong type of a value in a list | left out without a word | the command is refused |
| unknown group in \`modifyClient\`, unknown client in \`modifyGroup\` | left out; the others are removed | refused, nothing is changed |
| \`clients\` of \`createGroup\` | left out | become members |
| \`setAnonymousGroup\` with an empty name | refused | no group any more |
| \`deleteGroup\` of the anonymous group, \`deleteRole\` of a role in use | may crash | removed everywhere |
| empty name, name with control characters | accepted, cut at a NUL | refused |
| a role twice | \`Internal error\` | \`Client already has this role\` |
| file that cannot be written | answers success | the command is refused and changes nothing |
| \`correlationData\` in a list of commands | kept for a later entry that is no object | answered with its own command only |
| hashes | PBKDF2-SHA512, 101 rounds | the same form, 10,000 rounds; argon2id of 2.1 is read |
| bounds | none | 1 MiB and 1,000 commands a message, 64 waiting, 50,000 names of a kind |
`;

export function fromMosquitto(): string {
  const choices = MOSQUITTO_CHOICES.map((line) => `- ${line}`).join('\n');
  const legend =
    '**carried** means the same here. **changed** means something else, and is reported. **left out** has the consequence beside it, and is reported. **not needed** makes no difference to any client. **refused** would leave security weaker.';
  return [
    INTRO,
    '## Differences by choice',
    choices,
    DATABASE.trimEnd(),
    DYNAMIC_SECURITY.trimEnd(),
    '## Every option',
    legend,
    ...SCOPES.map(([title, fits]) => table(title, fits)),
  ]
    .join('\n\n')
    .concat('\n');
}

// ---- NanoMQ

const NANOMQ_INTRO = `# From NanoMQ

A nanomq.conf starts unchanged: \`tidegate start -c nanomq.conf\`. Keys have NanoMQ's names, units and meaning. Keys of features that are not
here warn with their line; keys that nobody misses make one line together. Empty texts such as \`response_topic = ""\` mean "not given",
\`retain = 2\` keeps the flag. The first HOCON form (0.14: \`mqtt.session\`, \`bridges.mqtt.nodes\`, \`authorization\`) is read as well. The
older \`key=value\` form is recognised: \`tidegate convert nanomq.conf -o tidegate.conf\` takes it over, line by line.

Where NanoMQ is open without being asked, this listens on loopback: MQTT without \`listeners\`, \`http_server\` without \`ip_addr\`,
anonymous clients without \`allow_anonymous\`. One warning at start and in \`check\` names what is narrower. \`--nanomq-defaults\` (start,
check, convert) takes NanoMQ's defaults instead.

An \`include\` may name files below the folder of the main file only. A block with a name close to one of ours, or one that sounds like
security, stops the start when it is not known; other unknown blocks warn.`;

const ALIASES: Readonly<Record<string, string>> = {
  'bridges.mqtt.cache': 'not needed',
};

interface Found {
  readonly verdict: string;
  readonly text: string;
}

function lookUp(path: string): Found {
  const alias = ALIASES[path];
  if (alias !== undefined)
    return { verdict: alias, text: 'what waits for a remote broker is bounded by max_send_queue_len' };
  let key: Key<unknown> = ROOT;
  for (const name of path.split('.')) {
    const inside: Inside | null =
      key.inside?.kind === 'named' && key.inside.group ? key.inside.item.inside : key.inside;
    if (inside?.kind === 'fields' && Object.hasOwn(inside.fields, name)) key = inside.fields[name];
    else if (inside?.kind === 'named') key = inside.item;
    else return { verdict: 'left out', text: 'not known here' };
  }
  if (key.doc.ignored !== true) return { verdict: 'carried', text: key.doc.text };
  return { verdict: key.doc.quiet === true ? 'not needed' : 'left out', text: key.doc.text };
}

export function fromNanomq(): string {
  const choices = NANOMQ_CHOICES.map((line) => `- ${line}`).join('\n');
  const tables = NANOMQ_KEYS.map(([title, keys]) => {
    const lines = keys.map((path) => {
      const { verdict, text } = lookUp(path);
      return `| \`${path.replace('*', '<name>')}\` | ${verdict} | ${text.replaceAll('|', '\\|')} |`;
    });
    return [`### ${title}`, '', '| key | | |', '|---|---|---|', ...lines].join('\n');
  });
  const legend =
    '**carried** means the same here. **left out** has no effect, and warns with its line. **not needed** has no effect that anybody misses.';
  return [NANOMQ_INTRO, '## Differences by choice', choices, '## Every key', legend, ...tables]
    .join('\n\n')
    .concat('\n');
}

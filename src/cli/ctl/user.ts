// `tidegate ctl users` and `ctl user`: who may use console and REST API, with which role. Called by ctl.ts.
// Passwords are asked for or come from standard input, never from the command line, where others could see them.
import { type Command, Option } from 'commander';
import { askPassword } from '../secret.ts';
import { column } from './table.ts';
import {
  type Adder,
  KEEP_OPTION,
  type KeepOptions,
  keepWord,
  outcome,
  query,
  rowOf,
  rowsOf,
  say,
  show,
} from './work.ts';

const COLUMNS = [
  column('USER', 'username'),
  column('ROLE', 'role'),
  { title: 'PASSWORD', value: (row: { readonly hashed?: unknown }) => (row.hashed === true ? 'hashed' : 'plain') },
];

interface UserOptions extends KeepOptions {
  readonly role?: string;
  readonly password?: boolean;
}

function path(name: string, options: KeepOptions): string {
  return `/users/${encodeURIComponent(name)}${query({ keep: keepWord(options) })}`;
}

/** Adds `users` and the subcommands of `user`. */
export function addUserCommands(ctl: Command, add: Adder): void {
  add(ctl, 'users', 'users of console and REST API', async (work) => {
    show(work, rowsOf((await work.client.call('GET', '/users')).data), COLUMNS);
  });
  const user = ctl.command('user').description('change who may use console and REST API');
  add<UserOptions>(
    user,
    'set <name>',
    'add a user, or give one another password or role; the password is asked for or read from standard input',
    async (work, options, [name]) => {
      const password = options.password === false ? undefined : (await askPassword(work.io)).toString();
      const { data } = await work.client.call('PUT', path(name, options), { role: options.role, password });
      say(work, { username: name, ...rowOf(data) }, outcome('done', data));
    },
  )
    .addOption(new Option('--role <role>', 'a new one is viewer unless told').choices(['viewer', 'operator', 'admin']))
    .option('--no-password', 'leave the password as it is')
    .option(...KEEP_OPTION);
  add<KeepOptions>(user, 'remove <name>', 'let a user in no more', async (work, options, [name]) => {
    const { data } = await work.client.call('DELETE', path(name, options));
    say(work, { username: name, removed: true, ...rowOf(data) }, outcome('removed', data));
  }).option(...KEEP_OPTION);
}

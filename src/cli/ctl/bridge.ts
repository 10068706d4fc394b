// `tidegate ctl bridge`: adds, changes, shows, switches and removes bridges at run time. Called by ctl.ts.
// What a bridge's document may hold is checked by the gateway, which answers with what is wrong and where.
import type { Command } from 'commander';
import { GatewayError } from '../../base/errors.ts';
import type { Context } from '../cli.ts';
import type { Reply } from './client.ts';
import { type ConnectOptions, connectBridge } from './probe.ts';
import { facts } from './table.ts';
import {
  type Adder,
  documentOf,
  KEEP_OPTION,
  type KeepOptions,
  keepWord,
  outcome,
  query,
  rowOf,
  say,
  type Work,
} from './work.ts';

interface BridgeOptions extends KeepOptions {
  readonly type?: string;
}

/** What `--type` says of a bridge to a remote broker; every other type is one of NNG. */
const REMOTE = 'mqtt';

/** Path of a bridge; `remote`: to a remote broker. */
function bridgePath(remote: boolean, name: string, options: BridgeOptions, verb: string): string {
  const asked = query({ type: remote ? undefined : options.type, keep: keepWord(options) });
  return `/${remote ? 'mqtt' : 'nng'}/bridges/${encodeURIComponent(name)}${verb}${asked}`;
}

interface BridgeCall {
  readonly method: string;
  readonly verb?: string;
  readonly body?: unknown;
}

/** A call about an NNG bridge, or, where there is none of that name, about one to a remote broker. */
async function callBridge(work: Work, name: string, options: BridgeOptions, call: BridgeCall): Promise<Reply> {
  const { method, verb = '', body } = call;
  if (options.type !== REMOTE) {
    const reply = await work.client.ask(method, bridgePath(false, name, options, verb), body);
    if (reply.status !== 404 || options.type !== undefined) return succeeded(reply);
  }
  return work.client.call(method, bridgePath(true, name, options, verb), body);
}

function succeeded(reply: Reply): Reply {
  if (reply.status >= 400 || reply.code !== 0) throw new GatewayError('CLI-FAILED', reply.message);
  return reply;
}

async function turn(work: Work, name: string, on: boolean, options: BridgeOptions): Promise<void> {
  const verb = on ? '/enable' : '/disable';
  const { data } = await callBridge(work, name, options, { method: 'POST', verb });
  say(work, { name, enable: on, ...rowOf(data) }, outcome(on ? 'enabled' : 'disabled', data));
}

/** Creates what a document describes: its `type`, or --type, says what kind of bridge. */
async function addBridge(work: Work, options: BridgeOptions, file: string): Promise<void> {
  const document = rowOf(await documentOf(file, work.io));
  const { type = options.type, ...block } = document;
  const remote = type === REMOTE || (type === undefined && document.server !== undefined);
  const path = `/${remote ? 'mqtt' : 'nng'}/bridges${query({ keep: keepWord(options) })}`;
  const { data } = await work.client.call('POST', path, remote ? block : { type, ...block });
  say(work, data, outcome('created', data));
}

/** Adds the subcommands of `bridge`. */
export function addBridgeCommands(ctl: Command, add: Adder, context: Context): void {
  const bridge = ctl.command('bridge').description('change bridges at run time');
  const which = (command: Command): Command =>
    command.option('--type <type>', 'pub, sub, push, pull, pair or mqtt, where several have the name');
  const change = (command: Command): Command => which(command).option(...KEEP_OPTION);
  change(
    add<BridgeOptions>(
      bridge,
      'add <file>',
      'create a bridge from a JSON document; - reads standard input',
      (work, options, [file]) => addBridge(work, options, file),
    ),
  );
  change(
    add<BridgeOptions>(
      bridge,
      'change <name> <file>',
      'give a bridge another configuration, as `bridge show` has it',
      async (work, options, [name, file]) => {
        const body = await documentOf(file, work.io);
        const { data } = await callBridge(work, name, options, { method: 'PUT', body });
        say(work, { name, changed: true, ...rowOf(data) }, outcome('changed', data));
      },
    ),
  );
  which(
    add<BridgeOptions>(bridge, 'show <name>', 'one bridge in full, as JSON', async (work, options, [name]) => {
      const { data } = await callBridge(work, name, options, { method: 'GET' });
      say(work, data, `${JSON.stringify(data, null, 2)}\n`);
    }),
  );
  add(
    bridge,
    'test <file>',
    'what a rule would do with a message or a frame; nothing is sent',
    async (work, _, [file]) => {
      const { data } = await work.client.call('POST', '/nng/test', await documentOf(file, work.io));
      say(work, data, facts(Object.entries(rowOf(data))));
    },
  );
  add<ConnectOptions>(
    bridge,
    'connect [name]',
    'test the connection: name, TLS, what the other side says; exit 1 when it fails',
    (work, options, [name]) => connectBridge(work, options, name, context),
  )
    .option('--file <file>', 'test this JSON document instead of the bridge; - reads standard input')
    .option('--type <type>', 'pub, sub, push, pull, pair, req, rep or mqtt')
    .option('--publish <topic>', 'also publish an empty message to this topic at the remote broker');
  change(
    add<BridgeOptions>(bridge, 'remove <name>', 'stop and remove a bridge', async (work, options, [name]) => {
      const { data } = await callBridge(work, name, options, { method: 'DELETE' });
      say(work, { name, removed: true, ...rowOf(data) }, outcome('removed', data));
    }),
  );
  change(add<BridgeOptions>(bridge, 'enable <name>', 'start a bridge', (work, o, [name]) => turn(work, name, true, o)));
  change(
    add<BridgeOptions>(bridge, 'disable <name>', 'stop a bridge', (work, o, [name]) => turn(work, name, false, o)),
  );
}

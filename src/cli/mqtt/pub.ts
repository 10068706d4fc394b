// `tidegate pub`: publishes messages, with the options of mosquitto_pub(1). Called by cli/cli.ts. Ends with 0 when
// every message was sent and, at QoS 1 and 2, acknowledged; with 1 when the broker refused one or the connection
// failed.
import { open, readFile } from 'node:fs/promises';
import type { Readable } from 'node:stream';
import { buffer as readAll } from 'node:stream/consumers';
import { setTimeout as wait } from 'node:timers/promises';
import type { Command } from 'commander';
import type { IClientPublishOptions, MqttClient } from 'mqtt';
import { errorText, GatewayError } from '../../base/errors.ts';
import { systemErrorText } from '../../base/systemerror.ts';
import { isTopicName } from '../../mqtt/topic.ts';
import type { Context, Io } from '../cli.ts';
import { usage } from '../usage.ts';
import { openClient } from './client.ts';
import { type ClientSettings, clientSettings, type MqttFlags, mqttOptions, seconds, whole } from './options.ts';

export interface PubFlags extends MqttFlags {
  readonly topic?: string;
  readonly message?: string;
  readonly file?: string;
  readonly stdinLine?: boolean;
  readonly stdinFile?: boolean;
  readonly nullMessage?: boolean;
  readonly retain?: boolean;
  readonly repeat: number;
  readonly repeatDelay: number;
  readonly maxInflight: number;
}

/** A line of standard input may be this long; an MQTT packet cannot be longer. */
const MAX_LINE = 268_435_455;

/** The lines of a stream without their ends, as bytes; the last one needs none. */
export async function* lines(input: Readable): AsyncGenerator<Buffer> {
  let pieces: Buffer[] = [];
  let held = 0;
  for await (const read of input) {
    const chunk: Buffer = typeof read === 'string' ? Buffer.from(read) : read;
    let start = 0;
    for (let end = chunk.indexOf(10); end >= 0; end = chunk.indexOf(10, start)) {
      pieces.push(chunk.subarray(start, end));
      yield Buffer.concat(pieces);
      pieces = [];
      held = 0;
      start = end + 1;
    }
    if (start === chunk.length) continue;
    held += chunk.length - start;
    if (held > MAX_LINE) throw new GatewayError('CLI-FAILED', 'a line is longer than an MQTT packet can be');
    pieces.push(chunk.subarray(start));
  }
  if (pieces.length > 0) yield Buffer.concat(pieces);
}

/** The one payload of all modes but -l. */
async function payloadOf(flags: PubFlags, io: Io): Promise<Buffer> {
  if (flags.message !== undefined) return Buffer.from(flags.message);
  if (flags.stdinFile === true) return readAll(io.stdin);
  if (flags.file === undefined) return Buffer.alloc(0);
  try {
    return flags.file === '-' ? await readAll(io.stdin) : await readFile(flags.file);
  } catch (error) {
    throw new GatewayError('CLI-FAILED', `cannot read ${flags.file}: ${systemErrorText(error)}`, error);
  }
}

async function openLines(file: string): Promise<Readable> {
  try {
    return (await open(file)).createReadStream();
  } catch (error) {
    throw new GatewayError('CLI-FAILED', `cannot read ${file}: ${systemErrorText(error)}`, error);
  }
}

async function* payloads(flags: PubFlags, io: Io): AsyncGenerator<Buffer> {
  if (flags.stdinLine === true) {
    // -l -f FILE takes the lines of a file.
    yield* lines(flags.file === undefined ? io.stdin : await openLines(flags.file));
    return;
  }
  const payload = await payloadOf(flags, io);
  for (let n = 0; n < flags.repeat; n++) {
    if (n > 0 && flags.repeatDelay > 0) await wait(flags.repeatDelay * 1000);
    yield payload;
  }
}

function checked(flags: PubFlags, settings: ClientSettings): string {
  const topic = flags.topic ?? settings.urlTopic;
  if (topic === null) throw usage('a topic is needed: -t TOPIC');
  if (!isTopicName(topic)) throw usage(`-t ${topic}: not a topic name`);
  const ways = [
    flags.message !== undefined,
    flags.stdinLine === true,
    flags.stdinFile === true,
    flags.nullMessage === true,
  ];
  if (flags.file !== undefined && flags.stdinLine !== true) ways.push(true);
  if (ways.filter((way) => way).length !== 1) throw usage('what to send is needed, once: -m, -f, -l, -n or -s');
  return topic;
}

/** Keeps up to `limit` messages unacknowledged; remembers the first failure. */
class Sender {
  private readonly client: MqttClient;
  private readonly limit: number;
  private open = 0;
  private failure: Error | null = null;
  private wake: (() => void) | null = null;

  constructor(client: MqttClient, limit: number) {
    this.client = client;
    this.limit = limit;
  }

  async send(topic: string, payload: Buffer, options: IClientPublishOptions): Promise<void> {
    while (this.open >= this.limit && this.failure === null) await this.change();
    if (this.failure !== null) throw this.failure;
    this.open++;
    this.client.publish(topic, payload, options, (error) => {
      this.open--;
      if (error != null) this.failure ??= new GatewayError('CLI-FAILED', `not published: ${errorText(error)}`, error);
      this.wake?.();
    });
  }

  async drain(): Promise<void> {
    while (this.open > 0 && this.failure === null) await this.change();
    if (this.failure !== null) throw this.failure;
  }

  private change(): Promise<void> {
    return new Promise((resolve) => {
      this.wake = resolve;
    });
  }
}

/** Publishes what the flags say. Throws CLI-USAGE and CLI-FAILED. */
export async function pub(flags: PubFlags, io: Io): Promise<number> {
  const settings = clientSettings(flags, 'tidegate-pub');
  const topic = checked(flags, settings);
  const options: IClientPublishOptions = {
    qos: flags.qos,
    retain: flags.retain === true,
    properties: settings.properties.get('publish'),
  };
  // Lines may come for days: what is not acknowledged when the connection is lost is sent again over the next one.
  const { client, lost, close } = await openClient(settings, flags.stdinLine === true, io);
  const sender = new Sender(client, flags.maxInflight);
  const all = async (): Promise<void> => {
    for await (const payload of payloads(flags, io)) await sender.send(topic, payload, options);
    await sender.drain();
  };
  try {
    await Promise.race([all(), lost]);
    await close();
  } finally {
    client.end(true);
  }
  return 0;
}

export function registerPub(program: Command, context: Context): void {
  mqttOptions(program.command('pub'))
    .description('publish messages (options of mosquitto_pub)')
    .option('-t, --topic <topic>', 'topic')
    .option('-m, --message <text>', 'payload')
    .option('-f, --file <file>', 'the contents of a file are the payload')
    .option('-l, --stdin-line', 'each line of standard input is a message; a lost connection is made again')
    .option('-s, --stdin-file', 'all of standard input is the payload')
    .option('-n, --null-message', 'an empty payload')
    .option('-r, --retain', 'the message is retained')
    .option('-M, --max-inflight <count>', 'messages that may wait for their acknowledgement', whole(1, 65_535), 20)
    .option('--repeat <count>', 'send the message so often', whole(1, 1_000_000_000), 1)
    .option('--repeat-delay <seconds>', 'wait between repeated messages', seconds, 0)
    .action(async (flags: PubFlags) => {
      context.exit(await quietly(flags, pub(flags, context.io)));
    });
}

/** --quiet: the exit code alone tells of a failure; wrong usage is always told. */
export async function quietly(flags: MqttFlags, work: Promise<number>): Promise<number> {
  try {
    return await work;
  } catch (error) {
    if (flags.quiet === true && error instanceof GatewayError && error.code !== 'CLI-USAGE') return error.exit;
    throw error;
  }
}

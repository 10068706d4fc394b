// Compares verdicts on an ACL file with those of a real mosquitto: who may write (the v5 PUBACK) and who may read (what arrives).
// One process serves many questions; for each file it reloads. A probe tells when the new file is in force.
import { AclFile } from '../../src/auth/aclfile.ts';
import { READ, WRITE } from '../../src/auth/ruletree.ts';
import { textFile } from '../../src/auth/textfile.ts';
import { RawClient } from '../auth/rawmqtt.ts';
import { Mosquitto } from '../harness/mosquitto.ts';
import { Random } from '../harness/random.ts';
import { CLIENTS, randomAcl, randomTopic, type Who } from './aclrandom.ts';

/** Which file is in force is known by what this user may write; it also publishes what the others read. */
const PROBE = 'probe-user';
const NOT_AUTHORIZED = 0x87;
const QUESTIONS = 12;

/** The file under test with the probe's rights behind it. */
function withProbe(text: string, number: number): string {
  return `${text}\nuser ${PROBE}\ntopic readwrite probe/${number}\ntopic readwrite #\ntopic readwrite $x/#\ntopic deny probe/${number - 1}\n`;
}

export interface Difference {
  readonly acl: string;
  readonly who: Who;
  readonly operation: 'read' | 'write';
  readonly topic: string;
  readonly mosquitto: boolean;
  readonly ours: boolean;
}

export class Comparison {
  readonly differences: Difference[] = [];
  questions = 0;
  private readonly broker: Mosquitto;
  private readonly probe: RawClient;
  private readonly clients: readonly RawClient[];
  private number = 1;

  private constructor(broker: Mosquitto, probe: RawClient, clients: readonly RawClient[]) {
    this.broker = broker;
    this.probe = probe;
    this.clients = clients;
  }

  static async start(): Promise<Comparison> {
    const lines = ['allow_anonymous true', 'acl_file {dir}/acl', 'max_topic_alias 0'];
    const broker = await Mosquitto.start(lines, { acl: withProbe('', 0) });
    const probe = await RawClient.open(broker.port, 'probe', PROBE, null);
    const clients: RawClient[] = [];
    for (const { clientId, username } of CLIENTS) {
      const client = await RawClient.open(broker.port, clientId, username, null);
      // Both are granted whatever the file says; deliveries are filtered.
      await client.subscribe('#', '$x/#');
      clients.push(client);
    }
    return new Comparison(broker, probe, clients);
  }

  async stop(): Promise<void> {
    for (const client of [this.probe, ...this.clients]) client.close();
    await this.broker.stop();
  }

  /** Compares one random file on random questions. */
  async file(seed: number, most: number): Promise<void> {
    const random = new Random(seed);
    const { text, filters } = randomAcl(random, most);
    const whole = withProbe(text, this.number);
    this.broker.reload('acl', whole);
    while ((await this.probe.publish(`probe/${this.number - 1}`, 'x')) !== NOT_AUTHORIZED);
    this.number++;
    const acl = new AclFile(textFile('acl', Buffer.from(whole), 0o600));
    for (let i = 0; i < QUESTIONS; i++) await this.ask(acl, text, randomTopic(random, filters));
  }

  private async ask(acl: AclFile, text: string, topic: string): Promise<void> {
    const wrote = await Promise.all(this.clients.map((client, i) => client.publish(topic, `w${i}`)));
    await this.probe.publish(topic, 'r');
    const got = await Promise.all(this.clients.map((client) => client.received()));
    for (let i = 0; i < CLIENTS.length; i++) {
      const mosquitto = { write: wrote[i] !== NOT_AUTHORIZED, read: got[i].includes('r') };
      const ours = { write: acl.allows(CLIENTS[i], topic, WRITE), read: acl.allows(CLIENTS[i], topic, READ) };
      for (const operation of ['write', 'read'] as const) {
        this.questions++;
        if (mosquitto[operation] === ours[operation]) continue;
        this.differences.push({
          acl: text,
          who: CLIENTS[i],
          operation,
          topic,
          mosquitto: mosquitto[operation],
          ours: ours[operation],
        });
      }
    }
  }
}

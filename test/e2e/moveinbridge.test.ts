// Bridges of mosquitto.conf run by mosquitto itself and, converted, by the gateway: what the remote broker sees is the same, or is said in the
// report. MOVEIN_BRIDGES sets how many random files are compared, MOVEIN_SEED the first one, MOVEIN_REPORT a file for the differences.
import { writeFileSync } from 'node:fs';
import { connect as dial } from 'node:net';
import { describe, expect, test } from 'vitest';
import { converted } from '../harness/converting.ts';
import { testGateway } from '../harness/gateway.ts';
import { Mosquitto, programPath } from '../harness/mosquitto.ts';
import { freePort } from '../harness/port.ts';
import { Random } from '../harness/random.ts';
import { LOCAL_TOPICS, RemoteEar, randomBridge } from './moveinremote.ts';

const BRIDGES = Number(process.env.MOVEIN_BRIDGES ?? 4);
const SEED = Number(process.env.MOVEIN_SEED ?? 1);

const field = (text: string): Buffer => Buffer.concat([Buffer.from([0, text.length]), Buffer.from(text)]);
const packet = (first: number, body: Buffer): Buffer => Buffer.concat([Buffer.from([first, body.length]), body]);

/** Publishes every topic, with all acknowledgements, and closes. */
function publishAll(port: number, payload: string, retain: boolean, levels: readonly number[]): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = dial({ host: '127.0.0.1', port }).on('error', reject);
    const head = Buffer.concat([field('MQTT'), Buffer.from([4, 2, 0, 60]), field(`p${payload}`)]);
    socket.write(packet(0x10, head));
    let id = 1;
    for (const qos of levels)
      for (const topic of LOCAL_TOPICS) {
        const mark = qos > 0 ? Buffer.from([0, id++]) : Buffer.alloc(0);
        const body = Buffer.concat([field(topic), mark, Buffer.from(`${payload}${qos}`)]);
        socket.write(packet(0x30 | (qos << 1) | (retain ? 1 : 0), body));
      }
    for (let i = 1; i < id; i++) socket.write(Buffer.from([0x62, 2, 0, i]));
    socket.write(Buffer.from([0xc0, 0]));
    let bytes = Buffer.alloc(0);
    socket.on('data', (chunk: Buffer) => {
      bytes = Buffer.concat([bytes, chunk]);
      if (!bytes.subarray(-2).equals(Buffer.from([0xd0, 0]))) return;
      socket.end();
      resolve();
    });
  });
}

interface Broker {
  readonly port: number;
  stop(): Promise<void>;
}

/** Everything the remote sees of a broker that `start` starts: sorted, as order between topics is nobody's promise. */
async function remoteView(start: () => Promise<Broker>, remotePort: number): Promise<string[]> {
  const ear = new RemoteEar();
  const broker = await start();
  try {
    await publishAll(broker.port, 'stored', true, [1]);
    await ear.listen(remotePort);
    expect(await ear.until((line) => line.startsWith('CONNECT'), 20_000)).toBe(true);
    await publishAll(broker.port, 'live', false, [0, 1, 2]);
    // A rule that always matches says that what came before has been sent.
    const all = await ear.until((line) => line.includes(' end/ live2'));
    expect(all).toBe(true);
  } finally {
    ear.close();
    await broker.stop();
  }
  return [...new Set(ear.seen)].sort();
}

describe.skipIf(programPath('mosquitto') === null)(
  'bridges of mosquitto.conf against mosquitto (needs mosquitto)',
  () => {
    test(`${BRIDGES} random bridges are the same at the remote broker`, {
      timeout: 60_000 + BRIDGES * 30_000,
    }, async () => {
      const differences: string[] = [];
      for (let i = 0; i < BRIDGES; i++) {
        const remotePort = await freePort();
        const bridge = `${randomBridge(new Random(SEED + i), remotePort)}topic "" out 2 other end/\n`;
        const theirs = await remoteView(() => Mosquitto.start(['allow_anonymous true', bridge]), remotePort);
        const port = await freePort();
        const { code, out, err } = converted(`listener ${port} 127.0.0.1\nallow_anonymous true\n${bridge}`, 'm.conf');
        expect([code, err]).toEqual([0, err]);
        const ours = await remoteView(() => testGateway(out), remotePort);
        const [mine, known] = [new Set(ours), new Set(theirs)];
        const found = [
          ...theirs.filter((line) => !mine.has(line)).map((line) => `mosquitto: ${line}`),
          ...ours.filter((line) => !known.has(line)).map((line) => `gateway:   ${line}`),
        ];
        if (found.length > 0) differences.push(`seed ${SEED + i}:`, bridge, ...found);
      }
      if (process.env.MOVEIN_REPORT !== undefined) writeFileSync(process.env.MOVEIN_REPORT, differences.join('\n'));
      expect(differences).toEqual([]);
    });
  },
);

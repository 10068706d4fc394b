// A process that tells a journal as fast as it can and is killed while it does: test/store/crash.test.ts runs it and reads its lines.
// Arguments: database path, writer URL, round, file for the lines. Each line is written before the call it announces returns to anybody:
//   q <session> <sequence>   a message is told        a <session> <sequence>   its barrier was released with 0
//   d <session> <sequence>   it is told to be done    i <packet id> <session> <sequence>   told together with an inbound id
//   r <topic> <version>      a retained value is told and (R) its barrier released      s/S <sequence> the same for a spool
import { openSync, writeSync } from 'node:fs';
import { systemClock } from '../../src/base/clock.ts';
import { Metrics } from '../../src/base/metrics.ts';
import { Hold, Message } from '../../src/mqtt/message.ts';
import { sqliteJournal } from '../../src/store/sqlite.ts';

const [path, worker, roundText, linesFile] = process.argv.slice(2);
const lines = openSync(linesFile, 'a');
const round = Number(roundText);
const say = (line: string): void => {
  writeSync(lines, `${line}\n`);
};
const journal = sqliteJournal({
  path,
  worker: new URL(worker),
  sync: 'ack',
  intervalMs: 100,
  maxSize: 2 ** 30,
  onCorrupt: 'stop',
  clock: systemClock,
  log: () => {},
  metrics: new Metrics(),
});
const origin = { kind: 'client', clientId: 'p', username: null, bridge: null } as const;
const SESSIONS = 6;
/** Session n acknowledges after so many turns: at once, soon, late, never. */
const LAG = [0, 1, 3, 10, 40, Infinity];

function pseudoRandom(seed: number): () => number {
  let x = seed * 2654435761 + 1;
  return () => {
    x = (Math.imul(x, 1664525) + 1013904223) >>> 0;
    return x / 2 ** 32;
  };
}

function waitFor(line: string): void {
  const hold = new Hold();
  journal.barrier(hold);
  hold.whenDone((code) => {
    if (code === 0) say(line);
  });
}

const restored = await journal.load();
if (restored.sessions.length === 0) {
  for (let s = 0; s < SESSIONS; s++) {
    journal.sessionPut({
      clientId: `c${s}`,
      username: null,
      expiresAt: 0,
      expiryInterval: 1,
      version: 5,
      arrival: null,
      validUntil: 0,
    });
  }
}
const random = pseudoRandom(round);
/** Every other round only messages are told: then nothing stands in the way of carrying them. */
const onlyMessages = round % 2 === 1;
const next = Array<number>(SESSIONS).fill(round * 1_000_000);
const due: { turn: number; session: number; sequence: number }[] = [];
let turn = 0;
let version = round * 1_000_000;
let spooled = round * 1_000_000;

function publish(session: number): void {
  const sequence = ++next[session];
  const payload = Buffer.alloc(Math.floor(random() ** 4 * 20_000), 1);
  const message = new Message(`t/${session}`, payload, 1, false, null, 0, origin);
  const online = LAG[session] < Infinity && random() < 0.9;
  const inbound = !onlyMessages && random() < 0.1;
  say(inbound ? `i ${sequence % 65535} ${session} ${sequence}` : `q ${session} ${sequence}`);
  if (inbound) journal.inboundPut(`c${session}`, sequence % 65535);
  journal.messageQueued(`c${session}`, {
    sequence,
    message,
    qos: 1,
    retain: false,
    subscriptionIdentifiers: [],
    share: null,
    state: online ? 'sent' : 'queued',
    packetId: online ? sequence % 65535 : 0,
  });
  waitFor(`a ${session} ${sequence}`);
  if (LAG[session] < Infinity) due.push({ turn: turn + LAG[session], session, sequence });
}

function step(): void {
  turn++;
  for (let n = Math.floor(random() * 30); n > 0; n--) publish(Math.floor(random() * SESSIONS));
  for (let n = due.length - 1; n >= 0; n--) {
    const { turn: at, session, sequence } = due[n];
    if (at > turn) continue;
    due.splice(n, 1);
    say(`d ${session} ${sequence}`);
    journal.messageDone(`c${session}`, sequence);
  }
  if (!onlyMessages && random() < 0.3) {
    const topic = `r/${Math.floor(random() * 5)}`;
    say(`r ${topic} ${++version}`);
    journal.retainedPut(new Message(topic, Buffer.from(`${version}`), 1, true, null, 0, origin));
    waitFor(`R ${topic} ${version}`);
  }
  if (!onlyMessages && random() < 0.5) {
    say(`s ${++spooled}`);
    journal.spoolPut('mqtt:up', spooled, Buffer.from(`${spooled}`));
    waitFor(`S ${spooled}`);
    if (random() < 0.3) {
      say(`x ${spooled - 3}`);
      journal.spoolDelete('mqtt:up', spooled - 3);
    }
  }
  if (random() < 0.2) setTimeout(step, Math.floor(random() * 8));
  else setImmediate(step);
}

process.stdout.write('ready\n');
step();

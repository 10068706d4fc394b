// Questions to a name server on this machine: records with their times, cut answers over TCP, forged ones ignored, limits in time.
import { createSocket, type Socket } from 'node:dgram';
import { createServer, type Server } from 'node:net';
import dnsPacket, { type Answer, type DecodedPacket } from 'dns-packet';
import { afterEach, expect, it } from 'vitest';
import { queryDns } from '../../src/transport/dnsquery.ts';

const open: { close(): void }[] = [];
afterEach(() => {
  for (const one of open.splice(0)) one.close();
});

type Reply = (question: DecodedPacket) => Buffer[];

function answer(question: DecodedPacket, answers: Answer[], fields: object = {}): Buffer {
  return dnsPacket.encode({ type: 'response', id: question.id, questions: question.questions, answers, ...fields });
}

/** Sockets for UDP and TCP on one port of the system's choice; a port that TCP cannot have is left for the next. */
async function bothOnOnePort(tcp: Server | null): Promise<Socket> {
  for (let tries = 0; ; tries++) {
    const socket = createSocket('udp4');
    await new Promise<void>((resolve) => socket.bind(0, '127.0.0.1', resolve));
    if (tcp === null) return socket;
    const listening = new Promise<unknown>((resolve) => {
      tcp.once('listening', () => resolve(null)).once('error', resolve);
    });
    tcp.listen(socket.address().port, '127.0.0.1');
    const error = await listening;
    tcp.removeAllListeners('listening').removeAllListeners('error');
    if (error === null) return socket;
    socket.close();
    if (tries === 20) throw error;
  }
}

/** A name server over UDP, and over TCP on the same port where `tcp` is given. Gives its "host:port". */
async function nameServer(udp: Reply, tcp?: Reply): Promise<string> {
  const server =
    tcp === undefined
      ? null
      : createServer((connection) => {
          connection.on('data', (message: Buffer) => {
            for (const bytes of tcp(dnsPacket.streamDecode(message) as DecodedPacket)) connection.write(bytes);
          });
        });
  if (server !== null) open.push(server);
  const socket = await bothOnOnePort(server);
  open.push(socket);
  socket.on('message', (message, from) => {
    for (const bytes of udp(dnsPacket.decode(message))) socket.send(bytes, from.port, from.address);
  });
  return `127.0.0.1:${socket.address().port}`;
}

const ask = (server: string, type: 'A' | 'AAAA' | 'SRV', timeoutMs = 2000, signal = new AbortController().signal) =>
  queryDns('mqtt.example', type, { server, timeoutMs, signal });
const record: Answer = { type: 'A', name: 'mqtt.example', ttl: 17, data: '192.0.2.1' };

it('gives the records of the type asked for with their Times To Live; aliases on the way are none', async () => {
  const alias: Answer = { type: 'CNAME', name: 'mqtt.example', ttl: 5, data: 'b.example' };
  const server = await nameServer((question) => [answer(question, [alias, { ...record, name: 'b.example' }])]);
  expect(await ask(server, 'A')).toEqual([{ type: 'A', ttl: 17, address: '192.0.2.1' }]);
});

it('gives SRV records with priority, weight, port and target', async () => {
  const data = { priority: 1, weight: 2, port: 1883, target: 't.example' };
  const server = await nameServer((question) => [
    answer(question, [{ type: 'SRV', name: 'mqtt.example', ttl: 9, data }]),
  ]);
  expect(await ask(server, 'SRV')).toEqual([{ type: 'SRV', ttl: 9, ...data }]);
});

it('asks over TCP when the answer did not fit', async () => {
  const many = Array.from({ length: 200 }, (_, i): Answer => ({ ...record, data: `192.0.2.${i}` }));
  const server = await nameServer(
    (question) => [answer(question, [], { flags: dnsPacket.TRUNCATED_RESPONSE })],
    (question) => {
      const bytes = dnsPacket.streamEncode({
        type: 'response',
        id: question.id,
        questions: question.questions,
        answers: many,
      });
      return [bytes.subarray(0, 1), bytes.subarray(1, 700), bytes.subarray(700)];
    },
  );
  expect(await ask(server, 'A')).toHaveLength(200);
});

it('ignores what is no answer to its question, and takes the one that is', async () => {
  const server = await nameServer((question) => [
    Buffer.from('noise'),
    answer({ ...question, id: ((question.id ?? 0) + 1) & 0xffff }, [{ ...record, data: '203.0.113.1' }]),
    answer({ ...question, questions: [{ type: 'A', name: 'other.example' }] }, [{ ...record, data: '203.0.113.2' }]),
    answer(question, [record]),
  ]);
  expect(await ask(server, 'A')).toEqual([{ type: 'A', ttl: 17, address: '192.0.2.1' }]);
});

it('names without records, and answers with an error, are refused with the word for it', async () => {
  const none = await nameServer((question) => [answer(question, [])]);
  await expect(ask(none, 'AAAA')).rejects.toThrow('mqtt.example has no AAAA records');
  const unknown = await nameServer((question) => [answer(question, [], { flags: 3 })]);
  await expect(ask(unknown, 'A')).rejects.toThrow('NXDOMAIN');
});

it('a server that is silent ends the question in time; one that is given up ends at once', async () => {
  const silent = await nameServer(() => []);
  await expect(ask(silent, 'A', 50)).rejects.toThrow('no answer in time');
  const abort = new AbortController();
  const asked = ask(silent, 'A', 60_000, abort.signal);
  abort.abort();
  await expect(asked).rejects.toThrow('no answer in time');
});

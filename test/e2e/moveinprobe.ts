// What a stranger sees of a broker: open addresses, who may log in, what a client may publish and receives. One list of lines for each broker,
// so that two can be compared. Used by movein.test.ts for mosquitto and for the gateway with the converted file.
import { connect as connectTcp, isIP, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';

export interface ProbeTls {
  readonly ca: string;
  readonly cert: string;
  readonly key: string;
}

interface Login {
  readonly name: string;
  readonly version: 4 | 5;
  readonly clientId: string;
  readonly username?: string;
  readonly password?: string;
  readonly certificate?: boolean;
}

const WAIT_MS = 2000;

const LOGINS: readonly Login[] = [
  { name: 'anonymous', version: 5, clientId: 'dev-a' },
  { name: 'u1', version: 5, clientId: 'dev-b', username: 'u1', password: 'p1' },
  { name: 'u1 wrong', version: 4, clientId: 'dev-c', username: 'u1', password: 'no' },
  { name: 'nobody', version: 4, clientId: 'dev-d', username: 'nobody', password: 'x' },
  { name: 'u2 without password', version: 4, clientId: 'dev-e', username: 'u2' },
  { name: 'no client id', version: 4, clientId: '' },
  { name: 'no client id, 5.0', version: 5, clientId: '' },
  { name: 'other client id', version: 5, clientId: 'other', username: 'u1', password: 'p1' },
  { name: 'certificate', version: 5, clientId: 'dev-f', certificate: true },
];

const field = (text: string): Buffer =>
  Buffer.concat([Buffer.from([text.length >> 8, text.length & 255]), Buffer.from(text)]);

function packet(type: number, body: Buffer): Buffer {
  const head = [type];
  for (let left = body.length; ; ) {
    const digit = left % 128;
    left = Math.floor(left / 128);
    head.push(left > 0 ? digit | 128 : digit);
    if (left === 0) break;
  }
  return Buffer.concat([Buffer.from(head), body]);
}

function connectPacket({ version, clientId, username, password }: Login): Buffer {
  const flags = 2 | (username === undefined ? 0 : 0x80) | (password === undefined ? 0 : 0x40);
  const parts = [field('MQTT'), Buffer.from([version, flags, 0, 120])];
  if (version === 5) parts.push(Buffer.from([0]));
  parts.push(field(clientId));
  if (username !== undefined) parts.push(field(username));
  if (password !== undefined) parts.push(field(password));
  return packet(0x10, Buffer.concat(parts));
}

/** Frames as they come in; ends with null when the peer closes or says nothing in time. */
class Talk {
  private readonly socket: Socket;
  private bytes = Buffer.alloc(0);
  private over = false;
  private wake: () => void = () => {};

  constructor(socket: Socket) {
    this.socket = socket;
    socket.on('data', (chunk: Buffer) => {
      this.bytes = Buffer.concat([this.bytes, chunk]);
      this.wake();
    });
    const end = (): void => {
      this.over = true;
      this.wake();
    };
    socket.on('close', end).on('error', end).on('end', end);
  }

  send(bytes: Buffer): void {
    this.socket.write(bytes);
  }

  close(): void {
    this.socket.destroy();
  }

  async frame(): Promise<Buffer | null> {
    const until = Date.now() + WAIT_MS;
    for (;;) {
      const frame = this.take();
      if (frame !== null) return frame;
      const leftMs = until - Date.now();
      if (this.over || leftMs <= 0) return null;
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, leftMs);
        this.wake = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
  }

  private take(): Buffer | null {
    let length = 0;
    for (let at = 1, shift = 0; at < this.bytes.length; at++, shift += 7) {
      length |= (this.bytes[at] & 127) << shift;
      if (this.bytes[at] > 127) continue;
      if (this.bytes.length < at + 1 + length) return null;
      const frame = this.bytes.subarray(0, at + 1 + length);
      this.bytes = Buffer.from(this.bytes.subarray(at + 1 + length));
      return frame;
    }
    return null;
  }
}

function open(host: string, port: number, tls: ProbeTls | null, certificate: boolean): Promise<Talk | null> {
  return new Promise((resolve) => {
    const fail = (): void => resolve(null);
    if (tls === null) {
      const socket = connectTcp({ host, port }, () => resolve(new Talk(socket)));
      socket.once('error', fail);
      return;
    }
    const mine = certificate ? { cert: tls.cert, key: tls.key } : {};
    const socket = connectTls({ host, port, ca: tls.ca, ...mine, checkServerIdentity: () => undefined }, () =>
      resolve(new Talk(socket)),
    );
    socket.once('error', fail);
  });
}

/** Properties of a CONNACK that both brokers speak of. */
function told(frame: Buffer): string {
  const found: string[] = [];
  const end = 5 + frame[4];
  for (let at = 5; at < end; ) {
    const id = frame[at++];
    if (id === 0x21 || id === 0x22 || id === 0x13) {
      if (id !== 0x22) found.push(`${id.toString(16)}=${frame.readUInt16BE(at)}`);
      at += 2;
    } else if (id === 0x27 || id === 0x11) {
      if (id === 0x27) found.push(`27=${frame.readUInt32BE(at)}`);
      at += 4;
    } else if (id === 0x24 || id === 0x25 || id === 0x28 || id === 0x29 || id === 0x2a) {
      if (id < 0x28) found.push(`${id.toString(16)}=${frame[at]}`);
      at += 1;
    } else if (id === 0x12) {
      const length = frame.readUInt16BE(at);
      found.push(
        `id=${frame
          .subarray(at + 2, at + 2 + length)
          .toString()
          .replace(/^(auto-|x-|gw).*$/, '$1')}`,
      );
      at += 2 + length;
    } else break;
  }
  return found.sort().join(' ');
}

/** A refusal or "in", and the talk where the client is in. */
async function login(host: string, port: number, tls: ProbeTls | null, who: Login): Promise<[string, Talk | null]> {
  const talk = await open(host, port, tls, who.certificate === true);
  if (talk === null) return ['no connection', null];
  talk.send(connectPacket(who));
  const frame = await talk.frame();
  if (frame === null || frame[0] !== 0x20) {
    talk.close();
    return ['closed', null];
  }
  const code = frame[3];
  if (code === 0) return [`in ${who.version === 5 ? told(frame) : ''}`.trim(), talk];
  talk.close();
  // mosquitto says "unspecified error" of an empty client id, this gateway that the client id is not valid.
  return [`refused ${code === 0x80 && who.clientId === '' ? 0x85 : code}`, null];
}

const TOPICS = ['a/1', 'b/2', 'c/u1', 'dev/dev-b/x'];

function publish(topic: string, id: number, qos: number, retain: boolean, size: number): Buffer {
  const head = [field(topic)];
  if (qos > 0) head.push(Buffer.from([0, id]));
  head.push(Buffer.from([0]), Buffer.alloc(size, 97));
  return packet(0x30 | (qos << 1) | (retain ? 1 : 0), Buffer.concat(head));
}

/** What a 5.0 client that is in may do. */
async function rights(talk: Talk): Promise<string[]> {
  const lines: string[] = [];
  talk.send(packet(0x82, Buffer.concat([Buffer.from([0, 1, 0]), field('#'), Buffer.from([2])])));
  const suback = await talk.frame();
  lines.push(`subscribe ${suback === null ? 'closed' : suback[suback.length - 1]}`);
  if (suback === null) return lines;
  for (const [i, topic] of TOPICS.entries()) {
    talk.send(publish(topic, 10 + i, 0, false, 3));
    talk.send(packet(0xc0, Buffer.alloc(0)));
    let came = 0;
    for (let frame = await talk.frame(); frame !== null && frame[0] !== 0xd0; frame = await talk.frame())
      if (frame[0] >> 4 === 3) came++;
    lines.push(`${topic} came ${came}`);
  }
  return lines;
}

/** How a client fares that sends one packet. */
async function answer(talk: Talk, bytes: Buffer): Promise<string> {
  talk.send(bytes);
  talk.send(packet(0xc0, Buffer.alloc(0)));
  for (;;) {
    const frame = await talk.frame();
    if (frame === null) return 'closed';
    if (frame[0] === 0xd0) return 'stays';
    // mosquitto 2.0 closes without a word where a packet is too large, 2.1 says so.
    if (frame[0] === 0xe0) return frame[2] === 0x95 ? 'closed' : `disconnected ${frame[2] ?? 0}`;
  }
}

export interface ProbePlace {
  readonly host: string;
  readonly port: number;
  readonly tls: ProbeTls | null;
}

/** All that can be seen at one address. */
export async function probe({ host, port, tls }: ProbePlace): Promise<string[]> {
  const where = isIP(host) === 6 ? `[${host}]:${port}` : `${host}:${port}`;
  const lines: string[] = [];
  for (const who of LOGINS) {
    if (who.certificate === true && tls === null) continue;
    const [outcome, talk] = await login(host, port, tls, who);
    lines.push(`${where} ${who.name}: ${outcome}`);
    if (outcome === 'no connection' && who === LOGINS[0] && tls === null) return lines;
    if (talk === null) continue;
    if (who.version === 5 && who.clientId !== '')
      for (const line of await rights(talk)) lines.push(`${where} ${who.name}: ${line}`);
    talk.close();
  }
  for (const [what, qos, retain, size] of [
    ['QoS 2', 2, false, 1],
    ['retained', 0, true, 1],
    ['100 bytes', 0, false, 100],
    ['1000 bytes', 0, false, 1000],
  ] as const) {
    const [, talk] = await login(host, port, tls, { ...LOGINS[1], clientId: `dev-${qos}${size}` });
    if (talk === null) continue;
    lines.push(`${where} ${what}: ${await answer(talk, publish('a/1', 7, qos, retain, size))}`);
    talk.close();
  }
  return lines;
}

/** The verdicts of one user at one address: its login, each filter it subscribes to, each topic it publishes to. */
export async function verdicts(
  port: number,
  user: { readonly username?: string; readonly password?: string },
  filters: readonly string[],
  topics: readonly string[],
): Promise<string[]> {
  const who: Login = {
    name: user.username ?? 'anonymous',
    version: 5,
    clientId: `dev-${user.username ?? ''}`,
    ...user,
  };
  const [outcome, talk] = await login('127.0.0.1', port, null, who);
  const lines = [`${who.name}: ${outcome.split(' ')[0]}`];
  if (talk === null) return lines;
  for (const [i, filter] of filters.entries()) {
    talk.send(packet(0x82, Buffer.concat([Buffer.from([0, i + 1, 0]), field(filter), Buffer.from([0])])));
    const frame = await answerOf(talk, 0x90);
    lines.push(`${who.name} subscribes to ${filter}: ${frame?.at(-1) ?? 'closed'}`);
  }
  for (const [i, topic] of topics.entries()) {
    talk.send(publish(topic, 50 + i, 1, false, 1));
    const frame = await answerOf(talk, 0x40);
    const code = frame === null ? 'closed' : frame.length > 4 ? frame[4] : 0;
    // 0x10: nobody has subscribed.
    lines.push(`${who.name} publishes to ${topic}: ${code === 0x10 ? 0 : code}`);
  }
  talk.close();
  return lines;
}

/** The next frame of that type; others are passed over. */
async function answerOf(talk: Talk, type: number): Promise<Buffer | null> {
  for (;;) {
    const frame = await talk.frame();
    if (frame === null || frame[0] === type) return frame;
  }
}

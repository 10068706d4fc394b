// Byte conversations with a broker: test/vectors/mqtt/talk-*.json, run over anything that opens connections.
// Called by test/e2e/conversations.test.ts. It knows of MQTT only where a packet ends, so that it can stand against any broker.
//
//   "A > 10 0d ..."      client A (opened at its first line) sends these bytes in one write; `78*60` is the byte 78 sixty times
//   "A >> 10 0d ..."     the same, one byte a write
//   "A < 20 02 00 00"    the next packet to A is this one; `..` is any byte, `...` any number of bytes, `[p]` two bytes that are kept:
//                        a later `[p]` in what A sends stands for them; two names never stand for the same bytes
//   "A quiet"            nothing is on its way to A: it sends PINGREQ and the next packet is PINGRESP
//   "A closed"           A's connection is closed by the broker, without another packet. The next line of A opens a new one
//   "A drops"            A's connection is lost, without DISCONNECT
//   "clock 11s"          time goes on (ms, s, m, h)
//   What follows " // " is a comment.

export interface Peer {
  send(bytes: Buffer): void;
  /** The next bytes of the broker, null when it has closed. */
  next(): Promise<Buffer | null>;
  /** Ends the connection as a broken network does. */
  drop(): Promise<void>;
}

export interface Place {
  open(): Peer;
  advance(ms: number): Promise<void>;
}

export interface Conversation {
  name: string;
  clause: string[];
  version: 3 | 4 | 5;
  /** What the broker's limits are where it matters. */
  limits?: Record<string, unknown>;
  steps: string[];
}

/** How long the broker may take for a step before the conversation has failed. */
const PATIENCE_MS = 3000;
const UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 };

/** Bytes of one connection, cut into packets. */
class Line {
  readonly peer: Peer;
  private rest: Buffer = Buffer.alloc(0);

  constructor(peer: Peer) {
    this.peer = peer;
  }

  /** The next whole packet, null when the broker has closed. */
  async packet(): Promise<Buffer | null> {
    for (;;) {
      const length = this.length();
      if (length > 0) {
        const packet = this.rest.subarray(0, length);
        this.rest = this.rest.subarray(length);
        return packet;
      }
      const more = await within(this.peer.next());
      if (more === null) return null;
      this.rest = Buffer.concat([this.rest, more]);
    }
  }

  /** Bytes of the first packet when all of them are there, else 0. */
  private length(): number {
    let value = 0;
    for (let at = 1; at < Math.min(5, this.rest.length); at++) {
      value += (this.rest[at] & 127) * 128 ** (at - 1);
      if (this.rest[at] < 128) return this.rest.length > at + value ? at + 1 + value : 0;
    }
    return 0;
  }
}

async function within<T>(promise: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error('the broker says nothing')), PATIENCE_MS);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** Runs the steps in order; throws with the step that did not hold. */
export async function run(conversation: Conversation, place: Place): Promise<void> {
  const talk = new Talk(place);
  for (const [index, step] of conversation.steps.entries()) {
    try {
      await talk.step(step.split(' // ')[0].trim());
    } catch (error) {
      throw new Error(`step ${index + 1}, "${step}": ${error instanceof Error ? error.message : error}`);
    }
  }
}

class Talk {
  private readonly place: Place;
  private readonly lines = new Map<string, Line>();
  private readonly kept = new Map<string, string>();

  constructor(place: Place) {
    this.place = place;
  }

  async step(step: string): Promise<void> {
    const [who, verb, ...rest] = step.split(/\s+/);
    if (who === 'clock') return this.place.advance(duration(verb));
    if (verb === '>') this.line(who).peer.send(this.filled(who, rest));
    else if (verb === '>>') for (const byte of this.filled(who, rest)) this.line(who).peer.send(Buffer.from([byte]));
    else if (verb === '<') await this.expect(who, rest);
    else if (verb === 'quiet') await this.quiet(who);
    else if (verb === 'closed') await this.closed(who);
    else if (verb === 'drops') await this.drops(who);
    else throw new Error('not a step');
  }

  private line(who: string): Line {
    let line = this.lines.get(who);
    if (line === undefined) {
      line = new Line(this.place.open());
      this.lines.set(who, line);
    }
    return line;
  }

  private filled(who: string, tokens: readonly string[]): Buffer {
    const hex = tokens.map((token) => {
      const [byte, times] = token.split('*');
      if (times !== undefined) return byte.repeat(Number(times));
      if (!token.startsWith('[')) return token;
      const value = this.kept.get(who + token);
      if (value === undefined) throw new Error(`${token} is not known`);
      return value;
    });
    return Buffer.from(hex.join(''), 'hex');
  }

  private async expect(who: string, pattern: readonly string[]): Promise<void> {
    const packet = await this.line(who).packet();
    if (packet === null) throw new Error('closed instead');
    const found = new Map<string, string>();
    if (!fits(pattern, 0, packet, 0, found)) throw new Error(`got ${spaced(packet)}`);
    for (const [token, value] of found) this.keep(who, token, value);
  }

  private keep(who: string, token: string, value: string): void {
    for (const [name, known] of this.kept) {
      if (name.startsWith(who) && name !== who + token && known === value)
        throw new Error(`${token} is the same as ${name}`);
    }
    this.kept.set(who + token, value);
  }

  private async quiet(who: string): Promise<void> {
    this.line(who).peer.send(Buffer.from([0xc0, 0x00]));
    await this.expect(who, ['d0', '00']);
  }

  private async closed(who: string): Promise<void> {
    const packet = await this.line(who).packet();
    if (packet !== null) throw new Error(`got ${spaced(packet)}`);
    this.lines.delete(who);
  }

  private async drops(who: string): Promise<void> {
    await this.line(who).peer.drop();
    this.lines.delete(who);
  }
}

/** True when packet[at..] is what pattern[from..] says. */
function fits(
  pattern: readonly string[],
  from: number,
  packet: Buffer,
  at: number,
  found: Map<string, string>,
): boolean {
  if (from === pattern.length) return at === packet.length;
  const token = pattern[from];
  if (token === '...') {
    for (let skip = at; skip <= packet.length; skip++) if (fits(pattern, from + 1, packet, skip, found)) return true;
    return false;
  }
  if (token.startsWith('[')) {
    if (at + 2 > packet.length || !fits(pattern, from + 1, packet, at + 2, found)) return false;
    found.set(token, packet.toString('hex', at, at + 2));
    return true;
  }
  if (at >= packet.length || (token !== '..' && Number.parseInt(token, 16) !== packet[at])) return false;
  return fits(pattern, from + 1, packet, at + 1, found);
}

function duration(text: string): number {
  const match = /^(\d+)(ms|s|m|h)$/.exec(text);
  if (match === null) throw new Error('not a duration');
  return Number(match[1]) * UNITS[match[2]];
}

function spaced(bytes: Buffer): string {
  return bytes.toString('hex').replace(/..(?=.)/g, '$& ');
}

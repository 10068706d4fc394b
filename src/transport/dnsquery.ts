// One question to the DNS, with the Times To Live that Node's own resolver keeps to itself: UDP first, TCP when the
// answer did not fit. Called by gateway/transports.ts for the discovery of the proxy. Uses the package dns-packet for
// the bytes. An answer counts only from the server asked, with the id and the question that were sent. Sources: RFC
// 1035 section 4.2, RFC 7766.
import { randomInt } from 'node:crypto';
import { createSocket } from 'node:dgram';
import { getServers } from 'node:dns';
import { connect, isIP } from 'node:net';
import dnsPacket, { type Answer, type DecodedPacket } from 'dns-packet';
import { errorText, GatewayError } from '../base/errors.ts';
import { parseHostPort } from './address.ts';

export type DnsFound =
  | { readonly type: 'A' | 'AAAA'; readonly ttl: number; readonly address: string }
  | {
      readonly type: 'SRV';
      readonly ttl: number;
      readonly priority: number;
      readonly weight: number;
      readonly port: number;
      readonly target: string;
    };

export interface DnsQuestion {
  /** "host:port"; null = the name servers of the system, one after the other. */
  readonly server: string | null;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

const DNS_PORT = 53;
const MAX_TCP_BYTES = 65_535;

/** Records of this type for `name`, aliases followed by the server. Rejects with TRANSPORT-DIAL and the reason. */
export async function queryDns(
  name: string,
  type: DnsFound['type'],
  { server, timeoutMs, signal }: DnsQuestion,
): Promise<DnsFound[]> {
  const servers = server === null ? getServers() : [server];
  let error: unknown = new GatewayError('TRANSPORT-DIAL', 'no name server is configured');
  for (const one of servers) {
    try {
      return recordsOf(
        await ask(one, name, type, AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)])),
        name,
        type,
      );
    } catch (reason) {
      error = reason;
      if (signal.aborted) break;
    }
  }
  throw error;
}

function recordsOf(packet: DecodedPacket, name: string, type: DnsFound['type']): DnsFound[] {
  const rcode = (packet as { rcode?: string }).rcode ?? 'NOERROR';
  const found = (packet.answers ?? []).flatMap((answer) => foundOf(answer, type));
  if (rcode !== 'NOERROR') throw new GatewayError('TRANSPORT-DIAL', `${name}: ${rcode}`);
  if (found.length === 0) throw new GatewayError('TRANSPORT-DIAL', `${name} has no ${type} records`);
  return found;
}

function foundOf(answer: Answer, type: DnsFound['type']): DnsFound[] {
  if (answer.type !== type) return [];
  const ttl = answer.ttl ?? 0;
  if (answer.type === 'A' || answer.type === 'AAAA')
    return isIP(answer.data) === 0 ? [] : [{ type: answer.type, ttl, address: answer.data }];
  if (answer.type !== 'SRV') return [];
  const { priority = 0, weight = 0, port, target } = answer.data;
  return [{ type: 'SRV', ttl, priority, weight, port, target }];
}

async function ask(server: string, name: string, type: DnsFound['type'], signal: AbortSignal): Promise<DecodedPacket> {
  const { host, port } = whereIs(server);
  const id = randomInt(65_536);
  const question = { id, type: 'query' as const, flags: dnsPacket.RECURSION_DESIRED, questions: [{ type, name }] };
  const fits = (packet: DecodedPacket): boolean =>
    packet.id === id &&
    packet.type === 'response' &&
    packet.questions?.[0]?.type === type &&
    packet.questions[0].name.toLowerCase() === name.replace(/\.$/, '').toLowerCase();
  const answer = await overUdp(host, port, dnsPacket.encode(question), fits, signal);
  return answer.flag_tc ? overTcp(host, port, dnsPacket.streamEncode(question), fits, signal) : answer;
}

/** getServers() gives addresses, with a port only where it is not 53. */
function whereIs(server: string): { host: string; port: number } {
  if (isIP(server) !== 0) return { host: server, port: DNS_PORT };
  return parseHostPort(server) ?? { host: server, port: DNS_PORT };
}

type Fits = (packet: DecodedPacket) => boolean;

function overUdp(host: string, port: number, bytes: Buffer, fits: Fits, signal: AbortSignal): Promise<DecodedPacket> {
  return new Promise((resolve, reject) => {
    const socket = createSocket(isIP(host) === 6 ? 'udp6' : 'udp4');
    const end = (error: unknown, packet?: DecodedPacket): void => {
      signal.removeEventListener('abort', onAbort);
      socket.close();
      if (packet === undefined)
        reject(new GatewayError('TRANSPORT-DIAL', `name server ${host}: ${errorText(error)}`, error));
      else resolve(packet);
    };
    const onAbort = (): void => end(new Error('no answer in time'));
    if (signal.aborted) return onAbort();
    signal.addEventListener('abort', onAbort);
    socket.once('error', end);
    socket.on('message', (message) => {
      const packet = decoded(message);
      if (packet !== null && fits(packet)) end(null, packet);
    });
    // Connected: what another address sends is not received.
    socket.connect(port, host, () => socket.send(bytes));
  });
}

/** null for what is no DNS message: somebody else's datagram, which must not end the question. */
function decoded(message: Buffer): DecodedPacket | null {
  try {
    return dnsPacket.decode(message);
  } catch {
    return null;
  }
}

function overTcp(host: string, port: number, bytes: Buffer, fits: Fits, signal: AbortSignal): Promise<DecodedPacket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host, port });
    let received: Buffer = Buffer.alloc(0);
    const end = (error: unknown, packet?: DecodedPacket): void => {
      signal.removeEventListener('abort', onAbort);
      socket.destroy();
      if (packet === undefined)
        reject(new GatewayError('TRANSPORT-DIAL', `name server ${host}: ${errorText(error)}`, error));
      else resolve(packet);
    };
    const onAbort = (): void => end(new Error('no answer in time'));
    signal.addEventListener('abort', onAbort);
    socket.once('error', end);
    socket.once('close', () => end(new Error('the connection ended before the answer')));
    socket.once('connect', () => socket.write(bytes));
    socket.on('data', (chunk: Buffer) => {
      received = Buffer.concat([received, chunk]);
      if (received.length < 2 || received.length < 2 + received.readUInt16BE(0)) {
        if (received.length > MAX_TCP_BYTES + 2) end(new Error('too long an answer'));
        return;
      }
      const packet = decoded(received.subarray(2, 2 + received.readUInt16BE(0)));
      if (packet !== null && fits(packet)) end(null, packet);
      else end(new Error('not the answer to the question'));
    });
  });
}

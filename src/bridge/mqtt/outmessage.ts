// One message on its way to a remote broker, and the connection it takes, as the outbox sees them. Used by outbox.ts
// and remote.ts. A message is what the spool keeps of it (spool.ts) and where it stands.
import type { Qos } from '../../mqtt/packet.ts';
import type { Properties } from '../../mqtt/property.ts';
import type { SpoolEntry } from '../../store/store.ts';
import { decodeSpooled, type SpooledMessage } from './spool.ts';

/** Packet ids 1 to 65,000 belong to PUBLISH; those above to SUBSCRIBE and UNSUBSCRIBE (remote.ts). */
export const PUBLISH_IDS = 65_000;

/** What a PUBLISH is made of. */
export interface Outgoing {
  readonly topic: string;
  readonly payload: Uint8Array;
  readonly qos: Qos;
  readonly retain: boolean;
  readonly properties: Properties | null;
  /** Wall-clock milliseconds, 0 = never. */
  readonly expiresAt: number;
}

export interface OutMessage extends Outgoing {
  readonly sequence: number;
  /** Memory it stands for. */
  readonly bytes: number;
  /** Position in `forwards`. */
  readonly rule: number;
  readonly spooled: boolean;
  /** It may have been sent before this process began. */
  again: boolean;
  /** QoS it was sent with, which the remote may have lowered. */
  sentQos: Qos;
  /** Commits that its next packet waits for. */
  commits: number;
  state: 'waiting' | 'sent' | 'received' | 'doubted' | 'done';
}

/** An open connection to the remote broker as the outbox sees it. */
export interface OutLink {
  /** The remote's Receive Maximum; null = it cannot tell. */
  readonly receiveMaximum: number | null;
  /** False while as many bytes are unsent as may be. */
  readonly room: boolean;
  /** Sends it; gives the QoS it went with, -1 when the remote does not take packets of its size. */
  publish(message: Outgoing, packetId: number, dup: boolean): Qos | -1;
  release(packetId: number): void;
}

/** Whether it is not done with, neither for good nor as far as the remote says. */
export function isOpen({ state }: OutMessage): boolean {
  return state !== 'done' && state !== 'doubted';
}

export function packetIdOf(message: OutMessage): number {
  return 1 + (message.sequence % PUBLISH_IDS);
}

export function outMessage(message: SpooledMessage, sequence: number, bytes: number, spooled: boolean): OutMessage {
  const { topic, payload, qos, retain, properties, expiresAt, rule } = message;
  // Written out: objects that are spread into others do not share a shape, which is 400 bytes for each of a long queue.
  return {
    topic,
    payload,
    qos,
    retain,
    properties,
    expiresAt,
    rule,
    sequence,
    bytes,
    spooled,
    again: false,
    sentQos: 0,
    commits: 0,
    state: 'waiting',
  };
}

/** A message that an earlier process has left; null when it cannot be read. */
/** Up to the last one that the remote has received they were in flight; the others may have been. null: damaged. */
export function* restoredMessages(
  entries: readonly SpoolEntry[],
  marks: ReadonlySet<number>,
): Generator<OutMessage | null> {
  let flown = 0;
  for (const [i, { sequence }] of entries.entries()) if (marks.has(sequence)) flown = i + 1;
  for (const [i, entry] of entries.entries())
    yield restored(entry, i >= flown ? 'waiting' : marks.has(entry.sequence) ? 'received' : 'sent');
}

function restored({ sequence, bytes }: SpoolEntry, state: OutMessage['state']): OutMessage | null {
  const spooled = decodeSpooled(bytes);
  if (spooled === null) return null;
  const size = spooled.payload.length + spooled.topic.length * 2 + 200;
  const message = outMessage(spooled, sequence, size, true);
  message.again = true;
  message.sentQos = message.qos;
  message.state = state;
  return message;
}

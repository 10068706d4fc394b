// Retained messages by topic, in a trie of their own: a filter finds them without looking at the others.
// Used by routes.ts; messages found are pulled one at a time, so a hundred thousand of them do not stall the loop.
// Sources: MQTT 5.0 section 3.3.1.3, message expiry in 3.3.2.3.3.
import { ownText } from '../base/brief.ts';
import { entryBytes, MAP_BYTES, textBytes } from '../base/ledger.ts';
import type { Message } from '../mqtt/message.ts';

/** Topics looked at between two messages or pauses: about a tenth of a millisecond. */
const PAUSE_STEPS = 1000;

/** A node, without its children. */
export const RETAINED_NODE_BYTES = 44;

class Node {
  children: Map<string, Node> | null = null;
  message: Message | null = null;
}

/** Values below $SYS are the gateway's own. */
function isOwn(topic: string): boolean {
  return topic.startsWith('$SYS/');
}

export class RetainedStore {
  /** Messages of others than the gateway itself. */
  count = 0;
  /** Their memory. */
  bytes = 0;
  /** Memory of the tree; without that of the gateway's own values. */
  treeBytes = 0;
  /** Told of each message that is stored (1) or is so no longer (-1). */
  onCount: ((message: Message, by: 1 | -1) => void) | null = null;
  private readonly root = new Node();
  /** Topics whose message will expire. */
  private readonly expiring = new Map<string, number>();

  constructor() {
    this.root.children = new Map();
  }

  get(topic: string): Message | null {
    let node: Node | undefined = this.root;
    for (const level of topic.split('/')) {
      node = node.children?.get(level);
      if (node === undefined) return null;
    }
    return node.message;
  }

  /** Replaces what is stored for the topic [MQTT-3.3.1-5]. */
  set(message: Message): void {
    let node = this.root;
    const counted = !isOwn(message.topic);
    for (const level of message.topic.split('/')) node = this.child(node, level, counted);
    this.account(node.message, -1);
    node.message = message;
    this.account(message, 1);
    if (message.expiresAt > 0) this.expiring.set(message.topic, message.expiresAt);
    else if (this.expiring.size > 0) this.expiring.delete(message.topic);
  }

  /** Removes what is stored [MQTT-3.3.1-6]. False when there was nothing. */
  delete(topic: string): boolean {
    const levels = topic.split('/');
    const counted = !isOwn(topic);
    const path: Node[] = [this.root];
    for (const level of levels) {
      const node = path[path.length - 1].children?.get(level);
      if (node === undefined) return false;
      path.push(node);
    }
    const node = path[path.length - 1];
    if (node.message === null) return false;
    this.account(node.message, -1);
    node.message = null;
    this.expiring.delete(topic);
    for (let i = path.length - 1; i > 0; i--) {
      if (path[i].message !== null || (path[i].children?.size ?? 0) > 0) break;
      const siblings = path[i - 1].children;
      siblings?.delete(levels[i - 1]);
      if (!counted) continue;
      const mapBytes = path[i].children === null ? 0 : MAP_BYTES;
      this.treeBytes -= RETAINED_NODE_BYTES + mapBytes + textBytes(levels[i - 1]) + entryBytes(siblings?.size ?? 0);
    }
    return true;
  }

  private child(node: Node, level: string, counted: boolean): Node {
    if (node.children === null) {
      node.children = new Map();
      if (counted) this.treeBytes += MAP_BYTES;
    }
    let child = node.children.get(level);
    if (child === undefined) {
      child = new Node();
      if (counted) this.treeBytes += RETAINED_NODE_BYTES + textBytes(level) + entryBytes(node.children.size);
      // Other topics may outlive the one that this level was cut from.
      node.children.set(ownText(level), child);
    }
    return child;
  }

  /** Removes what has expired by `now` (wall-clock milliseconds); calls `gone` for each topic. */
  sweep(now: number, gone: (topic: string) => void): void {
    for (const [topic, at] of this.expiring) {
      if (at > now) continue;
      this.delete(topic);
      gone(topic);
    }
  }

  private account(message: Message | null, sign: 1 | -1): void {
    if (message === null || message.origin.kind === 'server') return;
    this.count += sign;
    this.bytes += sign * message.bytes;
    this.onCount?.(message, sign);
  }

  /**
   * Messages on topics that match the filter, in no particular order. Changes meanwhile may or may not be seen. Gives
   * null now and then where it has looked at many topics and found nothing: whoever pulls can let others have their
   * turn.
   */
  match(filter: string): Iterator<Message | null> {
    return walk(this.root, filter.split('/'));
  }
}

/** Children still to be looked at, and the level of the filter they stand for. */
interface Frame {
  readonly children: Iterator<[string, Node]>;
  readonly at: number;
  /** Wildcards at the first level leave topics that begin with $ alone [MQTT-4.7.2-1]. */
  readonly hideDollar: boolean;
}

/**
 * Depth first with a stack of its own: neither a deep topic nor a node with many children costs more than a step at a
 * time.
 */
function* walk(root: Node, levels: readonly string[]): Generator<Message | null, undefined> {
  const stack: Frame[] = [];
  let steps = 0;
  let node: Node | undefined = root;
  let at = 0;
  for (;;) {
    if (++steps >= PAUSE_STEPS) {
      steps = 0;
      yield null;
    }
    // Follow plain levels down to the end of the filter or the next wildcard.
    while (node !== undefined && at < levels.length && levels[at] !== '#' && levels[at] !== '+') {
      node = node.children?.get(levels[at]);
      at++;
      steps++;
    }
    if (node !== undefined) {
      const level = levels[at];
      // # matches the parent level too (section 4.7.1.2), but there is no parent of the first level.
      if (node.message !== null && (level === undefined || (level === '#' && node !== root))) yield node.message;
      if (level !== undefined && node.children !== null) {
        stack.push({
          children: node.children[Symbol.iterator](),
          at: level === '#' ? at : at + 1,
          hideDollar: node === root,
        });
      }
    }
    node = undefined;
    while (stack.length > 0) {
      const frame = stack[stack.length - 1];
      const step = frame.children.next();
      if (step.done === true) stack.pop();
      else if (!frame.hideDollar || step.value[0].charCodeAt(0) !== 36) {
        node = step.value[1];
        at = frame.at;
        break;
      }
    }
    if (node === undefined) return undefined;
  }
}

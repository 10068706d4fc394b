// What a resumed session of a remote broker is owed again, in the order in which it was sent. Made by outbox.ts.
// Messages keep their place until they have been sent once more.
import type { OutMessage } from './outmessage.ts';

export class Owed {
  private messages: OutMessage[] = [];
  private sent = 0;

  /** How many are not sent again yet. */
  get left(): number {
    return this.messages.length - this.sent;
  }

  add(message: OutMessage): void {
    this.messages.push(message);
  }

  peek(): OutMessage | undefined {
    return this.messages[this.sent];
  }

  shift(): void {
    this.sent++;
  }

  clear(): void {
    this.messages = [];
    this.sent = 0;
  }
}

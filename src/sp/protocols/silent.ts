// A socket that only receives: what it is asked to send goes nowhere. Used by sub.ts and pull.ts.
import type { Receipt } from '../pattern.ts';
import { receiptOf } from './fanout.ts';

export class Silent {
  send(): boolean {
    return true;
  }

  sendMany(_head: Uint8Array, _source: Uint8Array, _spans: Int32Array, count: number): number {
    return count;
  }

  ready(): boolean {
    return false;
  }

  receipt(): Receipt {
    return receiptOf([]);
  }
}

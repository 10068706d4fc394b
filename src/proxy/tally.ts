// The bytes of one client, from it and to it: added up over the stages of its connection, told to the metrics piece by
// piece. Owned by relay.ts; splice.ts and tap.ts do the counting while they pass bytes on.
import type { Cell } from '../base/metrics.ts';

/** What counts while it passes bytes on. */
export interface Counts {
  readonly bytesIn: number;
  readonly bytesOut: number;
}

export class Tally {
  /** Bytes of no stage: CONNECT with what came along, and what was answered here. */
  ownIn = 0;
  ownOut = 0;
  /** The stage that passes bytes on now. */
  stage: Counts | null = null;
  private readonly cellIn: Cell;
  private readonly cellOut: Cell;
  private toldIn = 0;
  private toldOut = 0;

  constructor(cellIn: Cell, cellOut: Cell) {
    this.cellIn = cellIn;
    this.cellOut = cellOut;
  }

  get bytesIn(): number {
    return this.ownIn + (this.stage?.bytesIn ?? 0);
  }

  get bytesOut(): number {
    return this.ownOut + (this.stage?.bytesOut ?? 0);
  }

  /** Brings the metrics up to date. */
  tell(): void {
    const { bytesIn, bytesOut } = this;
    this.cellIn.value += bytesIn - this.toldIn;
    this.cellOut.value += bytesOut - this.toldOut;
    this.toldIn = bytesIn;
    this.toldOut = bytesOut;
  }
}

// Packets that follow each other unchanged in one buffer and go the same way: they leave as one piece, without being
// copied. Used by exchange.ts for each direction of a client. Must be flushed before anything else is written to the
// same place.

export class Run<Target> {
  private readonly send: (target: Target, bytes: Buffer) => void;
  private target: Target | null = null;
  private bytes: Buffer | null = null;
  private start = 0;
  private end = 0;

  constructor(send: (target: Target, bytes: Buffer) => void) {
    this.send = send;
  }

  add(target: Target, bytes: Buffer, start: number, end: number): void {
    if (this.target === target && this.bytes === bytes && this.end === start) {
      this.end = end;
      return;
    }
    this.flush();
    this.target = target;
    this.bytes = bytes;
    this.start = start;
    this.end = end;
  }

  flush(): void {
    const { target, bytes } = this;
    if (target === null || bytes === null) return;
    this.target = null;
    this.bytes = null;
    this.send(target, bytes.subarray(this.start, this.end));
  }
}

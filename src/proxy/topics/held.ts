// Memory that clients of a proxy with `topics` hold: what waits for a server, copies of what is not acknowledged,
// incomplete packets. One budget for each proxy (exchanges.ts), one share of it for each client (exchange.ts). Counts
// bytes, holds none.

/** The bytes of all clients of a proxy. */
export interface Budget {
  usedBytes: number;
}

export class Held {
  private readonly budget: Budget;
  private readonly maxBytes: number;
  private readonly budgetBytes: number;
  private bytes = 0;

  /** `maxBytes` for this client, `budgetBytes` for all together. */
  constructor(budget: Budget, maxBytes: number, budgetBytes: number) {
    this.budget = budget;
    this.maxBytes = maxBytes;
    this.budgetBytes = budgetBytes;
  }

  /** False = there is no room. */
  take(bytes: number): boolean {
    const { budget } = this;
    if (this.bytes + bytes > this.maxBytes || budget.usedBytes + bytes > this.budgetBytes) return false;
    this.bytes += bytes;
    budget.usedBytes += bytes;
    return true;
  }

  give(bytes: number): void {
    this.bytes -= bytes;
    this.budget.usedBytes -= bytes;
  }
}

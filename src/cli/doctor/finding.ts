// One thing that `tidegate doctor` found: good, doubtful or wrong, and what to do. Made by the checks beside this file,
// printed by doctor.ts. Types and small helpers only.

export type State = 'ok' | 'warn' | 'fail' | 'skip';

export interface Finding {
  /** The check: ports, files, limits ... */
  readonly check: string;
  readonly state: State;
  readonly text: string;
  /** What to do; absent where nothing has to be done. */
  readonly advice?: string;
}

/** What checks of one kind say. */
export class Findings {
  readonly list: Finding[] = [];
  private readonly check: string;

  constructor(check: string) {
    this.check = check;
  }

  ok(text: string): void {
    this.list.push({ check: this.check, state: 'ok', text });
  }

  skip(text: string): void {
    this.list.push({ check: this.check, state: 'skip', text });
  }

  warn(text: string, advice: string): void {
    this.list.push({ check: this.check, state: 'warn', text, advice });
  }

  fail(text: string, advice: string): void {
    this.list.push({ check: this.check, state: 'fail', text, advice });
  }
}

const UNITS = ['bytes', 'KB', 'MB', 'GB', 'TB'];

/** "1.5 GB". */
export function sizeWords(bytes: number): string {
  let value = bytes;
  let unit = 0;
  while (value >= 1024 && unit < UNITS.length - 1) {
    value /= 1024;
    unit++;
  }
  return `${value >= 100 || unit === 0 ? value.toFixed(0) : value.toFixed(1)} ${UNITS[unit]}`;
}

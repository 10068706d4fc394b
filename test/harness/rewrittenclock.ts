// A wall clock that jumps when it is told to, for one process: libfaketime in front of the C library. The monotonic clock stays as it is.
// Used by chaos.ts. Null where the library is not installed.
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';

const PLACES = ['x86_64-linux-gnu', 'aarch64-linux-gnu', 'arm-linux-gnueabihf'].map(
  (triplet) => `/usr/lib/${triplet}/faketime/libfaketimeMT.so.1`,
);

export interface Rewritten {
  readonly env: NodeJS.ProcessEnv;
  /** The clock is off by this from now on. */
  set(offsetMs: number): void;
  remove(): void;
}

export function rewrittenClock(): Rewritten | null {
  const library = PLACES.find((place) => existsSync(place));
  if (library === undefined) return null;
  const folder = mkdtempSync(path.join(os.tmpdir(), 'clock-'));
  const file = path.join(folder, 'offset');
  const set = (offsetMs: number): void =>
    writeFileSync(file, `${offsetMs < 0 ? '' : '+'}${Math.round(offsetMs / 1000)}s\n`);
  set(0);
  return {
    env: {
      LD_PRELOAD: library,
      FAKETIME_TIMESTAMP_FILE: file,
      FAKETIME_NO_CACHE: '1',
      FAKETIME_DONT_FAKE_MONOTONIC: '1',
      DONT_FAKE_MONOTONIC: '1',
      FAKETIME_DONT_RESET: '1',
    },
    set,
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}

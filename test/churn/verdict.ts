// What is wrong with a churn: memory that keeps growing, connections that are still held, memory that does not come back.
// Used by run.ts and churn.test.ts on the report of churn.ts. Pure.
import type { ChurnReport } from './churn.ts';

/** The lowest heap of a window of the second half may be so much above the lowest of that half's first window. */
const GROWTH = 1.1;
/** Resident memory after a rest, of what an idle gateway has: measured 1.5 after 568,000 connections. */
const RESTED = 1.8;

/** One line for each fault. */
export function faults(report: ChurnReport): string[] {
  const found: string[] = [];
  const half = report.windows.slice(report.windows.length >> 1);
  for (const field of ['heapBytes', 'externalBytes'] as const) {
    const first = half[0]?.[field] ?? 0;
    // Below a few megabytes a share says nothing.
    const most = Math.max(first * GROWTH, first + 2 * 1024 * 1024);
    const last = half[half.length - 1]?.[field] ?? 0;
    if (half.length > 1 && last > most) found.push(`${field} grows: ${first} to ${last} in the second half`);
  }
  for (const { name, count, path } of report.left) found.push(`${count} ${name} of gone connections are held: ${path}`);
  if (report.sessions > report.kept)
    found.push(`${report.sessions} sessions, ${report.kept} are kept: ${report.sessionPath}`);
  if (report.restedBytes > report.idleBytes * RESTED)
    found.push(`${report.restedBytes} bytes resident after a rest, ${report.idleBytes} when idle`);
  return found;
}

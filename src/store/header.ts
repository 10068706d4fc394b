// The first hundred bytes of a database file: whether they can be those of a store. SQLite takes some damage there for
// a read-only file or for one of another program; that damage is told from what is meant. Called by open.ts before
// SQLite sees the file; reads only.
//
//   offset  bytes  field                          in a store
//   0       16     magic                          "SQLite format 3\0"
//   16      2      page size                      a power of two from 512 to 32768, or 1 (65536)
//   18      2      write and read version         1 (journal) or 2 (write-ahead log)
//   20      1      reserved bytes of a page       0
//   21      3      payload fractions              64, 32, 32
//   44      4      schema format                  0 (empty) to 4
//   56      4      text encoding                  0 (empty) or 1 (UTF-8)
// Source: https://www.sqlite.org/fileformat2.html, section 1.3.
import { closeSync, openSync, readSync } from 'node:fs';

const HEADER_BYTES = 100;
const MAGIC = Buffer.from('SQLite format 3\0', 'latin1');

/** What is wrong with the header of a file, null when nothing is. Throws as the file system does. */
export function headerDamage(path: string): string | null {
  const bytes = Buffer.alloc(HEADER_BYTES);
  const fd = openSync(path, 'r');
  try {
    if (readSync(fd, bytes, 0, HEADER_BYTES, 0) < HEADER_BYTES) return 'the header is cut off';
  } finally {
    closeSync(fd);
  }
  return damageOf(bytes);
}

/** The same for the bytes themselves. */
export function damageOf(bytes: Buffer): string | null {
  if (!bytes.subarray(0, MAGIC.length).equals(MAGIC)) return 'no SQLite header';
  const pageBytes = bytes.readUInt16BE(16);
  const powerOfTwo = pageBytes >= 512 && (pageBytes & (pageBytes - 1)) === 0;
  if (!powerOfTwo && pageBytes !== 1) return `page size ${pageBytes}`;
  for (const at of [18, 19]) if (bytes[at] !== 1 && bytes[at] !== 2) return `file format version ${bytes[at]}`;
  if (bytes[20] !== 0) return `${bytes[20]} reserved bytes in each page`;
  if (bytes[21] !== 64 || bytes[22] !== 32 || bytes[23] !== 32) return 'payload fractions';
  if (bytes.readUInt32BE(44) > 4) return `schema format ${bytes.readUInt32BE(44)}`;
  if (bytes.readUInt32BE(56) > 1) return `text encoding ${bytes.readUInt32BE(56)}`;
  return null;
}

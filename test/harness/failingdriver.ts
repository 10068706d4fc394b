// The SQLite driver with a fault: while the file `<database>.fail` exists, every commit fails with the result code written in it
// ("die": its thread ends; "hang": it waits).
// Bundled into the writer in place of driver.ts by faultyWriter(); a full disk or an I/O error at will, without a disk to fill.
import { existsSync, readFileSync } from 'node:fs';
import { type Database, openDatabase as open, SqliteError } from '../../src/store/driver.ts';

export * from '../../src/store/driver.ts';

const PAUSE = new Int32Array(new SharedArrayBuffer(4));

export function openDatabase(path: string, only?: Database['driver']): Database {
  const db = open(path, only);
  return {
    ...db,
    exec: (sql) => {
      if (sql === 'COMMIT' && existsSync(`${path}.fail`)) {
        const fault = readFileSync(`${path}.fail`, 'utf8');
        // "die" ends the writer thread in the middle of its work.
        if (fault === 'die') process.exit(3);
        // "hang" is a disk that does not answer until the file has gone.
        if (fault === 'hang') while (existsSync(`${path}.fail`)) Atomics.wait(PAUSE, 0, 0, 5);
        else throw new SqliteError(Number(fault), 'fault on demand');
      }
      db.exec(sql);
    },
  };
}

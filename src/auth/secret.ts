// A secret of this gateway that is the same after a restart, for what must not change with one: the made-up salts of
// SCRAM. Called by chain.ts at the start. Kept in a file beside the store where there is one; else derived from the
// machine's id; else random. Sources: machine-id(5), which is to be used only through a keyed hash.
import { createHmac, randomBytes } from 'node:crypto';
import { closeSync, openSync, readFileSync, writeSync } from 'node:fs';

const BYTES = 32;
const MACHINE_IDS = ['/etc/machine-id', '/var/lib/dbus/machine-id'] as const;
const PURPOSE = 'tidegate scram salts';

/** @param path where it may be kept, in a folder that is there; null = nowhere */
export function stableSecret(path: string | null, machineIds: readonly string[] = MACHINE_IDS): Buffer {
  return (path === null ? null : keptSecret(path)) ?? machineSecret(machineIds) ?? randomBytes(BYTES);
}

/** Read, or made once; null where neither is possible. */
function keptSecret(path: string): Buffer | null {
  const known = readSecret(path);
  if (known !== null) return known;
  const made = randomBytes(BYTES);
  try {
    const file = openSync(path, 'wx', 0o600);
    writeSync(file, made.toString('base64'));
    closeSync(file);
    return made;
  } catch {
    return null;
  }
}

function readSecret(path: string): Buffer | null {
  try {
    const secret = Buffer.from(readFileSync(path, 'latin1'), 'base64');
    return secret.length === BYTES ? secret : null;
  } catch {
    return null;
  }
}

function machineSecret(paths: readonly string[]): Buffer | null {
  for (const path of paths) {
    try {
      const id = readFileSync(path, 'latin1').trim();
      if (/^[0-9a-f]{32}$/.test(id) && !/^0+$/.test(id)) return createHmac('sha256', id).update(PURPOSE).digest();
    } catch {
      // The next one, or none.
    }
  }
  return null;
}

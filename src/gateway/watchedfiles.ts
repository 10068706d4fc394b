// Files that the proxy reads its servers from: when they have changed, their text, and the text as plain data.
// Used by transports.ts. A read is bounded in bytes; TOML goes through the gateway's own reader, with its bounds.
import { open, stat } from 'node:fs/promises';
import type { Node } from '../config/text/node.ts';
import { parseToml } from '../config/text/toml.ts';
import type { WatchedFiles } from '../proxy/proxy.ts';

export const watchedFiles: WatchedFiles = {
  stamp: async (path) => {
    const { mtimeNs, ctimeNs, size, ino } = await stat(path, { bigint: true });
    return `${ino}:${size}:${mtimeNs}:${ctimeNs}`;
  },
  read: async (path, maxBytes) => {
    const handle = await open(path, 'r');
    try {
      const { size } = await handle.stat();
      if (size > maxBytes) throw new Error(`more than ${maxBytes} bytes`);
      const buffer = Buffer.allocUnsafe(size + 1);
      const { bytesRead } = await handle.read(buffer, 0, size + 1, 0);
      return buffer.toString('utf8', 0, bytesRead);
    } finally {
      await handle.close();
    }
  },
  parse: (text, dialect) => (dialect === 'json' ? (JSON.parse(text) as unknown) : plain(parseToml(text, 'file'))),
};

/** A parsed tree as objects without prototype, lists and values. */
function plain(node: Node): unknown {
  if (node.kind === 'list') return node.items.map(plain);
  if (node.kind === 'scalar') return node.value;
  const found: Record<string, unknown> = Object.create(null);
  for (const [name, member] of node.fields) found[name] = plain(member.value);
  return found;
}

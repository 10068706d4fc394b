// The list of files that the console serves from a folder (pages.json) and a packed copy of each that gets smaller by it.
// Called by web.ts for the console and by site.ts for the documentation; read by src/console/pages.ts.
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { constants, gzipSync } from 'node:zlib';

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.json': 'application/json',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.webp': 'image/webp',
};
/** Files whose name changes with what is in them. */
const HASHED = /-[\w-]{8}\.(js|css|svg)$/;

/** Writes pages.json; addresses begin with `prefix`, which stands for index.html. */
export function writeList(folder: string, prefix: string): void {
  const rows: object[] = [];
  for (const name of readdirSync(folder, { recursive: true, encoding: 'utf8' }).sort()) {
    const file = name.split(path.sep).join('/');
    if (statSync(path.join(folder, name)).isDirectory()) continue;
    const contentType = TYPES[path.extname(name)];
    if (contentType === undefined) throw new Error(`scripts/pagelist.ts: no content type for ${file}`);
    const body = readFileSync(path.join(folder, name));
    const packed = gzipSync(body, { level: constants.Z_BEST_COMPRESSION });
    const gzip = packed.length < body.length * 0.95 ? `${file}.gz` : null;
    if (gzip !== null) writeFileSync(path.join(folder, gzip), packed);
    const etag = `"${createHash('sha256').update(body).digest('base64url').slice(0, 22)}"`;
    const row = { file, contentType, etag, immutable: HASHED.test(file), gzip };
    rows.push({ path: `${prefix}${file}`, ...row });
    if (file === 'index.html') rows.push({ path: prefix, ...row });
  }
  writeFileSync(path.join(folder, 'pages.json'), JSON.stringify(rows, null, 2));
}

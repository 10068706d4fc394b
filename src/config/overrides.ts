// Lays the environment (TIDEGATE__a__b=value, TIDEGATE__a__b_FILE=path) and `--set a.b=value` over a tree; values are
// literal texts. Called by load.ts after the file was read. Trees may share nodes, so the way to a changed value is
// copied.
import { closeSync, openSync, readSync } from 'node:fs';
import { resolve } from 'node:path';
import { fileError, type Position, type Problem } from './problem.ts';
import { parsePath } from './text/hocon.ts';
import { type BlockNode, blockNode, FORBIDDEN_KEY, formatPath, textNode } from './text/node.ts';

const PREFIX = 'TIDEGATE__';
/** A secret is short; more is a wrong path. */
const MAX_SECRET_BYTES = 1024 * 1024;

interface Override {
  readonly path: readonly string[];
  readonly value: string;
  readonly at: Position;
}

/** The tree with environment, then `--set`, on top. Mistakes go to `problems`. */
export function applyOverrides(
  tree: BlockNode,
  env: Readonly<Record<string, string | undefined>>,
  set: readonly string[],
  cwd: string,
  problems: Problem[],
): BlockNode {
  const overrides = [...fromEnvironment(env, cwd, problems), ...fromSet(set, problems)];
  for (const override of overrides) tree = put(tree, override.path, override);
  return tree;
}

function fromEnvironment(
  env: Readonly<Record<string, string | undefined>>,
  cwd: string,
  problems: Problem[],
): Override[] {
  const found: Override[] = [];
  for (const name of Object.keys(env).sort()) {
    const text = env[name];
    if (!name.startsWith(PREFIX) || text === undefined) continue;
    const at = { file: `environment ${name}`, line: 0, column: 0 };
    const isFile = name.endsWith('_FILE');
    const path = name.slice(PREFIX.length, isFile ? -'_FILE'.length : undefined).split('__');
    if (path.some((part) => part === '' || part === FORBIDDEN_KEY)) {
      problems.push({ at, key: 'syntax', message: `${PREFIX}section__key expected` });
      continue;
    }
    const value = isFile ? readSecret(resolve(cwd, text)) : { text };
    if ('text' in value) found.push({ path, value: value.text, at });
    else problems.push({ at, key: formatPath(path), message: value.error });
  }
  return found;
}

function fromSet(set: readonly string[], problems: Problem[]): Override[] {
  const found: Override[] = [];
  for (const entry of set) {
    const name = /^(?:"(?:[^"\\]|\\.)*"|[^"=])*(?==)/.exec(entry)?.[0];
    const at = { file: `--set ${name ?? entry}`, line: 0, column: 0 };
    const path = name === undefined ? null : parsePath(name.trim());
    if (name === undefined || path === null)
      problems.push({ at, key: 'syntax', message: '--set section.key=value expected' });
    else found.push({ path, value: entry.slice(name.length + 1), at });
  }
  return found;
}

/** The text of a file without its last line end. */
function readSecret(path: string): { text: string } | { error: string } {
  try {
    const bytes = Buffer.alloc(MAX_SECRET_BYTES + 1);
    const fd = openSync(path, 'r');
    let length = 0;
    try {
      for (let n = 1; n > 0 && length < bytes.length; length += n)
        n = readSync(fd, bytes, length, bytes.length - length, null);
    } finally {
      closeSync(fd);
    }
    if (length > MAX_SECRET_BYTES) return { error: 'the file is larger than 1 MB' };
    return { text: bytes.toString('utf8', 0, length).replace(/\r?\n$/, '') };
  } catch (error) {
    return { error: fileError(error) };
  }
}

function put(block: BlockNode, path: readonly string[], override: Override): BlockNode {
  const { value, at } = override;
  const [key, ...rest] = path;
  const fields = new Map(block.fields);
  const below = fields.get(key)?.value;
  const inner = below?.kind === 'block' ? below : blockNode(at);
  fields.set(key, { at, value: rest.length === 0 ? textNode(value, at) : put(inner, rest, override) });
  return { kind: 'block', fields, at: block.at };
}

// Counts the objects of some classes that can still be reached in a heap snapshot of V8, and says through what.
// Used by churn.ts on the snapshot that a gateway writes on SIGUSR2 (node --heapsnapshot-signal). Layout: v8/include/v8-profiler.h.
import { readFileSync } from 'node:fs';

interface Raw {
  readonly snapshot: {
    readonly meta: {
      readonly node_fields: readonly string[];
      readonly node_types: readonly [readonly string[]];
      readonly edge_fields: readonly string[];
      readonly edge_types: readonly [readonly string[]];
    };
  };
  readonly nodes: readonly number[];
  readonly edges: readonly number[];
  readonly strings: readonly string[];
}

/** Steps of a path that are shown. */
const SHOWN = 14;

export interface Found {
  readonly count: number;
  /** From one of them up to what keeps it, nearest first. */
  readonly path: string;
}

/** By class name: how many are reachable without weak references. O(heap). */
export function reachable(file: string, classes: readonly string[]): Map<string, Found> {
  const { snapshot, nodes, edges, strings } = JSON.parse(readFileSync(file, 'utf8')) as Raw;
  const { node_fields, node_types, edge_fields, edge_types } = snapshot.meta;
  const width = node_fields.length;
  const edgeWidth = edge_fields.length;
  const [type, name, edgeCount] = ['type', 'name', 'edge_count'].map((field) => node_fields.indexOf(field));
  const count = nodes.length / width;
  const first = new Uint32Array(count + 1);
  for (let i = 0; i < count; i++) first[i + 1] = first[i] + nodes[i * width + edgeCount];
  const cameFrom = new Int32Array(count).fill(-1);
  const through = new Int32Array(count);
  const weak = edge_types[0].indexOf('weak');
  const queue = [0];
  for (let head = 0; head < queue.length; head++) {
    const from = queue[head];
    for (let edge = first[from]; edge < first[from + 1]; edge++) {
      const at = edge * edgeWidth;
      const to = edges[at + 2] / width;
      if (edges[at] === weak || to === 0 || cameFrom[to] >= 0) continue;
      cameFrom[to] = from;
      through[to] = edge;
      queue.push(to);
    }
  }
  const object = node_types[0].indexOf('object');
  const label = (node: number): string => strings[nodes[node * width + name]].slice(0, 30);
  const edgeLabel = (edge: number): string => {
    const kind = edge_types[0][edges[edge * edgeWidth]];
    return kind === 'element' || kind === 'hidden' ? '[]' : strings[edges[edge * edgeWidth + 1]].slice(0, 30);
  };
  const found = new Map(classes.map((each) => [each, { count: 0, path: '' }]));
  for (let i = 1; i < count; i++) {
    if (cameFrom[i] < 0 || nodes[i * width + type] !== object) continue;
    const entry = found.get(strings[nodes[i * width + name]]);
    if (entry === undefined || entry.count++ > 0) continue;
    const steps: string[] = [];
    for (let node = i; node > 0 && steps.length < SHOWN; node = cameFrom[node])
      steps.push(`${label(cameFrom[node])}.${edgeLabel(through[node])}`);
    entry.path = steps.join(' < ');
  }
  return found;
}

// REST: what NanoMQ tells about itself: /, /brokers, /nodes, /topic-tree, /metrics, /prometheus. Called by routes.ts.
// Shapes are those of NanoMQ 0.25 (its REST documentation); members beyond them come after.
import { version as nodeVersion } from 'node:process';
import type { SubscriptionView } from '../broker/broker.ts';
import { type Answer, data, json } from './answer.ts';
import type { ConsoleOptions, Json } from './console.ts';
import { PROMETHEUS_TYPE, renderMetrics, total } from './metrics.ts';
import { walk } from './page.ts';
import { type ProcessMetrics, residentBytes } from './process.ts';
import { get, type Route } from './route.ts';
import { dateText, uptimeText } from './text.ts';

/** Nodes and client ids that one topic tree shows; above it the answer says that it is cut. */
const MAX_TREE_NODES = 20_000;
const MAX_TREE_IDS = 50_000;

function brokers({ clock, version }: ConsoleOptions, process: ProcessMetrics): Answer {
  return data([
    {
      datetime: dateText(clock.now()),
      node_status: 'Running',
      sysdescr: 'Tidegate',
      uptime: uptimeText(process.uptimeMs()),
      version,
    },
  ]);
}

function nodes({ metrics, version, nodeName, ready }: ConsoleOptions, process: ProcessMetrics): Answer {
  return data([
    {
      connections: total(metrics, 'clients_connected'),
      node_status: 'Running',
      uptime: uptimeText(process.uptimeMs()),
      version,
      name: nodeName,
      ready: ready(),
      node_version: nodeVersion,
      memory: residentBytes(),
      cpu: process.cpuPercent() / 100,
    },
  ]);
}

interface TreeNode {
  readonly children: Map<string, TreeNode>;
  readonly clientIds: string[];
}

/** Puts one subscription into the tree; false when the tree is full. A shared one stands below its own filter. */
function plant(root: TreeNode, subscription: SubscriptionView, room: { nodes: number; ids: number }): boolean {
  let node = root;
  for (const level of subscription.topicFilter.split('/')) {
    let next = node.children.get(level);
    if (next === undefined) {
      if (room.nodes-- <= 0) return false;
      next = { children: new Map(), clientIds: [] };
      node.children.set(level, next);
    }
    node = next;
  }
  if (room.ids-- <= 0) return false;
  node.clientIds.push(subscription.clientId);
  return true;
}

/** One array for each level of the tree of topic filters, the root first and an empty one last. */
async function topicTree({ broker }: ConsoleOptions): Promise<Answer> {
  const root: TreeNode = { children: new Map(), clientIds: [] };
  const room = { nodes: MAX_TREE_NODES, ids: MAX_TREE_IDS };
  let cut = false;
  await walk(broker.subscriptions(), (subscription) => {
    cut = !plant(root, subscription, room);
    return !cut;
  });
  const levels: Json[][] = [];
  let row: [string, TreeNode][] = [['', root]];
  while (row.length > 0) {
    const next: [string, TreeNode][] = [];
    levels.push(
      row.map(([topic, { children, clientIds }]) => {
        for (const child of children) next.push(child);
        const base = { topic, cld_cnt: children.size };
        return clientIds.length === 0 ? base : { ...base, clientid: clientIds };
      }),
    );
    row = next;
  }
  levels.push([]);
  return data(levels, cut ? { cut: true } : {});
}

function metricsPage({ metrics }: ConsoleOptions, process: ProcessMetrics): Answer {
  return json({
    metrics: [],
    cpuinfo: `${process.cpuPercent().toFixed(2)}%`,
    memory: String(residentBytes()),
    connections: total(metrics, 'clients_connected'),
  });
}

/** Highest values seen when somebody looked: NanoMQ's `_max` series. */
class Highest {
  private readonly values = new Map<string, number>();

  of(name: string, value: number): number {
    const highest = Math.max(value, this.values.get(name) ?? 0);
    this.values.set(name, highest);
    return highest;
  }
}

/** NanoMQ's own page for Prometheus, under its names. The gateway's own is /metrics. */
function nanomqPage({ metrics }: ConsoleOptions, process: ProcessMetrics, highest: Highest): Answer {
  const lines: string[] = [];
  const add = (name: string, type: 'gauge' | 'counter', text: string, value: number): void => {
    lines.push(`# HELP nanomq_${name} ${text}`, `# TYPE nanomq_${name} ${type}`, `nanomq_${name} ${value}`);
  };
  for (const [name, family, text] of [
    ['connections', 'clients_connected', 'Connected clients'],
    ['sessions', 'sessions', 'Sessions'],
    ['topics', 'topics', 'Different topic filters'],
    ['subscribers', 'subscriptions', 'Subscriptions'],
  ] as const) {
    const value = total(metrics, family);
    add(`${name}_count`, 'gauge', `${text}.`, value);
    add(`${name}_max`, 'gauge', `${text}, the highest number seen.`, highest.of(name, value));
  }
  add('messages_received', 'counter', 'Messages received.', total(metrics, 'publish_received_total'));
  add('messages_sent', 'counter', 'Messages sent.', total(metrics, 'publish_sent_total'));
  add('messages_dropped', 'counter', 'Messages dropped.', total(metrics, 'publish_dropped_total'));
  const memory = residentBytes();
  add('memory_usage', 'gauge', 'Bytes of memory.', memory);
  add('memory_usage_max', 'gauge', 'Bytes of memory, the highest number seen.', highest.of('memory', memory));
  add('cpu_usage', 'gauge', 'Percent of one processor.', process.cpuPercent());
  add('cpu_usage_max', 'gauge', 'Percent of one processor, the highest seen.', process.cpuPercentMax);
  return { status: 200, contentType: PROMETHEUS_TYPE, body: `${lines.join('\n')}\n` };
}

/** NanoMQ's list of calls. */
function index(routes: readonly Route[]): Answer {
  const listed = routes.filter(({ path }) => path.startsWith('/api/v4'));
  return data(
    listed.map(({ path, method, text }) => {
      const short = path.slice('/api/v4'.length) || '/';
      return {
        path: short.replaceAll('{', ':').replaceAll('}', ''),
        name: `${method.toLowerCase()}_${short.replaceAll(/[^a-z]+/g, '_').replace(/^_|_$/g, '') || 'root'}`,
        method,
        descr: text,
      };
    }),
  );
}

/** @param all gives the finished list of routes, for the index of them */
export function apiRoutes(options: ConsoleOptions, process: ProcessMetrics, all: () => readonly Route[]): Route[] {
  const highest = new Highest();
  return [
    get('/api/v4', 'the calls there are', () => index(all())),
    get('/api/v4/brokers', 'version and uptime', () => brokers(options, process)),
    get('/api/v4/nodes', 'the one node: connections, memory, processor', () => nodes(options, process)),
    get('/api/v4/topic-tree', 'topic filters as a tree, level by level', () => topicTree(options)),
    get('/api/v4/metrics', 'processor, memory and connections', () => metricsPage(options, process)),
    get('/api/v4/prometheus', 'metrics for Prometheus under the names of NanoMQ', () =>
      nanomqPage(options, process, highest),
    ),
    get('/metrics', 'all metrics for Prometheus', () => ({
      status: 200,
      contentType: PROMETHEUS_TYPE,
      body: renderMetrics(options.metrics),
    })),
  ];
}

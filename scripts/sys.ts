// docs/reference-sys.md: every topic below $SYS with its meaning. Called by docs.ts. A gateway with bridges is started
// on loopback ports; what it retains below $SYS is the page. A topic without a text here, or a text without its topic,
// is an error, so that neither can be forgotten.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '../src/base/clock.ts';
import { loadConfig } from '../src/config/load.ts';
import { createGateway } from '../src/gateway/gateway.ts';

const CONF = `listeners.tcp { bind = "127.0.0.1:0" }
persistence { enable = false }
mqtt.sys_interval = 1s
bridges.nng.pub.a { enable = true, pub_url = "inproc://a", forwards = [ { local_topic = "a/#" } ] }
bridges.mqtt.c {
  server = "mqtt-tcp://127.0.0.1:1"
  forwards = [ { local_topic = "c/#" } ]
}
`;

const AVERAGE = ', per minute, as a moving average of 1, 5 or 15 minutes';

/** Below $SYS/broker/. */
const BROKER: Readonly<Record<string, string>> = {
  version: 'Name and version of the gateway.',
  uptime: 'Seconds since the start.',
  'clients/total': 'Sessions, connected or not.',
  'clients/connected': 'Connected clients.',
  'clients/active': 'The same under the older name.',
  'clients/disconnected': 'Sessions of clients that are not connected.',
  'clients/inactive': 'The same under the older name.',
  'clients/maximum': 'Most clients connected at the same time since the start.',
  'clients/expired': 'Sessions that have expired.',
  'messages/received': 'Messages received from clients.',
  'messages/sent': 'Messages sent to clients.',
  'messages/stored': 'Retained and queued messages.',
  'store/messages/count': 'The same.',
  'store/messages/bytes': 'Bytes of retained and queued messages.',
  'retained messages/count': 'Retained messages.',
  'subscriptions/count': 'Subscriptions, shared ones included.',
  'shared_subscriptions/count': 'Shared subscriptions.',
  'publish/messages/received': 'PUBLISH packets received.',
  'publish/messages/sent': 'PUBLISH packets sent.',
  'publish/messages/dropped': 'Messages that were not delivered.',
  'publish/bytes/received': 'Payload bytes received.',
  'publish/bytes/sent': 'Payload bytes sent.',
  'bytes/received': 'Bytes received.',
  'bytes/sent': 'Bytes sent.',
  'heap/current': 'Bytes of the JavaScript heap in use.',
  'load/messages/received/<n>min': `Messages received${AVERAGE}.`,
  'load/messages/sent/<n>min': `Messages sent${AVERAGE}.`,
  'load/publish/received/<n>min': `PUBLISH packets received${AVERAGE}.`,
  'load/publish/sent/<n>min': `PUBLISH packets sent${AVERAGE}.`,
  'load/bytes/received/<n>min': `Bytes received${AVERAGE}.`,
  'load/bytes/sent/<n>min': `Bytes sent${AVERAGE}.`,
  'load/connections/<n>min': `Connections accepted${AVERAGE}.`,
};

/** Below $SYS/. */
const BRIDGES: Readonly<Record<string, string>> = {
  'bridges/<type>/<name>/state': 'State of a bridge: starting, listening, connected, retrying, error, disabled.',
  'bridges/<type>/<name>/peers': 'Connected SP peers.',
  'bridges/<type>/<name>/rules/<n>/matched': 'Messages or frames that rule <n> took.',
  'bridges/<type>/<name>/rules/<n>/forwarded': 'Those of them that it passed on.',
  'bridges/<type>/<name>/unmatched': 'Frames that no rule took.',
  'bridges/<type>/<name>/dropped': 'Messages that queues of peers dropped.',
};

/** A topic with its variable parts as gaps. */
function general(topic: string): string {
  return topic
    .replace(/^\$SYS\/broker\/load\/(.+)\/\d+min$/, '$$SYS/broker/load/$1/<n>min')
    .replace(/^\$SYS\/bridges\/[^/]+\/[^/]+\/rules\/\d+\//, '$$SYS/bridges/<type>/<name>/rules/<n>/')
    .replace(/^\$SYS\/bridges\/[^/<]+\/[^/]+\//, '$$SYS/bridges/<type>/<name>/');
}

async function topics(): Promise<Set<string>> {
  const folder = mkdtempSync(join(tmpdir(), 'sys-'));
  const file = join(folder, 'sys.conf');
  writeFileSync(file, CONF);
  const load = (): ReturnType<typeof loadConfig> => loadConfig({ file, env: {}, cwd: folder });
  const gateway = createGateway(load(), { log: () => {}, clock: systemClock, load, relog: () => {} });
  try {
    await gateway.start();
    const found = (): Set<string> => new Set([...gateway.broker.retained('$SYS/#')].map(({ topic }) => general(topic)));
    // Bridges are there with the first interval after the start.
    while (!found().has('$SYS/bridges/<type>/<name>/state')) await new Promise((resolve) => setTimeout(resolve, 50));
    return found();
  } finally {
    await gateway.stop(1000);
    rmSync(folder, { recursive: true, force: true });
  }
}

export async function sysMarkdown(): Promise<string> {
  const texts = new Map([
    ...Object.entries(BROKER).map(([name, text]): [string, string] => [`$SYS/broker/${name}`, text]),
    ...Object.entries(BRIDGES).map(([name, text]): [string, string] => [`$SYS/${name}`, text]),
  ]);
  const found = await topics();
  const missing = [...found].filter((topic) => !texts.has(topic));
  const gone = [...texts.keys()].filter((topic) => !found.has(topic));
  if (missing.length + gone.length > 0)
    throw new Error(`scripts/sys.ts: no text for ${missing.join(', ') || '-'}; no topic for ${gone.join(', ') || '-'}`);
  const rows = [...texts].map(([topic, text]) => `| \`${topic}\` | ${text} |`);
  return `${[
    '# Topics below $SYS',
    'Made by `make docs` from what a running gateway publishes.',
    'The gateway publishes these topics every `mqtt.sys_interval` (default 10 s), retained; counts of clients also when a client comes or\ngoes. `0` turns them off. Clients can read them where their permissions allow it, and never write them. Wildcards of other filters do\nnot match them.',
    ['| topic | |', '|---|---|', ...rows].join('\n'),
    '`$SYS/brokers/client_status/<client id>` reports each client that connects or disconnects as JSON, not retained, in the form of NanoMQ.\n`$SYS/broker/connection/<client id>/state` is 1 or 0 for each bridge to a remote broker with `notifications`\n([mqtt-bridges.md](mqtt-bridges.md)).',
  ].join('\n\n')}\n`;
}

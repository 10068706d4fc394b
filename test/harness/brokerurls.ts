// URLs of MQTT brokers: what is taken and where it leads, and what is refused. The configuration and dialling have to agree on them.
import type { BrokerUrl } from '../../src/base/brokerurl.ts';

const to = (kind: BrokerUrl['kind'], host: string, port: number): BrokerUrl => ({ kind, host, port });

export const BROKER_URLS = {
  taken: new Map<string, BrokerUrl>([
    ['mqtt-tcp://broker.example.org', to('tcp', 'broker.example.org', 1883)],
    ['mqtt-tcp://broker.example.org/', to('tcp', 'broker.example.org', 1883)],
    ['mqtt://10.0.0.7:11883', to('tcp', '10.0.0.7', 11883)],
    ['mqtt://under_score:1/', to('tcp', 'under_score', 1)],
    ['mqtt-tcp://[::1]', to('tcp', '::1', 1883)],
    ['mqtt-tcp://[fe80::1%eth0]:1884', to('tcp', 'fe80::1%eth0', 1884)],
    ['tls+mqtt-tcp://h', to('tls', 'h', 8883)],
    ['mqtts://[2001:db8::1]:65535', to('tls', '2001:db8::1', 65535)],
    ['ws://h', to('ws', 'h', 80)],
    ['ws://h:8083/mqtt?tenant=a', to('ws', 'h', 8083)],
    ['wss://[::1]/mqtt', to('wss', '::1', 443)],
  ]),
  refused: [
    '',
    'h:1883',
    'http://h',
    'MQTT://h',
    'mqtt-tcp://',
    'mqtt-tcp://:1883',
    'mqtt-tcp://*:1883',
    'mqtt-tcp:///path',
    'mqtt-tcp://h:0',
    'mqtt-tcp://h:65536',
    'mqtt-tcp://h:',
    'mqtt-tcp://h:1883/path',
    'mqtt-tcp://h:1883?x',
    'mqtts://h/path/',
    'mqtt-tcp://user:password@h:1883',
    'mqtt-tcp://a b:1883',
    'mqtt-tcp://[abc]:1883',
    'mqtt-tcp://[::1',
    'mqtt-tcp://::1:1883',
    'mqtt-tcp://h\\x',
    'ws://:80/mqtt',
    'ws://256.256.256.256/mqtt',
    'ws://h:80mqtt',
    'wss://[fe80::1%eth0]/mqtt',
    'wss://h#part',
  ],
} as const;

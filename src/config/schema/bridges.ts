// The section bridges: its kinds. Data for schema.ts. The keys are in nng.ts (SP peers) and remote.ts (MQTT brokers).
import { block, ignored, named } from './blocks.ts';
import { NNG } from './nng.ts';
import { MQTT_BRIDGE } from './remote.ts';

export const BRIDGES = block(
  {
    nng: NNG,
    mqtt: named(MQTT_BRIDGE, { example: 'name', text: 'Bridges to remote MQTT brokers.' }),
    aws: ignored('bridges to AWS are not supported; use bridges.mqtt with TLS', 'block'),
  },
  { unknown: 'error', text: 'Bridges.' },
);

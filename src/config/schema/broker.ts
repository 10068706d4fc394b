// The keys of broker, engine and memory profile: each once, with type, default and text. Data for schema.ts. The wiring
// uses them: gateway/engine.ts, gateway/options.ts.
import { maskUrl } from '../values.ts';
import { block } from './blocks.ts';
import { masked, text, word } from './keys.ts';

export const BROKER = block(
  {
    engine: word(['native', 'aedes'], {
      default: 'native',
      restart: true,
      text: 'Broker engine. aedes: MQTT 3.1 and 3.1.1 only and no persistence, but several gateways can form one broker.',
    }),
    profile: word(['normal', 'small'], {
      default: 'normal',
      restart: true,
      text: 'Memory profile. small: for machines with 512MB or less. The heap grows in smaller steps, the store caches less, mqtt.memory_budget = 0 means an eighth of the memory (16MB to 64MB), and max_client_write_buffer and max_mqueue_bytes are at most 512KB and 2MB. Throughput is lower.',
    }),
    redis: masked(
      maskUrl,
      text({
        default: null,
        restart: true,
        text: 'With engine = aedes: Redis server through which several gateways form one broker.',
        example: 'redis://127.0.0.1:6379',
      }),
    ),
  },
  { unknown: 'error', text: 'Broker engine and memory profile.' },
);

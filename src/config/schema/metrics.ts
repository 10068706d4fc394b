// The keys of metrics, a page for Prometheus on a port of its own: each once, with type, default and text. Data for
// schema.ts.
import { optional } from './blocks.ts';
import { text, word } from './keys.ts';
import { checkBind } from './listeners.ts';

export const METRICS = optional(
  {
    bind: text({ default: '127.0.0.1:9100', restart: true, text: 'Address and port.', check: checkBind }),
    auth: word(['none', 'basic'], {
      default: 'none',
      restart: true,
      text: 'Authentication. basic: the credentials of http_server.',
    }),
  },
  { unknown: 'error', text: 'Prometheus endpoint /metrics on a separate port. Off without this block.' },
);

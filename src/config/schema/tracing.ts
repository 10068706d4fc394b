// The keys of tracing: each once, with type, default and text. Data for schema.ts; to add a key, add a row here, a line
// in config/build/core.ts and run `make docs`.
import { maskUrl } from '../values.ts';
import { needRestart, optional, pairs } from './blocks.ts';
import { duration, flag, int, masked, real, text } from './keys.ts';
import { SECRET_HEADER, TLS_CLIENT } from './listeners.ts';

/** All are taken up at the start: the router is chosen by them. */
const KEYS = needRestart({
  enable: flag({ default: true, text: 'Whether traces and metrics are exported.' }),
  url: masked(
    maskUrl,
    text({
      text: 'Address of the OpenTelemetry collector (OTLP over HTTP); /v1/traces and /v1/metrics are appended.',
      example: 'http://127.0.0.1:4318',
    }),
  ),
  headers: pairs({
    secret: SECRET_HEADER,
    text: 'Headers to send to the collector.',
    example: { authorization: 'Bearer change-me' },
  }),
  service_name: text({ default: 'tidegate', text: 'Name of this gateway, as service.name.' }),
  ratio: real({
    default: 0,
    max: 1,
    text: 'Share of the messages without a traceparent that are traced: 0 = none, 0.001 = one in a thousand, 1 = all.',
  }),
  parents: flag({
    default: true,
    text: 'Whether messages are traced whose traceparent says that they are sampled.',
  }),
  max_rate: int({
    default: 100,
    min: 1,
    max: 100_000,
    text: 'Largest number of messages traced per second; the others are counted and not traced.',
  }),
  queue: int({
    default: 2048,
    min: 1,
    max: 100_000,
    text: 'Largest number of spans that wait for the collector; more are dropped and counted.',
  }),
  batch: int({ default: 512, min: 1, max: 10_000, text: 'Largest number of spans in one request.' }),
  interval: duration({
    default: '5s',
    min: 10,
    text: 'Longest time a span waits for the request to fill.',
  }),
  metrics_interval: duration({
    default: '60s',
    text: 'How often the metrics are exported. 0 = never.',
  }),
  timeout: duration({ default: '10s', min: 1, text: 'Time the collector is allowed for an answer.' }),
  tls: optional(needRestart(TLS_CLIENT), { unknown: 'error', text: 'TLS settings for a collector with https://.' }),
});

export const TRACING = optional(KEYS, {
  unknown: 'error',
  text: 'Traces of single messages and metrics for an OpenTelemetry collector. Off without this block.',
});

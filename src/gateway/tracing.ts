// Traces and metrics for an OpenTelemetry collector, as the gateway has them: what the broker is given where `tracing`
// is configured. Called by gateway.ts. Where it is not, nothing of tracing/ is loaded, and the router is the ordinary
// one.
import type { EngineOptions } from '../broker/base.ts';
import type { TracingConfig } from '../config/config.ts';
import type { Tracing, TracingParts } from '../tracing/tracing.ts';

export interface StartedTracing {
  readonly service: Tracing;
  /** For the native engine. */
  readonly options: Pick<EngineOptions, 'newRoutes' | 'sentFor'>;
}

/** Throws TRANSPORT-TLS for a certificate that cannot be read. */
export async function startTracing(config: TracingConfig | null, parts: TracingParts): Promise<StartedTracing | null> {
  if (config === null) return null;
  const { Tracing } = await import('../tracing/tracing.ts');
  const service = new Tracing(config, parts);
  await service.prepare();
  await service.start();
  // Metrics alone: the broker is as it was.
  if (config.ratio === 0 && !config.parents) return { service, options: {} };
  const { TracedRoutes } = await import('../router/tracedroutes.ts');
  return {
    service,
    options: {
      newRoutes: (journal, clock, ledger) => new TracedRoutes(journal, clock, ledger, service.tracer),
      sentFor: ({ clientId }) => service.sentFor(clientId),
    },
  };
}

// REST: the proxy's upstream pools, and taking a server out of its pool for maintenance. Called by routes.ts.
// The proxy decides; nothing here knows how it balances.
import { type Answer, changed, data, fail, isObject } from './answer.ts';
import type { ConsoleOptions } from './console.ts';
import { type Call, get, param, type Route, write } from './route.ts';

function drain({ proxy }: ConsoleOptions, call: Call): Answer {
  if (!isObject(call.body)) return fail('value', 'the body has to be an object');
  const { server, drain: on } = call.body;
  if (typeof server !== 'string' || server === '') return fail('missing', 'server, as it is configured', '/server');
  if (typeof on !== 'boolean') return fail('missing', 'drain, true or false', '/drain');
  if (proxy === null) return fail('upstream');
  if (proxy.drain === undefined) return fail('unavailable', 'servers cannot be drained');
  return changed(proxy.drain(param(call, 'name'), server, on), 'upstream');
}

export function proxyRoutes(options: ConsoleOptions): Route[] {
  return [
    get('/api/v4/proxy/upstreams', 'upstream pools of the proxy and the health of their servers', () =>
      data(options.proxy?.upstreams() ?? []),
    ),
    write(
      'POST',
      '/api/v4/proxy/upstreams/{name}/drain',
      'takes a server out of its pool or puts it back; its connections go on',
      'json',
      'operator',
      (call) => drain(options, call),
    ),
  ];
}

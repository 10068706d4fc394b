// The description of the API (OpenAPI 3.1), made from the list of routes, so that both always agree. Called by
// routes.ts.
import { CODES } from './answer.ts';
import type { Json, JsonObject } from './console.ts';
import type { Route } from './route.ts';

const ERROR: JsonObject = {
  type: 'object',
  required: ['code', 'message', 'pointer'],
  properties: {
    code: { type: 'integer', description: 'stable number of the failure' },
    message: { type: 'string' },
    pointer: { type: 'string', description: 'JSON pointer to what is wrong in the body' },
  },
};

const FAILURE: JsonObject = {
  description: 'failed',
  content: { 'application/json': { schema: { $ref: '#/components/schemas/Error' } } },
};

/** The names between braces. */
function pathParameters(path: string): string[] {
  return path
    .split('/')
    .filter((part) => part.startsWith('{'))
    .map((part) => part.slice(1, -1));
}

function successType(route: Route): string {
  if (route.path.endsWith('/events') || route.path === '/api/v4/mqtt/messages') return 'text/event-stream';
  return route.path === '/metrics' || route.path.endsWith('/prometheus') ? 'text/plain' : 'application/json';
}

function operation(route: Route): JsonObject {
  const parameters: Json[] = [
    ...pathParameters(route.path).map((name) => ({ name, in: 'path', required: true, schema: { type: 'string' } })),
    ...route.query.map(({ name, text, type }) => ({ name, in: 'query', description: text, schema: { type } })),
  ];
  return {
    summary: route.text,
    operationId: `${route.method.toLowerCase()}${route.path.replaceAll(/[^A-Za-z0-9]+/g, '_').replace(/_$/, '')}`,
    parameters,
    ...(route.body === 'none'
      ? {}
      : { requestBody: { required: route.body === 'json', content: { 'application/json': { schema: {} } } } }),
    ...(route.role === 'public' ? { security: [] } : { 'x-role': route.role }),
    responses: {
      '200': { description: 'done', content: { [successType(route)]: { schema: {} } } },
      default: FAILURE,
    },
  };
}

/** The whole document. */
export function describe(routes: readonly Route[], version: string): JsonObject {
  const paths: Record<string, Record<string, Json>> = Object.create(null);
  for (const route of routes) {
    paths[route.path] ??= Object.create(null);
    paths[route.path][route.method.toLowerCase()] = operation(route);
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Tidegate REST API',
      version,
      description: 'Paths and shapes of NanoMQ under /api/v4, and what goes beyond them.',
    },
    servers: [{ url: '/' }],
    security: [{ basic: [] }, { bearer: [] }, { session: [] }],
    paths,
    components: {
      schemas: { Error: ERROR },
      securitySchemes: {
        basic: { type: 'http', scheme: 'basic' },
        bearer: { type: 'http', scheme: 'bearer', bearerFormat: 'JWT' },
        session: { type: 'apiKey', in: 'cookie', name: 'tidegate_session' },
      },
    },
    'x-codes': Object.entries(CODES).map(([name, row]) => ({ name, ...row })),
  };
}

// The description of the API (OpenAPI 3.1), made from the list of routes, so that both always agree; shapes of bodies
// from routeshapes.ts. Called by routes.ts.
import { CODES } from './answer.ts';
import type { Json, JsonObject } from './console.ts';
import type { Route } from './route.ts';
import { ROUTE_SHAPES, type RouteShape } from './routeshapes.ts';
import { object, ref } from './shape.ts';
import { SHAPES } from './shapes.ts';

/** Names of the failures that a call may end in, by status, told by what it takes and who may call. */
function failuresOf(route: Route): readonly number[] {
  const found = [500];
  if (route.role !== 'public') found.push(401, 403, 429);
  if (route.body !== 'none' || route.query.length > 0) found.push(400);
  if (route.body !== 'none') found.push(408, 413);
  if (route.path.includes('{')) found.push(404);
  if (route.method === 'POST' && ROUTE_SHAPES.get(`POST ${route.path}`)?.status === 201) found.push(409);
  return [...found, 503].sort((x, y) => x - y);
}

const STATUS_TEXTS: ReadonlyMap<number, string> = new Map([
  [400, 'a value, the body or a query parameter is wrong'],
  [401, 'credentials are needed, or wrong'],
  [403, 'the role does not allow it, or the request comes from a page of another origin'],
  [404, 'there is none of this name'],
  [408, 'the body did not come in time'],
  [409, 'there is one of this name'],
  [413, 'the body is too large'],
  [429, 'too many failed logins'],
  [500, 'the call failed inside the gateway'],
  [503, 'not possible right now'],
]);

function failure(description: string): JsonObject {
  return { description, content: { 'application/json': { schema: ref('Error') } } };
}

/** What stands in an answer that is good. */
function successSchema({ data, whole, paged }: RouteShape): JsonObject {
  if (whole !== undefined) return whole;
  const code: JsonObject = { type: 'integer' };
  if (data === undefined) return ref('Done');
  return object({
    code,
    [isOptional(data) ? 'data?' : 'data']: data,
    ...(paged === true ? { meta: ref('Meta') } : {}),
  });
}

/** Where nothing is kept, there is nothing to tell. */
function isOptional(data: JsonObject): boolean {
  return data.$ref === ref('Kept').$ref || data.additionalProperties === true;
}

/** The names between braces. */
function pathParameters(path: string): string[] {
  return path
    .split('/')
    .filter((part) => part.startsWith('{'))
    .map((part) => part.slice(1, -1));
}

function successType(route: Route): string {
  if (route.path.endsWith('/events') || route.path === '/api/v4/mqtt/messages') return 'text/event-stream';
  if (route.path === '/api/v4/recording/export') return 'application/x-ndjson';
  return route.path === '/metrics' || route.path.endsWith('/prometheus') ? 'text/plain' : 'application/json';
}

function answersOf(route: Route): JsonObject {
  const shape = ROUTE_SHAPES.get(`${route.method} ${route.path}`);
  const type = successType(route);
  const schema = shape === undefined || type !== 'application/json' ? {} : successSchema(shape);
  const content = { [type]: { schema } };
  const answers: Record<string, Json> = { [String(shape?.status ?? 200)]: { description: 'done', content } };
  if (shape?.creates === true) answers['201'] = { description: 'added', content };
  for (const status of failuresOf(route)) answers[String(status)] = failure(STATUS_TEXTS.get(status) ?? 'failed');
  if (route.path === '/readyz') answers['503'] = { description: 'not ready', content: { [type]: { schema } } };
  return { ...answers, default: failure('failed') };
}

function operation(route: Route): JsonObject {
  const parameters: Json[] = [
    ...pathParameters(route.path).map((name) => ({ name, in: 'path', required: true, schema: { type: 'string' } })),
    ...route.query.map(({ name, text, type }) => ({ name, in: 'query', description: text, schema: { type } })),
  ];
  const schema = ROUTE_SHAPES.get(`${route.method} ${route.path}`)?.body ?? {};
  return {
    summary: route.text,
    operationId: `${route.method.toLowerCase()}${route.path.replaceAll(/[^A-Za-z0-9]+/g, '_').replace(/_$/, '')}`,
    parameters,
    ...(route.body === 'none'
      ? {}
      : { requestBody: { required: route.body === 'json', content: { 'application/json': { schema } } } }),
    ...(route.role === 'public' ? { security: [] } : { 'x-role': route.role }),
    responses: answersOf(route),
  };
}

/**
 * The whole document.
 * @param documents schemas of bridges and rules, by name
 */
export function describe(
  routes: readonly Route[],
  version: string,
  documents: Readonly<Record<string, JsonObject>> = {},
): JsonObject {
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
      schemas: { ...SHAPES, ...documents },
      securitySchemes: {
        basic: { type: 'http', scheme: 'basic' },
        bearer: { type: 'http', scheme: 'bearer', bearerFormat: 'JWT' },
        session: { type: 'apiKey', in: 'cookie', name: 'tidegate_session' },
      },
    },
    'x-codes': Object.entries(CODES).map(([name, row]) => ({ name, ...row })),
  };
}

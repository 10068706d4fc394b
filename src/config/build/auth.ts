// From the checked tree to AuthConfig: users, rights, tokens, limits, and who may be anonymous. Called by build.ts.
// Pure: problems go to the sink. What would let everybody in, or nobody, is warned about.

import type { AclRule, AclWho, AuthConfig, HttpAuthConfig, JwtConfig, RemoteKeysConfig } from '../auth.ts';
import { type ACL_RULE, AUTH, HTTP_AUTH, JWT, REMOTE_KEYS } from '../schema/auth.ts';
import { effective, effectiveFields } from '../schema/effective.ts';
import type { ValueOf } from '../schema/key.ts';
import type { CheckedRoot } from '../schema/schema.ts';
import type { Sink } from '../sink.ts';
import type { OpenListener } from './listeners.ts';
import { checkHttpUrl } from './values.ts';

type JwtKeys = NonNullable<CheckedRoot['auth']['jwt']>;

const LOOPBACK: ReadonlySet<string> = new Set(['localhost', '127.0.0.1', '[::1]']);

/** `reachable`: whether anything that leads to the broker can be reached from another machine. */
export function buildAuth(
  root: CheckedRoot,
  listeners: readonly OpenListener[],
  reachable: boolean,
  sink: Sink,
): AuthConfig {
  const { auth } = root;
  const httpAuth = buildHttpAuth(root, sink);
  const jwt = buildJwt(root, sink);
  const hasUsers =
    auth.password_file !== null ||
    auth.password.length > 0 ||
    auth.scram_file !== null ||
    jwt !== null ||
    httpAuth?.authReq != null ||
    auth.dynamic_security?.enable === true ||
    listeners.some((l) => l.passwordFile !== null);
  const allowAnonymous = auth.allow_anonymous ?? (!reachable && !hasUsers);
  if (allowAnonymous && auth.allow_anonymous !== null && reachable) {
    sink.doubt(auth, 'allow_anonymous', 'anybody who reaches a listener that is not on loopback gets in');
  }
  const identity = listeners.some((l) => l.identity !== null || l.anonymous === true);
  if (!allowAnonymous && !hasUsers && !identity && listeners.length > 0) {
    const why =
      auth.allow_anonymous === null ? 'is not given and a listener can be reached from other machines' : 'is false';
    sink.doubt(auth, 'allow_anonymous', `${why}, and there is no source of users: nobody can connect`);
  }
  const acl = auth.acl?.enable ? auth.acl.rules.map((rule) => aclRule(rule, sink)) : null;
  if (acl?.length === 0 && auth.no_match === 'allow' && auth.acl !== null) {
    sink.doubt(auth.acl, 'rules', 'there are no rules and auth.no_match is allow: everything is allowed');
  }
  const { password: _, ...own } = effective(AUTH, auth);
  return {
    ...own,
    allowAnonymous,
    users: auth.password.map(([username, password]) => ({ username, password })),
    acl,
    jwt,
    httpAuth,
    dynamicSecurity: own.dynamicSecurity?.enable ? own.dynamicSecurity : null,
  };
}

function buildJwt(root: CheckedRoot, sink: Sink): JwtConfig | null {
  const { jwt } = root.auth;
  if (jwt === null || !jwt.enable) return null;
  const sources = [jwt.secret !== null, jwt.keyfile !== null, jwt.jwks_url !== null, jwt.issuer_discovery];
  if (sources.filter((given) => given).length !== 1) {
    sink.problem(sink.at(jwt), sink.path(jwt), 'one of secret, keyfile, jwks_url and issuer_discovery is required');
  }
  return { ...effectiveFields(JWT, jwt), remote: buildRemoteKeys(jwt, sink) };
}

function buildRemoteKeys(jwt: JwtKeys, sink: Sink): RemoteKeysConfig | null {
  const { jwks_url: url, issuer } = jwt;
  if (url === null && !jwt.issuer_discovery) return null;
  const key = url === null ? 'issuer' : 'jwks_url';
  const address = url ?? issuer ?? '';
  if (!/^https?:\/\/[^\s/]+/.test(address) || !URL.canParse(address)) {
    sink.refuse(jwt, key, 'an http:// or https:// URL expected');
  } else if (address.startsWith('http:') && !LOOPBACK.has(new URL(address).hostname)) {
    sink.doubt(jwt, key, 'keys come over http: whoever is on the way can put their own in place and sign any token');
  }
  if ((jwt.jwks_certfile === null) !== (jwt.jwks_certkeyfile === null)) {
    sink.problem(sink.at(jwt), sink.path(jwt), 'jwks_certfile and jwks_certkeyfile need each other');
  }
  return { ...effectiveFields(REMOTE_KEYS, jwt), issuer };
}

type AclKeys = ValueOf<typeof ACL_RULE>;

function aclWho(block: Pick<AclKeys, 'username' | 'clientid' | 'ipaddr' | 'ipaddrs'>): AclWho {
  const ipaddrs = block.ipaddr === null ? block.ipaddrs : [block.ipaddr, ...block.ipaddrs];
  return { username: block.username, clientId: block.clientid, ipaddrs };
}

function aclRule(block: AclKeys, sink: Sink): AclRule {
  const { permit, action, topics } = block;
  const [and, or] = [block.and.map(aclWho), block.or.map(aclWho)];
  for (const who of [...block.and, ...block.or]) {
    const { username, clientId, ipaddrs } = aclWho(who);
    if (username === null && clientId === null && ipaddrs.length === 0) {
      sink.problem(sink.at(who), sink.path(who), 'a condition needs username, clientid, ipaddr or ipaddrs');
    }
  }
  return { permit, action, topics, ...aclWho(block), and, or, source: sink.at(block) };
}

function buildHttpAuth(root: CheckedRoot, sink: Sink): HttpAuthConfig | null {
  const http = root.auth.http_auth;
  if (http === null || !http.enable) return null;
  const requests = [http.auth_req, http.super_req, http.acl_req].filter((request) => request !== null);
  if (requests.length === 0) sink.problem(sink.at(http), sink.path(http), 'auth_req, acl_req or super_req is required');
  for (const request of requests) checkHttpUrl(request, request.url, sink);
  return effective(HTTP_AUTH, http);
}

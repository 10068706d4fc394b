// How auth/ fetches the keys of tokens: one bounded GET over the transport layer. Handed to AccessControl by
// gateway.ts. A server without a certificate that holds is never believed: there is no way to switch that off.
import type { FetchKeys } from '../auth/remotekeys.ts';

export const fetchKeys: FetchKeys = async (url, { caFile, certFile, certKeyFile, timeoutMs, maxBytes, signal }) => {
  const { httpGet } = await import('../transport/httpget.ts');
  const files = { ca: caFile, cert: certFile, key: certKeyFile };
  const tls = { ...files, keyPassword: null, verify: true, serverName: null };
  const headers = { accept: 'application/json, application/jwk-set+json' };
  return httpGet(url, { headers, timeoutMs, maxBytes, tls, signal });
};

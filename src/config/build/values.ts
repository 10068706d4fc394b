// Small steps that the files build*.ts share: addresses, QoS, the server side of TLS, PROXY protocol, URLs.
// Pure: problems go to the sink. Values have been checked one by one by the schema before.
import type { QosLevel } from '../config.ts';
import type { TlsClientConfig, TlsNameConfig, TlsServerConfig, TlsVersion } from '../listeners.ts';
import { effectiveFields } from '../schema/effective.ts';
import type { Checked } from '../schema/key.ts';
import { type CERTIFICATES, TLS_CLIENT, TLS_SERVER } from '../schema/listeners.ts';
import type { Sink } from '../sink.ts';
import { type Address, isLoopback, parseAddress } from '../values.ts';

/** The address of a value the schema has checked already. */
export function address(text: string): Address {
  const parsed = parseAddress(text);
  return typeof parsed === 'string' ? { host: '', port: 0, path: '' } : parsed;
}

export function qos(value: number): QosLevel {
  return value === 2 ? 2 : value === 1 ? 1 : 0;
}

export function tlsVersion(word: 'tlsv1.2' | 'tlsv1.3'): TlsVersion {
  return word === 'tlsv1.3' ? 'TLSv1.3' : 'TLSv1.2';
}

type TlsKeys = Checked<typeof TLS_SERVER>;

/** The server side of TLS; null after a problem. `block` is where the keys stand. */
export function tlsServer(block: TlsKeys, sink: Sink): TlsServerConfig | null {
  const { keyfile, certfile } = block;
  if (keyfile === null) sink.refuse(block, 'keyfile', 'TLS needs a private key');
  if (certfile === null) sink.refuse(block, 'certfile', 'TLS needs a certificate');
  if (block.verify_peer && block.cacertfile === null)
    sink.refuse(block, 'cacertfile', 'verify_peer requires trusted certificate authorities');
  if (block.fail_if_no_peer_cert && !block.verify_peer) {
    sink.doubt(
      block,
      'fail_if_no_peer_cert',
      'without verify_peer clients are not asked for a certificate; it has no effect',
    );
  }
  if (keyfile === null || certfile === null) return null;
  return { ...effectiveFields(TLS_SERVER, block), minVersion: tlsVersion(block.min_version), keyfile, certfile };
}

export function tlsClient(block: Checked<typeof TLS_CLIENT>): TlsClientConfig {
  return { ...effectiveFields(TLS_CLIENT, block), minVersion: tlsVersion(block.min_version) };
}

/** The certificates by server name. */
export function tlsNames(certificates: Checked<typeof CERTIFICATES>['certificates']): TlsNameConfig[] {
  return certificates.map(({ servername, keyfile, certfile, key_password }) => ({
    name: servername,
    keyfile,
    certfile,
    keyPassword: key_password,
  }));
}

/**
 * Whose PROXY protocol header is believed; warns where anybody's is and anybody can come. `host` is where the door is.
 */
export function proxyProtocolFrom(
  block: { readonly proxy_protocol: boolean; readonly proxy_protocol_from: readonly string[] },
  hosts: readonly string[],
  sink: Sink,
): readonly string[] {
  const { proxy_protocol: on, proxy_protocol_from: from } = block;
  if (!on && from.length > 0) sink.doubt(block, 'proxy_protocol_from', 'has no effect without proxy_protocol = true');
  if (on && from.length === 0 && !hosts.every(isLoopback)) {
    sink.doubt(
      block,
      'proxy_protocol',
      'whoever can connect may claim any address; proxy_protocol_from names the load balancers to believe',
    );
  }
  return from;
}

/** Refuses what is no http:// or https:// URL. */
export function checkHttpUrl(block: object, url: string, sink: Sink): void {
  if (!/^https?:\/\/[^\s/]+/.test(url) || !URL.canParse(url))
    sink.refuse(block, 'url', 'an http:// or https:// URL expected');
}

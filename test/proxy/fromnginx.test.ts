// docs/from-nginx.md: each of its examples is a configuration that loads without a problem or a warning, and it names every directive.
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { load } from '../harness/configfiles.ts';

const page = readFileSync(new URL('../../docs/from-nginx.md', import.meta.url), 'utf8');
const examples = [...page.matchAll(/^## ([^\n]+)$|^```hocon\n(.*?)^```$/gms)].reduce<[string, string][]>(
  (found, [, heading, text]) => {
    if (heading !== undefined) found.push([heading, '']);
    else found[found.length - 1][1] += `${text}\0`;
    return found;
  },
  [],
);
const texts = examples.flatMap(([heading, text]) =>
  text
    .split('\0')
    .filter((one) => one !== '')
    .map((one): [string, string] => [heading, one]),
);

/** By the modules of NGINX's stream documentation; of HAProxy what concerns MQTT and stick tables. */
const DIRECTIVES = {
  mqtt_preread: 'mqtt_preread',
  mqtt_filter: 'mqtt mqtt_buffers mqtt_rewrite_buffer_size mqtt_set_connect',
  core:
    'listen preread_buffer_size preread_timeout proxy_protocol_timeout resolver resolver_timeout server server_name ' +
    'tcp_nodelay variables_hash_bucket_size variables_hash_max_size',
  proxy:
    'proxy_bind proxy_buffer_size proxy_connect_timeout proxy_download_rate proxy_half_close proxy_next_upstream ' +
    'proxy_next_upstream_timeout proxy_next_upstream_tries proxy_pass proxy_protocol proxy_requests proxy_responses ' +
    'proxy_session_drop proxy_socket_keepalive proxy_ssl proxy_ssl_certificate proxy_ssl_certificate_cache ' +
    'proxy_ssl_certificate_key proxy_ssl_ciphers proxy_ssl_conf_command proxy_ssl_crl proxy_ssl_key_log proxy_ssl_name ' +
    'proxy_ssl_password_file proxy_ssl_protocols proxy_ssl_server_name proxy_ssl_session_reuse ' +
    'proxy_ssl_trusted_certificate proxy_ssl_verify proxy_ssl_verify_depth proxy_timeout proxy_upload_rate',
  upstream: 'upstream server zone state hash least_conn least_time random health_check health_check_timeout match',
  ssl:
    'ssl_alpn ssl_certificate ssl_certificate_cache ssl_certificate_compression ssl_certificate_key ssl_ciphers ' +
    'ssl_client_certificate ssl_conf_command ssl_crl ssl_dhparam ssl_ecdh_curve ssl_handshake_timeout ssl_key_log ' +
    'ssl_ocsp ssl_ocsp_cache ssl_ocsp_responder ssl_password_file ssl_prefer_server_ciphers ssl_protocols ' +
    'ssl_reject_handshake ssl_session_cache ssl_session_ticket_key ssl_session_tickets ssl_session_timeout ssl_stapling ' +
    'ssl_stapling_file ssl_stapling_responder ssl_stapling_verify ssl_trusted_certificate ssl_verify_client ' +
    'ssl_verify_depth ssl_preread',
  others:
    'map map_hash_bucket_size map_hash_max_size split_clients geo geoip_country geoip_city geoip_org limit_conn ' +
    'limit_conn_zone limit_conn_dry_run limit_conn_log_level allow deny set_real_ip_from log_format access_log ' +
    'open_log_file_cache return set pass keyval keyval_zone zone_sync js_preread js_filter js_access js_set',
  haproxy:
    'mqtt_is_valid mqtt_field_value stick-table track-sc0 conn_cur conn_rate gpc0 gpt0 bytes_in_rate bytes_out_rate ' +
    'expire size store peers inspect-delay use_backend send-proxy-v2 send-proxy-v2-ssl-cn ssl_c_serial ssl_fc_sni',
} as const;

describe('examples for those who come from NGINX and HAProxy', () => {
  it('stand under every heading that has a form here', () => {
    expect([...new Set(texts.map(([heading]) => heading))]).toEqual(
      examples.map(([heading]) => heading).filter((heading) => heading !== 'What is not there'),
    );
  });

  it.each(texts)('%s: loads, with a proxy in it', (_heading, text) => {
    const { config, warnings } = load(text);
    expect(config.proxy).toHaveLength(1);
    expect(warnings).toEqual([]);
  });

  it.each(Object.entries(DIRECTIVES))('every directive of %s is named', (_module, names) => {
    const missing = names.split(' ').filter((name) => !new RegExp(`\`[^\`\\n]*\\b${name}\\b[^\`\\n]*\``).test(page));
    expect(missing).toEqual([]);
  });
});

// Templates of the proxy as configurations write them: which variables there are.
// Values are filled in by proxy/. Pure.
import { isCertificateVariable, TLS_VARIABLES } from '../../base/tlsvariables.ts';

export const VARIABLE = /\$\{([^}]*)\}/g;
/** What is known of a client. */
export const CLIENT_VARIABLES: readonly string[] = [
  'clientid',
  'username',
  'version',
  'keep_alive',
  'clean_start',
  'will_topic',
  'sni',
  'cert_cn',
  'tls_version',
  'listener',
  'remote_addr',
  'remote_port',
  ...TLS_VARIABLES,
];
/** `match.1`, `match.name`: what the pattern of the route has captured. */
const OTHER_VARIABLE = /^(?:env\.[A-Za-z_][A-Za-z0-9_]*|match\.[A-Za-z0-9_]{1,64})$/;

const COMMON_NAMES = ['cert_cn', 'ssl_client_cn'];

export function checkTemplate(template: string): string | null {
  for (const [, name] of template.matchAll(VARIABLE)) {
    if (CLIENT_VARIABLES.includes(name) || OTHER_VARIABLE.test(name)) continue;
    return `unknown variable \${${name.slice(0, 40)}}; known are ${CLIENT_VARIABLES.join(', ')}, match.NAME and env.NAME`;
  }
  return null;
}

/** Whether it holds a variable that only a client certificate can give a value; `told`: beside its common name. */
export function needsCertificate(template: string, told = false): boolean {
  return [...template.matchAll(VARIABLE)].some(
    ([, name]) => (name === 'cert_cn' || isCertificateVariable(name)) && !(told && COMMON_NAMES.includes(name)),
  );
}

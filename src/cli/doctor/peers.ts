// `tidegate doctor`, peers and certificates: whether bridges reach their other side, as "test connection" of the
// console does it, and until when certificates hold. Called by doctor.ts. Sends no message.
import type { Config, Loaded } from '../../config/config.ts';
import type { ProbeStep } from '../../console/console.ts';
import { certificatesOf, daysLeft, SOON_MS } from '../../gateway/certificates.ts';
import { probeNngBridge } from '../../gateway/nngprobe.ts';
import { bridgeOptions } from '../../gateway/options.ts';
import { probeMqttBridge } from '../../gateway/probe.ts';
import { type Finding, Findings } from './finding.ts';

/** Tests at once. */
const AT_ONCE = 8;

export function checkCertificates({ tree }: Loaded, cwd: string, nowMs: number = Date.now()): Finding[] {
  const found = new Findings('certificates');
  for (const { key, file, error, names = [], subject = '', validFrom = 0, validTo = 0 } of certificatesOf(
    tree,
    cwd,
    nowMs,
  )) {
    const about = `${key}${file === '' ? '' : ` (${file})`}`;
    const day = new Date(validTo).toISOString().slice(0, 10);
    const whom = names.length > 0 ? names.join(', ') : subject;
    if (error !== undefined) found.fail(`${about}: ${error}`, 'correct the path, or put the certificate there');
    else if (validFrom > nowMs)
      found.fail(`${about} is valid from ${new Date(validFrom).toISOString().slice(0, 10)}`, 'set the clock, or wait');
    else if (validTo <= nowMs)
      found.fail(`${about}, for ${whom}, expired on ${day}`, 'renew it, then reload the gateway');
    else if (validTo - nowMs < SOON_MS)
      found.warn(
        `${about}, for ${whom}, expires in ${daysLeft(validTo, nowMs)} days, on ${day}`,
        'renew it, then reload the gateway: SIGHUP or `tidegate ctl reload`',
      );
    else found.ok(`${about}, for ${whom}, is valid until ${day}`);
  }
  return found.list;
}

export async function checkPeers(config: Config, running: boolean): Promise<Finding[]> {
  const wanted = bridgeOptions(config).filter((one) => one.enable);
  const all: Finding[][] = [];
  for (let i = 0; i < wanted.length; i += AT_ONCE) {
    const some = wanted.slice(i, i + AT_ONCE).map(async (options) => {
      const key =
        options.type === 'mqtt' ? `bridges.mqtt.${options.name}` : `bridges.nng.${options.type}.${options.name}`;
      const isOurs = options.type !== 'mqtt' && options.mode === 'listen';
      // Who listens is looked at under ports.
      if (isOurs || (running && options.type === 'pair')) return [];
      const steps =
        options.type === 'mqtt' ? await probeMqttBridge(options, null) : await probeNngBridge(options, null);
      return findingsOf(key, steps);
    });
    all.push(...(await Promise.all(some)));
  }
  return all.flat();
}

const ADVICE: Readonly<Record<ProbeStep['step'], string>> = {
  resolve: 'correct the name, or the name server of this machine (`getent hosts NAME`)',
  connect: 'start the other side, correct host and port, or open the firewall',
  tls: 'the certificate of the authority belongs into ca or cacertfile; the name into servername',
  mqtt: 'correct user name, password, client id or version',
  subscribe: 'let the user of the bridge subscribe at the remote broker',
  publish: 'let the user of the bridge publish at the remote broker',
  sp: 'the other side has to be the peer of this type of bridge',
  listen: 'choose another address',
};

function findingsOf(key: string, steps: readonly ProbeStep[]): Finding[] {
  const found = new Findings('peers');
  for (const { step, outcome, about, text } of steps) {
    const words = `${key}: ${step}${about === undefined ? '' : ` ${about}`}: ${text}`;
    if (outcome === 'failed') found.fail(words, ADVICE[step]);
    else if (outcome === 'warning') found.warn(words, ADVICE[step]);
  }
  const last = steps.findLast(({ outcome }) => outcome === 'ok');
  if (found.list.length === 0 && last !== undefined) found.ok(`${key}: reached (${last.about ?? last.text})`);
  return found.list;
}

// An example for every command, shown at the end of its --help and on its manual page. Read by cli.ts; a test reads
// each line with the program's own options, so that none names what is not there. To add a command, add its row.
import type { Command } from 'commander';

/** By the words that lead to the command. */
export const EXAMPLES: Readonly<Record<string, readonly string[]>> = {
  tidegate: ['tidegate init local -o tidegate.conf', 'tidegate start -c tidegate.conf'],
  start: ['tidegate start -c /etc/tidegate/tidegate.conf', 'tidegate start --set log.level=debug'],
  check: ['tidegate check -c tidegate.conf', 'tidegate check -c tidegate.conf --print'],
  init: ['tidegate init local -o tidegate.conf', 'tidegate init central -o /etc/tidegate/tidegate.conf'],
  doctor: ['tidegate doctor -c /etc/tidegate/tidegate.conf', 'tidegate doctor -c tidegate.conf --json'],
  passwd: ['tidegate passwd -c /etc/tidegate/passwd alice', 'tidegate passwd -D /etc/tidegate/passwd alice'],
  pub: [
    'tidegate pub -h broker.local -t plant/line1/temperature -m 21.5 -q 1',
    'tail -F machine.log | tidegate pub -t plant/log -l -q 1',
  ],
  sub: ["tidegate sub -t 'plant/#' -v", "tidegate sub -t 'plant/+/alarm' -C 1 -W 30"],
  nng: ['tidegate nng sub --dial tcp://127.0.0.1:9900 --topic sensors'],
  'nng pub': ['tidegate nng pub --dial tcp://127.0.0.1:9901 --topic result/average --data 21.4'],
  'nng sub': ['tidegate nng sub --dial tcp://127.0.0.1:9900 --topic sensors'],
  'nng push': ['tidegate nng push --dial tcp://127.0.0.1:9902 --topic job --data 42'],
  'nng pull': ['tidegate nng pull --dial tcp://127.0.0.1:9903 --count 10'],
  'nng pair': ['tidegate nng pair --dial tcp://127.0.0.1:9904 --topic hello --data world'],
  'nng bus': ['tidegate nng bus --listen tcp://127.0.0.1:9905 --topic state --data ready'],
  'nng req': ['tidegate nng req --dial tcp://127.0.0.1:9906 --data status --wait 2'],
  'nng rep': ['tidegate nng rep --listen tcp://127.0.0.1:9906 --echo'],
  'nng survey': ['tidegate nng survey --listen tcp://127.0.0.1:9907 --data who --wait 2'],
  'nng respond': ['tidegate nng respond --dial tcp://127.0.0.1:9907 --data here'],
  bench: ['tidegate bench -p 1883 --pubs 4 --subs 4 --seconds 10', 'tidegate bench --topic plant/load --qos 1 --json'],
  ctl: ['tidegate ctl status', 'tidegate ctl --url https://gateway:8081 --user admin --password-file pw clients'],
  'ctl status': ['tidegate ctl status', 'tidegate ctl status --json'],
  'ctl clients': ['tidegate ctl clients --search pump --state connected'],
  'ctl kick': ['tidegate ctl kick pump-7 --session'],
  'ctl bridges': ['tidegate ctl bridges'],
  'ctl upstreams': ['tidegate ctl upstreams', 'tidegate ctl upstreams plant --drain 10.0.0.2:1883'],
  'ctl topics': ['tidegate ctl topics --prefix plant --limit 20'],
  'ctl retained': ["tidegate ctl retained --filter 'plant/#'", 'tidegate ctl retained --clear plant/old'],
  'ctl quotas': ['tidegate ctl quotas'],
  'ctl delayed': ['tidegate ctl delayed', 'tidegate ctl delayed --remove 12'],
  'ctl bridge': ['tidegate ctl bridge show central'],
  'ctl bridge add': ['tidegate ctl bridge add central.json --type mqtt --keep'],
  'ctl bridge change': ['tidegate ctl bridge change central central.json --keep'],
  'ctl bridge show': ['tidegate ctl bridge show central > central.json'],
  'ctl bridge test': ['tidegate ctl bridge test trial.json'],
  'ctl bridge connect': ['tidegate ctl bridge connect central', 'tidegate ctl bridge connect --file central.json'],
  'ctl bridge remove': ['tidegate ctl bridge remove central --keep'],
  'ctl bridge enable': ['tidegate ctl bridge enable central'],
  'ctl bridge disable': ['tidegate ctl bridge disable central --keep'],
  'ctl rule': ['tidegate ctl rule list'],
  'ctl rule list': ['tidegate ctl rule list'],
  'ctl rule show': ['tidegate ctl rule show hot'],
  'ctl rule put': ['tidegate ctl rule put hot hot.json --keep'],
  'ctl rule remove': ['tidegate ctl rule remove hot'],
  'ctl rule test': ['tidegate ctl rule test hot --topic plant/line1/temperature --payload 81'],
  'ctl mqtt': ['tidegate ctl mqtt users'],
  'ctl mqtt users': ['tidegate ctl mqtt users --search pump'],
  'ctl mqtt groups': ['tidegate ctl mqtt groups'],
  'ctl mqtt roles': ['tidegate ctl mqtt roles'],
  'ctl mqtt user': ['tidegate ctl mqtt user show pump-7'],
  'ctl mqtt user show': ['tidegate ctl mqtt user show pump-7'],
  'ctl mqtt user set': ['tidegate ctl mqtt user set pump-7 --role publisher --group pumps'],
  'ctl mqtt user password': ['tidegate ctl mqtt user password pump-7'],
  'ctl mqtt user enable': ['tidegate ctl mqtt user enable pump-7'],
  'ctl mqtt user disable': ['tidegate ctl mqtt user disable pump-7'],
  'ctl mqtt user remove': ['tidegate ctl mqtt user remove pump-7'],
  'ctl mqtt group': ['tidegate ctl mqtt group set pumps --role publisher'],
  'ctl mqtt group set': ['tidegate ctl mqtt group set pumps --role publisher --member pump-7'],
  'ctl mqtt group remove': ['tidegate ctl mqtt group remove pumps'],
  'ctl mqtt role': ['tidegate ctl mqtt role show publisher'],
  'ctl mqtt role show': ['tidegate ctl mqtt role show publisher'],
  'ctl mqtt role set': ["tidegate ctl mqtt role set publisher --text 'sends measurements'"],
  'ctl mqtt role remove': ['tidegate ctl mqtt role remove publisher'],
  'ctl mqtt acl': ["tidegate ctl mqtt acl add publisher publishClientSend 'plant/#' allow"],
  'ctl mqtt acl add': ["tidegate ctl mqtt acl add publisher publishClientSend 'plant/#' allow --priority 5"],
  'ctl mqtt acl remove': ["tidegate ctl mqtt acl remove publisher publishClientSend 'plant/#'"],
  'ctl mqtt access': ['tidegate ctl mqtt access', 'tidegate ctl mqtt access publishClientSend=deny'],
  'ctl mqtt export': ['tidegate ctl mqtt export > dynamic-security.json'],
  'ctl mqtt import': ['tidegate ctl mqtt import dynamic-security.json'],
  'ctl users': ['tidegate ctl users'],
  'ctl user': ['tidegate ctl user set alice --role operator'],
  'ctl user set': ['tidegate ctl user set alice --role operator --keep'],
  'ctl user remove': ['tidegate ctl user remove alice --keep'],
  'ctl config': ['tidegate ctl config mqtt', 'tidegate ctl config mqtt.max_packet_size'],
  'ctl set': ['tidegate ctl set log.level=debug', 'tidegate ctl set mqtt.max_inflight_window=64 --keep'],
  'ctl log': ['tidegate ctl log --limit 50'],
  'ctl audit': ['tidegate ctl audit'],
  'ctl subscriptions': ["tidegate ctl subscriptions --topic 'plant/#'"],
  'ctl access': ['tidegate ctl access'],
  'ctl reload': ['tidegate ctl reload'],
  'ctl explain': [
    'tidegate ctl explain pump-7 publish plant/line1/temperature',
    'tidegate ctl explain new-pump connect --username pump --listener tcp',
  ],
  'ctl store': ['tidegate ctl store'],
  'ctl top': ['tidegate ctl top', 'tidegate ctl top --json --count 1'],
  convert: [
    'tidegate convert /etc/mosquitto/mosquitto.conf -o tidegate.conf',
    'tidegate convert tidegate.conf --to toml',
  ],
  store: ['tidegate store check /var/lib/tidegate/tidegate.db'],
  'store check': ['tidegate store check /var/lib/tidegate/tidegate.db'],
  'store export': ['tidegate store export /var/lib/tidegate/tidegate.db -o backup.jsonl'],
  'store import': ['tidegate store import new.db backup.jsonl', 'tidegate store import new.db mosquitto.db'],
  completion: ['tidegate completion bash > /usr/share/bash-completion/completions/tidegate'],
};

/** The examples of a command; none for one that has no row. */
export function examplesOf(path: string): readonly string[] {
  const name = path.replace(/^tidegate /, '');
  return Object.hasOwn(EXAMPLES, name) ? EXAMPLES[name] : [];
}

/** Adds the examples to the help of a command and of those below it. */
export function showExamples(command: Command, path: string = command.name()): void {
  const lines = examplesOf(path);
  const title = lines.length > 1 ? 'Examples' : 'Example';
  if (lines.length > 0) command.addHelpText('after', `\n${title}:\n${lines.map((line) => `  ${line}`).join('\n')}`);
  for (const child of command.commands) showExamples(child, `${path} ${child.name()}`);
}

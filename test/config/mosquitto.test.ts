// Imports of mosquitto.conf: what its lines become, what is told, what is refused. Expected values are those of mosquitto 2.0.11 on the wire
// (test/e2e/movein.test.ts compares with the broker itself where it is installed).
import { describe, expect, test } from 'vitest';
import type { Config } from '../../src/config/config.ts';
import { loadConfig } from '../../src/config/load.ts';
import { OPTIONS } from '../../src/config/mosquitto/options.ts';
import { includedNames } from '../../src/config/mosquitto/read.ts';
import { ConfigError } from '../../src/config/problem.ts';
import { folder } from '../harness/configfiles.ts';
import { converted } from '../harness/converting.ts';
import { caught } from '../harness/thrown.ts';

const of = (text: string, files = {}): Config => converted(text, 'm.conf', files).load().config;
const told = (text: string, files = {}): string =>
  converted(text, 'm.conf', files)
    .told.map((line) => line.replace(/^m\.conf:/, ''))
    .join('\n');
const listeners = (text: string, files = {}): string[] =>
  of(text, files).listeners.map((l) => `${l.kind} ${l.host}:${l.port}${l.allowAnonymous ? ' open' : ''}`);
const wrong = (text: string, files = {}): string => {
  const error = caught(() => converted(text, 'm.conf', files));
  return error instanceof ConfigError ? error.message : `not refused: ${String(error)}`;
};
/** Exit code without and with --accept-weaker. */
const codes = (text: string, files = {}): number[] =>
  [false, true].map((acceptWeaker) => converted(text, 'm.conf', files, { acceptWeaker }).code);

const TLS = 'certfile /c.pem\nkeyfile /k.pem\n';

describe('lines of a mosquitto.conf', () => {
  const BASE = 'listener 1883 127.0.0.1\n';

  test('a tab keeps the effect of its line and is told', () => {
    for (const row of ['\tacl_file /a', 'acl_file\t/a', ' \t acl_file \t /a \t'])
      expect(of(`${BASE}${row}`).auth.aclFile).toBe('/a');
    expect(told(`${BASE}\tacl_file /a`)).toContain('2:1: line: has a tab');
  });

  test('a byte order mark, carriage returns and indented comments change nothing', () => {
    const text = `\ufeff${BASE}  # why\n\t# more\nmax_qos 1\n`.replaceAll('\n', '\r\n');
    expect(of(text).listeners[0].maxQos).toBe(1);
    expect(told(text)).toMatch(/1:1: line: begins with a byte order mark[\s\S]*2:3: line: is the first of 2 indented/);
  });

  test('words behind a number or a flag do not count, those behind a text do', () => {
    expect(of(`${BASE}max_queued_messages 7 # few\nretain_available false # no`).mqtt).toMatchObject({
      maxMqueueLen: 7,
      retainAvailable: false,
    });
    expect(of(`${BASE}max_queued_messages 0x10`).mqtt.maxMqueueLen).toBe(16);
    expect(told(`${BASE}max_queued_messages 7#`)).toContain('read as 7; mosquitto 2.1 does not start');
    expect(of(`${BASE}password_file /etc/a b`).auth.passwordFile).toBe('/etc/a b');
  });

  test('values mosquitto does not start with are refused by line', () => {
    for (const [row, what] of [
      ['persistence yes', 'true or false expected'],
      ['max_inflight_messages 99999', '0 to 65535 expected'],
      ['max_packet_size 5', '20 to'],
      ['max_queued_messages x', 'a number expected'],
      ['persistent_client_expiration 2x', 'h, d, w, m or y'],
      ['acl_file', 'has no value'],
      ['bridge_cafile x', 'no connection stands before it'],
      ['plugin_opt_x y', 'no plugin stands before it'],
      ['log_type loud', 'no type of log lines'],
      ['include_dir /nowhere', 'no such file'],
      [`${TLS}tls_version foo`, 'tlsv1.3, tlsv1.2'],
    ])
      expect(wrong(`${BASE}${row}`)).toMatch(new RegExp(`m\\.conf:[234]:1: \\w+: .*${what}`));
  });

  test('an unknown option is told; one that may be meant for security is refused', () => {
    expect(told(`${BASE}autosave_intervall 7`)).toContain('did you mean autosave_interval?');
    expect(codes(`${BASE}pasword_file /p`)).toEqual([3, 0]);
    expect(converted(`${BASE}pasword_file /p`).err).toContain('mosquitto.conf:2:1: pasword_file:');
  });

  test('what no client sees is told in one line', () => {
    expect(told(`${BASE}pid_file /x\nset_tcp_nodelay true\nautosave_interval 7\nlog_timestamp true`)).toBe(
      '2:1: needless here: left out, no client sees a difference: pid_file, set_tcp_nodelay, autosave_interval, log_timestamp',
    );
  });
});

describe('included folders', () => {
  test('are read in the order of mosquitto, which ignores case', () => {
    expect(includedNames(['Zeta.conf', 'alpha.conf', '10.conf', 'a.txt', '.conf', 'B.conf', 'b.conf'])).toEqual([
      '10.conf',
      'alpha.conf',
      'B.conf',
      'b.conf',
      'Zeta.conf',
    ]);
  });

  test('the last file wins, and its errors name it', () => {
    const files = {
      'c/10.conf': 'max_queued_messages 1',
      'c/alpha.conf': 'max_queued_messages 2',
      'c/Zeta.conf': 'max_queued_messages 3',
    };
    expect(of('listener 1883\ninclude_dir c', files).mqtt.maxMqueueLen).toBe(3);
    expect(wrong('include_dir c', { 'c/x.conf': '\n persistence yes' })).toContain('c/x.conf:2:2: persistence:');
    expect(wrong('include_dir c', { 'c/x.conf': 'include_dir c' })).toContain('in the main file only');
  });

  test('begin without a listener of their own: what they say of one is the default listener’s', () => {
    const text = 'listener 1884 127.0.0.1\ninclude_dir c\nmax_connections 7';
    const { listeners: found } = of(text, { 'c/a.conf': 'max_qos 1' });
    expect(found.map((l) => [l.port, l.maxQos, l.maxConnections])).toEqual([
      [1884, 2, 7],
      [1883, 1, 0],
    ]);
  });
});

describe('listeners', () => {
  test('without an address are open on IPv4 and IPv6', () => {
    expect(listeners('listener 1884')).toEqual(['tcp *:1884']);
    expect(listeners('listener 1884 ::')).toEqual(['tcp :::1884']);
    expect(of('listener 1884 ::').listeners[0].ipv6Only).toBe(true);
    expect(of('listener 1884\nsocket_domain ipv6').listeners[0]).toMatchObject({ host: '::', ipv6Only: true });
    expect(listeners('listener 1884\nsocket_domain ipv4')).toEqual(['tcp 0.0.0.0:1884']);
    expect(listeners('listener 1884 127.0.0.1 # here')).toEqual(['tcp 127.0.0.1:1884']);
  });

  test('two on one port with different addresses both live', () => {
    expect(listeners('listener 1884 127.0.0.1\nlistener 1884 ::1\nlistener 1884 127.0.0.2')).toEqual([
      'tcp 127.0.0.1:1884',
      'tcp ::1:1884',
      'tcp 127.0.0.2:1884',
    ]);
  });

  test('none at all is one on this machine that lets anybody in', () => {
    expect(listeners('max_queued_messages 7')).toEqual(['tcp localhost:1883 open']);
    expect(listeners('allow_anonymous false')).toEqual(['tcp localhost:1883']);
    expect(told('allow_anonymous false')).toContain('1:1: allow_anonymous: mosquitto 2.0 lets anybody in');
  });

  test('options before the first one open the default listener on all addresses', () => {
    expect(listeners('max_connections 5')).toEqual(['tcp *:1883 open']);
    expect(listeners('max_qos 1\nlistener 1884')).toEqual(['tcp *:1884', 'tcp *:1883']);
    expect(listeners('port 1885\nbind_address 127.0.0.1')).toEqual(['tcp 127.0.0.1:1885']);
    expect(listeners('protocol websockets\nlistener 1884')).toEqual(['tcp *:1884', 'ws *:1883']);
    for (const row of ['max_qos 2', 'max_connections -1', 'require_certificate false', 'tls_version tlsv1.2'])
      expect(listeners(`${row}\nlistener 1884`)).toEqual(['tcp *:1884']);
  });

  test('WebSocket ones take any path, and pages of the origins that are named', () => {
    const [ws] = of(
      'listener 1884\nprotocol websockets\nwebsockets_origin Panel.example\nwebsockets_origin https://a.b',
    ).listeners;
    expect(ws).toMatchObject({ kind: 'ws', paths: null, origins: ['panel.example', 'https://a.b'] });
    expect(of('listener 1884\nprotocol websockets').listeners[0]).toMatchObject({ origins: ['*'] });
    expect(wrong('listener 1884\nprotocol websockets\nwebsockets_origin *')).toContain('a host or an origin expected');
  });

  test('a mount point is carried over', () => {
    expect(of('listener 1884\nmount_point a/').listeners[0]).toMatchObject({ mountPoint: 'a/' });
    expect(told('listener 1884\nmount_point %c/')).toContain('names of the client');
  });

  test('TLS ones are TLS, with their authorities, revocations, versions and ciphers', () => {
    const [ssl] = of(
      `listener 8883\n${TLS}capath /ca\nrequire_certificate true\ncrlfile /r\ntls_version tlsv1.3\nciphers A:B\nciphers_tls1.3 C`,
    ).listeners;
    expect(ssl).toMatchObject({
      kind: 'ssl',
      tls: {
        certfile: '/c.pem',
        keyfile: '/k.pem',
        cacertfile: '/ca',
        crlfile: '/r',
        verifyPeer: true,
        failIfNoPeerCert: true,
        minVersion: 'TLSv1.3',
        ciphers: 'C:A:B',
      },
    });
    expect(told(`listener 8883\n${TLS}tls_version tlsv1.1`)).toContain('tlsv1.1 is not spoken');
    expect(of(`listener 8883\n${TLS}protocol websockets`).listeners[0].kind).toBe('wss');
  });

  test('a name from certificates that nobody is asked for lets nobody in, and starts', () => {
    const text = `listener 8883\n${TLS}use_identity_as_username true\nuse_subject_as_username true`;
    expect(of(text).listeners[0]).toMatchObject({ identity: 'cn', tls: { verifyPeer: false } });
    expect(told(text)).toContain('no client is asked for a certificate, so nobody gets in');
  });

  test('certificates that nobody could have close the listener', () => {
    expect(listeners(`listener 1884\nlistener 8883\n${TLS}require_certificate true`)).toEqual(['tcp *:1884']);
  });

  test('half a certificate is refused: mosquitto would speak clear text', () => {
    expect(codes('listener 8883\ncertfile /c.pem')).toEqual([3, 0]);
  });

  test('what would be weaker without it is refused unless asked for', () => {
    for (const row of ['bind_interface eth0', 'tls_engine x', 'proxy_protocol_v2_require_tls true'])
      expect(codes(`listener 1884\nallow_anonymous true\n${row}`)).toEqual([3, 0]);
    expect(codes('listener 1884\ntls_keyform pem')).toEqual([0, 0]);
  });

  test('a certificate that the PROXY header tells of is demanded, and is the identity', () => {
    const head = 'allow_anonymous true\nlistener 1884 127.0.0.1\nenable_proxy_protocol 2\n';
    expect(codes(`${head}require_certificate true`)).toEqual([0, 0]);
    expect(of(`${head}require_certificate true`).listeners).toMatchObject([{ proxyCertificate: true, identity: null }]);
    const named = of(`${head}require_certificate true\nuse_identity_as_username true`).listeners;
    expect(named).toMatchObject([{ proxyCertificate: true, identity: 'cn' }]);
    expect(of(`${head}use_identity_as_username true`).listeners).toMatchObject([{ proxyCertificate: true }]);
    // Version 1 tells of no certificate: there the options mean nothing without TLS.
    expect(of(`${head.replace('protocol 2', 'protocol 1')}require_certificate true`).listeners).toMatchObject([
      { proxyCertificate: false },
    ]);
  });

  test('keys of listeners are carried; without any the listener is closed', () => {
    const text =
      'psk_file /k\nlistener 1884\nlistener 8883\npsk_hint x\nuse_identity_as_username true\ntls_version tlsv1.3';
    const [, ssl] = of(text).listeners;
    expect(ssl).toMatchObject({
      kind: 'ssl',
      identity: 'cn',
      tls: { minVersion: 'TLSv1.3', psk: { file: '/k', hint: 'x' } },
    });
    const own =
      'per_listener_settings true\nlistener 8883\npsk_hint x\npsk_file /a\nlistener 8884\npsk_file /b\npsk_hint y';
    expect(of(own).listeners.map(({ tls }) => tls?.psk?.file)).toEqual(['/a', '/b']);
    expect(listeners('listener 1884\nlistener 8883\npsk_hint x')).toEqual(['tcp *:1884']);
    expect(() => codes(`psk_file /k\nlistener 8883\npsk_hint x\n${TLS}`)).toThrow('certfile: cannot be combined');
    expect(() => codes('psk_file /k\nlistener 8883\npsk_hint x\nprotocol websockets')).toThrow('psk_hint');
  });

  test('client ids are ruled as there', () => {
    const text =
      'listener 1884\nallow_zero_length_clientid false\nauto_id_prefix x-\nuse_username_as_clientid true\nclientid_prefixes dev-';
    const { listeners: found, mqtt } = of(text);
    expect(found[0]).toMatchObject({
      allowEmptyClientId: false,
      autoClientIdPrefix: 'x-',
      useUsernameAsClientId: true,
    });
    expect(mqtt.clientIdPrefix).toBe('dev-');
  });
});

describe('security', () => {
  test('a named listener lets nobody in unless told to', () => {
    expect(listeners('listener 1884')).toEqual(['tcp *:1884']);
    expect(listeners('listener 1884\nallow_anonymous true')).toEqual(['tcp *:1884 open']);
    expect(listeners('listener 1884\nlistener_allow_anonymous true\nlistener 1885')).toEqual([
      'tcp *:1884 open',
      'tcp *:1885',
    ]);
  });

  test('with per_listener_settings what stands before the first listener is the default listener’s alone', () => {
    const text = 'per_listener_settings true\nallow_anonymous true\nacl_file /a\nlistener 1884 127.0.0.1\nacl_file /b';
    const { auth, listeners: found } = of(text);
    expect(auth).toMatchObject({ allowAnonymous: false, aclFile: null });
    expect(found.map((l) => [l.port, l.allowAnonymous, l.aclFile])).toEqual([[1884, false, '/b']]);
    expect(listeners('per_listener_settings true\npassword_file /p\nlistener 1884\nallow_anonymous true')).toEqual([
      'tcp *:1884 open',
      'tcp *:1883 open',
    ]);
    expect(wrong('acl_file /a\nper_listener_settings true')).toContain('m.conf:2:1: per_listener_settings:');
  });

  test('a plugin that is not asked here is refused, and asked for closes what it guarded', () => {
    const text = 'listener 1884\nallow_anonymous true\nplugin /x.so\nplugin_opt_a b';
    expect(codes(text)).toEqual([3, 0]);
    const forced = converted(text, 'm.conf', {}, { acceptWeaker: true });
    expect(forced.load().config.listeners[0].allowAnonymous).toBe(false);
    expect(
      codes('per_listener_settings true\nlistener 1884\nplugin_load a /x.so\nlistener 1885\nplugin_use a'),
    ).toEqual([3, 0]);
  });
});

describe('the broker', () => {
  test('without limits of its own has those of mosquitto', () => {
    expect(of('listener 1883').mqtt).toMatchObject({
      maxPacketSize: 0,
      maxSessionExpiryMs: 0,
      maxInflightWindow: 20,
      maxAwaitingRel: 20,
      maxMqueueLen: 1000,
      maxMqueueBytes: 0,
    });
  });

  test('has the limits that are written', () => {
    const text = `listener 1883
max_packet_size 1000000
message_size_limit 500
persistent_client_expiration 2m
max_inflight_messages 5
max_queued_bytes 9000
max_keepalive 60
memory_limit 4000000
queue_qos0_messages true
sys_interval 0`;
    expect(of(text).mqtt).toMatchObject({
      maxPacketSize: 1000000,
      maxPayloadSize: 500,
      maxSessionExpiryMs: 60 * 86_400_000,
      maxInflightWindow: 5,
      maxAwaitingRel: 5,
      maxMqueueBytes: 9000,
      maxKeepaliveSeconds: 60,
      memoryBudget: 4000000,
      queueQos0: true,
      sysIntervalMs: 0,
    });
    expect(told(text)).toBe(
      '8:1: memory_limit: is mqtt.memory_budget: it bounds what waits for clients, not the memory of the process',
    );
  });

  test('persists where mosquitto does, and says what it does not read', () => {
    expect(of('listener 1883\npersistence true').persistence).toMatchObject({ enable: true, path: 'tidegate.db' });
    expect(of('listener 1883\npersistence true\npersistence_location /var/lib/mosquitto/').persistence.path).toBe(
      '/var/lib/mosquitto/tidegate.db',
    );
    expect(of('listener 1883\npersistence_location /var/lib/mosquitto/').persistence.enable).toBe(false);
    expect(told('listener 1883\npersistence true\npersistence_location /v/\npersistence_file x.db')).toContain(
      'retained messages of /v/x.db are not read',
    );
  });

  test('logs where and what mosquitto logs', () => {
    expect(of('listener 1883').log).toMatchObject({ level: 'info', to: ['console'] });
    expect(of('log_dest file /var/log/m osq.log\nlog_dest stdout\nlog_type error\nlog_type warning').log).toMatchObject(
      {
        level: 'warn',
        to: ['file', 'console'],
        dir: '/var/log',
        file: 'm osq.log',
      },
    );
    expect(of('log_dest none').log.level).toBe('fatal');
    expect(told('log_dest syslog\nlog_dest topic')).toContain('1:1: log_dest: syslog is not there');
  });
});

test('every option that is not carried over as it is is told, or refused', () => {
  const silent = OPTIONS.filter(({ key, scope, verdict, min = 33, max = 33 }) => {
    if (scope === 'plugin' || verdict === 'carried' || verdict === 'cosmetic') return false;
    const before =
      scope === 'bridge' ? 'connection a\naddress b\nremote_clientid x\nbridge_cafile /c\ntopic # out\n' : '';
    const number = String(Math.min(max, Math.max(min, 33)));
    return !['true', 'false', number, 'lazy', 'tlsv1.1', '/some/thing'].some((value) => {
      try {
        const { code, told: lines } = converted(`listener 1883\n${before}${key} ${value}`, 'm.conf');
        return code === 3 || lines.some((line) => line.includes(`${key}:`));
      } catch {
        return false;
      }
    });
  });
  expect(silent.map(({ key }) => key)).toEqual([]);
});

test('max_topic_alias of several listeners is one value, the highest', () => {
  const text = 'listener 1883\nmax_topic_alias 3\nlistener 1884\nmax_topic_alias 7\n';
  expect(of(text).mqtt.maxTopicAlias).toBe(7);
  expect(told(text)).toMatch(/2:1: max_topic_alias: is mqtt.max_topic_alias = 7.*\n.*4:1: /);
  expect(of(`${text}listener 1885`).mqtt.maxTopicAlias).toBe(10);
});

describe('bridges', () => {
  const BRIDGE = 'listener 1883\nconnection up\naddress b.example:8883\n';
  const bridge = (text: string) => of(`${BRIDGE}${text}`).bridges.mqtt[0];

  test('with anything of TLS speak TLS', () => {
    for (const row of [
      'bridge_cafile /ca',
      'bridge_capath /ca',
      'bridge_certfile /c\nbridge_keyfile /k',
      'bridge_use_system_ca true',
      'bridge_tls_use_os_certs true',
    ])
      expect(bridge(`topic # out\n${row}`)).toMatchObject({
        server: 'tls+mqtt-tcp://b.example:8883',
        tls: { verify: true, verifyName: true },
      });
    expect(
      bridge('topic # out\nbridge_cafile /ca\nbridge_insecure true\nbridge_alpn mqtt\nbridge_tls_version tlsv1.3'),
    ).toMatchObject({
      alpn: ['mqtt'],
      tls: { ca: '/ca', verify: true, verifyName: false, minVersion: 'TLSv1.3' },
    });
  });

  test('with a pre-shared key keep TLS by it, and nothing else', () => {
    expect(bridge('topic # out\nbridge_identity a\nbridge_psk 00ff')).toMatchObject({
      server: expect.stringMatching(/^tls\+mqtt-tcp:/),
      tls: { psk: '00ff', pskIdentity: 'a' },
    });
    for (const wrong of ['bridge_identity a', 'bridge_psk 00ff', 'bridge_psk 0f0\nbridge_identity a'])
      expect(() => codes(`${BRIDGE}topic # out\n${wrong}`)).toThrow('bridge_');
    expect(() => codes(`${BRIDGE}topic # out\nbridge_psk 00ff\nbridge_identity a\nbridge_cafile /ca`)).toThrow(
      'cannot be combined',
    );
  });

  test('keep one session under one client id', () => {
    const first = bridge('topic # out');
    expect(first).toMatchObject({ cleanStart: false, protoVer: 4, noLocalV4: true });
    expect(first.clientId).toMatch(/\.up$/);
    expect(bridge('topic # out\nremote_clientid me\ncleansession true')).toMatchObject({
      clientId: 'me',
      cleanStart: true,
    });
  });

  test('publish their state and send what is stored, as there', () => {
    const plain = bridge('topic # out');
    expect(plain.notifications).toEqual({ topic: null, localOnly: false, remoteRetain: true });
    expect(plain.forwards[0].stored).toBe(true);
    expect(bridge('topic # out\nnotifications false').notifications).toBeNull();
    expect(
      bridge('topic # out\nnotification_topic a/b\nnotifications_local_only true\nbridge_outgoing_retain false')
        .notifications,
    ).toEqual({ topic: 'a/b', localOnly: true, remoteRetain: false });
    expect(bridge('topic # out\nbridge_max_packet_size 500').maxPacketSize).toBe(500);
    expect(told(`${BRIDGE.replace('b.example:8883', 'a b:1 c')}topic # out`)).toContain(
      'does not go back to the first one',
    );
  });

  test('run from the start, whatever start_type says', () => {
    expect(told(`${BRIDGE}topic # out\nstart_type automatic`)).not.toContain('start_type');
    for (const word of ['lazy', 'once'])
      expect(told(`${BRIDGE}topic # out\nstart_type ${word}`)).toContain(`5:1: start_type: ${word} is automatic`);
    expect(wrong(`${BRIDGE}topic # out\nstart_type manual`)).toContain('automatic, lazy or once expected');
  });

  test('take the QoS of a topic as a ceiling, and prefixes behind wildcards', () => {
    const { forwards, subscription } = bridge(
      'topic a/# out 1 loc/ rem/\ntopic b/+/c in 2 loc/ rem/\ntopic "" both 0 here there\ntopic s BOTH\ntopic x/y out 1 # note\ntopic "a b" in 0 l/ ""',
    );
    expect(forwards.map((f) => [f.localTopic, f.remoteTopic, f.qos, f.maxQos])).toEqual([
      ['loc/a/#', 'rem/a/#', null, 1],
      ['here', 'there', null, 0],
      ['s', '', null, 0],
      ['x/y', '', null, 1],
    ]);
    expect(subscription.map((s) => [s.remoteTopic, s.localTopic, s.qos])).toEqual([
      ['rem/b/+/c', 'loc/b/+/c', 2],
      ['there', 'here', 0],
      ['s', '', 0],
      ['a b', 'l/a b', 0],
    ]);
    expect(bridge('topic # out\nbridge_outgoing_retain false').forwards[0].retain).toBe(false);
  });

  test('that mosquitto does not start with are refused by line', () => {
    for (const [row, what] of [
      ['topic # out 3', 'QoS 0, 1 or 2'],
      ['topic # sideways', 'no direction'],
      ['topic "" out 0 a ""', 'both prefixes'],
      ['topic a out 0 l/+/ r/', 'no wildcards'],
      ['topic # out 0 l r', 'only character of their level'],
      ['address c.example\ntopic #', 'only once'],
    ])
      expect(wrong(`${BRIDGE}${row}`)).toContain(what);
    expect(wrong('connection up\ntopic # out')).toContain('up has no address');
    expect(wrong('connection up\naddress a')).toContain('up has no topic');
  });
});

describe('what is written', () => {
  test('begins with what is not the same, and reads back', () => {
    const { out, load } = converted('listener 1883 127.0.0.1\nallow_anonymous true\nmax_inflight_bytes 9');
    expect(out).toMatch(/^# Taken over from a mosquitto\.conf/);
    expect(out).toContain('# - mosquitto.conf:3:1: max_inflight_bytes: not carried over');
    expect(load().warnings).toEqual([]);
  });

  test('is refused where check would refuse it', () => {
    expect(wrong('listener 1884 127.0.0.1\nlistener 1884')).toContain('has this address already');
  });

  test('is TOML where the name says so', () => {
    const { cwd, code } = converted('listener 1883', 'm.conf', {}, { output: 'x.toml' });
    expect(code).toBe(0);
    expect(loadConfig({ file: 'x.toml', env: {}, cwd }).config.listeners).toHaveLength(1);
  });
});

describe('check and start', () => {
  const refusal = (text: string): string => {
    const cwd = folder({ 'm.conf': text });
    try {
      loadConfig({ file: 'm.conf', env: {}, cwd });
    } catch (error) {
      if (error instanceof ConfigError) return error.message;
      throw error;
    }
    return 'not refused';
  };

  test('say that a file is a mosquitto.conf, and how it is taken over', () => {
    for (const text of [
      'listener 1883\n',
      '# c\n\nunknown_option 7\nallow_anonymous true\n',
      '  # c\r\nlistener 1883\r\n',
      '\ufefflistener 1883\n',
      '\tlistener 1883\n',
      'connection a\naddress b\ntopic # both 2 a/ b/\n',
    ])
      expect(refusal(text)).toContain('m.conf:1:1: syntax: this is a mosquitto.conf; `tidegate convert m.conf');
  });

  test('take no HOCON for one', () => {
    for (const text of [
      'mqtt {\n  max_qos = 1\n}',
      'mqtt.max_qos = 1',
      'mqtt\n{\nmax_qos : 1 }',
      '# listener 1883\nmqtt { }',
      '',
    ])
      expect(refusal(text)).toBe('not refused');
  });
});

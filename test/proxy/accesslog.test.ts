// biome-ignore-all lint/suspicious/noTemplateCurlyInString: templates of the proxy are written like this
// Lines of the access log: what they hold, what is escaped, and files that are moved away, full or gone.
import { existsSync, mkdtempSync, readFileSync, renameSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { LOG_FIELDS } from '../../src/config/schema/logformat.ts';
import { AccessLog, type Entry, jsonLine, textLine } from '../../src/proxy/accesslog.ts';
import { compileLine } from '../../src/proxy/logformat.ts';
import { facts } from '../harness/proxyparts.ts';

const entry = (fields: Partial<Entry> = {}): Entry => ({
  timeMs: Date.UTC(2024, 0, 2, 3, 4, 5, 6),
  remoteAddress: '10.0.0.7',
  remotePort: '50312',
  listener: 'p',
  version: 5,
  clientId: 'dev',
  username: null,
  rewrittenClientId: 'ng-dev',
  upstreams: ['10.0.1.1:1883', '10.0.1.2:1883'],
  bytesReceived: 120,
  bytesSent: 45,
  sessionMs: 1234.5,
  status: 200,
  reason: 'closed by client',
  facts: facts({ version: 5, clientId: 'dev', keepAlive: 30, sni: 'a.test' }),
  ...fields,
});

describe('a JSON line', () => {
  it('has all fields, null for what is missing', () => {
    expect(JSON.parse(jsonLine(entry()))).toEqual({
      time: '2024-01-02T03:04:05.006Z',
      remote_addr: '10.0.0.7',
      remote_port: 50312,
      listener: 'p',
      mqtt_version: 5,
      clientid: 'dev',
      username: null,
      rewritten_clientid: 'ng-dev',
      upstream_addr: '10.0.1.1:1883, 10.0.1.2:1883',
      bytes_received: 120,
      bytes_sent: 45,
      session_time: 1.2345,
      status: 200,
      reason: 'closed by client',
    });
    expect(JSON.parse(jsonLine(entry({ version: 0, upstreams: [] })))).toMatchObject({
      mqtt_version: null,
      upstream_addr: null,
    });
  });

  it('holds no character that a terminal would obey', () => {
    const line = jsonLine(entry({ clientId: 'a\u009b31m\u202e\u2028\n"\\' }));
    expect(line.trimEnd()).toMatch(/^[ -~]*$/);
    expect(JSON.parse(line).clientid).toBe('a\u009b31m\u202e\u2028\n"\\');
  });
});

describe('a text line', () => {
  it('is one line with everything in its place', () => {
    expect(textLine(entry())).toBe(
      '10.0.0.7:50312 [2024-01-02T03:04:05.006Z] p 5 "dev" "-" "ng-dev" "10.0.1.1:1883, 10.0.1.2:1883" 200 120 45 1.234 "closed by client"\n'.replace(
        '1.234',
        (1.2345).toFixed(3),
      ),
    );
  });

  it('escapes quotes, backslashes, control and high bytes as NGINX does', () => {
    expect(textLine(entry({ clientId: 'q"\\é\n\t\x7f' }))).toContain('"q\\x22\\x5C\\xC3\\xA9\\x0A\\x09\\x7F"');
  });
});

describe('a format of its own', () => {
  it('is a template, escaped, with - for what is missing', () => {
    const line = compileLine(
      '${remote_addr} [${time}] "${clientid}" ${username} ${sni} ${status} ${session_time} \\é ${will_topic}',
    );
    expect(line(entry({ clientId: 'a"\n${username}' }))).toBe(
      '10.0.0.7 [2024-01-02T03:04:05.006Z] "a\\x22\\x0A${username}" - a.test 200 1.234 \\é -\n'.replace(
        '1.234',
        (1.2345).toFixed(3),
      ),
    );
  });

  it('is a list of keys, in its order, null for what is missing', () => {
    const line = compileLine(['status', 'clientid', 'username', 'sni', 'keep_alive', 'ssl_client_serial']);
    expect(line(entry({ clientId: '\u202e' }))).toBe(
      '{"status":200,"clientid":"\\u202e","username":null,"sni":"a.test","keep_alive":30,"ssl_client_serial":null}\n',
    );
  });

  it('knows every field that a configuration may name', () => {
    const full = entry({
      username: 'u',
      facts: facts({ sni: 's', certCn: 'c', tlsVersion: 't', willTopic: 'w', username: 'u' }),
    });
    const missing = LOG_FIELDS.filter((name) => JSON.parse(compileLine([name])(full))[name] === null);
    expect(missing.filter((name) => !name.startsWith('ssl_'))).toEqual([]);
  });
});

describe('an access log', () => {
  let folder = '';
  beforeEach(() => {
    folder = mkdtempSync(path.join(os.tmpdir(), 'accesslog-'));
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  function open(rotation = { size: 0, count: 2 }) {
    const file = path.join(folder, 'sub/access.log');
    const lost = { value: 0 };
    const errors: string[] = [];
    const log = new AccessLog(file, rotation, lost, (error) => errors.push(error));
    log.open();
    return { log, file, lost, errors };
  }
  const holds = (file: string, text: string): Promise<void> =>
    vi.waitFor(() => expect(existsSync(file) ? readFileSync(file, 'utf8') : '').toBe(text), {
      interval: 2,
      timeout: 5000,
    });

  it('writes lines in order and what is waiting when it closes', async () => {
    const { log, file } = open();
    log.write('1\n');
    log.write('2\n');
    await holds(file, '1\n2\n');
    log.write('3\n');
    log.close();
    await holds(file, '1\n2\n3\n');
  });

  it('goes on in a new file after the old one was moved away', async () => {
    const { log, file } = open();
    log.write('old\n');
    await holds(file, 'old\n');
    renameSync(file, `${file}.moved`);
    log.reopen();
    log.write('new\n');
    await holds(file, 'new\n');
    expect(readFileSync(`${file}.moved`, 'utf8')).toBe('old\n');
    log.close();
  });

  it('rotates a file that is full and keeps as many as told', async () => {
    const { log, file } = open({ size: 4, count: 2 });
    for (const line of ['aaaa\n', 'bbbb\n', 'cccc\n', 'dddd\n']) {
      log.write(line);
      await holds(file, line);
    }
    await holds(`${file}.1`, 'cccc\n');
    await holds(`${file}.2`, 'bbbb\n');
    expect(existsSync(`${file}.3`)).toBe(false);
    log.close();
  });

  it('stays with its file when a new one cannot be opened, and says so', async () => {
    const { log, file, errors } = open();
    rmSync(path.dirname(file), { recursive: true });
    const blocked = path.dirname(file);
    // A file where the folder was.
    (await import('node:fs')).writeFileSync(blocked, '');
    log.reopen();
    log.write('kept\n');
    expect(errors).toHaveLength(1);
    log.close();
  });
});

// Fuzz target: password files, SCRAM files, SCRAM messages. Holds: what is damaged is refused with file and line and without any of its
// text; a SCRAM conversation never throws and never accepts what is not the answer of somebody who knows the password.
import { Gate } from '../../src/auth/gate.ts';
import { FailureLimits } from '../../src/auth/limits.ts';
import { parsePasswordFile } from '../../src/auth/passwordfile.ts';
import { parseScram, parseScramFile } from '../../src/auth/scram.ts';
import { ScramMethod } from '../../src/auth/scramexchange.ts';
import { textFile } from '../../src/auth/textfile.ts';
import { systemClock } from '../../src/base/clock.ts';
import { GatewayError } from '../../src/base/errors.ts';
import { nullLog } from '../../src/base/log.ts';
import { credentials } from '../auth/support.ts';
import type { FuzzTarget } from '../harness/fuzz.ts';
import type { Random } from '../harness/random.ts';

const DIGEST = Buffer.alloc(64, 'digest').toString('base64');
const SALT = Buffer.alloc(12, 'salt').toString('base64');
const KEY = Buffer.alloc(32, 'key').toString('base64');
const PASSWORDS = `# users\nann:$7$101$${SALT}$${DIGEST}\nbob:$6$${SALT}$${DIGEST}\r\n\ncy:$argon2id$v=19$m=64,t=1,p=1$AAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAA\n`;
const SCRAM = `ann:SCRAM-SHA-256$4096:${SALT}$${KEY}:${KEY}\n`;
const MESSAGES = ['n,,n=ann,r=abc', `c=biws,r=abc,p=${KEY}`, 'y,a=ann,n=ann,r=x,ext=1', 'p=tls-unique,,n=a,r=b'];

function parse(random: Random, text: string, read: (bytes: Buffer) => unknown): void {
  try {
    read(random.mutated(Buffer.from(text)));
  } catch (error) {
    if (!(error instanceof GatewayError) || !/ f:\d+: /.test(error.message)) throw error;
    if (/digest|ZGln|c2Fsd|AAAA|a2V5/.test(error.message)) throw new Error(`shows a secret: ${error.message}`);
  }
}

export const target: FuzzTarget = {
  once(random: Random): void {
    parse(random, PASSWORDS, (bytes) => parsePasswordFile(textFile('f', bytes, 0o600)));
    parse(random, SCRAM, (bytes) => parseScramFile(textFile('f', bytes, 0o600)));
    const keys = parseScram(SCRAM.slice(4).trim());
    if (typeof keys === 'string') throw new Error(keys);
    const limits = new FailureLimits(systemClock, nullLog);
    const tools = { gate: new Gate(1, 1), limits, scramSecret: Buffer.alloc(32), markNow: () => 'mark' };
    const exchange = new ScramMethod({ stored: new Map([['ann', keys]]), passwords: null }, tools).begin(
      credentials(null, null),
    );
    for (let i = 0; i < 4; i++) {
      const message = Buffer.from(random.pick(MESSAGES));
      const step = exchange.step(random.below(3) === 0 ? message : random.mutated(message));
      if (!('kind' in step) || step.kind === 'accept') throw new Error('accepted or waiting');
    }
  },
};

// The table of Scalability Protocols: each name and its file. A new protocol is a file in protocols/ and a row here.
// Read by the drivers, native.ts and nanomsg.ts, and by cli/ for the names. What a row says is described in pattern.ts.
import type { ProtocolRow } from './pattern.ts';
import { bus0 } from './protocols/bus.ts';
import { pair0, pair1 } from './protocols/pair.ts';
import { pub0 } from './protocols/pub.ts';
import { pull0 } from './protocols/pull.ts';
import { push0 } from './protocols/push.ts';
import { rep0 } from './protocols/rep.ts';
import { req0 } from './protocols/req.ts';
import { respondent0 } from './protocols/respondent.ts';
import { sub0 } from './protocols/sub.ts';
import { surveyor0 } from './protocols/surveyor.ts';

export const PROTOCOLS = {
  pair0,
  pair1,
  pub0,
  sub0,
  req0,
  rep0,
  push0,
  pull0,
  surveyor0,
  respondent0,
  bus0,
} as const satisfies Readonly<Record<string, ProtocolRow>>;

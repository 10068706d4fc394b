// surveyor0: asks all its peers; what they answer comes in until the time is over. request() has several surveys under
// way; send() is nng's plain socket: a survey of one second, which takes the place of the one before. Named in
// protocol.ts. Source: sp-survey of the nanomsg RFCs, nng_surveyor(7).
import type { Timer } from '../../base/clock.ts';
import type { Asking, Host, Pattern, Peer, ProtocolRow } from '../pattern.ts';
import { bodyStart, firstNumber, joinRequest, nextNumber, readWord, WORD_BYTES } from './backtrace.ts';
import { Fanout } from './fanout.ts';

/** NNG_OPT_SURVEYOR_SURVEYTIME: 1 s. */
const SURVEY_MS = 1000;
/** Surveys that may be under way at once. */
const MOST_SURVEYS = 65_536;
const NO_BYTES = new Uint8Array(0);

interface Survey {
  readonly number: number;
  readonly asking: Asking | null;
  limit: Timer | null;
}

class Surveyor extends Fanout implements Pattern {
  readonly plain = false;
  private number = firstNumber();
  private readonly open = new Map<number, Survey>();
  private only: Survey | null = null;

  request(body: Uint8Array, timeoutMs: number, asking: Asking): (() => void) | null {
    const survey = this.ask(NO_BYTES, body, 0, body.length, timeoutMs, asking);
    return survey === null ? null : () => this.close(survey);
  }

  override send(head: Uint8Array, body: Uint8Array, start: number, end: number): boolean {
    if (this.only !== null) this.close(this.only);
    this.only = this.ask(head, body, start, end, SURVEY_MS, null);
    return true;
  }

  override sendMany(head: Uint8Array, source: Uint8Array, spans: Int32Array, count: number): number {
    for (let i = 0; i < count; i++) this.send(head, source, spans[2 * i], spans[2 * i + 1]);
    return count;
  }

  received(peer: Peer, bytes: Uint8Array, start: number, end: number): void {
    const at = bodyStart(bytes, start, end);
    if (at !== start + WORD_BYTES) {
      peer.refuse('bad-frame');
      return;
    }
    const survey = this.open.get(readWord(bytes, start));
    if (survey === undefined) return;
    if (survey.asking === null) this.host.deliver(bytes, at, end, peer);
    else survey.asking.reply(bytes, at, end);
  }

  stop(): void {
    for (const survey of [...this.open.values()]) this.end(survey, 'stopped');
  }

  private ask(
    head: Uint8Array,
    body: Uint8Array,
    start: number,
    end: number,
    timeMs: number,
    asking: Asking | null,
  ): Survey | null {
    this.number = nextNumber(this.number);
    const message = joinRequest(this.number, head, body, start, end);
    if (this.open.size >= MOST_SURVEYS || !super.send(NO_BYTES, message, 0, message.length)) {
      this.host.stats.dropped++;
      return null;
    }
    const survey: Survey = { number: this.number, asking, limit: null };
    this.open.set(survey.number, survey);
    survey.limit = this.host.clock.after(timeMs > 0 ? timeMs : SURVEY_MS, () => this.end(survey, 'timeout'));
    return survey;
  }

  private end(survey: Survey, how: 'timeout' | 'stopped'): void {
    this.close(survey);
    survey.asking?.ended(how);
  }

  private close(survey: Survey): void {
    this.open.delete(survey.number);
    survey.limit?.cancel();
    if (this.only === survey) this.only = null;
  }
}

export const surveyor0: ProtocolRow = {
  number: 0x62,
  peer: 0x63,
  word: 'surveyor',
  peerWord: 'respondent',
  sends: true,
  receives: true,
  single: false,
  headerBytes: WORD_BYTES,
  hops: false,
  open: (host: Host) => new Surveyor(host),
};

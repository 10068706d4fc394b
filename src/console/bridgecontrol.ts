// Bridges at run time as REST and console ask for them: views, documents, trials, tests of a connection. Types alone,
// for console.ts; gateway/bridges.ts does the work. Secrets in views are masked.
import type { Qos } from '../mqtt/packet.ts';
import type { Properties } from '../mqtt/property.ts';
import type { CertificateFacts } from '../transport/transport.ts';
import type { ChangeResult, JsonObject, Problem } from './console.ts';

export type BridgeState = 'starting' | 'listening' | 'connected' | 'retrying' | 'error' | 'denied' | 'disabled';
/** Names of the blocks of bridges.nng. */
export type NngDirection = 'pub' | 'sub' | 'push' | 'pull' | 'pair' | 'req' | 'rep';
export interface BridgeRef {
  readonly kind: 'nng' | 'mqtt';
  /** Which block of bridges.nng it stands in; null for MQTT bridges. */
  readonly direction: NngDirection | null;
  readonly name: string;
}
export interface BridgeView extends BridgeRef {
  readonly enabled: boolean;
  readonly state: BridgeState;
  readonly lastError: string | null;
  /**
   * Its block with the keys of the file, defaults included, bytes and milliseconds as in `check --print`, secrets
   * masked.
   */
  readonly config: JsonObject;
  /**
   * The same as a document, which can be changed and sent back: times whose bare number would be read as seconds have
   * their unit.
   */
  readonly document: JsonObject;
  /** What else is known: endpoints, peers, counters by bridge and by rule. Its keys are not keys of the block. */
  readonly status: JsonObject;
}

/** One rule and one input, for "what would this rule do". Bytes, because frames are. */
export interface Trial {
  readonly direction: 'pub' | 'sub';
  readonly rule: JsonObject;
  /** direction sub: the frame's body. */
  readonly frame: Uint8Array;
  /** direction pub: the message. */
  readonly topic: string;
  readonly payload: Uint8Array;
  readonly qos: Qos;
  readonly retain: boolean;
  readonly properties: Properties | null;
}
export type TrialResult =
  | { readonly ok: false; readonly problems: readonly Problem[] }
  | { readonly ok: true; readonly matched: false; readonly reason: string }
  | { readonly ok: true; readonly matched: true; readonly direction: 'pub'; readonly frame: Uint8Array }
  | {
      readonly ok: true;
      readonly matched: true;
      readonly direction: 'sub';
      readonly topic: string;
      readonly payload: Uint8Array;
      readonly qos: number;
      readonly retain: boolean;
      /** What the trace header of the frame says, as the User Property has it. */
      readonly traceparent?: string;
    };

/**
 * Bridges at run time. Documents are read like the block in a file (a bare number has the key's unit) and checked by
 * the same schema; a secret that reads "***" keeps its present value. Pointers of problems are relative to the
 * document. A change that fails leaves the running bridge as it was. Promises never reject for what a document holds.
 * `keep`: the change is written to tidegate.d too, or refused if that is not possible; without it, it holds until the
 * next start or reload.
 */
export interface BridgeControl {
  list(): Iterable<BridgeView>;
  get(ref: BridgeRef): BridgeView | undefined;
  add(ref: BridgeRef, document: JsonObject, keep?: boolean): Promise<ChangeResult>;
  /** Replaces its configuration: the bridge restarts with it. */
  change(ref: BridgeRef, document: JsonObject, keep?: boolean): Promise<ChangeResult>;
  /** Kept, a bridge that other files define is disabled: a file can take nothing away. The report's `note` says so. */
  remove(ref: BridgeRef, keep?: boolean): Promise<ChangeResult>;
  /** Enables or disables. */
  switch(ref: BridgeRef, on: boolean, keep?: boolean): Promise<ChangeResult>;
  test(trial: Trial): TrialResult;
  /** Tries to reach the other side of a bridge, there or not yet; changes nothing. */
  probe(wanted: ProbeRequest): Promise<ProbeResult>;
}

/** A bridge whose connection is to be tested. */
export interface ProbeRequest {
  /** With a name: that of a bridge there is, whose secrets a document may keep. */
  readonly ref: BridgeRef;
  /** null: as the bridge of this name is. */
  readonly document: JsonObject | null;
  /** Topic of one empty message to a remote broker; null: none is sent. */
  readonly publishTo: string | null;
}
/** One step of a test. `pointer`: the key of the document that it hangs on. */
export interface ProbeStep {
  readonly step: 'resolve' | 'connect' | 'tls' | 'mqtt' | 'subscribe' | 'publish' | 'sp' | 'listen';
  readonly outcome: 'ok' | 'warning' | 'failed' | 'skipped';
  /** What it was about: an address, a topic filter. */
  readonly about?: string;
  readonly text: string;
  readonly ms?: number;
  readonly pointer?: string;
  /** Of CONNACK or SUBACK. */
  readonly code?: number;
  readonly certificate?: CertificateFacts;
}
export type ProbeResult =
  | { readonly ok: true; readonly steps: readonly ProbeStep[] }
  | { readonly ok: false; readonly why: 'missing' | 'busy' }
  | { readonly ok: false; readonly why: 'invalid'; readonly problems: readonly Problem[] };

// NanoMQ's configuration before 0.14: one key=value each line, a value to the end of its line, # before a comment. Called by foreign.ts. Pure.

const SETTING = /^[ \t]*([a-z][a-z0-9_.-]*)[ \t]*=[ \t]*(.*?)[ \t\r]*$/;
/** Keys that only this form has at the root. */
const OWN =
  /^(?:url|daemon|num_taskq_thread|max_taskq_thread|parallel|property_size|msq_len|qos_duration|keepalive_backoff|allow_anonymous|client_max_packet_size|acl_[a-z_]+|acl\.rule\.\d+|enable_acl_cache|tls\.[a-z_]+|websocket\.[a-z_]+|web\.hook\..+|bridge\.mqtt\..+|aws\.bridge\..+|auth\.\d+\..+|auth\.http\..+|rule_option.*)$/;

const LOOK_LINES = 600;

/** Whether a text is in that form: nothing but assignments, and among them a key that HOCON files of NanoMQ do not have. */
export function looksLikeKeyValue(text: string): boolean {
  let own = false;
  for (const row of text.split('\n', LOOK_LINES)) {
    if (/^[ \t]*(?:#|\/\/|\r?$)/.test(row)) continue;
    const found = SETTING.exec(row);
    if (found === null || found[2] === '{') return false;
    own ||= OWN.test(found[1]);
  }
  return own;
}

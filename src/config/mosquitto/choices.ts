// Differences between mosquitto and this gateway that stay by choice, whatever a file says. Written at the top of an
// imported file and of docs/from-mosquitto.md. Data; called by config/converting.ts and scripts/moving.ts.

export const MOSQUITTO_CHOICES: readonly string[] = [
  'What is acknowledged with QoS 1 or 2 is on disk before, where persistence is on; mosquitto saves every 30 minutes.',
  'A stored message is delivered only while its publisher may still write its topic (check_retain_source), as mosquitto documents it; 2.0 never checks.',
  'A password file with a line that cannot be used stops the start, as in 2.1; 2.0 leaves the user out.',
  'In an acl_file %c and %u stand for whole levels only, as in 2.1.',
  'A session belongs to its user: another user with the same client id is refused.',
  'Versions below TLS 1.2 are not spoken, and without ciphers no RSA key exchange and no CBC.',
  'Values below $SYS are those of this gateway.',
  'What waits for all clients together is bounded (mqtt.memory_budget); mosquitto bounds single clients only.',
  'A CONNECT may have 128 KB, and a new connection ten seconds until it is there.',
];

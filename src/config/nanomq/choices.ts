// Differences between NanoMQ and this gateway that stay by choice, whatever a file says. Written at the top of what
// `tidegate convert` makes of old files and of docs/from-nanomq.md. Data; called by config/converting.ts and
// scripts/moving.ts.

export const NANOMQ_CHOICES: readonly string[] = [
  'What is not written is open on loopback only: listeners, http_server and anonymous clients; --nanomq-defaults takes the defaults of NanoMQ.',
  'allow_anonymous = true lets in clients without a username; wrong credentials are refused all the same.',
  'allow_anonymous = false without a source of users lets nobody in.',
  'max_packet_size holds for TCP too; NanoMQ does not look at it there.',
  'A QoS 2 message that is sent twice is delivered once.',
  'A client whose subscriptions overlap gets one copy of a message.',
  'An acl_req that does not answer, and a source that cannot be read, refuse.',
  'Writes to topics below $SYS are refused.',
  'Versions below TLS 1.2 are not spoken, and without ciphers no RSA key exchange and no CBC.',
  'WebSocket listeners take pages of the same host only; origins = ["*"] takes those of any.',
];

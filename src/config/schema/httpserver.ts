// The keys of http_server, for console and REST API: each once, with type, default and text. Data for schema.ts; to add
// a key, add a row here and its name in code to HttpSettings of console/, then run `make docs`. Names, units and
// meanings are NanoMQ's where NanoMQ has the key.
import { block, named, needRestart, optional } from './blocks.ts';
import { flag, int, size, text, word } from './keys.ts';
import { TLS_SERVER } from './listeners.ts';

export const WEB_USER = block(
  {
    password: text({
      secret: true,
      text: 'Password: plain, or a hash made by tidegate passwd.',
      example: 'change-me',
    }),
    role: word(['viewer', 'operator', 'admin'], {
      default: 'viewer',
      text: 'viewer: read only. operator: also manage clients, messages and switches. admin: everything.',
    }),
    enable: flag({ default: true, text: 'Whether this user may log in.' }),
  },
  { unknown: 'error', text: 'A user of the console and REST API.' },
);

export const HTTP_SERVER = optional(
  {
    ip_addr: text({
      default: '127.0.0.1',
      restart: true,
      text: 'Address to listen on. Without credentials, always loopback.',
    }),
    port: int({ default: 8081, max: 65535, restart: true, text: 'Port to listen on.' }),
    username: text({ default: null, text: 'User name for basic authentication.', example: 'admin' }),
    password: text({
      default: null,
      secret: true,
      text: 'Password for basic authentication: plain, or a hash made by tidegate passwd.',
      example: 'change-me',
    }),
    users: named(WEB_USER, { example: 'name', text: 'Further users of the console and REST API, each with a role.' }),
    auth_type: word(['basic', 'no_auth', 'jwt'], {
      default: 'basic',
      restart: true,
      text: 'How requests are authenticated.',
    }),
    jwt: optional(
      {
        public: optional(
          {
            keyfile: text({
              default: null,
              text: 'Public key for verifying tokens, PEM.',
              example: '/etc/tidegate/jwt.pub',
            }),
          },
          { unknown: 'warn', text: 'The public key.' },
        ),
        issuer: text({ default: null, text: 'Required value of the claim iss.', example: 'https://id.example.org' }),
        audience: text({ default: null, text: 'Value that the claim aud must contain.', example: 'tidegate' }),
      },
      { unknown: 'warn', text: 'For auth_type = jwt.' },
    ),
    limit_conn: int({ default: 32, restart: true, text: 'Largest number of connections. 0 = no limit.' }),
    max_body: size({ default: '1MB', restart: true, text: 'Largest request body. 0 = no limit.' }),
    tls: optional(needRestart(TLS_SERVER), { unknown: 'error', text: 'Serve HTTPS.' }),
    enable: flag({ default: true, restart: true, text: 'Whether the HTTP server runs.' }),
  },
  { unknown: 'warn', text: 'Web console and REST API. Off without this block.' },
);

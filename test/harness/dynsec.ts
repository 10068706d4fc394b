// An administrator of dynamic security on the wire: commands go out, answers come back. For a gateway and for a mosquitto alike.
import { connect, connectAsync, type IClientOptions, type MqttClient } from 'mqtt';

export const CONTROL = '$CONTROL/dynamic-security/v1';

export type Command = Readonly<Record<string, unknown>>;
export interface Response {
  readonly command: string;
  readonly error?: string;
  readonly data?: Readonly<Record<string, unknown>>;
  readonly correlationData?: string;
}

/** The file that mosquitto_ctrl makes with `dynsec init`, for the user admin with the password pw. */
export const INITIAL = JSON.stringify({
  clients: [
    {
      username: 'admin',
      password: 'LLKkEbEE6A0ZzBgDD1a8DxtZgwjUsWayIyP80udI8/oy/V5JrBisQZnPkSqa7DTcD2GFAT9Bqc/9Z8XDXv/2PA==',
      salt: 'c2FsdHNhbHRzYWx0',
      iterations: 101,
      roles: [{ rolename: 'admin' }],
    },
  ],
  roles: [
    {
      rolename: 'admin',
      acls: [
        { acltype: 'publishClientSend', topic: '$CONTROL/dynamic-security/#', allow: true },
        { acltype: 'publishClientReceive', topic: '$CONTROL/dynamic-security/#', allow: true },
        { acltype: 'subscribePattern', topic: '$CONTROL/dynamic-security/#', allow: true },
        { acltype: 'publishClientReceive', topic: '#', allow: true },
        { acltype: 'subscribePattern', topic: '#', allow: true },
        { acltype: 'unsubscribePattern', topic: '#', allow: true },
      ],
    },
  ],
  defaultACLAccess: { publishClientSend: false, publishClientReceive: true, subscribe: false, unsubscribe: true },
});

export function dial(port: number, options: IClientOptions): Promise<MqttClient> {
  return connectAsync(`mqtt://127.0.0.1:${port}`, { protocolVersion: 5, reconnectPeriod: 0, ...options });
}

/** 'in', or the reason code of the refusal. */
export async function login(port: number, options: IClientOptions): Promise<'in' | number> {
  const client = connect(`mqtt://127.0.0.1:${port}`, { protocolVersion: 5, reconnectPeriod: 0, ...options });
  return new Promise((resolve) => {
    client.once('connect', () => client.end(true, () => resolve('in')));
    client.once('error', (error) => {
      client.end(true);
      resolve((error as { code?: number }).code ?? -1);
    });
  });
}

export class Administrator {
  private readonly client: MqttClient;

  private constructor(client: MqttClient) {
    this.client = client;
  }

  static async open(port: number, username = 'admin', password = 'pw'): Promise<Administrator> {
    const client = await dial(port, { username, password, clientId: `administrator-${username}` });
    await client.subscribeAsync(`${CONTROL}/response`, { qos: 1 });
    return new Administrator(client);
  }

  /** The answer to a payload as it is. */
  async raw(payload: string): Promise<{ readonly responses: readonly Response[] }> {
    const answered = new Promise<Buffer>((resolve) => this.client.once('message', (_, bytes) => resolve(bytes)));
    // A request that could not be done is refused by its reason code too.
    this.client.publish(CONTROL, payload, { qos: 1 });
    return JSON.parse((await answered).toString());
  }

  async run(...commands: Command[]): Promise<readonly Response[]> {
    return (await this.raw(JSON.stringify({ commands }))).responses;
  }

  /** Throws where one is refused. */
  async done(...commands: Command[]): Promise<void> {
    for (const { command, error } of await this.run(...commands))
      if (error !== undefined) throw new Error(`${command}: ${error}`);
  }

  close(): Promise<void> {
    return this.client.endAsync(true);
  }
}

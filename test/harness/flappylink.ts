// A TCP link that can be cut and held: what connects to it reaches another port on this machine. Used by chaosfar.ts between a gateway and a
// remote broker. It stays where it is while either end comes and goes.
import net from 'node:net';

export class FlappyLink {
  /** Connections made so far. */
  made = 0;
  private readonly server: net.Server;
  private readonly pairs = new Set<[net.Socket, net.Socket]>();
  private held = false;

  constructor(target: number) {
    this.server = net.createServer((near) => this.join(near, net.connect({ port: target, host: '127.0.0.1' })));
  }

  async start(): Promise<number> {
    await new Promise<void>((resolve) => this.server.listen(0, '127.0.0.1', resolve));
    return (this.server.address() as net.AddressInfo).port;
  }

  stop(): void {
    this.cut();
    this.server.close();
  }

  /** Ends every connection at once, with what is on its way. */
  cut(): void {
    for (const pair of this.pairs) for (const socket of pair) socket.destroy();
  }

  /** Nothing passes while it is held. */
  hold(on: boolean): void {
    this.held = on;
    for (const pair of this.pairs) for (const socket of pair) on ? socket.pause() : socket.resume();
  }

  private join(near: net.Socket, far: net.Socket): void {
    this.made++;
    const pair: [net.Socket, net.Socket] = [near, far];
    this.pairs.add(pair);
    for (const [from, to] of [pair, [far, near]] as const) {
      from.setNoDelay(true);
      from.on('error', () => {});
      from.on('data', (chunk) => {
        if (!to.write(chunk)) from.pause();
      });
      to.on('drain', () => {
        if (!this.held) from.resume();
      });
      from.on('close', () => {
        this.pairs.delete(pair);
        to.destroy();
      });
      if (this.held) from.pause();
    }
  }
}

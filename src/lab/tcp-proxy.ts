// One TCP proxy on loopback between a sequencer and a node. It imitates the failures of a network, switched while
// connections are open. Each direction is separate: `up` is what the client sends, `down` what the server answers. A
// fault applies to open and to new connections.
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';

type Direction = 'up' | 'down';

interface DirectionFault {
  /** Bytes are delayed this long, in order. */
  delayMs?: number;
  /** Bytes are read and thrown away: the sender sees an open connection without answers. */
  drop?: boolean;
  /** Every chunk is replaced by the same number of random bytes. */
  garbage?: boolean;
  /** Bytes pass at the rate of this link, which several proxies may share. */
  link?: SlowLink;
  /** This share of the chunks has one bit flipped, as bytes that a network corrupts. */
  flip?: number;
}

/** A link of a rate. Bytes of all its connections take turns, a packet each. */
export class SlowLink {
  private freeAt = 0;
  constructor(readonly bytesPerS: number) {}

  /** When the link has carried so many bytes more. */
  carried(bytes: number): number {
    this.freeAt = Math.max(this.freeAt, performance.now()) + (1000 * bytes) / this.bytesPerS;
    return this.freeAt;
  }
}

/** On a slow link, so many bytes of one connection are under way at most. */
const PACKET_BYTES = 8 * 1024;

interface Link {
  client: Socket;
  server: Socket;
  /** Swallows everything permanently, whatever else the proxy does. */
  silent: boolean;
}

export interface TcpProxy {
  readonly port: number;
  /** `redis://127.0.0.1:<port>`. */
  readonly url: string;
  /** Connections open now. */
  readonly open: number;
  /** Bytes forwarded so far. */
  readonly passed: Record<Direction, number>;
  /** Sets what a direction does from now on; {} heals it. */
  set(direction: Direction, fault: DirectionFault): void;
  /** Both directions swallow everything while connections stay open: a half-open peer. */
  blackHole(): void;
  /** The server receives everything, but its replies are lost. */
  dropReplies(): void;
  /** Connections that are open now go silent permanently, without a reset; new ones work. Returns how many. */
  halfOpen(): number;
  /** Both directions work normally, and new connections are accepted. Swallowed bytes stay lost. */
  heal(): void;
  /** Ends every open connection with a reset. */
  cut(): void;
  /**
   * New connections: `accept` (default), `refuse` (reset at once), `silent` (accepted, never connected to the server).
   */
  onConnect(mode: 'accept' | 'refuse' | 'silent'): void;
  /** New connections go to this port; null: to the proxy's own target again. Open connections stay where they are. */
  redirect(port: number | null): void;
  close(): Promise<void>;
}

/** A proxy to 127.0.0.1:`target`, on the given port or else one that the system picks. */
export async function startTcpProxy(target: number, port = 0): Promise<TcpProxy> {
  const proxy = new LoopbackProxy(target);
  await proxy.listen(port);
  return proxy;
}

class LoopbackProxy implements TcpProxy {
  port = 0;
  readonly passed: Record<Direction, number> = { up: 0, down: 0 };
  private readonly links = new Set<Link>();
  /** Accepted in silence: a server is never connected. */
  private readonly lonely = new Set<Socket>();
  private readonly faults: Record<Direction, DirectionFault> = { up: {}, down: {} };
  private readonly server: Server = createServer({ noDelay: true }, (client) => this.accept(client));
  private mode: 'accept' | 'refuse' | 'silent' = 'accept';
  private redirected: number | null = null;

  constructor(private readonly target: number) {}

  async listen(port: number): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      this.server.once('error', reject);
      this.server.listen({ host: '127.0.0.1', port }, resolve);
    });
    this.port = (this.server.address() as AddressInfo).port;
  }

  get url(): string {
    return `redis://127.0.0.1:${this.port}`;
  }

  get open(): number {
    return this.links.size + this.lonely.size;
  }

  set(direction: Direction, fault: DirectionFault): void {
    this.faults[direction] = fault;
  }

  blackHole(): void {
    this.set('up', { drop: true });
    this.set('down', { drop: true });
  }

  dropReplies(): void {
    this.set('down', { drop: true });
  }

  halfOpen(): number {
    for (const link of this.links) link.silent = true;
    return this.links.size;
  }

  heal(): void {
    this.set('up', {});
    this.set('down', {});
    this.mode = 'accept';
    // A connection that was accepted in silence never gets a server; its client must connect again.
    for (const socket of this.lonely) socket.resetAndDestroy();
  }

  cut(): void {
    for (const link of [...this.links]) this.end(link);
    for (const socket of this.lonely) socket.resetAndDestroy();
  }

  onConnect(mode: 'accept' | 'refuse' | 'silent'): void {
    this.mode = mode;
  }

  redirect(port: number | null): void {
    this.redirected = port;
  }

  close(): Promise<void> {
    return new Promise<void>((resolve) => {
      this.server.close(() => resolve());
      this.cut();
    });
  }

  private accept(client: Socket): void {
    client.on('error', () => client.destroy());
    if (this.mode === 'refuse') {
      client.resetAndDestroy();
      return;
    }
    if (this.mode === 'silent') {
      this.lonely.add(client);
      client.resume();
      client.once('close', () => this.lonely.delete(client));
      return;
    }
    const server = connect({ host: '127.0.0.1', port: this.redirected ?? this.target, noDelay: true });
    const link: Link = { client, server, silent: false };
    this.links.add(link);
    server.on('error', () => this.end(link));
    client.once('close', () => this.end(link));
    server.once('close', () => this.end(link));
    this.pass('up', link, client, server);
    this.pass('down', link, server, client);
  }

  private end(link: Link): void {
    this.links.delete(link);
    // A reset, as from a server that dies. A normal close would leave half-closed connections behind.
    for (const socket of [link.client, link.server]) if (!socket.destroyed) socket.resetAndDestroy();
  }

  private pass(direction: Direction, link: Link, from: Socket, to: Socket): void {
    let queue: Promise<void> = Promise.resolve();
    from.on('data', (whole: Buffer) => {
      const { link: slow } = this.faults[direction];
      if (slow === undefined) return forward(whole);
      from.pause();
      queue = queue.then(async () => {
        for (let at = 0; at < whole.length && !to.destroyed; at += PACKET_BYTES) {
          const packet = whole.subarray(at, at + PACKET_BYTES);
          const wait = slow.carried(packet.length) - performance.now();
          if (wait > 1) await new Promise<void>((resolve) => setTimeout(resolve, wait));
          if (to.destroyed || link.silent) return;
          this.passed[direction] += packet.length;
          if (!to.write(packet)) await new Promise<void>((drained) => to.once('drain', drained).once('close', drained));
        }
        from.resume();
      });
    });
    const forward = (chunk: Buffer): void => {
      const { delayMs = 0, drop = false, garbage = false, flip = 0 } = this.faults[direction];
      if (drop || link.silent) return;
      const bytes = garbage ? noise(chunk.length) : Math.random() < flip ? flipped(chunk) : chunk;
      const send = (): void => {
        if (to.destroyed || link.silent || this.faults[direction].drop === true) return;
        this.passed[direction] += bytes.length;
        if (!to.write(bytes)) {
          from.pause();
          to.once('drain', () => from.resume());
        }
      };
      // Order is kept: bytes after a delayed chunk wait behind it.
      const due = performance.now() + delayMs;
      queue = queue
        .then(() => {
          const wait = due - performance.now();
          return wait <= 0 ? undefined : new Promise<void>((resolve) => setTimeout(resolve, wait).unref());
        })
        .then(send);
    };
  }
}

/** The chunk with one bit changed. */
function flipped(chunk: Buffer): Buffer {
  const bytes = Buffer.from(chunk);
  const at = Math.floor(Math.random() * bytes.length);
  bytes[at] = bytes[at]! ^ (1 << Math.floor(Math.random() * 8));
  return bytes;
}

/** Bytes that are not a RESP reply: no line end among them, and the first byte is no type mark. */
function noise(length: number): Buffer {
  return Buffer.from(Array.from({ length }, (_, at) => 0x80 + ((at * 37) % 0x60)));
}

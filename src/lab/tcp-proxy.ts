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
  /** This share of the chunks has one bit flipped, as bytes that a network corrupts. */
  flip?: number;
}

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
  const links = new Set<Link>();
  const lonely = new Set<Socket>();
  const faults: Record<Direction, DirectionFault> = { up: {}, down: {} };
  const passed: Record<Direction, number> = { up: 0, down: 0 };
  let there = target;
  let mode: 'accept' | 'refuse' | 'silent' = 'accept';

  const server: Server = createServer({ noDelay: true }, (client) => {
    client.on('error', () => client.destroy());
    if (mode === 'refuse') {
      client.resetAndDestroy();
      return;
    }
    if (mode === 'silent') {
      lonely.add(client);
      client.resume();
      client.once('close', () => lonely.delete(client));
      return;
    }
    const link: Link = { client, server: connect({ host: '127.0.0.1', port: there, noDelay: true }), silent: false };
    links.add(link);
    link.server.on('error', () => end(link));
    client.once('close', () => end(link));
    link.server.once('close', () => end(link));
    pass('up', link, client, link.server);
    pass('down', link, link.server, client);
  });

  function end(link: Link): void {
    links.delete(link);
    // A reset, as from a server that dies. A normal close would leave half-closed connections behind.
    for (const socket of [link.client, link.server]) if (!socket.destroyed) socket.resetAndDestroy();
  }

  function pass(direction: Direction, link: Link, from: Socket, to: Socket): void {
    let queue: Promise<void> = Promise.resolve();
    from.on('data', (chunk: Buffer) => {
      const { delayMs = 0, drop = false, garbage = false, flip = 0 } = faults[direction];
      if (drop || link.silent) return;
      const bytes = garbage ? noise(chunk.length) : Math.random() < flip ? flipped(chunk) : chunk;
      const send = (): void => {
        if (to.destroyed || link.silent || faults[direction].drop === true) return;
        passed[direction] += bytes.length;
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
    });
  }

  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen({ host: '127.0.0.1', port }, resolve);
  });
  const listening = (server.address() as AddressInfo).port;

  return {
    port: listening,
    url: `redis://127.0.0.1:${listening}`,
    get open() {
      return links.size + lonely.size;
    },
    passed,
    set: (direction, fault) => {
      faults[direction] = fault;
    },
    blackHole: () => {
      faults.up = { drop: true };
      faults.down = { drop: true };
    },
    dropReplies: () => {
      faults.down = { drop: true };
    },
    halfOpen: () => {
      for (const link of links) link.silent = true;
      return links.size;
    },
    heal: () => {
      faults.up = {};
      faults.down = {};
      mode = 'accept';
      // A connection that was accepted in silence never gets a server; its client must connect again.
      for (const socket of lonely) socket.resetAndDestroy();
    },
    cut: () => {
      for (const link of [...links]) end(link);
      for (const socket of lonely) socket.resetAndDestroy();
    },
    onConnect: (next) => {
      mode = next;
    },
    redirect: (port) => {
      there = port ?? target;
    },
    close: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve());
        for (const link of [...links]) end(link);
        for (const socket of lonely) socket.resetAndDestroy();
      }),
  };
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

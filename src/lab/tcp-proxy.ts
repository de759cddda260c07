// One TCP proxy on loopback between a sequencer and a node: the network's ways to fail, switched while connections
// are open. Each direction by itself: `up` is what the client sends, `down` what the server answers. A fault holds
// for open and for new connections.
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';

type Direction = 'up' | 'down';

interface DirectionFault {
  /** Bytes are delayed this long, in order. */
  delayMs?: number;
  /** Bytes are read and thrown away: the sender sees an open connection that nobody answers. */
  drop?: boolean;
  /** Every chunk is replaced by as many bytes of noise. */
  garbage?: boolean;
}

interface Link {
  client: Socket;
  server: Socket;
  /** Swallows everything for good, whatever the proxy does otherwise. */
  silent: boolean;
}

export interface TcpProxy {
  readonly port: number;
  /** `redis://127.0.0.1:<port>`. */
  readonly url: string;
  /** Connections open now. */
  readonly open: number;
  /** Bytes passed on so far. */
  readonly passed: Record<Direction, number>;
  /** Sets what a direction does from now on; {} heals it. */
  set(direction: Direction, fault: DirectionFault): void;
  /** Both directions swallow everything, connections stay open: a half-open peer. */
  blackHole(): void;
  /** The server hears everything, its replies are lost. */
  dropReplies(): void;
  /** Connections open now go silent for good, without a reset; new ones work. Returns how many. */
  halfOpen(): number;
  /** Both directions as they should be; new connections welcome. What was swallowed stays lost. */
  heal(): void;
  /** Ends every open connection with a reset. */
  cut(): void;
  /** New connections: `accept` (default), `refuse` (reset at once), `silent` (accepted, never joined to the server). */
  onConnect(mode: 'accept' | 'refuse' | 'silent'): void;
  close(): Promise<void>;
}

/** A proxy onto 127.0.0.1:`target`, on a port that the system picks unless one is given. */
export async function startTcpProxy(target: number, port = 0): Promise<TcpProxy> {
  const links = new Set<Link>();
  const lonely = new Set<Socket>();
  const faults: Record<Direction, DirectionFault> = { up: {}, down: {} };
  const passed: Record<Direction, number> = { up: 0, down: 0 };
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
    const link: Link = { client, server: connect({ host: '127.0.0.1', port: target, noDelay: true }), silent: false };
    links.add(link);
    link.server.on('error', () => end(link));
    client.once('close', () => end(link));
    link.server.once('close', () => end(link));
    pass('up', link, client, link.server);
    pass('down', link, link.server, client);
  });

  function end(link: Link): void {
    links.delete(link);
    // A reset, as a server that dies sends one: a polite end would leave half-closed connections behind.
    for (const socket of [link.client, link.server]) if (!socket.destroyed) socket.resetAndDestroy();
  }

  function pass(direction: Direction, link: Link, from: Socket, to: Socket): void {
    let queue: Promise<void> = Promise.resolve();
    from.on('data', (chunk: Buffer) => {
      const { delayMs = 0, drop = false, garbage = false } = faults[direction];
      if (drop || link.silent) return;
      const bytes = garbage ? noise(chunk.length) : chunk;
      const send = (): void => {
        if (to.destroyed || link.silent || faults[direction].drop === true) return;
        passed[direction] += bytes.length;
        if (!to.write(bytes)) {
          from.pause();
          to.once('drain', () => from.resume());
        }
      };
      // Order is kept: whatever comes after a delayed chunk waits behind it.
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
      // A connection that was accepted by nobody stays so; its client must come again.
      for (const socket of lonely) socket.resetAndDestroy();
    },
    cut: () => {
      for (const link of [...links]) end(link);
      for (const socket of lonely) socket.resetAndDestroy();
    },
    onConnect: (next) => {
      mode = next;
    },
    close: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve());
        for (const link of [...links]) end(link);
        for (const socket of lonely) socket.resetAndDestroy();
      }),
  };
}

/** Bytes that are no RESP reply: no line end among them, first byte no type mark. */
function noise(length: number): Buffer {
  return Buffer.from(Array.from({ length }, (_, at) => 0x80 + ((at * 37) % 0x60)));
}

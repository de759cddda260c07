// Ports for servers that keep their port across restarts. They are below the range of outgoing connections, for two
// reasons. A client that reconnects to a dead server's port within that range can get the same port as its source: it
// would connect to itself and read back its own bytes. And an outgoing connection could take the port meanwhile.
import { createServer } from 'node:net';
import { EXIT, SeqError } from '../core/errors.js';

const LOWEST = 17_000;
const HIGHEST = 31_999;
const ATTEMPTS = 200;

/**
 * A loopback port on which nobody listens now, and which is not in `taken`. It may be taken a moment later: whoever
 * binds it must expect an error.
 */
export async function freePort(taken: ReadonlySet<number> = new Set()): Promise<number> {
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const port = LOWEST + Math.floor(Math.random() * (HIGHEST - LOWEST + 1));
    if (!taken.has(port) && (await canListen(port))) return port;
  }
  throw new SeqError({
    code: 'NO_FREE_PORT',
    exit: EXIT.config,
    message: `no free loopback port between ${LOWEST} and ${HIGHEST} in ${ATTEMPTS} tries`,
    why: 'every port tried is in use',
    changed: 'nothing',
    next: ['stop what holds the ports (`ss -ltn`), then try again'],
  });
}

/** Several at once, all different. */
export async function freePorts(count: number, taken: Iterable<number> = []): Promise<number[]> {
  const seen = new Set(taken);
  const ports: number[] = [];
  while (ports.length < count) {
    const port = await freePort(seen);
    seen.add(port);
    ports.push(port);
  }
  return ports;
}

function canListen(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen({ port, host: '127.0.0.1', exclusive: true }, () => server.close(() => resolve(true)));
  });
}

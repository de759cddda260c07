// How many connections does the server keep, and which one goes first? A silent connection costs a descriptor. When all
// places are taken, the connection that has been idle longest makes room. So health checks and callers get in, however
// many connections somebody else holds open.
import { readFileSync } from 'node:fs';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

const MOST = 1024;
const FEWEST = 64;

/** Half of the descriptors that this process may have: nodes, store, log and health checks need the others. */
export function mostConnections(): number {
  try {
    const [, files] = /^Max open files +(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? [];
    return files === undefined ? MOST : Math.min(MOST, Math.max(FEWEST, Math.floor(Number(files) / 2)));
  } catch {
    return MOST; // no Linux
  }
}

export function limitConnections(server: Server, most: number, secure: boolean): void {
  /** In the order in which they became idle. */
  const idle = new Set<Socket>();
  const open = new Set<Socket>();
  /** Connections that have not finished their TLS handshake, the oldest first, by the address of the other end. */
  const shaking = new Map<string, Socket>();
  if (secure)
    server.on('connection', (socket: Socket) => {
      if (!madeRoom()) return void socket.destroy();
      const end = otherEnd(socket);
      shaking.set(end, socket);
      socket.once('close', () => {
        if (shaking.get(end) === socket) shaking.delete(end);
      });
    });
  server.on(secure ? 'secureConnection' : 'connection', (socket: Socket) => {
    shaking.delete(otherEnd(socket));
    if (!madeRoom()) return void socket.destroy();
    open.add(socket);
    idle.add(socket);
    socket.once('close', () => forget(socket));
  });
  server.on('request', ({ socket }: IncomingMessage, response: ServerResponse) => {
    idle.delete(socket);
    response.once('close', () => {
      if (open.has(socket)) idle.add(socket);
    });
  });

  function madeRoom(): boolean {
    if (open.size + shaking.size < most) return true;
    const [silent] = shaking;
    if (silent !== undefined) {
      shaking.delete(silent[0]);
      silent[1].destroy();
      return true;
    }
    const [longest] = idle;
    if (longest === undefined) return false;
    forget(longest);
    longest.destroy();
    return true;
  }

  function forget(socket: Socket): void {
    open.delete(socket);
    idle.delete(socket);
  }
}

function otherEnd({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`;
}

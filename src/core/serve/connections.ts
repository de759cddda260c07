// How many connections does the server keep, and which one goes first? A silent connection costs a descriptor. When all
// places are taken, the connection that has been idle longest makes room. So health checks and callers get in, however
// many connections somebody else holds open.
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

export function limitConnections(server: Server, most: number, secure: boolean): void {
  /** In the order in which they became idle. */
  const idle = new Set<Socket>();
  const open = new Set<Socket>();
  server.on(secure ? 'secureConnection' : 'connection', (socket: Socket) => {
    if (open.size >= most) {
      const [longest] = idle;
      if (longest === undefined) return void socket.destroy();
      forget(longest);
      longest.destroy();
    }
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
  // Connections that have not finished their TLS handshake are not among those above.
  server.maxConnections = 2 * most;

  function forget(socket: Socket): void {
    open.delete(socket);
    idle.delete(socket);
  }
}

// A real HTTP proxy on loopback between a client and a sequencer, in the place of a balancer or gateway. It passes
// requests on, until a test tells it to answer itself or to change an answer.
import { once } from 'node:events';
import { createServer, request as httpRequest, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** An answer that the proxy gives itself. */
export interface OwnAnswer {
  status: number;
  headers?: Record<string, string>;
  body?: string;
}

interface Passing {
  method: string;
  path: string;
  body: Buffer;
}

export interface HttpProxy {
  readonly url: string;
  /** Requests that the proxy passed on to the sequencer. */
  readonly passed: Passing[];
  /** The proxy's own answer, or undefined to pass the request on. */
  instead(request: Passing): OwnAnswer | undefined;
  /** Changes the sequencer's answer on its way back. */
  spoil(request: Passing, answer: { status: number; headers: Record<string, string>; body: Buffer }): void;
  close(): Promise<void>;
}

export async function startHttpProxy(target: string): Promise<HttpProxy> {
  const server = createServer((incoming, outgoing) => void serve(incoming, outgoing));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const proxy: HttpProxy = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    passed: [],
    instead: () => undefined,
    spoil: () => undefined,
    close: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };

  async function serve(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const request = { method: incoming.method!, path: incoming.url!, body: await whole(incoming) };
    const own = proxy.instead(request);
    if (own) {
      outgoing.writeHead(own.status, own.headers ?? {}).end(own.body ?? '');
      return;
    }
    proxy.passed.push(request);
    const { host: _host, ...headers } = incoming.headers;
    const onward = httpRequest(new URL(request.path, target), { method: request.method, headers, agent: false });
    onward.on('error', () => outgoing.destroy());
    onward.end(request.body);
    const [reply] = (await once(onward, 'response')) as [IncomingMessage];
    const answer = {
      status: reply.statusCode!,
      headers: Object.fromEntries(Object.entries(reply.headers).map(([name, value]) => [name, String(value)])),
      body: await whole(reply),
    };
    for (const name of ['content-length', 'transfer-encoding', 'connection']) delete answer.headers[name];
    proxy.spoil(request, answer);
    outgoing.writeHead(answer.status, answer.headers).end(answer.body);
  }
  return proxy;
}

async function whole(message: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of message) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

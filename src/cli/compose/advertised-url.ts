// Which address do the other sequencers use for this one? A listening address says where packets are taken. `0.0.0.0`
// and `127.0.0.1` mean another machine on every machine, so they are no address to give to others.
import { createSocket } from 'node:dgram';
import { lookup } from 'node:dns/promises';
import { isIP } from 'node:net';
import { EXIT, SeqError } from '../../core/errors.js';
import { targetOf } from '../../core/http-call.js';
import { isLoopback, type Listen } from '../../core/serve/listen.js';

export interface Advertised {
  /** '' when there is none that others could use. */
  url: string;
  /** What a person should know. '' when there is nothing. */
  warning: string;
}

/** Throws SeqError 78. */
export function checkAdvertised(given: string): string {
  const target = given === '' ? null : targetOf(given, '/v1/submit');
  if (typeof target !== 'string') return given;
  throw new SeqError({
    code: 'HTTP_ADDRESS',
    exit: EXIT.config,
    message: `--advertise: ${target}`,
    why: 'it is the address under which the other sequencers reach this one',
    changed: 'nothing',
    next: ['--advertise http://HOST:PORT'],
  });
}

/** `url`: where the server listens, with its actual port. `nodes`: the addresses of the nodes. */
export async function advertisedUrl(
  given: string,
  listen: Listen,
  url: string,
  nodes: readonly string[],
): Promise<Advertised> {
  if (given !== '') return { url: given, warning: '' };
  const wildcard = listen.host === '0.0.0.0' || /^[0:]+$/.test(listen.host);
  if (!wildcard && !isLoopback(listen.host)) return { url, warning: '' };
  const routes = await Promise.all(nodes.map(routeTo));
  const outward = routes.find((route) => route !== null && !route.here);
  if (!wildcard) {
    // All nodes are on this machine, and so are the other sequencers.
    if (outward === undefined) return { url, warning: '' };
    return {
      url: '',
      warning:
        `${url} is an address of this machine alone, and there are nodes on others: no address is announced, ` +
        'and sequencers there cannot forward to this one; give --http HOST:PORT with a token, or --advertise URL',
    };
  }
  const known = outward ?? routes.find((route) => route !== null) ?? null;
  const host = known?.from ?? '127.0.0.1';
  const { protocol, port } = new URL(url);
  return { url: `${protocol}//${isIP(host) === 6 ? `[${host}]` : host}:${port}`, warning: '' };
}

/** The own address on the way to a node. Sends nothing. Null when there is no way, or when it is no network address. */
async function routeTo(node: string): Promise<{ from: string; here: boolean } | null> {
  const [, host, port] = /^[a-z]+:\/\/(?:[^@/]*@)?(\[[^\]]+\]|[^:/,]+):?(\d+)?/.exec(node) ?? [];
  if (host === undefined) return null;
  const found = await lookup(host.replace(/^\[(.*)\]$/, '$1')).catch(() => null);
  if (found === null) return null;
  const socket = createSocket(found.family === 6 ? 'udp6' : 'udp4');
  try {
    await new Promise<void>((resolve, reject) => {
      socket.once('error', reject);
      socket.connect(Number(port ?? 6379), found.address, resolve);
    });
    const { address } = socket.address();
    return { from: address, here: isLoopback(address) || address === found.address };
  } catch {
    return null;
  } finally {
    socket.close();
  }
}

// A node behind Sentinel. Every connect asks the sentinels, one after the other, which server is the master. Each
// sentinel has its share of the time, so that a silent one does not hide the others. The next attempt starts with the
// next sentinel, so that one with a wrong answer does not hide them either. A promoted replica has another run id. To
// the scripts it is a node that has lost its memory (docs/PROTOCOL.md section 8).
import type { ConnectionOptions } from 'node:tls';
import type { RedisOptions } from 'ioredis';
import { text } from './replies.js';
import type { Wire } from './wire/wire.js';

export interface SentinelSettings {
  /** The name of the master that the sentinels watch. */
  name: string;
  /** host:port each. */
  nodes: string[];
  username?: string;
  password?: string;
}

export function sentinelOptions(
  sentinel: SentinelSettings,
  tls: ConnectionOptions | undefined,
  connectLimitMs: number,
  attempt: number,
): RedisOptions {
  const shareMs = Math.max(1, Math.floor(connectLimitMs / (sentinel.nodes.length + 1)));
  const nodes = sentinel.nodes.map((_, at) => sentinel.nodes[(at + attempt) % sentinel.nodes.length] as string);
  return {
    name: sentinel.name,
    role: 'master',
    sentinelRetryStrategy: () => null,
    sentinels: nodes.map((node) => ({
      host: node.slice(0, node.lastIndexOf(':')).replace(/^\[|\]$/g, ''),
      port: Number(node.slice(node.lastIndexOf(':') + 1)),
    })),
    connectTimeout: shareMs,
    sentinelCommandTimeout: shareMs,
    // Without these settings, the client speaks to both without TLS, whatever the configuration says.
    ...(tls === undefined ? {} : { enableTLSForSentinelMode: true, sentinelTLS: tls }),
    ...(sentinel.username === undefined ? {} : { sentinelUsername: sentinel.username }),
    ...(sentinel.password === undefined ? {} : { sentinelPassword: sentinel.password }),
  };
}

/**
 * `sentinel://HOST:PORT,…/MASTER[/DB]` → the first address, the sentinels and the name of the master. Null for any
 * other address.
 */
export function parseSentinelUrl(
  url: string,
): { url: string; sentinel: Pick<SentinelSettings, 'name' | 'nodes'> } | null {
  const [, hosts, name, db] = /^sentinel:\/\/([^/]+)\/([^/]+)(\/\d+)?$/.exec(url) ?? [];
  if (hosts === undefined || name === undefined) return null;
  const nodes = hosts.split(',');
  return { url: `redis://${nodes[0]}${db ?? ''}`, sentinel: { name, nodes } };
}

/**
 * A sentinel that was cut off still names the old master, which may be a replica by now. A replica refuses every write,
 * and its reads are out of date.
 */
export async function assertMaster(client: Wire): Promise<void> {
  const info = text(await client.send('info', ['replication']));
  if (!/^role:master\r?$/m.test(info)) throw new Error('the sentinels name a server that is no master');
}

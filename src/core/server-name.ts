/**
 * The name and version of a server from its INFO: `Redis 7.0.15`, or `Valkey 9.1.2`. Valkey's `redis_version` is only
 * the version whose commands it offers.
 */
export function serverName(info: Readonly<Record<string, string>>): string {
  const valkey = info['valkey_version'];
  return valkey === undefined ? `Redis ${info['redis_version'] ?? '?'}` : `Valkey ${valkey}`;
}

/**
 * What runs there, from its INFO: `Redis 7.0.15`, or `Valkey 9.1.2`, which keeps `redis_version` at the version whose
 * commands it offers.
 */
export function serverName(info: Readonly<Record<string, string>>): string {
  const valkey = info['valkey_version'];
  return valkey === undefined ? `Redis ${info['redis_version'] ?? '?'}` : `Valkey ${valkey}`;
}

// A redis-cli line of `next` reaches the node as seq does, and shows no password.
import { expect, test } from 'vitest';
import { completeRedisCli, type NodeAccess } from '../../src/cli/support/redis-cli.js';

const PLAIN = { url: 'redis://10.0.0.1:6379' };
const TLS: NodeAccess = { url: 'rediss://10.0.0.1:6380', tls: { ca: '/etc/seq/ca.pem', serverName: 'r1' } };

test.each<[NodeAccess, command: string, line: string]>([
  [PLAIN, 'ping', 'redis-cli -u redis://10.0.0.1:6379 ping'],
  [TLS, 'ping', 'redis-cli -u rediss://10.0.0.1:6380 --cacert /etc/seq/ca.pem --sni r1 ping'],
  [
    { ...TLS, tls: { cert: '/c d', key: '/k', verify: false } },
    'ping',
    "redis-cli -u rediss://10.0.0.1:6380 --cert '/c d' --key /k --insecure ping",
  ],
  [
    { ...PLAIN, username: 'seq', passwordFile: '/etc/seq/pw' },
    'del seq:epoch:token',
    'REDISCLI_AUTH="$(cat /etc/seq/pw)" redis-cli -u redis://10.0.0.1:6379 --user seq del seq:epoch:token',
  ],
  [
    { ...PLAIN, passwordEnv: 'SEQ_PASSWORD' },
    'config set appendonly yes',
    'REDISCLI_AUTH="$SEQ_PASSWORD" redis-cli -u redis://10.0.0.1:6379 config set appendonly yes',
  ],
  [
    { ...PLAIN, passwordCommand: 'pass show seq' },
    'ping',
    'REDISCLI_AUTH="$(pass show seq)" redis-cli -u redis://10.0.0.1:6379 ping',
  ],
  // The user of seq may not do this, and its password helps nobody.
  [
    { ...PLAIN, username: 'seq', passwordFile: '/etc/seq/pw' },
    'ACL SETUSER seq +info',
    'redis-cli -u redis://10.0.0.1:6379 --user ADMIN --askpass ACL SETUSER seq +info',
  ],
  [{ url: 'unix:/run/redis.sock?db=2' }, 'ping', 'redis-cli -s /run/redis.sock -n 2 ping'],
  [
    { url: 'sentinel://10.0.0.9:26379,10.0.0.8:26379/main/1' },
    'ping',
    'redis-cli -u redis://"$(redis-cli -h 10.0.0.9 -p 26379 sentinel get-master-addr-by-name main | paste -sd:)"/1 ping',
  ],
])('redis-cli: %j, %s → %s', (node, command, line) => {
  const complete = completeRedisCli(`redis-cli -u ${node.url} ${command}`, [node], {});
  expect(complete).toBe(line);
  expect(completeRedisCli(complete, [node], {})).toBe(line);
});

test('redis-cli: a node that is not listed has the credentials of all; the user in an address is no password', () => {
  const others = { username: 'seq', passwordEnv: 'SEQ_PASSWORD' };
  expect(completeRedisCli('redis-cli -u redis://seq@10.0.0.7:6379 ping', [PLAIN], others)).toBe(
    'REDISCLI_AUTH="$SEQ_PASSWORD" redis-cli -u redis://10.0.0.7:6379 --user seq ping',
  );
  expect(completeRedisCli('seq status', [PLAIN], others)).toBe('seq status');
});

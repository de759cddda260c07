// What shows why a node cannot be reached must itself be able to reach it.
import { expect, test } from 'vitest';
import { reachCommand } from '../../src/core/view/reach-command.js';

test.each([
  ['redis://10.0.0.1:6379', 'no answer at connect', 'redis-cli -u redis://10.0.0.1:6379 ping'],
  ['unix:/run/redis.sock', 'no answer at connect', 'redis-cli -u unix:/run/redis.sock ping'],
  [
    'rediss://10.0.0.1:6380',
    'no answer at connect: ECONNREFUSED',
    'openssl s_client -connect 10.0.0.1:6380 </dev/null',
  ],
  [
    'rediss://u:***@db.example:6380/2',
    'no answer at connect: self-signed certificate in certificate chain',
    'openssl s_client -connect db.example:6380 -showcerts </dev/null',
  ],
  [
    'rediss://[::1]:6380',
    'no answer at connect: unable to verify the first certificate',
    'openssl s_client -connect [::1]:6380 -showcerts </dev/null',
  ],
])('reach: %s, "%s" → %s', (url, note, command) => {
  expect(reachCommand(url, note)).toBe(command);
});

// The name that a server gives itself, and the software that it is.
import { expect, test } from 'vitest';
import { serverName } from '../../src/core/server-name.js';

test.each([
  ['Redis', { redis_version: '7.0.15' }, 'Redis 7.0.15'],
  [
    'Valkey, which also says whose commands it offers',
    { redis_version: '7.2.4', valkey_version: '9.1.2' },
    'Valkey 9.1.2',
  ],
  ['INFO could not be read', {}, 'Redis ?'],
])('server name: %s → said as it is', (_, info, name) => {
  expect(serverName(info)).toBe(name);
});

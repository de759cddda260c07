// The commands for what somebody wrote by hand name the keys of the lane that the command was run for.
import { expect, test } from 'vitest';
import { keysOf } from '../../src/core/redis/keys.js';
import { deleteConfiguration, deleteEpoch } from '../../src/core/view/epochs.js';

test.each([
  ['-c prod', ''],
  ['', ''],
  ['--lane orders', 'orders'],
  ['-c prod --lane orders', 'orders'],
  [' --node r1=redis://h:1 --lane a.b-c', 'a.b-c'],
])('delete by hand: %s → the keys of this lane', (target, lane) => {
  const { epoch, admission } = keysOf(lane);
  expect(deleteEpoch('redis://h:1', target)).toBe(`redis-cli -u redis://h:1 del ${epoch}`);
  expect(deleteConfiguration('redis://h:1', target)).toBe(`redis-cli -u redis://h:1 hdel ${admission} config`);
});

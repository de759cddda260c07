// How messages name the limit that a silent node exceeded.
import { expect, test } from 'vitest';
import { describeReply } from '../../src/core/protocol/describe.js';
import { unknown } from '../../src/core/redis/connection.js';

test('unknown: what is left of a limit is told in whole milliseconds', () => {
  expect(describeReply(unknown('call', 'no answer', 99.99856200000022))).toBe(
    'no answer at call within 100 ms: no answer',
  );
});

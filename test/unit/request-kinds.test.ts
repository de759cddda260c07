// A request whose kind only a later version knows is read like any other, so that a leader can refuse it by name.
import { expect, test } from 'vitest';
import { SCRIPTS } from '../../src/core/redis/scripts.js';

const pairs = (kind: string): string[] =>
  Object.entries({ id: 'q1', kind, to: 'r1', plan: '', by: 'ops', reason: '', epoch: '1' }).flat();

test.each([
  ['resize', 'resize'],
  ['teleport', 'teleport'],
  ['\u001b[2J', 'unknown'],
])('request: kind %j in a reply → %s', (kind, shown) => {
  const parse = SCRIPTS.write_block.parse as (reply: unknown[], call: unknown) => unknown;
  expect(parse(['7', ...pairs(kind)], {})).toMatchObject({ request: { id: 'q1', kind: shown, epoch: 1 } });
});

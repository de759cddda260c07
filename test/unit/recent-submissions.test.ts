// What a port remembers of its submissions, for a trace: each item's way, within a bound.
import { expect, test } from 'vitest';
import { HttpError } from '../../src/core/serve/envelope.js';
import { RecentSubmissions } from '../../src/core/serve/recent-submissions.js';

const item = (key?: string) => ({ ...(key === undefined ? {} : { key }), data: Buffer.from('x') });
const at = (height: number, index: number, duplicate = false) =>
  ({ outcome: 'committed', receipt: { height, index, epoch: 2 }, duplicate }) as const;

function recent(): { remembered: RecentSubmissions; wait: (ms: number) => void } {
  let now = 1000;
  return { remembered: new RecentSubmissions(() => now), wait: (ms) => void (now += ms) };
}

test('an item that waits, was forwarded, committed, a duplicate, refused or failed → each as it was', () => {
  const { remembered, wait } = recent();
  const begin = (forwarded = false) => remembered.begin('', [item('a'), item('b')], forwarded);
  begin();
  remembered.answered(begin(), { to: 'seq-b' });
  const third = begin(true);
  wait(7);
  remembered.answered(third, { outcomes: [at(5, 0), at(5, 1, true)] });
  remembered.answered(begin(), { outcomes: [at(5, 0), { outcome: 'refused', reason: 'key-conflict', why: '' }] });
  const failed = new HttpError({ status: 503, code: 'NO_LEADER', message: '', why: '', next: [], retryable: true });
  remembered.failed(begin(), failed);
  expect(remembered.find('', { key: 'b' })).toEqual([
    { receivedMs: 1000, from: 'client', forwardedTo: null, answeredMs: null, answer: null },
    { receivedMs: 1000, from: 'client', forwardedTo: 'seq-b', answeredMs: 1000, answer: 'forwarded' },
    { receivedMs: 1000, from: 'sequencer', forwardedTo: null, answeredMs: 1007, answer: 'duplicate' },
    { receivedMs: 1007, from: 'client', forwardedTo: null, answeredMs: 1007, answer: 'KEY_CONFLICT' },
    { receivedMs: 1007, from: 'client', forwardedTo: null, answeredMs: 1007, answer: 'NO_LEADER' },
  ]);
});

test('an item without a key → found by its place; another lane has its own items', () => {
  const { remembered } = recent();
  remembered.answered(remembered.begin('', [item(), item()], false), { outcomes: [at(9, 3), at(9, 4)] });
  const found = (lane: string, height: number, index: number) => remembered.find(lane, { height, index }).length;
  expect([found('', 9, 4), found('', 9, 5), found('', 8, 4), found('blue', 9, 4)]).toEqual([1, 0, 0, 0]);
});

test('more than it holds → the oldest are forgotten, and since when is said', () => {
  const { remembered, wait } = recent();
  for (let n = 0; n < 40_000; n += 1) {
    remembered.answered(remembered.begin('', [item(`k${n}`)], false), { outcomes: [at(n + 1, 0)] });
    wait(1);
  }
  const knows = (n: number) => remembered.find('', { key: `k${n}` }).length === 1;
  const first = remembered.sinceMs! - 1000;
  expect([knows(39_999), knows(first), knows(first - 1)]).toEqual([true, true, false]);
  expect(40_000 - first, 'at least').toBeGreaterThanOrEqual(16_384);
  expect(40_000 - first, 'at most').toBeLessThanOrEqual(2 * 16_384);
});

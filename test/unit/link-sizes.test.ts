// How many entries a read asks for, and how long a large call may take: what the link has shown decides.
import { expect, test } from 'vitest';
import { ReadSize } from '../../src/core/redis/read-size.js';
import { LinkRates } from '../../src/core/sequencer/lead/link-rates.js';
import type { NodePort } from '../../src/core/ports.js';
import type { NodeReply } from '../../src/core/protocol/types.js';

test('read size: failures halve it down to 1, and the pause grows up to a second', () => {
  const size = new ReadSize();
  const seen = Array.from({ length: 9 }, () => {
    const asked = size.asked(64);
    size.failed(asked, false);
    return [asked, size.pauseMs];
  });
  expect(seen).toEqual([
    [64, 0],
    [32, 50],
    [16, 100],
    [8, 200],
    [4, 400],
    [2, 800],
    [1, 1000],
    [1, 1000],
    [1, 1000],
  ]);
  expect(size.trouble).toBe('');
});

test('read size: a read that passes ends the pause; slow ones shrink, quick ones grow; the rate is told', () => {
  const size = new ReadSize();
  size.failed(64, false);
  size.passed(size.asked(64), true, 32_000_000, 4000);
  expect([size.asked(64), size.bytesPerS]).toEqual([4, 8_000_000]);
  size.passed(4, true, 4_000_000, 500);
  expect(size.asked(64)).toBe(4);
  for (const expected of [8, 16, 32, 64]) {
    size.passed(size.asked(64), true, 4000, 1);
    expect(size.asked(64)).toBe(expected);
  }
  expect(size.pauseMs).toBe(0);
});

test('read size: cut off → told from the second time on, and not asked for again before a smaller one grew', () => {
  const size = new ReadSize();
  size.failed(64, true);
  expect(size.trouble).toBe('');
  size.failed(32, true);
  expect(size.trouble).toMatch(/^a read of 32 blocks was cut off/);
  size.passed(size.asked(64), true, 4000, 1);
  expect(size.asked(64)).toBe(31);
  size.passed(32, false, 4000, 1);
  expect(size.trouble).toBe('');
});

const node = {} as NodePort;
const silent: NodeReply<unknown> = { outcome: 'unknown', step: 'call', cause: 'no answer' };
const accepted: NodeReply<unknown> = { outcome: 'accepted', incarnation: '', value: null };

test('link rate: silence after large calls lengthens the deadline up to the bound, an answer shortens it', () => {
  const rates = new LinkRates(1500);
  const mib = 1024 * 1024;
  expect(rates.extraMs(node, mib)).toBeCloseTo(21, 0);
  for (let i = 0; i < 20; i++) rates.learn(node, mib, silent, 100);
  expect(rates.extraMs(node, mib)).toBe(1500);
  rates.learn(node, mib, accepted, 250);
  expect(rates.extraMs(node, mib)).toBeCloseTo(500, 0);
  rates.learn(node, 100, silent, 100);
  rates.learn(node, mib, { outcome: 'unknown', step: 'connect', cause: 'ECONNREFUSED' }, 100);
  expect(rates.extraMs(node, mib)).toBeCloseTo(500, 0);
});

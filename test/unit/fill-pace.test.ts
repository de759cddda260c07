// How a node is filled while others commit: what it takes of the time, and that it always arrives. A small model of a node, a window that slides and a
// link, in virtual ms; every row is a cluster (docs/PROTOCOL.md section 8, step 2).
import { describe, expect, test } from 'vitest';
import { FillPace, type Sent } from '../../src/core/engine/fill-pace.js';

interface Row { /** Blocks a second, and the bytes of a new one and of an old one. */ rate: number; bytes: number; old?: number; /** Blocks that are kept. */ window: number; /** Blocks there when it begins. */ there: number; /** Bytes a ms that the link takes. */ link?: number }

/** Until the node has everything but the newest few, or a minute is over. */
function fill({ rate, bytes, old = bytes, window, there, link = 100_000 }: Row): { ms: number; share: number; fellOut: number; hurried: boolean } {
  const pace = new FillPace();
  const sizeOf = (height: number): number => (height <= there ? old : bytes);
  const committed = (now: number): number => there + Math.floor((rate * now) / 1000);
  const floor = (now: number): number => Math.max(0, committed(now) - window);
  let [now, busyMs, fellOut, hurried] = [0, 0, 0, false];
  let head = floor(0);
  let last: Sent | null = null;
  let told = there;
  while (committed(now) - head > 2 && now < 60_000) {
    for (; told < committed(now); told += 1) pace.committed(bytes);
    const turn = pace.next(now, rate === 0, head, floor(now), last);
    hurried ||= turn.hurried;
    now += last === null ? 0 : turn.pauseMs;
    if (head < floor(now)) {
      fellOut += 1;
      head = floor(now);
      last = null;
      continue;
    }
    let [blocks, sent] = [0, 0];
    for (; head + blocks < committed(now) && blocks < turn.batch.blocks && (blocks === 0 || sent < turn.batch.bytes); blocks += 1) sent += sizeOf(head + blocks + 1);
    const tookMs = 0.3 + 0.03 * blocks + sent / link;
    now += tookMs;
    busyMs += tookMs;
    head += blocks;
    last = { blocks, bytes: sent, tookMs };
  }
  return { ms: now, share: busyMs / now, fellOut, hurried };
}

describe('filling a node', () => {
  test.each<[string, Row, Partial<Record<'mostMs' | 'mostShare', number>> & { hurried: boolean }]>([
    ['nobody commits: all it can get', { rate: 0, bytes: 80_000, window: 1000, there: 1000 }, { mostMs: 2000, hurried: false }],
    ['80 MB are there, a client commits small blocks without a pause, nothing is trimmed', { rate: 500, bytes: 200, old: 80_000, window: 50_000, there: 1000 }, { mostMs: 15_000, mostShare: 0.13, hurried: false }],
    ['the new blocks are as large, 40 MB/s of them: it has to hurry', { rate: 500, bytes: 80_000, window: 50_000, there: 1000 }, { mostMs: 20_000, hurried: true }],
    ['small blocks, the window slides', { rate: 500, bytes: 200, window: 1000, there: 5000 }, { mostMs: 2000, hurried: false }],
    ['10 KB, the window slides', { rate: 200, bytes: 10_000, window: 1000, there: 5000 }, { mostMs: 10_000, mostShare: 0.2, hurried: false }],
    ['a window of 16 that slides fast', { rate: 400, bytes: 10_000, window: 16, there: 5000 }, { mostMs: 2000, hurried: false }],
    ['1 MiB blocks, 24 a second, the window slides', { rate: 24, bytes: 1_048_576, window: 256, there: 1000 }, { mostMs: 30_000, hurried: true }],
    ['the same over a slow link', { rate: 24, bytes: 1_048_576, window: 256, there: 1000, link: 50_000 }, { mostMs: 30_000, hurried: true }],
  ])('filling: %s', (_, row, { mostMs = 60_000, mostShare = 2, hurried }) => {
    const found = fill(row);
    expect(found.fellOut, JSON.stringify(found)).toBeLessThanOrEqual(1);
    expect(found.ms, JSON.stringify(found)).toBeLessThan(mostMs);
    expect(found.share, JSON.stringify(found)).toBeLessThan(mostShare);
    expect(found.hurried, JSON.stringify(found)).toBe(hurried);
  });
});

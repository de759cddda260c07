// A chunk that does not arrive in time may be too large. It is read in smaller chunks, whole and in order. Only a node
// that hangs is left out.
import { describe, expect, test } from 'vitest';
import { readChunks } from '../../src/core/stream/chunks.js';
import { systemClock } from '../../src/core/nodes/system-clock.js';
import type { NodePort } from '../../src/core/ports.js';
import type { Entry, NodeView } from '../../src/core/protocol/types.js';

const HEAD = 40;
const view = {
  admission: 'admitted',
  incarnation: 'i',
  head: HEAD,
  floor: 0,
  config: '',
  cluster: 'c.1',
} as unknown as NodeView;
const entry = (height: number): Entry => ({
  height,
  hash: String(height),
  parent: String(height - 1),
  timestamp: height,
  epoch: 1,
  owner: 'a/1',
  size: 10,
  data: new Uint8Array(10),
});

/** Answers in time when at most `most` entries are asked for. */
function node(id: string, most: (from: number, to: number) => boolean): NodePort {
  return {
    id,
    url: id,
    read: ({ from, to }: { from: number; to: number }) =>
      Promise.resolve(
        most(from, to)
          ? {
              outcome: 'accepted',
              incarnation: 'i',
              value: {
                entries: Array.from({ length: Math.min(to, HEAD) - from + 1 }, (_, at) => entry(from + at)),
                damaged: [],
                lastId: '',
              },
            }
          : { outcome: 'unknown', step: 'reply', cause: 'nothing within the limit' },
      ),
  } as unknown as NodePort;
}

describe('streams, a piece at a time', () => {
  test.each<[string, boolean, (from: number, to: number) => boolean, number]>([
    ['all of it comes', false, () => true, HEAD],
    ['only small pieces come', false, (from, to) => to - from < 4, HEAD],
    ['only single heights come', true, (from, to) => to - from < 3, HEAD],
    ['blocks become large half-way', true, (from, to) => to < 20 || to - from < 3, HEAD],
    ['it hangs', false, () => false, 0],
  ])('chunks: %s → every height once, from each node that gives it', async (_, newestFirst, most, expected) => {
    const nodes = [node('r1', () => true), node('r2', most)];
    const probes = nodes.map(({ id, url }) => ({
      id,
      url,
      reply: { outcome: 'accepted' as const, incarnation: 'i', value: view },
      rttMs: 1,
    }));
    const seen = { r1: [] as number[], r2: [] as number[] };
    for await (const chunk of readChunks({
      nodes,
      probes: probes as never,
      limitMs: 100,
      clock: systemClock,
      from: 1,
      to: HEAD,
      newestFirst,
    })) {
      for (const id of ['r1', 'r2'] as const) {
        const of = (chunk.entries.get(id) ?? [])
          .map(({ height }) => height)
          .filter((height) => height >= chunk.from && height <= chunk.to);
        seen[id].push(...(newestFirst ? of.reverse() : of));
      }
    }
    const all = Array.from({ length: HEAD }, (_, at) => (newestFirst ? HEAD - at : at + 1));
    expect(seen.r1).toEqual(all);
    expect(seen.r2).toEqual(all.slice(0, expected));
  });
});

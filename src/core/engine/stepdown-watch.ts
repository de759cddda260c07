// Watches the committed chain while leadership moves: when the last block of the old epoch and the first one of a higher epoch arrived,
// both proven by a quorum (docs/PROTOCOL.md section 7). The gap is measured on this clock alone, so that no two hosts' clocks matter (I9).
import type { Clock, NodePort } from '../ports.js';
import type { Epoch, Hash, Height } from '../protocol/words.js';
import { tailBlocks } from './tail.js';

export interface Succession {
  height: Height;
  hash: Hash;
  epoch: Epoch;
  gapMs: number;
}

export interface ChainWatch {
  /** Resolves when the newest committed block has been seen, or following cannot begin: from then on the gap can be measured. */
  started: Promise<void>;
  /** The first block that is committed above `height` under an epoch above `epochFrom`; null when stopped before. */
  succession: Promise<Succession | null>;
  /** Newest committed height seen. */
  height(): Height;
  stop(): void;
}

export function watchChain(nodes: readonly NodePort[], limitMs: number, clock: Clock, after: { height: Height; epochFrom: Epoch }): ChainWatch {
  const stop = new AbortController();
  let newest = after.height;
  let start = (): void => undefined;
  const started = new Promise<void>((resolve) => { start = resolve; });
  const watch = async (): Promise<Succession | null> => {
    let lastAt: number | null = null;
    try {
      for await (const block of tailBlocks({ nodes, limitMs, clock, signal: stop.signal, from: 'head', follow: true })) {
        const now = clock.now();
        newest = Math.max(newest, block.height);
        start();
        if (block.height > after.height && block.epoch > after.epochFrom) {
          return { height: block.height, hash: block.hash, epoch: block.epoch, gapMs: lastAt === null ? 0 : Math.round((now - lastAt) * 10) / 10 };
        }
        lastAt = now;
      }
    } finally {
      start();
    }
    return null;
  };
  const succession = watch();
  succession.catch(() => undefined);
  return { started, succession, height: () => newest, stop: () => stop.abort() };
}

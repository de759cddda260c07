// Watches the committed chain while leadership moves (docs/PROTOCOL.md section 7). When did the last block of the old
// epoch arrive, and the first one of a higher epoch, both proven by a quorum? The gap is measured with this clock
// alone, so that no two hosts' clocks matter. If the old leader committed nothing while it was watched (it hangs), the
// gap comes from the blocks' own timestamps.
import type { Clock, NodePort } from '../ports.js';
import type { Epoch, Hash, Height } from '../protocol/types.js';
import { tailBlocks } from '../stream/tail.js';

export interface Succession {
  height: Height;
  hash: Hash;
  epoch: Epoch;
  gapMs: number;
  gapBy: 'arrival' | 'timestamps';
}

export interface ChainWatch {
  /** Resolves when the first block has arrived, or following cannot begin. Then the gap can be measured. */
  started: Promise<void>;
  /** The first block that is committed above `height` under an epoch above `epochFrom`; null when stopped before. */
  succession: Promise<Succession | null>;
  /** Newest committed height seen. */
  height(): Height;
  stop(): void;
}

export function watchChain(
  nodes: readonly NodePort[],
  limitMs: number,
  clock: Clock,
  after: { height: Height; epochFrom: Epoch },
): ChainWatch {
  const stop = new AbortController();
  let newest = after.height;
  let start = (): void => undefined;
  const started = new Promise<void>((resolve) => {
    start = resolve;
  });
  const watch = async (): Promise<Succession | null> => {
    let seen = 0;
    let lastAt = 0;
    let lastTimestamp = 0;
    try {
      for await (const block of tailBlocks({
        nodes,
        limitMs,
        clock,
        signal: stop.signal,
        from: 'head',
        follow: true,
      })) {
        const now = clock.now();
        newest = Math.max(newest, block.height);
        if (block.height > after.height && block.epoch > after.epochFrom) {
          // The first block was there before the watch began, so its arrival time is not known.
          const live = seen >= 2;
          const gapMs = live ? Math.round((now - lastAt) * 10) / 10 : Math.max(0, block.timestamp - lastTimestamp);
          return {
            height: block.height,
            hash: block.hash,
            epoch: block.epoch,
            gapMs,
            gapBy: live ? 'arrival' : 'timestamps',
          };
        }
        seen += 1;
        if (seen === 2) start();
        lastAt = now;
        lastTimestamp = block.timestamp;
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

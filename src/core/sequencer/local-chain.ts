// The local store as the protocol sees it (LocalChain), and the retention rule (docs/PROTOCOL.md sections 4 and 10).
// The nodes keep the newest retainBlocks blocks or retainBytes payload bytes, whichever is less. They always keep the
// two newest blocks. They never trim a block that is not on this disk yet: if the leader died, the only copy would be
// lost.
import type { Limits } from '../config.js';
import type { ChainStore } from '../ports.js';
import type { LocalChain } from '../protocol/term-state.js';
import type { Block } from '../protocol/types.js';

export function localChain(
  store: ChainStore,
  genesis: string,
  limits: () => Pick<Limits, 'retainBlocks' | 'retainBytes'>,
  synced: () => number,
  seen?: (height: number, hash: string) => Block | undefined,
): LocalChain {
  const hashAt = (height: number) => (height === 0 ? genesis : store.header(height)?.hash);
  return {
    head: () => store.head(),
    hashAt,
    ...(seen ? { seen } : {}),
    trimFor(next) {
      const { retainBlocks, retainBytes } = limits();
      const floor = store.retainedFloor({ blocks: retainBlocks - 1, bytes: Math.max(0, retainBytes - next.size) });
      const to = Math.min(floor, next.height - 2, synced()); // never past last committed − 1
      const hash = to > 0 ? hashAt(to) : undefined;
      return hash === undefined ? undefined : { to, hash };
    },
    retainedFloor() {
      const { retainBlocks, retainBytes } = limits();
      const height = Math.max(
        0,
        Math.min(store.retainedFloor({ blocks: retainBlocks, bytes: retainBytes }), store.head().height - 1),
      );
      return { height, hash: hashAt(height) ?? genesis };
    },
  };
}

// Blocks that the nodes have trimmed, from the feeds of other sequencers: only up to a hash that the nodes prove,
// never skipping (docs/PROTOCOL.md section 7). One peer after the other; what one has delivered is kept when it
// fails.
import { EXIT, SeqError } from '../../errors.js';
import type { CommittedBlock } from '../../ports.js';
import type { Hash, Height } from '../../protocol/types.js';
import { fetchFromPeer } from '../../nodes/peer-feed.js';

export interface CatchUpOptions {
  head(): { height: Height; hash: Hash };
  /** Proven by a node: the block at its floor. */
  to: { height: Height; hash: Hash };
  /** Base URLs, best first. */
  peers: readonly string[];
  token?: string;
  ca?: string;
  signal: AbortSignal;
  apply(block: CommittedBlock): Promise<void> | undefined;
}

/** Resolves when the store has reached `to`; throws SeqError NO_PEER when no peer could bring it there. */
export async function catchUpFromPeers(options: CatchUpOptions): Promise<void> {
  const { head, to, peers, token, ca, signal, apply } = options;
  const failures: string[] = [];
  for (const url of peers) {
    try {
      for await (const block of fetchFromPeer({
        url,
        after: head(),
        to: to.height,
        anchor: to.hash,
        signal,
        ...(token === undefined ? {} : { token }),
        ...(ca === undefined ? {} : { ca }),
      })) {
        const waiting = apply(block);
        if (waiting) await waiting;
      }
      if (head().height >= to.height) return;
    } catch (error) {
      failures.push(`${url}: ${error instanceof Error ? error.message : String(error)}`);
    }
  }
  throw new SeqError({
    code: 'NO_PEER',
    exit: EXIT.notFound,
    message: `blocks ${head().height + 1} to ${to.height} are below the nodes' retained range, and no peer has them`,
    why:
      peers.length === 0 ? 'no peer is known: none was named and no other sequencer shows a url' : failures.join('; '),
    changed: 'nothing',
    next: ['start another sequencer that holds them, with --http', 'or name one: --peer URL'],
    retryable: true,
  });
}

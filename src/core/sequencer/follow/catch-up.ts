// Fetches blocks that the nodes have trimmed from the feeds of other sequencers (docs/PROTOCOL.md section 7). It
// fetches only up to a hash that the nodes prove, and skips no block. It asks one peer after the other. When a peer
// fails, the blocks that it has delivered stay.
import type { ClientTls } from '../../http-call.js';
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
  tls?: ClientTls;
  signal: AbortSignal;
  apply(block: CommittedBlock): Promise<void> | undefined;
}

/** Resolves when the store has reached `to`. Throws SeqError NO_PEER when no peer has the blocks. */
export async function catchUpFromPeers(options: CatchUpOptions): Promise<void> {
  const { head, to, peers, token, tls, signal, apply } = options;
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
        ...(tls === undefined ? {} : { tls }),
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

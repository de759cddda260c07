// Fills a follower's store that ends below the nodes' retained range (docs/PROTOCOL.md section 7). The blocks come from
// peers' feeds, one attempt at a time, up to a floor that a node shows.
import type { ClientTls } from '../../http-call.js';
import { SeqError } from '../../errors.js';
import type { EmitEvent } from '../../events.js';
import type { ChainStore } from '../../ports.js';
import type { Block, Epoch } from '../../protocol/types.js';
import { catchUpFromPeers, type CatchUpOptions } from './catch-up.js';
import { admittedViews, type ProbeResult } from '../../nodes/probe.js';

export interface BringUpOptions {
  store: ChainStore;
  emit: EmitEvent;
  /** This sequencer's own address. It is never asked. */
  url: string;
  /** Peers named with --peer. Peers from presence records are asked, too. */
  peers: readonly string[];
  peerToken?: () => string;
  peerTls?: () => ClientTls;
  catchUp?: (options: CatchUpOptions) => Promise<void>;
}

export class BringUp {
  private catchingUp = false;

  /** `take` gets a block from a peer, checked against the chain. It resolves when more may come. */
  constructor(
    private readonly options: BringUpOptions,
    private readonly signal: AbortSignal,
    private readonly take: (block: Block & { epoch: Epoch }) => Promise<void> | undefined,
  ) {}

  async from(seen: ProbeResult): Promise<void> {
    const { store, emit, url, peers, peerToken, peerTls } = this.options;
    if (this.catchingUp) return;
    this.catchingUp = true;
    try {
      const views = admittedViews(seen).filter((view) => view.head > store.head().height);
      const tls = peerTls?.();
      const target = views.sort((a, b) => a.floor - b.floor)[0];
      if (!target) return;
      const shown = views.flatMap((view) =>
        view.sequencers.filter((one) => one.height >= target.floor).map((one) => one.url),
      );
      await (this.options.catchUp ?? catchUpFromPeers)({
        head: () => store.head(),
        to: { height: target.floor, hash: target.floorHash },
        peers: [...new Set([...peers, ...shown])].filter((one) => one !== '' && one !== url),
        ...(peerToken === undefined ? {} : { token: peerToken() }),
        ...(tls === undefined ? {} : { tls }),
        signal: this.signal,
        apply: (block) => {
          if (block.height <= store.head().height) return undefined; // the nodes brought it meanwhile
          return this.take(block);
        },
      });
    } catch (error) {
      emit({
        type: 'alarm',
        code: error instanceof SeqError ? error.code : 'CATCH_UP_FAILED',
        reason: error instanceof Error ? error.message : String(error),
      });
    } finally {
      this.catchingUp = false;
    }
  }
}

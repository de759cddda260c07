// Repairs damaged blocks of the local store while the sequencer runs (docs/PROTOCOL.md section 7). The store gives a
// damaged block to nobody. Here the right bytes are fetched, first from the nodes, then from the feeds of peers. The
// store checks them against the hashes that it has, so no source is believed.
import type { ClientTls } from '../http-call.js';
import { genesisHash } from '../chain/block.js';
import type { EmitEvent } from '../events.js';
import { familyOf } from '../generation.js';
import { pause } from '../nodes/pause.js';
import { fetchFromPeer } from '../nodes/peer-feed.js';
import type { ProbeResult } from '../nodes/probe.js';
import type { ChainStore, Clock, ClusterIdentity, CommittedBlock, DamagedBlock, NodePort, Random } from '../ports.js';
import type { Height } from '../protocol/types.js';

/** Between two attempts. The block may be on a node or a peer that does not answer now. */
const RETRY_MS = 2000;
const READ_MS = 2000;
/**
 * The scrub: a step of some milliseconds, and a rest after each pass. A key that is in doubt ends the rest. A process
 * of many lanes must not begin with all of them at once.
 */
const FIRST_WITHIN_MS = 60_000;
const STEP_EVERY_MS = 100;
const REST_MS = 3_600_000;
/** How many damaged heights a presence record names. */
const TOLD = 3;

export interface StoreRepairsOptions {
  random: Pick<Random, 'unit'>;
  store: ChainStore;
  identity: ClusterIdentity;
  clock: Clock;
  emit: EmitEvent;
  /** This sequencer's own address. It is never asked. */
  url: string;
  peers: readonly string[];
  peerToken?: () => string;
  peerTls?: () => ClientTls;
}

export class StoreRepairs {
  private running = false;
  private wake = (): void => {};
  private inDoubt = false;

  constructor(
    private readonly options: StoreRepairsOptions,
    private readonly nodes: () => readonly NodePort[],
    private readonly probeNodes: () => Promise<ProbeResult>,
    private readonly signal: AbortSignal,
  ) {
    options.store.onDamage?.((damaged) => this.found(damaged));
    options.store.onKeyInDoubt?.(() => {
      this.inDoubt = true;
      this.wake();
    });
    options.store.onKeysRepaired?.((height, what) => this.keysRepaired(height, what));
  }

  /** Looks through the store, slowly, for as long as the sequencer runs. */
  async scrub(): Promise<void> {
    const { store, clock } = this.options;
    if (store.scrub === undefined) return;
    await this.rest(this.options.random.unit() * FIRST_WITHIN_MS);
    while (!this.signal.aborted) {
      let more = true;
      while (more && !this.signal.aborted) {
        await pause(clock, STEP_EVERY_MS, this.signal);
        // A store that fails ends the process by its own error.
        if (!this.signal.aborted) more = await store.scrub().catch(() => false);
      }
      await this.rest(REST_MS);
    }
  }

  /** For the presence record, while something is damaged. */
  facts(): Record<string, string> {
    const heights = [...(this.options.store.damaged?.keys() ?? [])].sort((a, b) => a - b);
    if (heights.length === 0) return {};
    const more = heights.length > TOLD ? ` and ${heights.length - TOLD} more` : '';
    return { storeDamaged: `${heights.slice(0, TOLD).join(', ')}${more}` };
  }

  /** Ends early when a key is in doubt, and when the sequencer stops. */
  private async rest(ms: number): Promise<void> {
    const { inDoubt } = this;
    this.inDoubt = false;
    if (inDoubt || this.signal.aborted) return;
    const over = new AbortController();
    this.wake = () => over.abort();
    this.signal.addEventListener('abort', this.wake, { once: true });
    await pause(this.options.clock, ms, over.signal);
    this.signal.removeEventListener('abort', this.wake);
  }

  private keysRepaired(height: Height, what: string): void {
    const why = `what it remembers of keys: ${what}`;
    this.options.emit({ type: 'store', state: 'damaged', height, why });
    this.options.emit({ type: 'store', state: 'repaired', height, why });
  }

  private found({ height, why }: DamagedBlock): void {
    this.options.emit({
      type: 'store',
      state: 'damaged',
      height,
      why: `${why}; it is given to nobody, and fetched from the nodes and peers`,
    });
    if (this.running) return;
    this.running = true;
    void this.run();
  }

  private async run(): Promise<void> {
    const { store, clock } = this.options;
    // Whoever reads the store now has to end first: a repaired block must not come in the middle of its turn.
    await Promise.resolve();
    while (store.damaged !== undefined && store.damaged.size > 0 && !this.signal.aborted) {
      for (const height of [...store.damaged.keys()]) await this.repair(height);
      if (store.damaged.size > 0) await pause(clock, RETRY_MS);
    }
    this.running = false;
  }

  private async repair(height: Height): Promise<void> {
    const { store, emit } = this.options;
    try {
      for await (const { block, from } of this.copies(height)) {
        if (this.signal.aborted) return;
        if (!(await store.repair!(block))) continue;
        emit({ type: 'store', state: 'repaired', height, why: `the right bytes came from ${from}` });
        return;
      }
    } catch (error) {
      if (this.signal.aborted) return;
      const why = error instanceof Error ? error.message : String(error);
      emit({ type: 'store', state: 'damaged', height, why: `it could not be repaired: ${why}` });
    }
  }

  /** The block as the nodes have it, then as the peers have it. */
  private async *copies(height: Height): AsyncGenerator<{ block: CommittedBlock; from: string }> {
    for (const node of this.nodes()) {
      const read = await node.read({ from: height, to: height, limit: 1, data: true }, READ_MS);
      const entry = read.outcome === 'accepted' ? read.value.entries[0] : undefined;
      if (entry?.height !== height || entry.data === undefined) continue;
      const { hash, parent, timestamp, epoch, data } = entry;
      yield { block: { height, hash, parent, timestamp, epoch, data }, from: node.id };
    }
    const { url, peers, peerToken, peerTls, store, identity } = this.options;
    const tls = peerTls?.();
    const seen = await this.probeNodes();
    const shown = seen.replies.flatMap((reply) =>
      reply?.outcome === 'accepted' ? reply.value.sequencers.map((one) => one.url) : [],
    );
    const genesis = genesisHash(familyOf(identity.cluster), identity.lane);
    const parent = height === 1 ? genesis : store.header(height - 1)?.hash;
    for (const peer of new Set([...peers, ...shown])) {
      if (peer === '' || peer === url || parent === undefined) continue;
      try {
        for await (const block of fetchFromPeer({
          url: peer,
          after: { height: height - 1, hash: parent },
          to: height,
          signal: this.signal,
          ...(peerToken === undefined ? {} : { token: peerToken() }),
          ...(tls === undefined ? {} : { tls }),
        }))
          yield { block, from: peer };
      } catch {
        // Another peer may have it.
      }
    }
  }
}

// Writes what a leader would write, without a leader's decisions, for tests of readers. It promotes, claims and writes
// blocks on the given nodes through the real port.
import type { CommittedBlock, Item, NodePort } from '../../src/core/ports.js';
import type { ReplyTo, NodeCall } from '../../src/core/protocol/types.js';
import { ChainMaker } from './blocks.js';

const LIMIT_MS = 60_000;
const RECORD_MS = 3_600_000;

export class ChainWriter {
  readonly chain: ChainMaker;
  readonly blocks: CommittedBlock[] = [];
  epoch = 0;
  owner: string;
  /**
   * The configuration that its claims carry. A node that knows a configuration refuses a claim with an earlier one, or
   * with none.
   */
  config?: string;

  constructor(
    readonly nodes: readonly NodePort[],
    cluster: string,
    lane = '',
    readonly id = 'seq-a',
    readonly ttlMs = 60_000,
  ) {
    this.chain = new ChainMaker(cluster.slice(0, cluster.lastIndexOf('.')), lane);
    this.owner = `${id}/0000000000000001`;
  }

  async bootstrap(): Promise<void> {
    for (const script of ['bootstrap_prepare', 'bootstrap_commit'] as const) {
      for (const node of this.nodes) must(await node.call({ script, nonce: 'aabb' }, LIMIT_MS));
    }
  }

  /** Begins a new term on these nodes. */
  async lead(on: readonly NodePort[] = this.nodes): Promise<void> {
    const expectedEpoch = this.epoch;
    for (const node of on)
      must(
        await node.call({ script: 'promote_leader', owner: this.owner, expectedEpoch, ttlMs: this.ttlMs }, LIMIT_MS),
      );
    this.epoch += 1;
    const config = this.config === undefined ? {} : { config: this.config };
    for (const node of on)
      must(await node.call({ script: 'claim', owner: this.owner, epoch: this.epoch, ...config }, LIMIT_MS));
    await this.announce(on);
  }

  /**
   * Writes a presence record, as a leader does. The record and the lease last for the whole test, so that no block
   * counts as late. A record that a test writes for the same sequencer counts as newer.
   */
  private async announce(on: readonly NodePort[]): Promise<void> {
    for (const node of on)
      must(await node.call({ script: 'announce', presence: this.presence(), ttlMs: RECORD_MS }, LIMIT_MS));
  }

  /** Lets the presence record expire: the sequencer is gone, and nobody waits for its store. */
  async leave(): Promise<void> {
    for (const node of this.nodes)
      await node.call({ script: 'announce', presence: this.presence(), ttlMs: 1 }, LIMIT_MS);
  }

  private presence() {
    return {
      id: this.id,
      role: 'leader' as const,
      height: 0,
      version: '',
      url: '',
      pid: 0,
      configDigest: '',
      extra: {
        ready: 'yes',
        ttlMs: String(this.ttlMs),
        blockTimeMs: String(this.ttlMs),
        recordTtlMs: String(RECORD_MS),
        seenAtMs: '1',
      },
    };
  }

  /** Makes the next block and writes it to these nodes. */
  async write(
    content: Item[] | Uint8Array = [],
    on: readonly NodePort[] = this.nodes,
    trimTo = 0,
  ): Promise<CommittedBlock> {
    const block = this.chain.block(content, { epoch: this.epoch });
    this.blocks.push(block);
    await this.put(block, on, trimTo);
    return block;
  }

  async put(block: CommittedBlock, on: readonly NodePort[], trimTo = 0): Promise<void> {
    const trim = trimTo > 0 ? { trim: { to: trimTo, hash: this.blocks[trimTo - 1]!.hash } } : {};
    await Promise.all(
      on.map(async (node) =>
        must(
          await node.call(
            {
              script: 'write_block',
              owner: this.owner,
              epoch: this.epoch,
              ttlMs: this.ttlMs,
              mode: 'append',
              block,
              entryEpoch: this.epoch,
              ...trim,
            },
            LIMIT_MS,
          ),
        ),
      ),
    );
  }
}

function must(reply: ReplyTo<NodeCall>): void {
  if (reply.outcome !== 'accepted') throw new Error(JSON.stringify(reply));
}

// A Redis server in memory, and the NodePort to it. The state is in memory-state.ts, the scripts are in
// memory-scripts.ts, and the caller gives the clock. Every call runs at once and is answered. Delays, losses and
// partitions belong to the code that wraps the port.
import { genesisHash } from '../../src/core/chain/block.js';
import type { BackfillBatch, Clock, ClusterIdentity, NodeHint, NodePort } from '../../src/core/ports.js';
import type { EntriesRead, Height, NodeCall, NodeReply, ReplyTo } from '../../src/core/protocol/types.js';
import { applyCall, applyRead, entriesAfter, type MemoryIdentity, type Mutant } from './memory-scripts.js';
import { cloneNodeState, emptyNodeState, restart, wipe, type MemoryNodeState } from './memory-state.js';

export * from './memory-scripts.js';
export * from './memory-state.js';

type Hint = NodeHint;

/** One server. Any number of ports may share it. */
export class MemoryServer {
  readonly state: MemoryNodeState;
  /** Rises at every restart. Ports take this as a lost connection. */
  starts = 0;
  private readonly wakers = new Set<() => void>();
  private readonly listeners = new Set<(hint: Hint) => void>();

  constructor(
    readonly id: string,
    private readonly nowMs: () => number,
    state?: MemoryNodeState,
    readonly mutant: Mutant = {},
  ) {
    this.state = state ?? emptyNodeState(`run-${id}-0`);
  }

  apply<C extends NodeCall>(call: C, identity: MemoryIdentity, nodeId: string): ReplyTo<C> {
    const reply = applyCall(this.state, call, identity, nodeId, this.nowMs(), this.mutant);
    if (reply.outcome === 'accepted') {
      if (call.script === 'write_block' || call.script === 'backfill') this.wake();
      else if (call.script === 'release_lock') this.hint(call.handover ? 'gone' : 'released');
      else if (call.script === 'request_leader') this.hint('request');
    }
    return reply;
  }

  /** The remaining time of a key by this server's own clock, as PTTL shows it. */
  remainingMs(expiresAtMs: number | null): number {
    return expiresAtMs === null ? Infinity : expiresAtMs - this.nowMs();
  }

  /** FLUSHALL. */
  wipe(): void {
    wipe(this.state);
    this.wake();
  }

  /** The process dies and starts again. */
  restart(keep: 'all' | 'none' | number): void {
    this.starts += 1;
    restart(this.state, `run-${this.id}-${this.starts}`, { keep });
    this.wake();
  }

  /**
   * Restores an old copy of all keys, as if the server had been a replica of its own old copy for a moment. The process
   * stays the same. The history of its data changes, and with it the identity of its memory (docs/PROTOCOL.md section
   * 8).
   */
  rewind(to: MemoryNodeState): void {
    this.starts += 1;
    const runId = this.mutant.oldRunOnly ? this.state.runId : `run-${this.id}-${this.starts}`;
    Object.assign(this.state, cloneNodeState(to), { runId });
    this.wake();
  }

  /** Calls back once, at the next change of the stream. */
  onceWoken(run: () => void): () => void {
    this.wakers.add(run);
    return () => this.wakers.delete(run);
  }

  onHint(listener: (hint: Hint) => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  /** Publishes a hint. The simulator uses it for the keyspace event of an expired lock. */
  hint(hint: Hint): void {
    for (const listener of [...this.listeners]) listener(hint);
  }

  private wake(): void {
    const woken = [...this.wakers];
    this.wakers.clear();
    for (const run of woken) run();
  }
}

export class MemoryNode implements NodePort {
  readonly id: string;
  readonly url: string;
  private readonly identity: MemoryIdentity;
  private readonly endings = new Set<() => void>();

  constructor(
    readonly server: MemoryServer,
    identity: ClusterIdentity,
    private readonly clock: Clock,
    id = server.id,
  ) {
    this.id = id;
    this.url = `memory://${server.id}`;
    this.identity = memoryIdentity(identity);
  }

  get connectionGeneration(): number {
    return this.server.starts;
  }

  call<C extends NodeCall>(call: C, _limitMs: number): Promise<ReplyTo<C>> {
    return Promise.resolve(this.server.apply(call, this.identity, this.id));
  }

  async backfill(
    batch: BackfillBatch,
    _limitMs: number,
  ): Promise<ReplyTo<Extract<NodeCall, { script: 'write_block' }>>[]> {
    const replies: ReplyTo<Extract<NodeCall, { script: 'write_block' }>>[] = [];
    const { owner, epoch, ttlMs, mode, nonce } = batch;
    for (const { block, entryEpoch } of batch.blocks) {
      const reply =
        nonce === undefined
          ? this.server.apply(
              { script: 'write_block', owner, epoch, ttlMs, mode, block, entryEpoch },
              this.identity,
              this.id,
            )
          : this.server.apply({ script: 'backfill', owner, epoch, nonce, block, entryEpoch }, this.identity, this.id);
      replies.push(reply);
      if (reply.outcome !== 'accepted') break;
    }
    return replies;
  }

  async read(
    range: { from: Height; to: Height; limit: number; data: boolean; newestFirst?: boolean },
    _limitMs: number,
  ): Promise<NodeReply<EntriesRead>> {
    return this.answer(applyRead(this.server.state, range));
  }

  tail(afterId: string, waitMs: number, limit: number): Promise<NodeReply<EntriesRead>> {
    return new Promise((resolve) => {
      let cancelTimer = (): void => undefined;
      let cancelWake = (): void => undefined;
      const finish = (read: EntriesRead): void => {
        cancelTimer();
        cancelWake();
        this.endings.delete(end);
        resolve(this.answer(read));
      };
      const end = (): void => finish({ entries: [], damaged: [], lastId: '' });
      const probe = (): void => {
        const read = entriesAfter(this.server.state, afterId, limit);
        if (read.lastId !== '') finish(read);
        else cancelWake = this.server.onceWoken(probe);
      };
      this.endings.add(end);
      cancelTimer = this.clock.after(waitMs, end);
      probe();
    });
  }

  onHint(listener: (hint: Hint) => void): () => void {
    return this.server.onHint(listener);
  }

  async close(): Promise<void> {
    for (const end of [...this.endings]) end();
  }

  /**
   * The incarnation is '' unless the node is admitted: readers may see what such a node holds, but it counts for
   * nothing.
   */
  private answer(read: EntriesRead): NodeReply<EntriesRead> {
    const { record, runId } = this.server.state;
    if (record !== null && record.cluster !== this.identity.cluster) {
      return { outcome: 'refused', reason: 'WRONG_CLUSTER', detail: { why: 'cluster', actual: record.cluster } };
    }
    const admitted = record !== null && record.pending === '' && record.run === runId;
    return { outcome: 'accepted', incarnation: admitted ? record.incarnation : '', value: read };
  }
}

/**
 * The generation is the part of `cluster` after its last dot. The genesis hash depends on the cluster and the lane
 * only.
 */
export function memoryIdentity(identity: ClusterIdentity): MemoryIdentity {
  const dot = identity.cluster.lastIndexOf('.');
  return {
    cluster: identity.cluster,
    genesis: genesisHash(dot < 0 ? identity.cluster : identity.cluster.slice(0, dot), identity.lane),
  };
}

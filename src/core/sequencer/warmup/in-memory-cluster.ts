// In-memory nodes and store for warm-ups (warmup.ts). They have one client only, so nothing is locked. They are no
// model of the scripts (test/support has that one). They answer as nodes do when nothing fails, and refuse every other
// call.
import { genesisHash } from '../../chain/block.js';
import { keysOf } from '../../chain/items.js';
import type { ChainStore, Clock, ClusterIdentity, CommittedBlock, NodeHint, NodePort, Receipt } from '../../ports.js';
import type {
  Block,
  CallResult,
  EntriesRead,
  Entry,
  Hash,
  HeadFacts,
  LeaderRequest,
  NodeCall,
  NodeReply,
  NodeView,
  Presence,
  ReplyTo,
} from '../../protocol/types.js';

export const IN_MEMORY_CLUSTER: ClusterIdentity = { cluster: 'warmup.1', lane: '' };
export const WARMUP_GENESIS: Hash = genesisHash('warmup', '');
const INCARNATION = 'warmup';
const STALE_OWNER = 'before/0000000000000000';

export class InMemoryNode implements NodePort {
  readonly url = 'memory:';
  readonly connectionGeneration = 0;
  private lock = '';
  private epoch = 1;
  private entries: Entry[] = [];
  private request: LeaderRequest | null = null;
  private readonly presences = new Map<string, Presence>();
  private readonly listeners = new Set<(hint: NodeHint) => void>();
  private readonly endings = new Set<() => void>();

  /** `left` is the last block of the previous term. It may be committed or not, as after a crash. */
  constructor(
    readonly id: string,
    private readonly clock: Clock,
    left: Block,
  ) {
    this.put(left, 1, STALE_OWNER);
  }

  /** Answers at the next turn of the clock, so that real work goes on between two steps of a warm-up. */
  call<C extends NodeCall>(call: C): Promise<ReplyTo<C>> {
    return this.later(() => this.answer(call) as ReplyTo<C>);
  }

  backfill(): Promise<ReplyTo<Extract<NodeCall, { script: 'write_block' }>>[]> {
    return this.later(() => [REFUSED]);
  }

  read({ from, to }: { from: number; to: number }): Promise<NodeReply<EntriesRead>> {
    return this.later(() => accepted(this.from(from).filter((entry) => entry.height <= to)));
  }

  tail(afterId: string, waitMs: number): Promise<NodeReply<EntriesRead>> {
    return new Promise((resolve) => {
      const end = (): void => {
        cancel();
        this.endings.delete(end);
        resolve(accepted(this.from(Number(afterId.split('-')[0]) + (afterId.endsWith('-0') ? 0 : 1))));
      };
      const cancel = this.clock.after(waitMs, end);
      this.endings.add(end);
    });
  }

  onHint(listener: (hint: NodeHint) => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  /** What `seq stepdown` leaves on a node. */
  ask(request: LeaderRequest): void {
    this.request = request;
    this.hint('request');
  }

  async close(): Promise<void> {
    this.wake();
  }

  private answer(call: NodeCall): NodeReply<unknown> {
    switch (call.script) {
      case 'inspect':
        return given<NodeView>(this.view());
      case 'announce':
        this.presences.set(call.presence.id, { ...call.presence, pttlMs: call.ttlMs });
        return given<CallResult['announce']>({ usedMemory: 0, maxMemory: 0, timeMs: this.clock.wall() });
      case 'promote_leader':
        if (this.lock !== '' || this.epoch !== call.expectedEpoch) return REFUSED;
        this.lock = call.owner;
        return given<CallResult['promote_leader']>({ epoch: ++this.epoch });
      case 'claim':
        this.epoch = call.epoch;
        return given<HeadFacts>(this.facts());
      case 'extend_lock':
        return given<CallResult['extend_lock']>({ head: this.facts().head });
      case 'write_block':
        this.put(call.block, call.entryEpoch, call.owner);
        return given<CallResult['write_block']>({
          head: call.block.height,
          ...(this.request ? { request: this.request } : {}),
        });
      case 'release_lock':
        this.lock = '';
        this.hint(call.handover ? 'gone' : 'released');
        return given({});
      case 'clear_request':
        this.request = null;
        return given({});
      case 'audit':
        return given({});
      default:
        return REFUSED;
    }
  }

  private put(block: Block, epoch: number, owner: string): void {
    this.entries = [
      ...this.entries.filter((entry) => entry.height < block.height),
      { ...block, epoch, owner, size: block.data.byteLength },
    ];
    this.wake();
  }

  private from(height: number): Entry[] {
    return this.entries.filter((entry) => entry.height >= height);
  }

  private facts(): HeadFacts {
    const { height, epoch, hash } = this.entries.at(-1)!;
    return { head: height, headEpoch: epoch, headHash: hash, floor: 0, floorHash: WARMUP_GENESIS };
  }

  private view(): NodeView {
    return {
      ...this.facts(),
      admission: 'admitted',
      admissionWhy: '',
      cluster: IN_MEMORY_CLUSTER.cluster,
      node: this.id,
      incarnation: INCARNATION,
      pending: '',
      config: '',
      admittedRunId: INCARNATION,
      runId: INCARNATION,
      lock: this.lock === '' ? null : { owner: this.lock, pttlMs: 1000 },
      epoch: this.epoch,
      claimant: this.lock,
      length: this.entries.length,
      hold: null,
      handover: null,
      request: this.request,
      sequencers: [...this.presences.values()],
      timeMs: this.clock.wall(),
      info: {},
    };
  }

  private hint(hint: NodeHint): void {
    for (const listener of [...this.listeners]) listener(hint);
  }

  private wake(): void {
    for (const end of [...this.endings]) end();
  }

  private later<T>(make: () => T): Promise<T> {
    return new Promise((resolve) => this.clock.after(0, () => resolve(make())));
  }
}

const REFUSED: NodeReply<never> = { outcome: 'refused', reason: 'NOT_READY', detail: {} };

function given<T>(value: T): NodeReply<T> {
  return { outcome: 'accepted', incarnation: INCARNATION, value };
}

function accepted(entries: Entry[]): NodeReply<EntriesRead> {
  const last = entries.at(-1);
  return given({ entries, damaged: [], lastId: last ? `${last.height}-${last.epoch}` : '' });
}

/** Keeps a few blocks in memory. Nothing reaches a disk. */
export class InMemoryStore implements ChainStore {
  private readonly blocks: CommittedBlock[] = [];
  private readonly receipts = new Map<string, Receipt & { digest: string }>();

  head(): ReturnType<ChainStore['head']> {
    return this.blocks.at(-1) ?? { height: 0, hash: WARMUP_GENESIS, timestamp: 0, epoch: 0 };
  }

  get(height: number): CommittedBlock | undefined {
    return this.blocks[height - 1];
  }

  header(height: number): ReturnType<ChainStore['header']> {
    const block = this.get(height);
    return block && { ...block, size: block.data.byteLength };
  }

  async append(block: CommittedBlock): Promise<void> {
    this.blocks.push(block);
    for (const { key, digest, index } of keysOf(block.data))
      this.receipts.set(key, { height: block.height, index, epoch: block.epoch, digest });
  }

  receipt(key: string): (Receipt & { digest: string }) | undefined {
    return this.receipts.get(key);
  }

  retainedFloor(limits: { blocks: number }): number {
    return Math.max(0, this.blocks.length - limits.blocks);
  }

  async close(): Promise<void> {}
}

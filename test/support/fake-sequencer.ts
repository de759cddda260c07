// A SequencerApi in memory, for tests of the parts around it. It commits every submission at once, one block for each
// call. Switches give every other outcome. It keeps keys like the real one, so that de-duplication can be tested.
import { createHash } from 'node:crypto';
import { genesisHash, makeBlock } from '../../src/core/chain/block.js';
import { EXIT, SeqError } from '../../src/core/errors.js';
import type {
  CommittedBlock,
  Item,
  Receipt,
  SequencerApi,
  SequencerStatus,
  SubmitOutcome,
} from '../../src/core/ports.js';

const sha = (data: Uint8Array) => createHash('sha256').update(data).digest('hex');

export class FakeSequencer implements SequencerApi {
  readonly blocks: CommittedBlock[] = [];
  readonly items: { key: string | undefined; text: string; receipt: Receipt }[] = [];
  readonly calls: Item[][] = [];
  readonly keys = new Map<string, Receipt & { digest: string }>();
  floor = 0;
  state: Partial<SequencerStatus> = {};
  /** If it returns outcomes, these are the answer, and nothing is committed. */
  intercept: (items: Item[]) => SubmitOutcome[] | Promise<SubmitOutcome[]> | undefined = () => undefined;
  head: () => ReturnType<SequencerApi['confirmHead']> = async () => ({
    confirmed: true,
    height: this.height,
    hash: this.hash,
    epoch: 7,
  });
  readonly #successors = new Set<(status: SequencerStatus) => void>();
  #wake = new Set<() => void>();

  constructor(readonly id = 'seq-a') {}

  get height(): number {
    return this.floor + this.blocks.length;
  }
  get hash(): string {
    return this.blocks.at(-1)?.hash ?? genesisHash('test', '');
  }

  status(): SequencerStatus {
    return {
      id: this.id,
      role: 'leader',
      cluster: 'test.1',
      lane: '',
      height: this.height,
      hash: this.hash,
      epoch: 7,
      leaseMs: 2500,
      leader: { id: this.id, epoch: 7, url: '' },
      seenHeight: this.height,
      ready: true,
      why: '',
      blocked: '',
      nodes: [{ id: 'r1', state: 'admitted', why: '' }],
      inbox: { items: 0, bytes: 0, limitBytes: 1 << 24 },
      startedAtMs: 1,
      loopAgeMs: 3,
      ...this.state,
    };
  }

  push(data: Uint8Array): CommittedBlock {
    const block = {
      ...makeBlock({ height: this.height + 1, parent: this.hash, timestamp: 1000 + this.height, data }),
      epoch: 7,
    };
    this.blocks.push(block);
    for (const wake of this.#wake) wake();
    return block;
  }

  async submit(items: Item[]): Promise<SubmitOutcome[]> {
    this.calls.push(items);
    return (await this.intercept(items)) ?? this.commit(items);
  }

  commit(items: Item[]): SubmitOutcome[] {
    const height = this.height + 1;
    let index = 0;
    const outcomes = items.map((item): SubmitOutcome => {
      const digest = sha(item.data);
      const known = item.key === undefined ? undefined : this.keys.get(item.key);
      if (known) {
        if (known.digest !== digest) return { outcome: 'refused', reason: 'key-conflict', why: 'other bytes' };
        return { outcome: 'committed', receipt: known, duplicate: true };
      }
      const receipt = { height, index: index++, epoch: 7 };
      if (item.key !== undefined) this.keys.set(item.key, { ...receipt, digest });
      this.items.push({ key: item.key, text: Buffer.from(item.data).toString('latin1'), receipt });
      return { outcome: 'committed', receipt, duplicate: false };
    });
    if (index > 0) this.push(Buffer.from(`${index} items`));
    return outcomes;
  }

  /** How many callers wait for the next leader. */
  get successorWaiters(): number {
    return this.#successors.size;
  }

  /** Sets the status and tells the callers that wait for it. */
  become(state: Partial<SequencerStatus>): void {
    this.state = state;
    for (const listener of [...this.#successors]) listener(this.status());
  }

  onLeadership(listener: (status: SequencerStatus) => void): () => void {
    this.#successors.add(listener);
    return () => void this.#successors.delete(listener);
  }

  confirmHead() {
    return this.head();
  }
  block(height: number) {
    return this.blocks[height - this.floor - 1];
  }
  receipt(key: string) {
    return this.keys.get(key);
  }
  blockTimes(height: number) {
    const block = this.block(height);
    return block && { height, hash: block.hash, proposedMs: 1, committedMs: 2, syncedMs: 3 };
  }

  async *follow(from: number, signal: AbortSignal): AsyncIterable<CommittedBlock> {
    if (from <= this.floor)
      throw new SeqError({
        code: 'NOT_FOUND',
        exit: EXIT.notFound,
        message: `block ${from} is below the store`,
        why: 'trimmed',
        changed: 'nothing',
        next: [],
      });
    for (let height = from; !signal.aborted;) {
      const block = this.block(height);
      if (block) {
        yield block;
        height += 1;
        continue;
      }
      await new Promise<void>((resolve) => {
        const done = () => {
          this.#wake.delete(done);
          signal.removeEventListener('abort', done);
          resolve();
        };
        this.#wake.add(done);
        signal.addEventListener('abort', done);
      });
    }
  }
}

/** Resolves when `holds` is true. Fails with the name of what it waited for. */
export async function until(holds: () => boolean | Promise<boolean>, what: string, limitMs = 120_000): Promise<void> {
  const end = Date.now() + limitMs;
  while (!(await holds())) {
    if (Date.now() > end) throw new Error(`never came: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

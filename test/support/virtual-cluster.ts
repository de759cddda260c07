// A whole cluster in virtual time: in-memory nodes, sequencers with the real engine, and a clock that a test moves.
import { quorumOf, type Limits, type Timing } from '../../src/core/config.js';
import type { SeqEvent } from '../../src/core/events.js';
import { Inbox } from '../../src/core/sequencer/lead/inbox.js';
import { Sequencer } from '../../src/core/sequencer/sequencer.js';
import type { Clock, NodePort, Producer, Random } from '../../src/core/ports.js';
import { batchProducer, largestItem } from '../../src/core/produce/batch.js';
import { ManualClock, WALL_START } from './manual-clock.js';
import { MemoryNode, MemoryServer, firstConfig, newNodeState } from './memory-node.js';
import { MemoryStore } from './memory-store.js';
import { genesisHash } from '../../src/core/chain/block.js';

export const CLUSTER = 'c0ffee00c0ffee00';
export const IDENTITY = { cluster: `${CLUSTER}.1`, lane: '' };

export interface VirtualSequencer {
  id: string;
  sequencer: Sequencer;
  store: MemoryStore;
  events: SeqEvent[];
  nodes: SwitchablePort[];
  /** Which calls nodes refused to this sequencer, and why, each once: `write_block FENCING_ERROR`. */
  refusals: Set<string>;
}

export interface VirtualOptions {
  nodes?: number;
  timing?: Partial<Timing>;
  limits?: Partial<Limits>;
  eager?: boolean;
  /** The lane may rest. */
  rests?: boolean;
  producer?: (id: string) => Producer;
}

/** A port whose sequencer can be cut off from the node: calls are sent and never answered. */
class SwitchablePort implements NodePort {
  cut = false;
  /** The server that the tail's connection reaches, if it is another one than for the calls. */
  tailsAt: MemoryNode | null = null;
  /** The ms that a call with this many blocks and bytes takes. null: no time. */
  takes: ((blocks: number, bytes: number) => number) | null = null;
  private cuts = 0;
  constructor(
    private port: MemoryNode,
    private readonly clock: ManualClock,
    private readonly at: (url: string) => MemoryNode | undefined,
    private readonly refusals: Set<string>,
  ) {}
  get id() {
    return this.port.id;
  }
  get url() {
    return this.port.url;
  }
  get connectionGeneration() {
    return this.port.connectionGeneration + this.cuts;
  }
  call: NodePort['call'] = async (call, limitMs) => {
    const reply = await this.guard(
      () => this.inTime(call.script === 'write_block' ? [call.block] : [], () => this.port.call(call, limitMs)),
      limitMs,
    );
    if (reply.outcome === 'refused') this.refusals.add(`${call.script} ${reply.reason}`);
    return reply;
  };
  backfill: NodePort['backfill'] = (batch, limitMs) =>
    this.cut
      ? this.silent(limitMs).then((reply) => [reply])
      : this.inTime(
          batch.blocks.map(({ block }) => block),
          () => this.port.backfill(batch, limitMs),
        );
  read: NodePort['read'] = (range, limitMs) => this.guard(() => this.port.read(range, limitMs), limitMs);
  tail: NodePort['tail'] = async (afterId, waitMs, limit) => {
    const reply = await this.guard(() => (this.tailsAt ?? this.port).tail(afterId, waitMs, limit), waitMs);
    return this.cut ? { outcome: 'unknown', step: 'call', cause: 'cut' } : reply;
  };
  onHint: NodePort['onHint'] = (listener) =>
    this.port.onHint((hint) => {
      if (!this.cut) listener(hint);
    });
  close = () => this.port.close();
  moveTo(url: string): void {
    const port = this.at(url);
    if (!port) return;
    this.cuts++;
    this.port = port;
  }
  setCut(cut: boolean): void {
    if (cut && !this.cut) this.cuts++;
    this.cut = cut;
  }
  private async inTime<T>(blocks: { data: Uint8Array }[], run: () => Promise<T>): Promise<T> {
    const { takes } = this;
    if (takes !== null)
      await new Promise<void>((resolve) =>
        this.clock.after(
          takes(
            blocks.length,
            blocks.reduce((sum, { data }) => sum + data.length, 0),
          ),
          resolve,
        ),
      );
    return run();
  }
  private guard<T extends { outcome: string }>(run: () => Promise<T>, limitMs: number): Promise<T> {
    return this.cut ? (this.silent(limitMs) as unknown as Promise<T>) : run();
  }
  private silent(limitMs: number): Promise<{ outcome: 'unknown'; step: 'call'; cause: string; limitMs: number }> {
    return new Promise((resolve) =>
      this.clock.after(limitMs, () => resolve({ outcome: 'unknown', step: 'call', cause: 'no answer', limitMs })),
    );
  }
}

function seededRandom(seed: number): Random {
  let state = seed >>> 0 || 1;
  const unit = () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
  return {
    unit,
    hex: (bytes) =>
      Array.from({ length: bytes }, () =>
        Math.floor(unit() * 256)
          .toString(16)
          .padStart(2, '0'),
      ).join(''),
  };
}

export class VirtualCluster {
  /** What this sequencer waits for before it opens a member that is not on its list. */
  mayOpen: (id: string) => Promise<void> = () => Promise.resolve();
  readonly clock = new ManualClock();
  readonly servers: MemoryServer[];
  readonly sequencers: VirtualSequencer[] = [];
  /** Servers that nodes can be moved to, by address. */
  readonly elsewhere = new Map<string, MemoryServer>();
  /** How far the clock of each node is ahead of the others, ms, in the order of the nodes. */
  readonly nodeAheadMs: number[] = [];
  readonly timing: Timing;
  readonly limits: Limits;

  constructor(private readonly options: VirtualOptions = {}) {
    const n = options.nodes ?? 3;
    this.timing = {
      ttlMs: 500,
      blockTimeMs: 100,
      nodeTimeoutMs: 50,
      retryMs: 50,
      retryJitterMs: 30,
      pollMs: 100,
      pollJitterMs: 40,
      ...options.timing,
    };
    this.limits = { maxBlockBytes: 64 * 1024, retainBlocks: 20, retainBytes: 1024 * 1024, ...options.limits };
    const ids = Array.from({ length: n }, (_, i) => `r${i + 1}`);
    const config = firstConfig(ids.map((id) => ({ id, url: `memory://${id}` })));
    this.servers = Array.from({ length: n }, (_, i) => {
      const id = `r${i + 1}`;
      return new MemoryServer(
        id,
        () => WALL_START + this.clock.now() + (this.nodeAheadMs[i] ?? 0),
        newNodeState(id, IDENTITY.cluster, genesisHash(CLUSTER, IDENTITY.lane), `run-${id}`, 'boot', config),
      );
    });
  }

  get quorum(): number {
    return quorumOf(this.servers.length);
  }

  /** Starts a sequencer with a new store, or with the given one. */
  start(
    id: string,
    store = new MemoryStore({ cluster: CLUSTER, lane: IDENTITY.lane, clock: this.clock }),
    overrides: Partial<{
      eager: boolean;
      priority: number;
      wallAheadMs: () => number;
      agreedProducer: { own: string; adopts: boolean };
    }> = {},
  ): VirtualSequencer {
    const { timing, limits } = this;
    const { wallAheadMs = () => 0 } = overrides;
    const clock: Clock = {
      now: () => this.clock.now(),
      wall: () => this.clock.wall() + wallAheadMs(),
      after: (ms, run) => this.clock.after(ms, run),
    };
    const refusals = new Set<string>();
    const portTo = (node: MemoryNode, at: (url: string) => MemoryNode | undefined) =>
      new SwitchablePort(node, this.clock, at, refusals);
    const nodes = this.servers.map((server) =>
      portTo(new MemoryNode(server, IDENTITY, this.clock), (url) => {
        const there = this.elsewhere.get(url);
        return there && new MemoryNode(there, IDENTITY, this.clock, server.id);
      }),
    );
    const inbox = new Inbox({
      store,
      clock,
      maxItems: 10_000,
      maxBytes: 1024 * 1024,
      maxItemBytes: largestItem(limits.maxBlockBytes),
      retryAfterMs: 100,
      unknownAfterMs: 2000,
    });
    const events: SeqEvent[] = [];
    const sequencer = new Sequencer({
      id,
      nodes,
      openNode: ({ id: node, url }) => {
        const there = this.elsewhere.get(url);
        if (!there) return Promise.reject(new Error(`no server at ${url}`));
        const port = portTo(new MemoryNode(there, IDENTITY, this.clock, node), () => undefined);
        return this.mayOpen(id).then(() => port);
      },
      ...(overrides.agreedProducer === undefined ? {} : { agreedProducer: overrides.agreedProducer }),
      identity: IDENTITY,
      store,
      inbox,
      clock,
      timing,
      limits,
      random: seededRandom(this.sequencers.length + 7),
      producer: this.options.producer?.(id) ?? batchProducer({ maxBlockBytes: limits.maxBlockBytes }),
      maxItemsBytes: largestItem(limits.maxBlockBytes),
      readmit: true,
      eager: overrides.eager ?? this.options.eager ?? false,
      rests: this.options.rests ?? false,
      priority: overrides.priority ?? 0,
      version: 'test',
      url: '',
      pid: 1,
      extra: { ttlMs: String(timing.ttlMs), blockTimeMs: String(timing.blockTimeMs) },
      peers: [],
      emit: (event) => void events.push(event),
    });
    const made = { id, sequencer, store, events, nodes, refusals };
    this.sequencers.push(made);
    sequencer.start();
    return made;
  }

  leader(): VirtualSequencer | undefined {
    return this.sequencers.find((one) => one.sequencer.status().role === 'leader');
  }

  /** Moves time in steps until `holds` is true. Throws after `limitMs` of virtual time. */
  async until(holds: () => boolean, limitMs: number, what = 'the condition'): Promise<number> {
    const from = this.clock.now();
    while (!holds()) {
      if (this.clock.now() - from > limitMs)
        throw new Error(
          `${what} did not hold within ${limitMs} ms: ` +
            `${this.sequencers.map((one) => `${one.id} ${JSON.stringify({ ...one.sequencer.status(), nodes: undefined })}`).join('\n')}`,
        );
      await this.clock.advance(5);
    }
    return this.clock.now() - from;
  }

  /** One node's stream: height → hash. */
  chainOf(server: MemoryServer): Map<number, string> {
    return new Map(server.state.entries.map((entry) => [entry.height, entry.hash]));
  }
}

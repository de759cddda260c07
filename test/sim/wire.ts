// How do calls travel between sequencers and nodes? SimPort is the NodePort on this network. Every call takes time. It
// may be lost in either direction, may arrive twice or late, and is given up at its deadline. A node runs each call at
// one moment, and the call goes into the history.
import type { BackfillBatch, NodeHint, NodePort } from '../../src/core/ports.js';
import type { EntriesRead, NodeCall, NodeReply, ReplyTo, Unknown } from '../../src/core/protocol/types.js';
import { applyRead, entriesAfter, type MemoryIdentity, type MemoryServer } from '../support/memory-node.js';
import type { Play } from './acts.js';
import type { History, NodeOp } from './history.js';
import type { Prng } from './random.js';
import type { SimClock } from './sim-clock.js';

export interface Noise {
  drop: number;
  lost: number;
  twice: number;
  lateMs: number;
  delayMs: number;
}
export const QUIET: Noise = { drop: 0, lost: 0, twice: 0, lateMs: 0, delayMs: 0 };

/** A Redis server, with the faults that can happen to it. */
export class SimNode {
  offsetMs = 0;
  down = false;
  silent = 0;
  /** Calls received while the node is silent. */
  readonly waiting: (() => void)[] = [];
  memory = 0;
  /** The server answers for a node for which another server answers, too. */
  other = false;
  readonly links = new Set<Link>();
  constructor(
    readonly id: string,
    readonly server: MemoryServer,
    readonly url = `sim://${id}`,
  ) {}

  /** The memory is the admitted one, undamaged, and nobody has retired the server. */
  get intact(): boolean {
    const { record, runId, entries } = this.server.state;
    return (
      !this.down &&
      record !== null &&
      record.pending === '' &&
      record.run === runId &&
      !record.cluster.startsWith('retired:') &&
      entries.every((entry) => entry.damage === '')
    );
  }

  run(work: () => void): void {
    if (this.down) return;
    if (this.silent > 0) this.waiting.push(work);
    else work();
  }

  wakeUp(): void {
    if (--this.silent > 0) return;
    for (const work of this.waiting.splice(0)) if (!this.down) work();
  }
}

/** One sequencer's link to one node. All lives of the process share it. */
export class Link {
  requestsCut = 0;
  repliesCut = 0;
  slowMs = 0;
  /** Messages that wait while the link is cut, if they may arrive afterwards. */
  readonly held: (() => void)[] = [];
  generation = 0;
  /** The start count of the server at the other end of the present connection. */
  connectedTo: number;
  readonly pending = new Set<() => void>();
  /** Called when the link leads to another server. */
  readonly onMoved = new Set<() => void>();
  /** The server that the next connection goes to. */
  private address: SimNode;
  constructor(
    readonly process: string,
    public node: SimNode,
  ) {
    this.address = node;
    this.connectedTo = node.server.starts;
    node.links.add(this);
  }

  /** From now on the link leads to another server. `kept`: only after the open connection is lost. */
  moveTo(node: SimNode, kept = false): void {
    this.address = node;
    if (!kept) this.reset();
  }

  /** The connection breaks, and the process notices: every pending call on it is unknown. */
  reset(): void {
    this.generation++;
    if (this.address !== this.node) {
      this.node.links.delete(this);
      this.node = this.address;
      this.node.links.add(this);
      this.held.length = 0;
      for (const told of [...this.onMoved]) told();
    }
    this.connectedTo = this.node.server.starts;
    for (const lose of [...this.pending]) lose();
    this.pending.clear();
  }
}

/** What a port needs from its process. */
export interface Life {
  readonly alive: boolean;
  /** Counts an outside call. Returns false if the process is dead, or dies at this call. */
  touch(): boolean;
  /** Runs `work` in the process: at once, when it wakes up, or never. */
  deliver(work: () => void): void;
}

export interface Wire {
  clock: SimClock;
  prng: Prng;
  noise: Noise;
  history: History;
  identity: MemoryIdentity;
  /** The active play. It decides which calls arrive. */
  play: Play | null;
  /** Every server that exists or existed, by its address. */
  servers: Map<string, SimNode>;
  /** Called for every call that a node has run. */
  watching: Set<(node: SimNode, op: NodeOp) => void>;
  /** When everything is healed, ms. */
  healAt: number;
  /** The run is over: nothing starts any more. */
  over: boolean;
}

const NEVER = new Promise<never>(() => {});
const TAIL_SLACK_MS = 100;

type WriteReply = ReplyTo<Extract<NodeCall, { script: 'write_block' }>>;

export class SimPort implements NodePort {
  /** Each listener, with the function that stops it at its present server. */
  private readonly listeners = new Map<(hint: NodeHint) => void, () => void>();

  /** `identity`: the generation that the process was started for, or '' for any cluster. */
  constructor(
    private readonly wire: Wire,
    private readonly link: Link,
    private readonly life: Life,
    private readonly identity = wire.identity,
  ) {
    const listenThere = (): void => {
      if (!life.alive) return void link.onMoved.delete(listenThere);
      for (const [listener, stop] of [...this.listeners]) {
        stop();
        this.onHint(listener);
      }
    };
    link.onMoved.add(listenThere);
  }

  get id() {
    return this.link.node.id;
  }
  get url() {
    return this.link.node.url;
  }
  get connectionGeneration() {
    return this.link.generation;
  }

  call<C extends NodeCall>(call: C, limitMs: number): Promise<ReplyTo<C>> {
    return this.ask<ReplyTo<C>>(
      limitMs,
      (node, answer) => {
        answer(runOn(this.wire, node, call, false, this.identity) as ReplyTo<C>);
      },
      (node) => runOn(this.wire, node, call, true, this.identity),
      call.script,
    );
  }

  backfill(batch: BackfillBatch, limitMs: number): Promise<WriteReply[]> {
    const { owner, epoch, ttlMs, mode, blocks, nonce } = batch;
    const answered = batch.challenge === undefined ? {} : { challenge: batch.challenge };
    const { clock, prng } = this.wire;
    const replies: WriteReply[] = [];
    const callOf = ({ block, entryEpoch }: BackfillBatch['blocks'][number]): NodeCall =>
      nonce === undefined
        ? { script: 'write_block', owner, epoch, ttlMs, mode, block, entryEpoch }
        : { script: 'backfill', owner, epoch, nonce, ...answered, block, entryEpoch };
    const whole = this.ask<'done'>(
      limitMs,
      (node, answer) => {
        // The calls are pipelined. Each runs whatever reply the one before it got, and calls of others may run in
        // between.
        let next = 0;
        const go = (): void => {
          while (next < blocks.length) {
            replies[next] = runOn(this.wire, node, callOf(blocks[next]!), false, this.identity) as WriteReply;
            next++;
            if (next < blocks.length && prng.chance(0.2))
              return void clock.after(prng.between(0, 1), () => node.run(go), true);
          }
          answer('done');
        };
        go();
      },
      (node) => {
        for (const one of blocks) runOn(this.wire, node, callOf(one), true, this.identity);
      },
      'write_block',
    );
    return whole.then((outcome) => {
      const known: WriteReply[] = [];
      if (outcome !== 'done') return [outcome as Unknown];
      for (const reply of replies) {
        known.push(reply);
        if (reply.outcome !== 'accepted') break;
      }
      return known;
    });
  }

  read(range: Parameters<NodePort['read']>[0], limitMs: number): Promise<NodeReply<EntriesRead>> {
    return this.ask<NodeReply<EntriesRead>>(limitMs, (node, answer) => {
      const read = applyRead(node.server.state, range);
      this.withRecord(node, read, answer);
    });
  }

  tail(afterId: string, waitMs: number, limit: number): Promise<NodeReply<EntriesRead>> {
    const { clock } = this.wire;
    return this.ask<NodeReply<EntriesRead>>(waitMs + TAIL_SLACK_MS, (node, answer) => {
      const { starts } = node.server;
      let cancelWake = (): void => undefined;
      let over = false;
      const finish = (read: EntriesRead): void => {
        if (over) return;
        over = true;
        cancelTimer();
        cancelWake();
        if (node.server.starts === starts) node.run(() => this.withRecord(node, read, answer));
      };
      const probe = (): void => {
        if (over || node.server.starts !== starts) return;
        const read = entriesAfter(node.server.state, afterId, limit);
        if (read.lastId !== '') finish(read);
        else cancelWake = node.server.onceWoken(probe);
      };
      const cancelTimer = clock.after(waitMs, () => finish({ entries: [], damaged: [], lastId: '' }), true);
      probe();
    });
  }

  onHint(listener: (hint: NodeHint) => void): () => void {
    const { clock } = this.wire;
    this.listeners.set(
      listener,
      this.link.node.server.onHint((hint) => {
        if (!this.life.alive || this.link.repliesCut > 0) return;
        clock.after(this.delay(), () => {
          if (this.link.repliesCut === 0) this.life.deliver(() => listener(hint));
        });
      }),
    );
    return () => {
      this.listeners.get(listener)?.();
      this.listeners.delete(listener);
    };
  }

  moveTo(url: string): void {
    const node = this.wire.servers.get(url);
    if (!this.life.alive || !node) return;
    this.link.moveTo(node);
  }

  readAudit(limit: number, limitMs: number): Promise<NodeReply<Record<string, string>[]>> {
    return this.ask<NodeReply<Record<string, string>[]>>(limitMs, (node, answer) => {
      answer({ outcome: 'accepted', incarnation: '', value: [...node.server.state.audit].slice(-limit).reverse() });
    });
  }

  async close(): Promise<void> {}

  /** Reads the entries, then the record. These are two commands, so calls of others may run in between. */
  private withRecord(node: SimNode, read: EntriesRead, answer: (reply: NodeReply<EntriesRead>) => void): void {
    const { clock, prng } = this.wire;
    const { identity } = this;
    const tell = (): void => {
      const { record, runId } = node.server.state;
      if (record !== null && identity.cluster !== '' && record.cluster !== identity.cluster) {
        return answer({
          outcome: 'refused',
          reason: 'WRONG_CLUSTER',
          detail: { why: 'cluster', actual: record.cluster },
        });
      }
      const admitted = record !== null && record.pending === '' && record.run === runId;
      answer({ outcome: 'accepted', incarnation: admitted ? record.incarnation : '', value: read });
    };
    if (prng.chance(0.1)) clock.after(prng.between(0, 1), () => node.run(tell), true);
    else tell();
  }

  /**
   * One round trip. `run` runs on the node and answers when it is done. `again` is a second copy of the call, and
   * nobody gets its reply.
   */
  private ask<T extends NodeReply<unknown> | 'done'>(
    limitMs: number,
    run: (node: SimNode, answer: (reply: T) => void) => void,
    again?: (node: SimNode) => void,
    script = 'read',
  ): Promise<T> {
    const { link, life, wire } = this;
    const { clock, prng, noise } = wire;
    if (!life.touch()) return NEVER;
    return new Promise<T>((resolve) => {
      let done = false;
      const finish = (reply: T): void => {
        if (done) return;
        done = true;
        cancelDeadline();
        link.pending.delete(lose);
        resolve(reply);
      };
      const lose = (): void =>
        life.deliver(() => finish({ outcome: 'unknown', step: 'reply', cause: 'the connection was lost' } as T));
      const cancelDeadline = clock.after(limitMs, () =>
        life.deliver(() => finish({ outcome: 'unknown', step: 'call', cause: 'no answer', limitMs } as T)),
      );
      link.pending.add(lose);
      // Asked twice: a call that was sent in one act and arrives in the next one belongs to the first.
      const { node } = link; // the node at the time of sending: the link may lead elsewhere at the arrival
      const sent = !wire.play || wire.play.lets(node.id, script);
      const arrive = (): void => {
        const { starts } = node.server;
        if (!sent) return;
        if (wire.play && !wire.play.lets(node.id, script)) return;
        node.run(() => run(node, (reply) => this.back(node, starts, () => finish(reply))));
      };
      if (!prng.chance(noise.drop)) this.there(arrive);
      if (again && noise.twice > 0 && prng.chance(noise.twice)) {
        const copy = again;
        clock.after(prng.between(0, noise.lateMs), () => this.there(() => node.run(() => copy(node))), true);
      }
    });
  }

  private there(arrive: () => void): void {
    const { link } = this;
    this.wire.clock.after(
      this.delay(),
      () => {
        if (link.requestsCut > 0) link.held.push(arrive);
        else arrive();
      },
      true,
    );
  }

  private back(node: SimNode, starts: number, arrive: () => void): void {
    const { link, life, wire } = this;
    if (wire.prng.chance(wire.noise.lost)) return;
    wire.clock.after(this.delay(), () => {
      const come = (): void =>
        life.deliver(() => {
          if (link.node !== node) return; // the connection of this reply is gone
          if (starts > link.connectedTo)
            link.reset(); // a reply of the restarted server shows that the old connection is gone
          else if (starts < link.connectedTo) return;
          arrive();
        });
      if (link.repliesCut > 0) link.held.push(come);
      else come();
    });
  }

  private delay(): number {
    const { prng, noise } = this.wire;
    const base = 0.1 + prng.unit() * 0.4 + this.link.slowMs;
    return noise.delayMs > 0 && prng.chance(0.3) ? base + prng.unit() * prng.unit() * noise.delayMs : base;
  }
}

const NOTED = new Set([
  'promote_leader',
  'claim',
  'write_block',
  'extend_lock',
  'rebase',
  'raise_epoch',
  'admit',
  'backfill',
  'begin_admission',
  'release_lock',
  'recover_node',
  'retire_node',
  'bootstrap_prepare',
  'bootstrap_commit',
]);

/** Runs one call on a node now and records it in the history. */
export function runOn(
  wire: Pick<Wire, 'clock' | 'history' | 'identity' | 'play' | 'watching'>,
  node: SimNode,
  call: NodeCall,
  stray: boolean,
  identity = wire.identity,
): NodeReply<unknown> {
  const { server } = node;
  const reply = server.apply(call, identity, node.id) as NodeReply<unknown>;
  if (!NOTED.has(call.script)) return reply;
  if (
    (call.script === 'begin_admission' || (call.script === 'recover_node' && !call.keep)) &&
    reply.outcome === 'accepted'
  )
    node.memory++;
  const { state } = server;
  const { record } = state;
  const block = 'block' in call ? call.block : null;
  const there = block === null || record === null ? undefined : state.entries[block.height - record.floor - 1];
  const op: NodeOp = {
    is: 'op',
    t: wire.clock.now(),
    node: node.id,
    memory: node.memory,
    config: 'config' in call ? (call.config ?? '') : '',
    incarnation: record?.incarnation ?? '',
    script: call.script as NodeOp['script'],
    owner: 'owner' in call ? call.owner : '',
    epoch:
      call.script === 'promote_leader'
        ? reply.outcome === 'accepted'
          ? (reply.value as { epoch: number }).epoch
          : call.expectedEpoch
        : 'epoch' in call
          ? call.epoch
          : call.script === 'raise_epoch'
            ? call.value
            : 0,
    outcome: reply.outcome === 'refused' ? reply.reason : reply.outcome,
    claimant: record?.claimant ?? '',
    nodeEpoch: state.epoch ?? 0,
    height: block?.height ?? ('head' in call ? call.head : 0),
    hash: block?.hash ?? '',
    parent: block?.parent ?? '',
    entryEpoch: 'entryEpoch' in call ? call.entryEpoch : 0,
    stamped: there?.epoch ?? 0,
    stray,
  };
  wire.history.entries.push(op);
  wire.play?.ran(op);
  for (const told of [...wire.watching]) told(node, op);
  return reply;
}

// Measures an operator's own servers. It compares commits in a separate lane with plain SETs of the same bytes. Both
// run in turns, one operation at a time, no faster than the requested rate. The lane is bootstrapped, led, and always
// deleted at the end. Its keys have a lifetime, in case this process is killed. The cluster's own lanes are not
// touched; they only feel the load.
import { pause } from '../nodes/pause.js';
import { tellAll } from '../nodes/ask-all.js';
import { familyOf } from '../generation.js';
import { EXIT, SeqError } from '../errors.js';
import { genesisHash, makeBlock } from '../chain/block.js';
import type { BenchServer, Clock, NodePort, Random } from '../ports.js';
import type { Block, NodeCall, ReplyTo } from '../protocol/types.js';
import { bootstrap } from '../operate/bootstrap.js';

export interface BenchOptions {
  servers: readonly { node: NodePort; server: BenchServer }[];
  cluster: string;
  lane: string;
  quorum: number;
  limitMs: number;
  clock: Clock;
  random: Random;
  signal: AbortSignal;
  durationMs: number;
  /** The largest number of operations a second, SETs and commits together. */
  rate: number;
  blockBytes: number;
  retainBlocks: number;
  step: (doing: string) => void;
  /** Called right before the first write. */
  changing: () => void;
  /** Records the lane on the nodes before it is created. */
  announce: () => Promise<void>;
  /** Called after the lane was removed, with the ids of nodes that did not confirm the removal. */
  cleaned: (left: string[]) => void;
  progress: (part: number) => void;
}

/** `n`: the number of measurements. The other values are ms. */
export interface Timing {
  n: number;
  p50: number;
  p95: number;
  p99: number;
  max: number;
}

export interface BenchReport {
  lane: string;
  set: Timing;
  commit: Timing;
  /** Over the rounds: median, tenth and ninetieth percentile of commit p50 ÷ SET p50. */
  ratio: { value: number; low: number; high: number } | null;
  nodes: { id: string; url: string; commit: Timing; unanswered: number; refused: string | null }[];
  /** Commits that q nodes did not accept within the limit. */
  failed: number;
  perSecond: number;
  seconds: number;
  /** Nodes that did not confirm the removal of the lane. */
  left: string[];
}

const PER_ROUND = 10;
const WARM_ROUNDS = 2;
/** How long a key of the lane may outlive a measurement that was killed. */
export const LIFE_MS = 3_600_000;
const CLEAN_LIMIT_MS = 2000;

function timingOf(values: readonly number[]): Timing {
  const sorted = [...values].sort((a, b) => a - b);
  const at = (part: number): number => sorted[Math.min(sorted.length - 1, Math.floor(part * sorted.length))] ?? 0;
  return { n: sorted.length, p50: at(0.5), p95: at(0.95), p99: at(0.99), max: sorted.at(-1) ?? 0 };
}

export async function measureLane(options: BenchOptions): Promise<BenchReport> {
  const { servers, lane, clock, signal } = options;
  const bench = new Measurement(options);
  try {
    await bench.begin();
    await bench.run();
  } catch (error) {
    await bench.clean();
    throw error;
  }
  // This also runs after Ctrl-C. The results are lost then, but the lane does not stay behind.
  const left = await bench.clean();
  signal.throwIfAborted();
  return {
    lane,
    ...bench.report(),
    left,
    nodes: servers.map(({ node }, at) => bench.nodeReport(node, at)),
    seconds: (clock.now() - bench.startedAt) / 1000,
  };
}

/** `head`: the highest block that the node is known to hold. `under`: the last call to the node. */
interface NodeTrack {
  took: number[];
  unanswered: number;
  refused: string | null;
  head: number;
  under: Promise<unknown>;
}

class Measurement {
  startedAt = 0;
  /** True when something may have been written. */
  private begun = false;
  private readonly owner: string;
  private readonly data: Uint8Array;
  private readonly sets: number[] = [];
  private readonly commits: number[] = [];
  private readonly ratios: number[] = [];
  private readonly perNode: NodeTrack[];
  private readonly hashes: string[];
  private tip: Block | null = null;
  private epoch = 0;
  private failed = 0;
  private done = 0;

  constructor(private readonly options: BenchOptions) {
    this.owner = `bench/${options.random.hex(8)}`;
    this.data = Buffer.alloc(options.blockBytes, 7);
    this.perNode = options.servers.map(() => ({
      took: [],
      unanswered: 0,
      refused: null,
      head: 0,
      under: Promise.resolve(),
    }));
    this.hashes = [genesisHash(familyOf(options.cluster), options.lane)];
    this.startedAt = options.clock.now();
  }

  async begin(): Promise<void> {
    const { servers, cluster, limitMs, clock, random, durationMs, quorum } = this.options;
    const nodes = servers.map(({ node }) => node);
    this.options.step('making the lane');
    await bootstrap({ nodes, cluster, limitMs, clock, random, dryRun: true });
    this.begun = true;
    this.options.changing();
    await this.options.announce();
    await bootstrap({ nodes, cluster, limitMs, clock, random });
    // A key can get a lifetime only once it exists. So this call follows each step that creates keys. Then a killed
    // process leaves almost nothing that stays for long.
    const limitLife = (): Promise<boolean[]> =>
      Promise.all(servers.map(({ server }) => server.limitLife(LIFE_MS, limitMs)));
    await limitLife();
    this.options.step('taking the lead of the lane');
    const ttlMs = durationMs + 60_000;
    const promoted = await tellAll(nodes, (node) =>
      node.call({ script: 'promote_leader', owner: this.owner, expectedEpoch: 0, ttlMs }, limitMs),
    );
    this.epoch = Math.max(0, ...promoted.map((reply) => (reply.outcome === 'accepted' ? reply.value.epoch : 0)));
    const views = await Promise.all(nodes.map((node) => node.call({ script: 'inspect', brief: true }, limitMs)));
    const configs = views.map((reply) => (reply.outcome === 'accepted' ? reply.value.config : ''));
    const claims = await Promise.all(
      nodes.map(async (node, at): Promise<ReplyTo<NodeCall>> =>
        promoted[at]!.outcome === 'accepted'
          ? node.call({ script: 'claim', owner: this.owner, epoch: this.epoch, config: configs[at]! }, limitMs)
          : promoted[at]!,
      ),
    );
    const refused = claims.filter(({ outcome }) => outcome !== 'accepted').length;
    if (nodes.length - refused < quorum)
      throw this.tooFew(`${refused} of ${nodes.length} nodes did not take a leader for the lane`);
    claims.forEach((reply, at) => {
      if (reply.outcome !== 'accepted') this.giveUp(at, reply);
    });
    await limitLife();
    await this.commit(false);
    await limitLife();
  }

  async run(): Promise<void> {
    const { clock, durationMs, signal } = this.options;
    this.options.step('measuring');
    this.startedAt = clock.now();
    for (let round = 0; !signal.aborted && clock.now() - this.startedAt < durationMs; round += 1) {
      const mine: { set: number[]; commit: number[] } = { set: [], commit: [] };
      for (const kind of round % 2 === 0 ? (['set', 'commit'] as const) : (['commit', 'set'] as const)) {
        for (let i = 0; i < PER_ROUND && !signal.aborted && clock.now() - this.startedAt < durationMs; i += 1) {
          await this.pace();
          const tookMs = kind === 'set' ? await this.set() : await this.commit(round >= WARM_ROUNDS);
          this.done += 1;
          if (tookMs !== null) mine[kind].push(tookMs);
        }
      }
      if (round < WARM_ROUNDS) continue;
      this.sets.push(...mine.set);
      this.commits.push(...mine.commit);
      if (mine.set.length > 0 && mine.commit.length > 0)
        this.ratios.push(timingOf(mine.commit).p50 / timingOf(mine.set).p50);
      this.options.progress((clock.now() - this.startedAt) / durationMs);
    }
  }

  /** Ids of nodes that may still have the lane. */
  async clean(): Promise<string[]> {
    if (!this.begun) return [];
    this.options.step('removing the lane');
    const limitMs = Math.max(CLEAN_LIMIT_MS, this.options.limitMs);
    const gone = await Promise.all(
      this.options.servers.map(async ({ server }) => (await server.remove(limitMs)) || server.remove(limitMs)),
    );
    const left = this.options.servers.flatMap(({ node }, at) => (gone[at] ? [] : [node.id]));
    this.options.cleaned(left);
    return left;
  }

  report(): Pick<BenchReport, 'set' | 'commit' | 'ratio' | 'failed' | 'perSecond'> {
    const ratios = [...this.ratios].sort((a, b) => a - b);
    const at = (part: number): number => ratios[Math.min(ratios.length - 1, Math.floor(part * ratios.length))]!;
    return {
      set: timingOf(this.sets),
      commit: timingOf(this.commits),
      failed: this.failed,
      perSecond: this.done / ((this.options.clock.now() - this.startedAt) / 1000),
      ratio: ratios.length === 0 ? null : { value: at(0.5), low: at(0.1), high: at(0.9) },
    };
  }

  nodeReport(node: NodePort, at: number): BenchReport['nodes'][number] {
    const { took, unanswered, refused } = this.perNode[at]!;
    return { id: node.id, url: node.url, commit: timingOf(took), unanswered, refused };
  }

  private async pace(): Promise<void> {
    const { clock, rate, signal } = this.options;
    const waitMs = this.startedAt + (this.done * 1000) / rate - clock.now();
    if (waitMs <= 0) return;
    await pause(clock, waitMs, signal);
  }

  /** ms until q servers confirmed. null when fewer did. */
  private set(): Promise<number | null> {
    return this.untilQuorum(
      this.options.servers.map(({ server }) => server.set(this.data, LIFE_MS, this.options.limitMs)),
    );
  }

  private async commit(counts: boolean): Promise<number | null> {
    const height = (this.tip?.height ?? 0) + 1;
    const block = this.block(height);
    this.tip = block;
    this.hashes[height] = block.hash;
    const startedAt = this.options.clock.now();
    const took = await this.untilQuorum(
      this.perNode.map((track, at) => {
        const brought = track.under.then(() => this.bring(at, block));
        track.under = brought;
        return brought.then((there) => {
          if (there && counts) track.took.push(this.options.clock.now() - startedAt);
          return there;
        });
      }),
    );
    if (took !== null) return took;
    // The next block needs this block on q nodes.
    this.failed += 1;
    throw this.tooFew(`block ${height} was accepted by fewer than ${this.options.quorum} nodes`);
  }

  private block(height: number): Block {
    return makeBlock({ height, parent: this.hashes[height - 1]!, timestamp: height, data: this.data });
  }

  /**
   * Brings this block to a node. Before it, brings each block that the node has not confirmed. When a newer block
   * waits, this call stops and the newer call does all of it.
   */
  private async bring(at: number, block: Block): Promise<boolean> {
    const { servers, limitMs, durationMs, retainBlocks } = this.options;
    const track = this.perNode[at]!;
    while (track.refused === null && track.head < block.height && this.tip === block) {
      const height = track.head + 1;
      const to = height - 1 - retainBlocks;
      const reply = await servers[at]!.node.call(
        {
          script: 'write_block',
          owner: this.owner,
          epoch: this.epoch,
          ttlMs: durationMs + 60_000,
          mode: 'append',
          block: height === block.height ? block : this.block(height),
          entryEpoch: this.epoch,
          ...(to > 0 ? { trim: { to, hash: this.hashes[to]! } } : {}),
        },
        limitMs,
      );
      if (reply.outcome === 'unknown') {
        track.unanswered += 1;
        break;
      }
      if (reply.outcome === 'refused') this.giveUp(at, reply);
      else track.head = height;
    }
    return track.head >= block.height;
  }

  private untilQuorum(works: readonly Promise<boolean>[]): Promise<number | null> {
    const { clock, quorum } = this.options;
    const startedAt = clock.now();
    return new Promise((resolve) => {
      let yes = 0;
      let waiting = works.length;
      for (const work of works) {
        void work.then((accepted) => {
          waiting -= 1;
          if (accepted) yes += 1;
          if (yes >= quorum) resolve(clock.now() - startedAt);
          else if (waiting === 0) resolve(null);
        });
      }
    });
  }

  /** Excludes a node that refuses from this measurement. */
  private giveUp(at: number, reply: ReplyTo<NodeCall>): void {
    this.perNode[at]!.refused ??= reply.outcome === 'refused' ? reply.reason : 'no answer';
  }

  private tooFew(message: string): SeqError {
    const nodes = this.options.servers.map(
      ({ node }, at) => `${node.id}: ${this.perNode[at]!.refused ?? `${this.perNode[at]!.unanswered} unanswered`}`,
    );
    return new SeqError({
      code: 'BENCH_NO_QUORUM',
      exit: EXIT.noQuorum,
      message: `the measurement stopped: ${message}`,
      why: nodes.join('; '),
      changed: 'nothing',
      retryable: true,
      next: ['seq status', 'seq doctor'],
    });
  }
}

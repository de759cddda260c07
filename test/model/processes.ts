// Are the real use cases (`seq cluster init`, `seq cluster recover`) safe in every interleaving with each other, and
// with late calls of an earlier generation? The nodes are the in-memory twin. The invariants come from the
// configuration (bootstrap.ts, recovery.ts).
// A process is the use case itself. It runs against ports that give the replies so far and no more. A request without a
// reply is open. A process waits for all replies of a step together, so the list of replies of each node says where the
// process is.
// An open request may run and be answered. Or its answer is `unknown`, and it may run once at any later time, or never.
// A process that dies is one that gets no more moves.
import type { BackfillBatch, Clock, NodePort, Random } from '../../src/core/ports.js';
import type { NodeCall, NodeReply } from '../../src/core/protocol/types.js';
import { applyCall, applyRead, cloneNodeState, emptyNodeState, type MemoryNodeState } from '../support/memory-node.js';
import { FingerprintSet, Hasher } from './fingerprints.js';

export const NODE_IDS: readonly string[] = ['a', 'b', 'c'];

export type Request = { cluster: string } & (
  | { kind: 'call'; call: NodeCall }
  | { kind: 'backfill'; batch: BackfillBatch }
  | { kind: 'read'; from: number; to: number; limit: number }
);

export interface Open {
  /** Ports to all nodes, with this cluster name in every call. '' = the name is not checked. */
  ports(cluster: string): NodePort[];
  clock: Clock;
  random: Random;
}

export interface World {
  nodes: readonly MemoryNodeState[];
  /** For each process: the outcome of its use case. null while it runs. */
  ended: readonly (string | null)[];
  wipes: number;
  restarts: number;
}

export interface ProcessConfig {
  genesis: string;
  nodes: readonly MemoryNodeState[];
  /** Each resolves to a word for the outcome. A rejection counts as the code of its error. */
  processes: readonly ((open: Open) => Promise<string>)[];
  /** Calls of an earlier generation. Each may run at any time and any number of times. */
  old?: readonly { node: number; request: Request }[];
  /** How many answers may be lost in one path. */
  unknowns: number;
  wipes?: number;
  restarts?: number;
  /** Events that change several nodes in one step. Each happens at most once. */
  happens?: readonly { name: string; possible(world: World): boolean; act(nodes: MemoryNodeState[]): void }[];
  /** For a broken rule: the call that the node gets instead. */
  altered?: (call: NodeCall, s: MemoryNodeState) => NodeCall;
  /** Whether calls of the earlier generation may still change this node. Without it: always. */
  mayAct?: (s: MemoryNodeState) => boolean;
  /**
   * Called after every move. Returns what must be remembered about this path, and what is wrong with the state ('' =
   * nothing).
   */
  observe(world: World, memory: string): { memory: string; why: string };
}

export interface ProcessExploration {
  states: number;
  moves: number;
  endings: Set<string>;
  why: string;
  trace: string[];
}

/**
 * How far one process is. Answers, requests and node states are stored once and named by numbers, because they are
 * long.
 */
interface Place {
  id: number;
  answers: readonly (readonly number[])[];
  open: { node: number; at: number; request: number }[];
  ended: string | null;
}
interface State {
  nodes: number[];
  places: Place[];
  strays: { node: number; request: number }[];
  unknowns: number;
  wipes: number;
  restarts: number;
  happened: number;
  memory: string;
  trace: Trace | null;
}
type Move = string | { who: string; node: number; request: number; answer: number };
interface Trace {
  move: Move;
  before: Trace | null;
}

export interface ProcessLimits {
  states?: number;
  progress?: (states: number, moves: number, stack: number) => void;
}

export async function exploreProcesses(cfg: ProcessConfig, limits: ProcessLimits = {}): Promise<ProcessExploration> {
  return new Processes(cfg, limits).run();
}

/** Stores each value once and gives it a number. */
class Numbered<T> {
  private readonly all: T[] = [];
  private readonly ids = new Map<string, number>();

  of(text: string, make: () => T): number {
    const known = this.ids.get(text);
    if (known !== undefined) return known;
    this.ids.set(text, this.all.length);
    return this.all.push(make()) - 1;
  }

  at(id: number): T {
    return this.all[id]!;
  }
}

class Processes {
  private readonly pool = new Numbered<MemoryNodeState>();
  private readonly runs = new Map<number, { node: number; answer: number }>();
  private readonly requests = new Numbered<{ request: Request; text: string; harmless: boolean }>();
  private readonly answers = new Numbered<string>();
  private readonly unknown = this.answer({ outcome: 'unknown', step: 'reply', cause: 'lost' });
  private readonly places = new Map<string, Place>();
  private readonly endings = new Map<string, Place>();
  private readonly memories = new Numbered<string>();
  private readonly seen = new FingerprintSet(16);
  private readonly hasher = new Hasher();
  private readonly stack: State[] = [];
  private readonly result: ProcessExploration = { states: 0, moves: 0, endings: new Set(), why: '', trace: [] };

  private why = '';
  private readonly old: { node: number; request: number }[];

  constructor(
    private readonly cfg: ProcessConfig,
    private readonly limits: ProcessLimits,
  ) {
    this.old = (cfg.old ?? []).map(({ node, request }) => ({ node, request: this.request(request) }));
  }

  async run(): Promise<ProcessExploration> {
    const { cfg, stack, result } = this;
    const none = cfg.processes.map(() => NODE_IDS.map((): number[] => []));
    const places = await Promise.all(none.map((answers, p) => this.place(p, answers)));
    this.offer(
      {
        nodes: cfg.nodes.map((s) => this.intern(s)),
        places,
        strays: [],
        unknowns: 0,
        wipes: 0,
        restarts: 0,
        happened: 0,
        memory: '',
        trace: null,
      },
      '',
    );
    let popped = 0;
    while (stack.length > 0 && result.why === '') {
      if (this.seen.size > (this.limits.states ?? Infinity)) throw new Error(`more than ${this.limits.states} states`);
      if ((++popped & 0xfffff) === 0) this.limits.progress?.(this.seen.size, result.moves, stack.length);
      const state = stack.pop()!;
      for (let p = 0; p < state.places.length && result.why === ''; p++) await this.processMoves(state, p);
      this.networkMoves(state);
      this.faults(state);
    }
    result.states = this.seen.size;
    return result;
  }

  private async processMoves(state: State, p: number): Promise<void> {
    const place = state.places[p]!;
    for (const { node, at, request } of place.open) {
      const answered = async (answer: number): Promise<Place[]> =>
        state.places.with(
          p,
          await this.place(p, place.answers.with(node, place.answers[node]!.toSpliced(at, 1, answer))),
        );
      const run = this.apply(state.nodes[node]!, node, request);
      this.offer(
        { ...state, nodes: state.nodes.with(node, run.node), places: await answered(run.answer) },
        { who: `${p + 1}`, node, request, answer: run.answer },
      );
      if (state.unknowns >= this.cfg.unknowns) continue;
      const strays = this.requests.at(request).harmless
        ? state.strays
        : [...state.strays, { node, request }].sort((x, y) => x.node - y.node || x.request - y.request);
      this.offer(
        { ...state, places: await answered(this.unknown), strays, unknowns: state.unknowns + 1 },
        { who: `${p + 1}`, node, request, answer: this.unknown },
      );
    }
  }

  private networkMoves(state: State): void {
    state.strays.forEach(({ node, request }, i) => {
      const run = this.apply(state.nodes[node]!, node, request);
      this.offer(
        { ...state, nodes: state.nodes.with(node, run.node), strays: state.strays.toSpliced(i, 1) },
        { who: 'late', node, request, answer: run.answer },
      );
    });
    for (const { node, request } of this.old) {
      const run = this.apply(state.nodes[node]!, node, request);
      if (run.node === state.nodes[node]) continue;
      this.why =
        this.cfg.mayAct?.(this.pool.at(state.nodes[node]!)) === false
          ? 'a call of the old generation changed a node of the new one'
          : '';
      this.offer(
        { ...state, nodes: state.nodes.with(node, run.node) },
        { who: 'old generation', node, request, answer: run.answer },
      );
    }
  }

  private faults(state: State): void {
    const { cfg } = this;
    state.nodes.forEach((id, n) => {
      if (state.wipes < (cfg.wipes ?? 0))
        this.offer(
          {
            ...state,
            nodes: state.nodes.with(n, this.intern(emptyNodeState(this.pool.at(id).runId))),
            wipes: state.wipes + 1,
          },
          `${NODE_IDS[n]} is wiped`,
        );
      if (state.restarts < (cfg.restarts ?? 0)) {
        const s = cloneNodeState(this.pool.at(id));
        s.runId += '+';
        this.offer(
          { ...state, nodes: state.nodes.with(n, this.intern(s)), restarts: state.restarts + 1 },
          `${NODE_IDS[n]} restarts`,
        );
      }
    });
    cfg.happens?.forEach(({ name, possible, act }, i) => {
      if ((state.happened & (1 << i)) !== 0 || !possible(this.world(state))) return;
      const nodes = state.nodes.map((id) => cloneNodeState(this.pool.at(id)));
      act(nodes);
      this.offer({ ...state, nodes: nodes.map((s) => this.intern(s)), happened: state.happened | (1 << i) }, name);
    });
  }

  private offer(next: State, move: Move): void {
    const { result } = this;
    if (result.why !== '') return;
    result.moves += 1;
    const { memory, why: seen } = this.cfg.observe(this.world(next), next.memory);
    const why = this.why || seen;
    this.why = '';
    const { hasher } = this;
    hasher
      .reset(next.strays.length)
      .add(next.unknowns)
      .add(next.wipes)
      .add(next.restarts)
      .add(next.happened ? 1 : 0)
      .add(this.memories.of(memory, () => memory));
    for (const id of next.nodes) hasher.add(id);
    for (const { id } of next.places) hasher.add(id);
    for (const { node, request } of next.strays) hasher.add(request * NODE_IDS.length + node);
    hasher.finish();
    if (!this.seen.add(hasher.a, hasher.b) && why === '') return;
    next.memory = memory;
    next.trace = { move, before: next.trace };
    for (const { ended } of next.places) if (ended !== null) result.endings.add(ended);
    if (why !== '') {
      result.why = why;
      for (let at: Trace | null = next.trace; at !== null; at = at.before)
        if (at.move !== '') result.trace.unshift(this.told(at.move));
      return;
    }
    this.stack.push(next);
  }

  private world({ nodes, places, wipes, restarts }: State): World {
    return { nodes: nodes.map((id) => this.pool.at(id)), ended: places.map(({ ended }) => ended), wipes, restarts };
  }

  private intern(s: MemoryNodeState): number {
    return this.pool.of(JSON.stringify({ ...s, aside: null, orphans: [], audit: [] }), () => s);
  }

  private request(request: Request): number {
    const text = JSON.stringify(request, plain);
    return this.requests.of(text, () => ({
      request,
      text,
      harmless: request.kind === 'read' || (request.kind === 'call' && request.call.script === 'inspect'),
    }));
  }

  private answer(reply: unknown): number {
    const text = JSON.stringify(reply, plain);
    return this.answers.of(text, () => text);
  }

  private apply(id: number, node: number, request: number): { node: number; answer: number } {
    const key = (id * 4096 + request) * 4 + node;
    let run = this.runs.get(key);
    if (!run) {
      const s = cloneNodeState(this.pool.at(id));
      const answer = this.answer(this.execute(s, NODE_IDS[node]!, this.requests.at(request).request));
      run = { node: this.intern(s), answer };
      this.runs.set(key, run);
    }
    return run;
  }

  private execute(s: MemoryNodeState, id: string, request: Request): unknown {
    const identity = { cluster: request.cluster, genesis: this.cfg.genesis };
    const { altered } = this.cfg;
    switch (request.kind) {
      case 'call':
        return applyCall(s, altered ? altered(request.call, s) : request.call, identity, id, 0);
      case 'read':
        return { outcome: 'accepted', incarnation: '', value: applyRead(s, { ...request, data: true }) };
      case 'backfill': {
        const { owner, epoch, ttlMs, mode, nonce, blocks, challenge } = request.batch;
        const answered = challenge === undefined ? {} : { challenge };
        const replies: NodeReply<unknown>[] = [];
        for (const { block, entryEpoch } of blocks) {
          const call: NodeCall =
            nonce === undefined
              ? { script: 'write_block', owner, epoch, ttlMs, mode, block, entryEpoch }
              : { script: 'backfill', owner, epoch, nonce, ...answered, block, entryEpoch };
          const reply: NodeReply<unknown> = applyCall(s, call, identity, id, 0);
          replies.push(reply);
          if (reply.outcome !== 'accepted') break;
        }
        return replies;
      }
    }
  }

  /** Runs the use case against these answers until it ends or waits for another one. */
  private async place(p: number, answers: readonly (readonly number[])[]): Promise<Place> {
    const named = `${p} ${answers.map((list) => list.join()).join(' ')}`;
    const known = this.places.get(named);
    if (known) return known;
    const place: Place = { id: this.places.size, answers, open: [], ended: null };
    this.places.set(named, place);
    const asked = NODE_IDS.map(() => 0);
    const ask = <T>(node: number, request: Request): Promise<T> => {
      const at = asked[node]!++;
      const answer = answers[node]![at];
      if (answer !== undefined) {
        const reply: unknown = JSON.parse(this.answers.at(answer), (_, value: unknown) =>
          isBytes(value) ? Uint8Array.from(value.bytes) : value,
        );
        return Promise.resolve((request.kind === 'backfill' && !Array.isArray(reply) ? [reply] : reply) as T);
      }
      place.open.push({ node, at, request: this.request(request) });
      return new Promise<T>(() => undefined);
    };
    let drawn = 0;
    this.cfg.processes[p]!({
      ports: (cluster) => NODE_IDS.map((id, node) => portOf(id, node, cluster, ask)),
      clock: { now: () => 0, wall: () => 0, after: () => () => undefined },
      random: { hex: (bytes) => `${p + 1}${drawn++}`.padEnd(2 * bytes, '0'), unit: () => 0 },
    }).then(
      (word) => {
        place.ended = word;
      },
      (error: { code?: string; message: string; stack?: string }) => {
        place.ended = error.code ?? `${error.message} ${error.stack ?? ''}`;
      },
    );
    await new Promise((resolve) => setImmediate(resolve)); // by then the use case has handled every answer
    if (place.ended === null) return place;
    // After its end, it does not matter which answers the process got.
    const ending = this.endings.get(`${p} ${place.ended}`) ?? { ...place, open: [] };
    this.endings.set(`${p} ${place.ended}`, ending);
    this.places.set(named, ending);
    return ending;
  }

  private told(move: Exclude<Move, ''>): string {
    if (typeof move === 'string') return move;
    const { who, node, request, answer } = move;
    return (
      `${who} on ${NODE_IDS[node]}: ${short(this.requests.at(request).text)} → ` +
      `${shortReply(this.answers.at(answer))}`
    );
  }
}

function plain(_: string, value: unknown): unknown {
  return value instanceof Uint8Array ? { bytes: [...value] } : value === Infinity ? 'Infinity' : value;
}

function isBytes(value: unknown): value is { bytes: number[] } {
  return typeof value === 'object' && value !== null && Array.isArray((value as { bytes?: unknown }).bytes);
}

function portOf(
  id: string,
  node: number,
  cluster: string,
  ask: <T>(node: number, request: Request) => Promise<T>,
): NodePort {
  return {
    id,
    url: `memory://${id}`,
    connectionGeneration: 0,
    call: (call) => ask(node, { cluster, kind: 'call', call }),
    backfill: (batch) => ask(node, { cluster, kind: 'backfill', batch }),
    read: ({ from, to, limit }) => ask(node, { cluster, kind: 'read', from, to, limit }),
    tail: () => new Promise(() => undefined),
    onHint: () => () => undefined,
    close: () => Promise.resolve(),
  };
}

function short(text: string): string {
  const { kind, call, cluster } = JSON.parse(text) as {
    kind: string;
    cluster: string;
    call?: { script: string; nonce?: string; epoch?: number };
  };
  return (
    `${call?.script ?? kind}${call?.nonce ? ` ${call.nonce.slice(0, 6)}` : ''}${call?.epoch === undefined ? '' : ` e${call.epoch}`} ` +
    `(${cluster})`
  );
}

function shortReply(text: string): string {
  const reply = JSON.parse(text) as
    | { outcome?: string; reason?: string; value?: { admission?: string; pending?: string } }
    | { outcome: string; reason?: string }[];
  const one = Array.isArray(reply) ? reply.at(-1)! : reply;
  return one.reason ?? `${one.outcome ?? ''}${'value' in one && one.value?.admission ? ` ${one.value.admission}` : ''}`;
}

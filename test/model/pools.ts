// How does the model avoid the same work twice? Every distinct node, network, term, call and reply is stored once and
// has a number. The effect of one piece on another is also computed once. So a state is a row of numbers, and a move
// looks up two or three of them. The meaning of a move is in moves.ts.
import { applyCall, applyRead, cloneNodeState, emptyNodeState, type MemoryNodeState } from '../support/memory-node.js';
import { configurationText } from '../../src/core/protocol/configuration.js';
import type { NodeReply } from '../../src/core/protocol/types.js';
import { brokenIn, gateEnds, mayMatter, mayPromote, Next, resizing, storeUpTo } from './moves.js';
import { serverIds, type Knowledge } from './members.js';
import {
  code,
  configOf,
  firstNode,
  IDENTITY,
  isAdmitted,
  keyOf,
  named,
  printCall,
  printNames,
  printNode,
  raiseOf,
  rolledBack,
  sealNode,
  sealTerm,
  type ModelConfig,
  type ModelNode,
  type ModelTerm,
  type NetCall,
  type Network,
  type State,
  type StoredBlock,
} from './state.js';

/** Fingerprints, one for each renaming of the terms. */
interface Prints {
  a: Int32Array;
  b: Int32Array;
}

/**
 * What a configuration says about the servers. Fingerprints: index = naming × servers + server. null = what all nodes
 * knew at the start.
 */
interface Names {
  namesA: Int32Array | null;
  namesB: Int32Array | null;
}

export interface Node extends Prints, Names {
  id: number;
  model: ModelNode;
  s: MemoryNodeState;
  admitted: boolean;
  locked: boolean;
  /** The hash and the epoch of each entry, from floor + 1 on. */
  hashes: number[];
  epochs: number[];
  floor: number;
  runs: Map<number, Run>;
  reads: Map<number, Reply>;
  expired: Node | null;
  rolledBack: Node | null;
  raised: Map<number, Node>;
}

export interface Call extends Prints, Names {
  id: number;
  sent: NetCall;
}

export interface Net extends Prints, Names {
  id: number;
  model: Network;
  calls: Call[];
  added: Map<number, Net>;
  pruned: Map<number, Net>;
}

export interface Term extends Prints {
  id: number;
  p: number;
  m: ModelTerm;
  /** Index = naming × servers + server. */
  columnA: Int32Array;
  columnB: Int32Array;
  /** Equal for terms that differ only in their names and in the order of the nodes. */
  rank: number;
  ended: boolean;
  calls: (Call | null)[];
  steps: Map<number, Outcome>;
  gaveUp: (Outcome | null | undefined)[];
  damaged: (Outcome | null)[];
  fixed: (Outcome | null)[];
  resized: (Outcome | null | undefined)[];
  grace: Outcome | null | undefined;
  gate: Outcome | null | undefined;
  produced: Outcome | null | undefined;
  followed: Term | undefined;
}

export interface Reply {
  id: number;
  reply: NodeReply<unknown>;
}

export interface Run {
  node: Node;
  reply: Reply;
  bad: string;
}

export interface Outcome {
  term: Term;
  sends: { n: number; call: Call }[];
  agrees: { height: number; hash: number; text: string; who: string }[];
  bad: string;
}

/** One term by itself. What it sends and what it takes as committed is recorded; the state is not checked. */
class Alone extends Next {
  readonly sends: { n: number; sent: NetCall }[] = [];
  readonly agrees: { height: number; text: string; who: string }[] = [];

  override send(n: number, sent: NetCall): void {
    this.sends.push({ n, sent });
  }

  override agree(height: number, text: string, who: string): void {
    this.agrees.push({ height, text, who });
  }

  get bad(): string {
    return this.violation;
  }

  /** Runs one script on one node. No other node matters. */
  static run(
    cfg: ModelConfig,
    n: number,
    node: ModelNode,
    call: NetCall['call'],
  ): { s: MemoryNodeState; reply: NodeReply<unknown>; bad: string } {
    const nodes = new Array<ModelNode>(n + 1).fill(node);
    const next = new Alone(cfg, { ...NOTHING, nodes });
    const reply = next.apply(n, call);
    const s = next.node(n);
    return { s, reply, bad: brokenIn(n, node.s, s, call.script === 'admit') };
  }
}

const NOTHING: State = {
  nodes: [],
  nets: [],
  terms: [],
  agreed: [],
  wipes: 0,
  damages: 0,
  expiries: 0,
  raises: 0,
  fixes: 0,
  rollbacks: 0,
  resizes: 0,
  saved: null,
  strays: 0,
  giveUps: 0,
  violation: '',
};

export class Pools {
  readonly nodes: Node[] = [];
  readonly nets: Net[] = [];
  readonly terms: Term[] = [];
  readonly calls: Call[] = [];
  /** Server n before anything has happened. */
  readonly first: readonly Node[];
  /** Server n without any key of `seq`. */
  readonly wiped: readonly Node[];
  readonly noCalls: Net;
  /** naming[i][k] is the name of term k (from 1) under the i-th naming. The first naming changes no name. */
  readonly namings: number[][];
  private readonly replies = new Map<string, Reply>();
  private readonly callsByText = new Map<string, Call>();
  private readonly nodesByModel = new Map<ModelNode, Node>();
  private readonly netsByText = new Map<string, Net>();
  private readonly termsByPrint: Map<number, Term>[] = [];
  private readonly starts = new Map<string, Outcome>();
  private readonly ids: readonly string[];

  constructor(private readonly cfg: ModelConfig) {
    this.namings = cfg.sameTerms ? permutations(cfg.terms) : [permutations(1)[0]!];
    this.ids = serverIds(cfg);
    this.first = this.ids.map((id, n) => this.node(firstNode(cfg, n), id));
    this.wiped = this.ids.map((id) => this.node(emptyNodeState('run'), id));
    this.noCalls = this.net([]);
  }

  // --- pieces

  node(s: MemoryNodeState, id: string): Node {
    const model = sealNode(s, id);
    let node = this.nodesByModel.get(model);
    if (!node) {
      node = {
        id: this.nodes.length,
        model,
        s: model.s,
        admitted: isAdmitted(model.s, this.cfg.mutant),
        locked: model.s.lock !== null,
        hashes: model.s.entries.map((entry) => code(entry.hash)),
        epochs: model.s.entries.map((entry) => entry.epoch),
        floor: model.s.record?.floor ?? 0,
        runs: new Map(),
        reads: new Map(),
        expired: null,
        rolledBack: null,
        raised: new Map(),
        ...this.prints(() => printNode(model.s)),
        ...this.names(model.s.record?.config ?? ''),
      };
      this.nodes.push(node);
      this.nodesByModel.set(model, node);
    }
    return node;
  }

  call(sent: NetCall): Call {
    // Within one history, a term has one epoch and one chain. But the pool is shared by all histories, so a call needs
    // both in its key.
    const { call: what } = sent;
    const floor =
      what.script === 'write_block' ? what.trim?.hash : what.script === 'begin_admission' ? what.floorHash : '';
    const text = `${sent.key} ${'epoch' in what ? what.epoch : ''} ${floor ?? ''} ${configOf(what)}`;
    let call = this.callsByText.get(text);
    if (!call) {
      call = {
        id: this.calls.length,
        sent,
        ...this.prints(() => printCall(keyOf(sent.term, sent.call))),
        ...this.names(configOf(what)),
      };
      this.calls.push(call);
      this.callsByText.set(text, call);
    }
    return call;
  }

  private net(calls: Call[]): Net {
    const a = new Int32Array(this.namings.length);
    const b = new Int32Array(this.namings.length);
    for (const call of calls) {
      // A sum, because the order of calls does not matter.
      for (let i = 0; i < a.length; i++) {
        a[i]! += call.a[i]!;
        b[i]! += call.b[i]!;
      }
    }
    const text = calls
      .map(({ id }) => id)
      .sort((x, y) => x - y)
      .join();
    let net = this.netsByText.get(text);
    if (!net) {
      net = {
        id: this.nets.length,
        model: { calls: calls.map(({ sent }) => sent), a: a[0]!, b: b[0]! },
        calls,
        a,
        b,
        namesA: added(calls.map(({ namesA }) => namesA)),
        namesB: added(calls.map(({ namesB }) => namesB)),
        added: new Map(),
        pruned: new Map(),
      };
      this.nets.push(net);
      this.netsByText.set(text, net);
    }
    return net;
  }

  private term(p: number, m: ModelTerm): Term {
    sealTerm(m);
    const { length: width } = this.ids;
    const pool = (this.termsByPrint[p] ??= new Map<number, Term>());
    let a = m.a;
    let b = m.b;
    for (let n = 0; n < width; n++) {
      a = Math.imul(a ^ m.columnA[n]!, 0x85ebca6b) ^ (a >>> 15);
      b = Math.imul(b ^ m.columnB[n]!, 0xc2b2ae35) ^ (b >>> 13);
    }
    const print = keyed(a, b);
    let term = pool.get(print);
    if (term) return term;
    const { length } = this.namings;
    term = {
      id: this.terms.length,
      p,
      m: { ...m, columnA: m.columnA.slice(), columnB: m.columnB.slice() },
      a: new Int32Array(length),
      b: new Int32Array(length),
      columnA: new Int32Array(length * width),
      columnB: new Int32Array(length * width),
      rank: this.rankOf(p, m),
      ended: m.t.phase === 'ended',
      calls: m.out.map((out) => (out?.call ? this.call({ term: p, key: out.key, call: out.call }) : null)),
      steps: new Map(),
      gaveUp: [],
      damaged: [],
      fixed: [],
      resized: [],
      grace: undefined,
      gate: undefined,
      produced: undefined,
      followed: undefined,
    };
    for (let i = 0; i < length; i++) {
      named(this.namings[i]!, () => sealTerm(m));
      term.a[i] = m.a;
      term.b[i] = m.b;
      for (let n = 0; n < width; n++) {
        term.columnA[i * width + n] = m.columnA[n]!;
        term.columnB[i * width + n] = m.columnB[n]!;
      }
    }
    this.terms.push(term);
    pool.set(print, term);
    return term;
  }

  /** The fingerprint under a naming that tells only this term from all others, without an order of the nodes. */
  private rankOf(p: number, m: ModelTerm): number {
    if (this.namings.length === 1) return 0;
    return named(
      Array.from({ length: 10 }, (_, k) => (k === 0 ? 0 : k === p + 1 ? 1 : 2)),
      () => {
        sealTerm(m);
        let rank = m.a ^ Math.imul(m.b, 0x9e3779b1);
        for (let n = 0; n < this.ids.length; n++)
          rank = (rank + Math.imul(m.columnA[n]!, 0x2c1b3c6d) + m.columnB[n]!) | 0;
        return rank;
      },
    );
  }

  private reply(reply: NodeReply<unknown>): Reply {
    const text = JSON.stringify(reply);
    let known = this.replies.get(text);
    if (!known) {
      known = { id: this.replies.size, reply };
      this.replies.set(text, known);
    }
    return known;
  }

  /** null = what all nodes knew at the start. */
  private names(text: string): Names {
    if (printNames(text, this.ids) === null) return { namesA: null, namesB: null };
    const namesA: number[] = [];
    const namesB: number[] = [];
    for (const naming of this.namings) {
      const { a, b } = named(naming, () => printNames(text, this.ids))!;
      namesA.push(...a);
      namesB.push(...b);
    }
    return { namesA: Int32Array.from(namesA), namesB: Int32Array.from(namesB) };
  }

  private prints(print: () => { a: number; b: number }): Prints {
    const a = new Int32Array(this.namings.length);
    const b = new Int32Array(this.namings.length);
    this.namings.forEach((naming, i) =>
      named(naming, () => {
        const printed = print();
        a[i] = printed.a;
        b[i] = printed.b;
      }),
    );
    return { a, b };
  }

  // --- effects of one piece on another

  run(n: number, node: Node, call: Call): Run {
    let run = node.runs.get(call.id);
    if (!run) {
      if (call.sent.call.script === 'inspect') {
        run = {
          node,
          reply: this.reply(
            applyCall(cloneNodeState(node.s), call.sent.call, IDENTITY, node.model.id, 0, this.cfg.mutant),
          ),
          bad: '',
        };
      } else {
        const { s, reply, bad } = Alone.run(this.cfg, n, node.model, call.sent.call);
        run = { node: this.node(s, node.model.id), reply: this.reply(reply), bad };
      }
      node.runs.set(call.id, run);
    }
    return run;
  }

  read(node: Node, from: number, to: number): Reply {
    const key = from * 16 + to;
    let known = node.reads.get(key);
    if (!known) {
      const value = applyRead(node.s, { from, to, limit: 1000, data: true });
      known = this.reply({ outcome: 'accepted', incarnation: node.s.record?.incarnation ?? '', value });
      node.reads.set(key, known);
    }
    return known;
  }

  expired(node: Node): Node {
    if (!node.expired) {
      const s = cloneNodeState(node.s);
      s.lock = null;
      node.expired = this.node(s, node.model.id);
    }
    return node.expired;
  }

  rolledBack(node: Node): Node {
    return (node.rolledBack ??= this.node(rolledBack(node.s), node.model.id));
  }

  raised(node: Node, form: number, highestSeen: number): Node | null {
    const call = raiseOf(form, node.s, highestSeen);
    if (!call) return null;
    const key = highestSeen * 4 + form;
    let raised = node.raised.get(key);
    if (!raised) {
      raised = this.node(Alone.run(this.cfg, 0, node.model, call).s, node.model.id);
      node.raised.set(key, raised);
    }
    return raised;
  }

  mayRunLate(node: Node, { sent }: Call): boolean {
    return sent.call.script !== 'promote_leader' || mayPromote(this.cfg, node.s, sent.call);
  }

  /** The network to `node` with one more call. A call that can have no effect any more is not kept. */
  with(net: Net, node: Node, call: Call, fallible: boolean): Net {
    if (!fallible && !mayMatter(node.s, call.sent.call, this.cfg)) return net;
    let more = net.added.get(call.id);
    if (!more) {
      more = net.calls.includes(call) ? net : this.net([...net.calls, call]);
      net.added.set(call.id, more);
    }
    return more;
  }

  pruned(net: Net, node: Node): Net {
    let less = net.pruned.get(node.id);
    if (!less) {
      const calls = net.calls.filter(({ sent }) => mayMatter(node.s, sent.call, this.cfg));
      less = calls.length === net.calls.length ? net : this.net(calls);
      net.pruned.set(node.id, less);
    }
    return less;
  }

  answered(term: Term, n: number, reply: Reply): Outcome {
    const key = reply.id * 8 + n;
    let outcome = term.steps.get(key);
    if (!outcome) {
      outcome = this.alone(term, (next) => next.deliver(term.p, n, term.m.out[n]!, reply.reply))!;
      term.steps.set(key, outcome);
    }
    return outcome;
  }

  /** null: giving up would change nothing, or another move covers it. */
  gaveUp(term: Term, n: number): Outcome | null {
    const known = term.gaveUp[n];
    if (known !== undefined) return known;
    const { t, out } = term.m;
    const { kind } = t.nodes[n]!.busy!;
    const idle =
      kind === 'inspect' ||
      (kind === 'read' && t.nodes[n]!.failures > 0) ||
      (this.cfg.patient && (t.phase === 'promoting' || t.phase === 'claiming'));
    return (term.gaveUp[n] = idle
      ? null
      : this.alone(term, (next) => {
          let waiting = out[n];
          do {
            next.deliver(term.p, n, waiting!, UNKNOWN);
            waiting = next.peek(term.p).out[n];
          } while (kind === 'claim' && waiting?.call?.script === 'claim' && waiting.call.acquireTtlMs === undefined);
        }));
  }

  graceOver(term: Term): Outcome | null {
    if (term.grace !== undefined) return term.grace;
    const { t, out } = term.m;
    return (term.grace =
      t.graceUntil === Infinity
        ? null
        : this.alone(term, (next) => {
            if (!this.cfg.patient || t.phase !== 'promoting') return next.step(term.p, { type: 'tick', now: 1 });
            out.forEach((waiting, n) => {
              if (waiting) next.deliver(term.p, n, waiting, UNKNOWN);
            });
          }));
  }

  /** Tells the leader that a claimed node is damaged, although the node takes itself for intact. */
  damaged(term: Term, n: number): Outcome | null {
    const { t } = term.m;
    const track = t.nodes[n]!;
    return (term.damaged[n] ??=
      t.phase !== 'leading' || track.standing !== 'claimed' || track.damage
        ? null
        : this.alone(term, (next) =>
            next.step(term.p, { type: 'damaged', now: 0, node: n, incarnation: track.incarnation, why: 'said so' }),
          ));
  }

  /** An operator asks the leader to try a quarantined node again. */
  fixed(term: Term, n: number): Outcome | null {
    const { t } = term.m;
    return (term.fixed[n] ??=
      t.phase !== 'leading' || t.nodes[n]!.standing !== 'quarantined'
        ? null
        : this.alone(term, (next) => next.step(term.p, { type: 'fix', now: 0, node: n })));
  }

  gateOver(term: Term): Outcome | null {
    const { t } = term.m;
    return (term.gate ??=
      t.gateUntil === null ? null : this.alone(term, (next) => next.step(term.p, { type: 'tick', now: gateEnds(t) })));
  }

  /** An operator asks the leader to change the members. */
  resized(term: Term, n: number): Outcome | null {
    const known = term.resized[n];
    if (known !== undefined) return known;
    const event = resizing(term.m.t, n);
    return (term.resized[n] = event && this.alone(term, (next) => next.step(term.p, event)));
  }

  produced(term: Term): Outcome | null {
    return (term.produced ??= term.m.ready === 0 ? null : this.alone(term, (next) => next.produce(term.p)));
  }

  /** A term that ended to be renewed, after another term has followed it. */
  followed(term: Term): Term {
    return (term.followed ??= this.term(term.p, {
      ...term.m,
      columnA: term.m.columnA.slice(),
      columnB: term.m.columnB.slice(),
      renewable: false,
    }));
  }

  private alone(term: Term, act: (next: Alone) => void): Outcome {
    const { p } = term;
    const terms: ModelTerm[] = [];
    terms[p] = term.m;
    const next = new Alone(this.cfg, { ...NOTHING, terms });
    act(next);
    return this.outcome(next, p);
  }

  private outcome(next: Alone, p: number): Outcome {
    const m = next.peek(p);
    return {
      term: this.term(p, m),
      sends: next.sends.map(({ n, sent }) => ({ n, call: this.call(sent) })),
      agrees: next.agrees.map((one) => ({ ...one, hash: code(one.text) })),
      bad: next.bad,
    };
  }

  /**
   * Begins the p-th term. `from` is a height: its store holds the committed blocks up to it. Or `from` is the term that
   * it renews: it takes over that term's store.
   */
  begin(
    { p, mustExceed, quiet, knowledge }: { p: number; mustExceed: number; quiet: boolean; knowledge: Knowledge },
    nodes: readonly Node[],
    agreed: readonly string[],
    from: number | Term,
  ): Outcome {
    const continued = typeof from === 'number' ? undefined : from;
    const store: readonly StoredBlock[] =
      typeof from !== 'number'
        ? from.m.store
        : from === 0
          ? []
          : storeUpTo(this.cfg, { ...NOTHING, nodes: nodes.map(({ model }) => model), agreed: [...agreed] }, from);
    const { list, configuration, votes } = knowledge;
    const key =
      `${p} ${quiet} ${mustExceed} ${continued ? continued.id : ''} ` +
      `${list} ${configuration === null ? '' : configurationText(configuration)} ` +
      `${votes.map(({ node, epoch }) => `${node}:${epoch}`).join(',')} ` +
      `${store.map(({ hash, epoch }) => `${hash}@${epoch}`).join(',')}`;
    let outcome = this.starts.get(key);
    if (!outcome) {
      const next = new Alone(this.cfg, { ...NOTHING, terms: new Array<ModelTerm>(p) });
      next.begin({ knowledge, store, continued: continued?.p, mustExceed, quiet });
      outcome = this.outcome(next, p);
      this.starts.set(key, outcome);
    }
    return outcome;
  }
}

/** The sum of all arrays. null if all are null. */
function added(all: readonly (Int32Array | null)[]): Int32Array | null {
  let sum: Int32Array | null = null;
  for (const one of all) {
    if (one === null) continue;
    sum = sum === null ? one.slice() : sum.map((value, i) => value + one[i]!);
  }
  return sum;
}

const UNKNOWN: NodeReply<unknown> = { outcome: 'unknown', step: 'reply', cause: 'lost' };

function keyed(a: number, b: number): number {
  return (a >>> 0) * 2 ** 21 + (b >>> 11);
}

/** All namings of the terms 1…k. Names above k stay as they are. */
function permutations(k: number): number[][] {
  const all: number[][] = [];
  const place = (given: number[]): void => {
    if (given.length > k) return void all.push([...given, ...Array.from({ length: 9 - k }, (_, i) => k + 1 + i)]);
    for (let name = 1; name <= k; name++) if (!given.includes(name)) place([...given, name]);
  };
  place([0]);
  return all;
}

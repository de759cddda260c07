// How does the model visit every reachable state quickly? It searches depth first over the pieces of pools.ts. A state
// is a row of numbers on one long stack, and only its fingerprint is kept. Nodes are interchangeable, and so are terms
// (`sameTerms`): of all states that differ only by such a permutation, one is explored.
import { FingerprintSet, Hasher } from './fingerprints.js';
import type { Exploration, Limits } from './explore.js';
import { Liveness, sortAlike } from './liveness.js';
import { areEnough, choiceOf, highestEpoch, mayRepair, QUIET, readableBy, type Move, type MoveKind } from './moves.js';
import { interchangeable, knowledgeOf, serverIds } from './members.js';
import { Pools, type Net, type Node, type Outcome, type Term } from './pools.js';
import { code, hashOf, RIVALS, type ModelConfig, type State } from './state.js';

const KINDS: readonly MoveKind[] = [
  'start',
  'renew',
  'run',
  'give up',
  'late run',
  'grace over',
  'produce',
  'gate over',
  'expire',
  'raise',
  'wipe',
  'damage',
  'fix',
  'snapshot',
  'roll back',
  'resize',
];
const KIND = Object.fromEntries(KINDS.map((kind, i) => [kind, i])) as Record<MoveKind, number>;

/** Odd factors for the sums in a fingerprint: one table for each 32-bit half. */
const A = factors(0x9e3779b1);
const B = factors(0x85ebca77);

/** One row of the stack. `terms` may hold fewer terms than the row has room for. */
interface Row {
  nodes: Node[];
  nets: Net[];
  terms: Term[];
  /** Eight bits for each height: the hash that somebody took as committed there. 0 = none yet. */
  agreed: number;
  wipes: number;
  damages: number;
  expiries: number;
  raises: number;
  fixes: number;
  rollbacks: number;
  resizes: number;
  /** `savedAt`: the node of the snapshot, −1 = no snapshot. `saved`: what that node held. */
  savedAt: number;
  saved: Node;
  strays: number;
  giveUps: number;
}

export function exhaust(cfg: ModelConfig, limits: Limits): Exploration {
  return new Exhaustion(cfg, limits).run();
}

class Exhaustion {
  private readonly pools: Pools;
  private readonly seen = new FingerprintSet(20);
  private readonly liveness: Liveness;
  private readonly probed = new FingerprintSet(16);
  private readonly hasher = new Hasher();
  private readonly result: Exploration = {
    states: 0,
    moves: 0,
    deepest: 0,
    complete: false,
    livenessChecks: 0,
    finding: null,
  };
  private readonly width: number;
  private readonly servers: number;
  /** Servers with an index below this one are interchangeable. */
  private readonly alike: number;
  private stack: Int32Array;
  private height = 0;
  private readonly path: Int32Array[] = [];
  private depth = -1;
  private row: Row;
  private readonly next: Row;
  private violation = '';
  private wasFallible = true;
  /** The renamings that can sort the terms, indexed by the number of terms. Slot i is taken by term `from[i]`. */
  private readonly sortings: { naming: number; from: number[] }[][];
  private sumA = 0;
  private sumB = 0;

  constructor(
    private readonly cfg: ModelConfig,
    private readonly limits: Limits,
  ) {
    this.pools = new Pools(cfg);
    this.liveness = new Liveness(cfg);
    this.servers = serverIds(cfg).length;
    this.alike = interchangeable(cfg);
    this.width = 2 * this.servers + cfg.terms + 8;
    this.stack = new Int32Array(this.width * 1024);
    this.row = this.blank();
    this.next = this.blank();
    this.sortings = Array.from({ length: cfg.terms + 1 }, (_, count) =>
      this.pools.namings
        .map((naming, i) => ({
          naming: i,
          from: Array.from({ length: count }, (__, slot) => naming.indexOf(slot + 1) - 1),
          rest: naming.slice(count + 1),
        }))
        .filter(
          ({ from, rest }) => from.every((p) => p >= 0 && p < count) && rest.every((name, i) => name === count + 1 + i),
        ),
    );
  }

  private blank(): Row {
    const { pools } = this;
    return {
      nodes: [...pools.first],
      nets: pools.first.map(() => pools.noCalls),
      terms: [],
      agreed: 0,
      wipes: 0,
      damages: 0,
      expiries: 0,
      raises: 0,
      fixes: 0,
      rollbacks: 0,
      resizes: 0,
      savedAt: -1,
      saved: pools.wiped[0]!,
      strays: 0,
      giveUps: 0,
    };
  }

  run(): Exploration {
    const { limits, result, seen } = this;
    const started = Date.now();
    this.offer(0, -1, -1, 0); // `next` is the initial state
    while (this.height > 0 && !result.finding) {
      this.pop();
      this.wasFallible = this.fallible(this.row);
      if (limits.livenessEvery) this.checkLiveness(limits.livenessEvery);
      if (result.finding) break;
      this.moves();
      if (seen.size >= (limits.states ?? Infinity)) break;
      if ((++result.states & 0x3fff) === 0) {
        if (Date.now() - started > (limits.ms ?? Infinity)) break;
        if ((result.states & 0xfffff) === 0) limits.progress?.(seen.size, result.moves, this.height);
      }
    }
    result.complete = this.height === 0 && !result.finding;
    result.states = seen.size;
    return result;
  }

  // --- rows

  private pop(): void {
    const { cfg, row, stack, pools } = this;
    let at = --this.height * this.width;
    for (let n = 0; n < this.servers; n++) row.nodes[n] = pools.nodes[stack[at++]!]!;
    for (let n = 0; n < this.servers; n++) row.nets[n] = pools.nets[stack[at++]!]!;
    row.terms.length = 0;
    for (let p = 0; p < cfg.terms; p++) {
      const id = stack[at++]!;
      if (id >= 0) row.terms.push(pools.terms[id]!);
    }
    row.agreed = stack[at++]!;
    const faults = stack[at++]!;
    row.wipes = faults & 15;
    row.expiries = (faults >> 4) & 15;
    row.strays = (faults >> 8) & 255;
    row.giveUps = (faults >> 16) & 255;
    row.raises = (faults >> 24) & 15;
    row.damages = (faults >> 28) & 7;
    const more = stack[at++]!;
    row.fixes = more & 15;
    row.rollbacks = (more >> 4) & 15;
    row.resizes = (more >> 8) & 15;
    row.savedAt = (more >> 12) - 1;
    row.saved = pools.nodes[stack[at++]!]!;
    this.depth = stack[at++]!;
    this.path[this.depth] = stack.slice(at, at + 2);
    this.result.deepest = Math.max(this.result.deepest, this.depth);
  }

  private push(code: number, arg: number): void {
    const { cfg, next } = this;
    if ((this.height + 1) * this.width > this.stack.length) {
      const larger = new Int32Array(this.stack.length * 2);
      larger.set(this.stack);
      this.stack = larger;
    }
    const { stack } = this;
    let at = this.height++ * this.width;
    for (let n = 0; n < this.servers; n++) stack[at++] = next.nodes[n]!.id;
    for (let n = 0; n < this.servers; n++) stack[at++] = next.nets[n]!.id;
    for (let p = 0; p < cfg.terms; p++) stack[at++] = next.terms[p]?.id ?? -1;
    stack[at++] = next.agreed;
    stack[at++] =
      next.wipes |
      (next.expiries << 4) |
      (next.strays << 8) |
      (next.giveUps << 16) |
      (next.raises << 24) |
      (next.damages << 28);
    stack[at++] = next.fixes | (next.rollbacks << 4) | (next.resizes << 8) | ((next.savedAt + 1) << 12);
    stack[at++] = next.saved.id;
    stack[at++] = this.depth + 1;
    stack[at++] = code;
    stack[at] = arg;
  }

  private copy(): Row {
    const { row, next } = this;
    for (let n = 0; n < this.servers; n++) {
      next.nodes[n] = row.nodes[n]!;
      next.nets[n] = row.nets[n]!;
    }
    next.terms.length = row.terms.length;
    for (let p = 0; p < row.terms.length; p++) next.terms[p] = row.terms[p]!;
    next.agreed = row.agreed;
    next.wipes = row.wipes;
    next.expiries = row.expiries;
    next.raises = row.raises;
    next.damages = row.damages;
    next.fixes = row.fixes;
    next.rollbacks = row.rollbacks;
    next.resizes = row.resizes;
    next.savedAt = row.savedAt;
    next.saved = row.saved;
    next.strays = row.strays;
    next.giveUps = row.giveUps;
    this.violation = '';
    return next;
  }

  // --- moves

  private moves(): void {
    const { cfg, row, pools } = this;
    if (row.terms.length < cfg.terms) this.starts();
    for (let p = 0; p < row.terms.length; p++) {
      const term = row.terms[p]!;
      if (term.ended) continue;
      const grace = pools.graceOver(term);
      if (grace) this.local(KIND['grace over'], p, -1, grace);
      const gate = pools.gateOver(term);
      if (gate) this.local(KIND['gate over'], p, -1, gate);
      const produced = pools.produced(term);
      if (produced) this.local(KIND.produce, p, -1, produced);
      for (let n = 0; n < term.m.out.length && row.damages < cfg.damages; n++) {
        const damaged = pools.damaged(term, n);
        if (damaged) this.local(KIND.damage, p, n, damaged);
      }
      for (let n = 0; n < term.m.out.length && row.fixes < cfg.fixes; n++) {
        const fixed = pools.fixed(term, n);
        if (fixed) this.local(KIND.fix, p, n, fixed);
      }
      for (let n = 0; n < term.m.out.length && row.resizes < cfg.resizes; n++) {
        const resized = pools.resized(term, n);
        if (resized) this.local(KIND.resize, p, n, resized);
      }
      for (let n = 0; n < term.m.out.length; n++) {
        const out = term.m.out[n];
        if (!out) continue;
        const at = term.m.servers[n]!;
        const node = row.nodes[at]!;
        const call = term.calls[n];
        if (call) {
          const run = pools.run(at, node, call);
          if (call.sent.call.script !== 'promote_leader' || run.reply.reply.outcome !== 'refused') {
            const next = this.copy();
            next.nodes[at] = run.node;
            this.take(p, pools.answered(term, n, run.reply), run.bad);
            this.offer(KIND.run, p, n, 0);
          }
        } else {
          this.copy();
          this.take(p, pools.answered(term, n, pools.read(node, out.from, out.to)), '');
          this.offer(KIND.run, p, n, 0);
        }
        if (row.giveUps >= cfg.giveUps) continue;
        const gaveUp = pools.gaveUp(term, n);
        if (gaveUp) this.local(KIND['give up'], p, n, gaveUp);
      }
    }
    for (let n = 0; n < this.servers; n++) {
      const node = row.nodes[n]!;
      if (row.strays < cfg.strays) {
        for (const call of row.nets[n]!.calls) {
          if (!pools.mayRunLate(node, call)) continue;
          const run = pools.run(n, node, call);
          if (run.node === node) continue;
          const next = this.copy();
          next.nodes[n] = run.node;
          if (cfg.strays !== Infinity) next.strays += 1;
          this.violation = run.bad;
          this.offer(KIND['late run'], call.sent.term, n, call.id);
        }
      }
      if (node.locked && row.expiries < cfg.expiries) {
        const next = this.copy();
        next.expiries += 1;
        next.nodes[n] = pools.expired(node);
        this.offer(KIND.expire, -1, n, 0);
      }
      for (let form = 0; form < 4 && row.raises < cfg.raises && node.admitted; form++) {
        const raised = pools.raised(node, form, highestEpoch(row.nodes));
        if (!raised) continue;
        const next = this.copy();
        next.raises += 1;
        next.nodes[n] = raised;
        this.offer(KIND.raise, -1, n, form);
      }
      if (row.wipes < cfg.wipes && node.admitted) {
        const next = this.copy();
        next.wipes += 1;
        next.nodes[n] = pools.wiped[n]!;
        this.offer(KIND.wipe, -1, n, 0);
      }
      if (row.rollbacks >= cfg.rollbacks) continue;
      if (row.savedAt < 0) {
        const next = this.copy();
        next.savedAt = n;
        next.saved = node;
        this.offer(KIND.snapshot, -1, n, 0);
      } else if (row.savedAt === n) {
        const next = this.copy();
        next.rollbacks += 1;
        next.nodes[n] = pools.rolledBack(row.saved);
        next.savedAt = -1;
        this.offer(KIND['roll back'], -1, n, 0);
      }
    }
  }

  private starts(): void {
    const { cfg, row, pools } = this;
    const p = row.terms.length;
    let mustExceed = 0;
    for (const { m } of row.terms) mustExceed = Math.max(mustExceed, m.claimedEpoch);
    const agreed = agreedHashes(row.agreed, cfg);
    let known = 0;
    while (agreed[known]) known++;
    for (const knowledge of knowledgeOf(cfg, row.nodes)) {
      const choice = choiceOf(knowledge);
      for (let height = cfg.staleStores ? 0 : known; height <= known; height++) {
        for (let arg = height; arg <= height + QUIET; arg += QUIET) {
          const quiet = arg >= QUIET;
          if (quiet && !mayRepair(cfg, this.terms())) continue;
          const outcome = pools.begin({ p, mustExceed, quiet, knowledge }, row.nodes, agreed, height);
          this.copy();
          this.take(p, outcome, '');
          this.offer(KIND.start, p, -1, arg + choice);
        }
      }
      for (let continued = 0; continued < p; continued++) {
        const before = row.terms[continued]!;
        if (!before.m.renewable) continue;
        const quiet = before.m.t.settings.quiet === true;
        const outcome = pools.begin({ p, mustExceed, quiet, knowledge }, row.nodes, agreed, before);
        const next = this.copy();
        next.terms[continued] = pools.followed(before);
        this.take(p, outcome, '');
        this.offer(KIND.renew, p, -1, continued + choice);
      }
    }
  }

  private terms(): Term['m'][] {
    return this.row.terms.map(({ m }) => m);
  }

  /** A move of one term that changes no node. */
  private local(kind: number, p: number, n: number, outcome: Outcome): void {
    const next = this.copy();
    if (kind === KIND.damage) next.damages += 1;
    if (kind === KIND.fix) next.fixes += 1;
    if (kind === KIND.resize) next.resizes += 1;
    if (kind === KIND['give up'] && this.cfg.giveUps !== Infinity) next.giveUps += 1;
    this.take(p, outcome, '');
    this.offer(kind, p, n, 0);
  }

  /** Puts the result of a term's step into `next`: its new state, its calls, what it takes as committed. Checks I1. */
  private take(p: number, { term, sends, agrees, bad }: Outcome, alsoBad: string): void {
    const { next, pools } = this;
    const before = next.terms[p];
    next.terms[p] = term;
    this.violation = alsoBad || bad;
    const fallible = sends.length > 0 && this.fallible();
    const kept = next.strays < this.cfg.strays;
    for (const { n, call } of kept ? sends : [])
      next.nets[n] = pools.with(next.nets[n]!, next.nodes[n]!, call, fallible);
    for (const one of agrees) this.agree(one.height, one.hash, one.text, one.who);
    const claimed = term.m.claimedEpoch;
    if (claimed !== 0 && before && before.m.claimedEpoch === 0) {
      for (let q = 0; q < next.terms.length; q++) {
        if (q !== p && next.terms[q]!.m.claimedEpoch === claimed)
          this.violation ||= `I1: terms ${p + 1} and ${q + 1} both claimed a quorum under epoch ${claimed}`;
      }
    }
  }

  /** Whether a node has lost its memory or may still lose it. If so, any old call may have an effect again. */
  private fallible(row = this.next): boolean {
    const { cfg } = this;
    if (row.wipes < cfg.wipes || row.rollbacks < cfg.rollbacks || cfg.damages > 0) return true;
    if (cfg.twins > 0 || cfg.resizes > 0) return true;
    for (const node of row.nodes) if (!node.admitted) return true;
    return false;
  }

  private agree(height: number, hash: number, text: string, who: string): void {
    const shift = 8 * (height - 1);
    const known = (this.next.agreed >>> shift) & 255;
    if (known === 0) this.next.agreed |= hash << shift;
    else if (known !== hash)
      this.violation ||=
        `I4: FORK at height ${height}: ${who} takes ${text} as committed, ` +
        `${hashOf((known >> 3) - 1, known & 7)} was`;
  }

  /**
   * Completes `next`: drops calls that can have no effect any more, and checks what a reader of all nodes sees, and I2.
   * Pushes the state if it is new.
   */
  private offer(kind: number, p: number, n: number, arg: number): void {
    const { cfg, row, next, pools, result } = this;
    result.moves += 1;
    const touched = kind === KIND.run || kind === KIND['late run'] || kind === KIND.wipe || kind === KIND['roll back'];
    if (next.strays >= cfg.strays) {
      next.nets.fill(pools.noCalls); // no call can arrive late any more
    } else if (!this.fallible()) {
      for (let i = 0; i < this.servers; i++) {
        if (next.nodes[i] !== row.nodes[i] || next.nets[i] !== row.nets[i] || this.wasFallible)
          next.nets[i] = pools.pruned(next.nets[i]!, next.nodes[i]!);
      }
    }
    if (touched && next.nodes.some((node, i) => node !== row.nodes[i])) this.probe();
    if (this.violation !== '' && (this.limits.expect ?? /./).test(this.violation)) {
      result.finding = { why: this.violation, trace: [...this.trace(), this.moveOf(encode(kind, p, n), arg)] };
      return;
    }
    this.fingerprint();
    if (this.seen.add(this.printA, this.printB)) this.push(encode(kind, p, n), arg);
  }

  private printA = 0;
  private printB = 0;

  private fingerprint(): void {
    const { next, pools } = this;
    const { terms } = next;
    const count = terms.length;
    let first = true;
    for (const { naming, from } of this.sortings[count]!) {
      let sorted = true;
      for (let slot = 1; slot < count; slot++)
        if (terms[from[slot - 1]!]!.rank > terms[from[slot]!]!.rank) {
          sorted = false;
          break;
        }
      if (!sorted) continue;
      this.printUnder(naming, from, pools.namings[naming]!);
      const { sumA: a, sumB: b } = this;
      if (first || a < this.printA || (a === this.printA && b < this.printB)) {
        this.printA = a;
        this.printB = b;
        first = false;
      }
    }
  }

  /**
   * Writes the fingerprint to sumA and sumB. A column holds all that concerns one node. The columns are added up, so
   * that their order does not matter.
   */
  private printUnder(naming: number, from: readonly number[], names: readonly number[]): void {
    const { servers, alike, next } = this;
    const { nodes, nets, terms } = next;
    let sumA =
      next.wipes |
      (next.expiries << 4) |
      (next.strays << 8) |
      (next.giveUps << 16) |
      (next.raises << 24) |
      (next.damages << 28);
    let sumB = Math.imul(sumA, 0x27d4eb2f);
    const more = next.fixes + next.rollbacks * 16 + next.resizes * 256;
    if (more > 0) {
      sumA = (sumA + Math.imul(more, 0x165667b1)) | 0;
      sumB = (sumB + Math.imul(more, 0x2545f491)) | 0;
    }
    for (let rest = next.agreed, k = 0; rest !== 0; rest >>>= 8, k++) {
      const hash = (rest & 255) === 0 ? 0 : names[(rest & 255) >> 3]! * 8 + (rest & 7) + 1;
      sumA = (sumA + Math.imul(hash, A[k]!)) | 0;
      sumB = (sumB + Math.imul(hash, B[k]!)) | 0;
    }
    for (let slot = 0; slot < from.length; slot++) {
      const term = terms[from[slot]!]!;
      sumA = (sumA + Math.imul(term.a[naming]!, A[slot + 4]!)) | 0;
      sumB = (sumB + Math.imul(term.b[naming]!, B[slot + 4]!)) | 0;
    }
    sumA = Math.imul(sumA ^ (sumA >>> 15), 0x2c1b3c6d);
    sumB = Math.imul(sumB ^ (sumB >>> 13), 0x297a2d39);
    for (let n = 0; n < servers; n++) {
      const at = naming * servers + n;
      let a = (Math.imul(nodes[n]!.a[naming]!, A[0]!) + Math.imul(nets[n]!.a[naming]!, A[1]!)) | 0;
      let b = (Math.imul(nodes[n]!.b[naming]!, B[0]!) + Math.imul(nets[n]!.b[naming]!, B[1]!)) | 0;
      for (let slot = 0; slot < from.length; slot++) {
        const term = terms[from[slot]!]!;
        a = (a + Math.imul(term.columnA[at]!, A[slot + 2]!)) | 0;
        b = (b + Math.imul(term.columnB[at]!, B[slot + 2]!)) | 0;
      }
      if (next.savedAt === n) {
        a = (a + Math.imul(next.saved.a[naming]! + 1, A[15]!)) | 0;
        b = (b + Math.imul(next.saved.b[naming]! + 1, B[15]!)) | 0;
      }
      if (next.savedAt >= 0 && next.saved.namesA !== null) {
        a = (a + Math.imul(next.saved.namesA[at]!, A[13]!)) | 0;
        b = (b + Math.imul(next.saved.namesB![at]!, B[13]!)) | 0;
      }
      for (let holder = 0; holder < servers; holder++) {
        const { namesA, namesB } = nodes[holder]!;
        if (namesA !== null) {
          a = (a + namesA[at]!) | 0;
          b = (b + namesB![at]!) | 0;
        }
        const net = nets[holder]!;
        if (net.namesA !== null) {
          a = (a + Math.imul(net.namesA[at]!, A[14]!)) | 0;
          b = (b + Math.imul(net.namesB![at]!, B[14]!)) | 0;
        }
      }
      if (n >= alike) {
        a = Math.imul(a + n, 0x2545f491);
        b = Math.imul(b - n, 0x165667b1);
      }
      a ^= a >>> 16;
      b ^= b >>> 15;
      const mixedA = Math.imul(a, 0x85ebca6b) ^ Math.imul(b, 0x68e31da5);
      const mixedB = Math.imul(b, 0x735a2d97) ^ Math.imul(a, 0x1b56c4e9);
      sumA = (sumA + Math.imul(mixedA ^ (mixedA >>> 13), 0xc2b2ae35)) | 0;
      sumB = (sumB + Math.imul(mixedB ^ (mixedB >>> 14), 0x0ca7d2e9)) | 0;
    }
    this.sumA = Math.imul(sumA ^ (sumA >>> 16), 0x21f0aaad);
    this.sumB = Math.imul(sumB ^ (sumB >>> 15), 0x735a2d97);
  }

  /** Checks I2, and what readers take as committed (section 7). */
  private probe(): void {
    const { cfg, next } = this;
    const { nodes } = next;
    for (let n = 1; n < nodes.length; n++) for (let k = 0; k < n; k++) this.checkPair(nodes[n]!, nodes[k]!);
    const mixed = cfg.variation === 'mixed-epochs';
    for (const { hashes, epochs, floor, s, admitted } of readableBy(cfg, nodes)) {
      for (let height = 1; height <= cfg.heights + 1; height++) {
        if (admitted && floor === height)
          this.agree(height, code(s.record!.floorHash), s.record!.floorHash, 'a reader, by the floor of a node,');
        const hash = hashes[height - floor - 1];
        if (hash === undefined) continue;
        if (floor + hashes.length > height) {
          this.agree(height, hash, named(hash), 'a reader, by the entry above it,');
          continue;
        }
        const epoch = epochs[height - floor - 1]!;
        const holders = nodes.filter((other) => {
          const at = height - other.floor - 1;
          return other.hashes[at] === hash && (mixed || other.epochs[at] === epoch);
        });
        if (holders.length > 1 || cfg.nodes <= 2 || cfg.resizes > 0)
          if (areEnough(cfg, holders, epoch)) this.agree(height, hash, named(hash), 'a reader, by a quorum of copies,');
      }
    }
  }

  private checkPair(one: Node, other: Node): void {
    for (let height = 1; height <= this.cfg.heights + 1; height++) {
      const hash = one.hashes[height - one.floor - 1];
      const there = other.hashes[height - other.floor - 1];
      if (hash === undefined || there === undefined || hash === there) continue;
      const epoch = one.epochs[height - one.floor - 1];
      if (other.epochs[height - other.floor - 1] !== epoch) continue;
      if (this.cfg.conflict && RIVALS.includes(named(hash)) && RIVALS.includes(named(there))) continue;
      this.violation ||= `I2: epoch ${epoch} has two blocks at height ${height}: ${named(hash)} and ${named(there)}`;
    }
  }

  // --- liveness and traces

  private checkLiveness(every: number): void {
    const { row, hasher } = this;
    for (let p = -1; p < row.terms.length; p++) {
      const term = p < 0 ? undefined : row.terms[p]!;
      if (term?.ended) continue;
      // Liveness depends on the nodes and on this one term only. The order of the nodes does not matter.
      const columns = row.nodes.map(
        (node, n) =>
          [
            hasher
              .reset(8)
              .add(node.a[0]!)
              .add(namesOf(row.nodes, n).a)
              .add(term?.columnA[n] ?? 0)
              .finish().a,
            hasher
              .reset(9)
              .add(node.b[0]!)
              .add(namesOf(row.nodes, n).b)
              .add(term?.columnB[n] ?? 0)
              .finish().b,
          ] as [number, number],
      );
      sortAlike(columns, this.alike);
      hasher.reset(10).add(p);
      for (const [a, b] of columns) hasher.add(a).add(b);
      if (term) hasher.add(term.a[0]!).add(term.b[0]!);
      else hasher.add(row.agreed);
      hasher.finish();
      if (every > 1 && (hasher.a >>> 0) % every !== 0) continue;
      if (!this.probed.add(hasher.a, hasher.b)) continue;
      this.result.livenessChecks += 1;
      const stuck = this.liveness.stuck(this.stateOf(row), p);
      if (stuck !== '' && (this.limits.expect ?? /./).test(stuck)) {
        this.result.finding = { why: stuck, trace: this.trace() };
        return;
      }
    }
  }

  private stateOf(row: Row): State {
    const { agreed, wipes, damages, expiries, raises, fixes, rollbacks, resizes, savedAt, saved, strays, giveUps } =
      row;
    return {
      nodes: row.nodes.map(({ model }) => model),
      nets: row.nets.map(({ model }) => model),
      terms: row.terms.map(({ m }) => m),
      agreed: agreedHashes(agreed, this.cfg),
      wipes,
      damages,
      expiries,
      raises,
      fixes,
      rollbacks,
      resizes,
      saved: savedAt < 0 ? null : { n: savedAt, node: saved.model },
      strays,
      giveUps,
      violation: '',
    };
  }

  private trace(): Move[] {
    return this.path.slice(1, this.depth + 1).map(([code, arg]) => this.moveOf(code!, arg!));
  }

  private moveOf(code: number, arg: number): Move {
    const kind = KINDS[code & 31]!;
    const key = kind === 'late run' ? this.pools.calls[arg]!.sent.key : arg;
    return { kind, term: ((code >> 5) & 15) - 1, node: ((code >> 9) & 15) - 1, arg: key };
  }
}

/** The sum of what the configurations of all servers say about the id of server n. */
function namesOf(nodes: readonly Node[], n: number): { a: number; b: number } {
  let a = 0;
  let b = 0;
  for (const { namesA, namesB } of nodes) {
    a = (a + (namesA?.[n] ?? 0)) | 0;
    b = (b + (namesB?.[n] ?? 0)) | 0;
  }
  return { a, b };
}

function encode(kind: number, p: number, n: number): number {
  return kind | ((p + 1) << 5) | ((n + 1) << 9);
}

function named(hash: number): string {
  return hashOf((hash >> 3) - 1, hash & 7);
}

function agreedHashes(agreed: number, cfg: ModelConfig): string[] {
  return Array.from({ length: cfg.heights + 1 }, (_, i) => {
    const hash = (agreed >>> (8 * i)) & 255;
    return hash === 0 ? '' : named(hash);
  });
}

function factors(seed: number): Int32Array {
  let x = seed;
  return Int32Array.from({ length: 16 }, () => {
    x = (Math.imul(x ^ (x >>> 15), 0x2c1b3c6d) + 0x6d2b79f5) | 0;
    return x | 1;
  });
}

// How is the state space explored, and how is a violation reported? `explore` visits every state. `walk` goes at random
// and prefers the newest term. Both report a violation as a trace of moves. `minimised` shortens a trace, and `narrate`
// prints it for people.
import { exhaust } from './exhaust.js';
import { FingerprintSet, Hasher } from './fingerprints.js';
import { Liveness } from './liveness.js';
import { chosen, forEachMove, type Move } from './moves.js';
import { interchangeable, serverIds } from './members.js';
import {
  configOf,
  initialState,
  isAdmitted,
  printNames,
  sealNetwork,
  type ModelConfig,
  type Network,
  type State,
} from './state.js';

export interface Finding {
  why: string;
  trace: Move[];
}

export interface Exploration {
  states: number;
  moves: number;
  deepest: number;
  complete: boolean;
  livenessChecks: number;
  finding: Finding | null;
}

export interface Limits {
  states?: number;
  ms?: number;
  /** Which violations count. The search ignores all others (mutants). */
  expect?: RegExp;
  /** Check liveness in every n-th combination of nodes and a term. 0 = never. */
  livenessEvery?: number;
  progress?: (states: number, moves: number, stack: number) => void;
}

const hasher = new Hasher();
const order: number[] = [];
const columnA: number[] = [];
const columnB: number[] = [];
const print = { a: 0, b: 0 };

/**
 * Writes the fingerprint of a state to `print`. It is the same for all permutations of the nodes: what concerns one
 * node is one column, and the columns are sorted.
 */
function fingerprint(cfg: ModelConfig, state: State): void {
  const { nodes, terms } = state;
  const nets = state.strays >= cfg.strays ? nodes.map(() => NOTHING_SENT) : state.nets;
  const names = namesIn(cfg, state, nets);
  const alike = interchangeable(cfg);
  for (let n = 0; n < nodes.length; n++) {
    hasher
      .reset(5)
      .add(nodes[n]!.a)
      .add(nets[n]!.a)
      .add(names[n]!.a)
      .add(state.saved?.n === n ? state.saved.node.a : 0);
    for (let p = 0; p < terms.length; p++) hasher.add(terms[p]!.columnA[n]!);
    columnA[n] = hasher.finish().a;
    hasher
      .reset(6)
      .add(nodes[n]!.b)
      .add(nets[n]!.b)
      .add(names[n]!.b)
      .add(state.saved?.n === n ? state.saved.node.b : 0);
    for (let p = 0; p < terms.length; p++) hasher.add(terms[p]!.columnB[n]!);
    columnB[n] = hasher.finish().b;
    order[n] = n;
    for (let i = n; i > 0 && i < alike && less(order[i]!, order[i - 1]!); i--) {
      const swap = order[i]!;
      order[i] = order[i - 1]!;
      order[i - 1] = swap;
    }
  }
  hasher.reset(7);
  for (let n = 0; n < nodes.length; n++) hasher.add(columnA[order[n]!]!).add(columnB[order[n]!]!);
  for (let p = 0; p < terms.length; p++) hasher.add(terms[p]!.a).add(terms[p]!.b);
  for (const hash of state.agreed) hasher.add(hash === '' ? 0 : hash.charCodeAt(0) * 64 + hash.charCodeAt(2));
  hasher
    .add(state.wipes)
    .add(state.expiries)
    .add(state.damages)
    .add(state.raises)
    .add(state.fixes)
    .add(state.rollbacks)
    .add(state.resizes);
  if (cfg.strays !== Infinity) hasher.add(state.strays);
  if (cfg.giveUps !== Infinity) hasher.add(state.giveUps);
  hasher.finish();
  print.a = hasher.a;
  print.b = hasher.b;
}

const NOTHING_SENT = sealNetwork([]);

/** For each server: the sum of what all configurations in this state say about its id. */
function namesIn(cfg: ModelConfig, state: State, nets: readonly Network[]): { a: number; b: number }[] {
  const ids = serverIds(cfg);
  const names = ids.map(() => ({ a: 0, b: 0 }));
  const add = (text: string, factor: number): void => {
    const prints = printNames(text, ids);
    prints?.a.forEach((a, n) => {
      names[n]!.a = (names[n]!.a + Math.imul(a, factor)) | 0;
      names[n]!.b = (names[n]!.b + Math.imul(prints.b[n]!, factor)) | 0;
    });
  };
  for (const { s } of state.nodes) add(s.record?.config ?? '', 1);
  add(state.saved?.node.s.record?.config ?? '', 3);
  for (const { calls } of nets) for (const { call } of calls) add(configOf(call), 5);
  return names;
}

function less(x: number, y: number): boolean {
  return columnA[x]! === columnA[y]! ? columnB[x]! < columnB[y]! : columnA[x]! < columnA[y]!;
}

/** Visits every reachable state until a limit is met. Stops at the first violation. */
export function explore(cfg: ModelConfig, limits: Limits = {}): Exploration {
  return cfg.heldReplies || cfg.variation === 'wide-claim' ? exploreDirectly(cfg, limits) : exhaust(cfg, limits);
}

/**
 * Does the same over whole states: much slower, with fewer reductions. A test compares its counts with those of
 * `exhaust`.
 */
export function exploreDirectly(cfg: ModelConfig, limits: Limits = {}): Exploration {
  const seen = new FingerprintSet(20);
  const stack: { state: State; move: Move | null; depth: number }[] = [
    { state: initialState(cfg), move: null, depth: 0 },
  ];
  const path: (Move | null)[] = [];
  const liveness = new Liveness(cfg);
  const result: Exploration = { states: 0, moves: 0, deepest: 0, complete: false, livenessChecks: 0, finding: null };
  const started = Date.now();
  fingerprint(cfg, stack[0]!.state);
  seen.add(print.a, print.b);
  while (stack.length > 0) {
    const { state, move, depth } = stack.pop()!;
    path.length = depth;
    path[depth] = move;
    result.deepest = Math.max(result.deepest, depth);
    let bad = state.violation;
    if (bad === '' && limits.livenessEvery) bad = liveness.check(state, limits.livenessEvery);
    if (bad !== '' && (limits.expect ?? /./).test(bad)) {
      result.finding = { why: bad, trace: path.slice(1) as Move[] };
      break;
    }
    forEachMove(cfg, state, (made, next) => {
      result.moves += 1;
      fingerprint(cfg, next);
      if (seen.add(print.a, print.b)) stack.push({ state: next, move: made, depth: depth + 1 });
    });
    if (seen.size >= (limits.states ?? Infinity)) break;
    if ((++result.states & 0x3ff) === 0) {
      if (Date.now() - started > (limits.ms ?? Infinity)) break;
      if ((result.states & 0x3ffff) === 0) limits.progress?.(seen.size, result.moves, stack.length);
    }
  }
  result.complete = stack.length === 0 && !result.finding;
  result.states = seen.size;
  result.livenessChecks = liveness.checks;
  return result;
}

/** A small seeded pseudo-random number generator (mulberry32). */
function generator(seed: number): () => number {
  let s = seed >>> 0;
  return () => {
    s = (s + 0x6d2b79f5) >>> 0;
    let t = Math.imul(s ^ (s >>> 15), s | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

export interface Walks {
  runs: number;
  seed?: number;
  steps?: number;
  ms?: number;
  liveness?: boolean;
  /** Which violations count. A walk ignores all others. */
  expect?: RegExp;
}

/**
 * Random walks. Each term reaches a random quorum while it promotes, and a random set of nodes while it writes. Most
 * moves belong to the newest term; sometimes an older term gets moves again.
 */
export function walk(
  cfg: ModelConfig,
  { runs, seed = 1, steps = 80, ms = Infinity, liveness: alive = false, expect = /./ }: Walks,
): { runs: number; finding: Finding | null } {
  const random = generator(seed);
  const liveness = new Liveness(cfg);
  const started = Date.now();
  for (let run = 1; run <= runs; run++) {
    if (Date.now() - started > ms) return { runs: run, finding: null };
    const finding = walkOnce(cfg, random, steps, expect, alive ? liveness : null);
    if (finding) return { runs: run, finding };
  }
  return { runs, finding: null };
}

function walkOnce(
  cfg: ModelConfig,
  random: () => number,
  steps: number,
  expect: RegExp,
  liveness: Liveness | null,
): Finding | null {
  const trace: Move[] = [];
  let state = initialState(cfg);
  const promotes: number[] = [];
  const writes: number[] = [];
  for (let p = 0; p < cfg.terms; p++) {
    promotes.push(quorumMask(cfg.nodes, random));
    writes.push(Math.floor(random() * 2 ** cfg.nodes));
  }
  const stay = 6 + Math.floor(random() * 10);
  let spent = 0;
  let woken = -1;
  for (let i = 0; i < steps; i++) {
    const live = state.terms.length - 1;
    if (woken < 0) woken = live > 0 && random() < 0.1 ? Math.floor(random() * live) : -1;
    else if (random() < 0.25) woken = -1;
    const who = woken < 0 ? live : woken;
    const rare = random();
    const phase = who >= 0 ? state.terms[who]!.t.phase : 'ended';
    const mask =
      who < 0
        ? 0
        : phase === 'promoting' || phase === 'claiming' || phase === 'adopting'
          ? promotes[who]!
          : writes[who]!;
    const goOn = live < 0 || spent > stay || phase === 'ended';
    const eligible = (kind: Move['kind'], term: number, node: number): boolean => {
      if (kind === 'start' || kind === 'renew') return goOn;
      if (
        kind === 'expire' ||
        kind === 'raise' ||
        kind === 'wipe' ||
        kind === 'damage' ||
        kind === 'fix' ||
        kind === 'resize' ||
        kind === 'snapshot' ||
        kind === 'roll back'
      )
        return rare < 0.15;
      if (kind === 'late run') return rare > 0.85;
      if (term !== who) return false;
      if (kind === 'give up') return rare > 0.15 && rare < 0.3 && ((mask >> node) & 1) === 1;
      if (kind === 'run' && state.terms[who]!.out[node]?.call?.script === 'inspect' && random() < 0.6) return false;
      return node < 0 || ((mask >> node) & 1) === 1 || !isAdmitted(state.nodes[state.terms[who]!.servers[node]!]!.s);
    };
    const options: [Move['kind'], number, number, number][] = [];
    forEachMove(
      cfg,
      state,
      () => undefined,
      (kind, term, node, arg) => {
        if (eligible(kind, term, node)) options.push([kind, term, node, arg]);
        return false;
      },
    );
    spent += 1;
    if (options.length === 0) {
      spent += 3;
      continue;
    }
    const [kind, term, node, arg] = options[Math.floor(random() * options.length)]!;
    let made: Move | null = null;
    let next: State = state;
    forEachMove(
      cfg,
      state,
      (move, candidate) => {
        made ??= move;
        next = candidate;
      },
      (k, t, n, x) => k === kind && t === term && n === node && x === arg,
    );
    if (made === null) continue;
    if (kind === 'start' || kind === 'renew') spent = 0;
    state = next;
    trace.push(made);
    const why = state.violation || liveness?.check(state, 1) || '';
    if (why !== '' && expect.test(why)) return { why, trace };
  }
  return null;
}

function quorumMask(nodes: number, random: () => number): number {
  for (;;) {
    const mask = Math.floor(random() * 2 ** nodes);
    let count = 0;
    for (let m = mask; m > 0; m &= m - 1) count++;
    if (count > nodes / 2) return mask;
  }
}

/** Follows a trace and skips moves that are not possible. Stops at the first violation. */
export function replay(
  cfg: ModelConfig,
  trace: readonly Move[],
  expect = /./,
  each?: (move: Move, state: State) => void,
): { why: string; trace: Move[] } {
  const liveness = new Liveness(cfg);
  let state = initialState(cfg);
  const made: Move[] = [];
  for (const wanted of trace) {
    let next: State | null = null;
    forEachMove(
      cfg,
      state,
      (_, candidate) => {
        next ??= candidate;
      },
      (kind, term, node, arg) =>
        kind === wanted.kind && term === wanted.term && node === wanted.node && arg === wanted.arg,
    );
    if (!next) continue;
    state = next;
    made.push(wanted);
    each?.(wanted, state);
    const why = state.violation || (expect.test('STALL') ? liveness.check(state, 1) : '');
    if (why !== '' && expect.test(why)) return { why, trace: made };
  }
  return { why: '', trace: made };
}

/** Removes moves as long as the same kind of violation remains. */
export function minimised(cfg: ModelConfig, finding: Finding): Finding {
  const expect = new RegExp(kindOf(finding.why));
  let best = replay(cfg, finding.trace, expect);
  if (best.why === '') return finding;
  for (let again = true; again;) {
    again = false;
    for (let width = Math.min(8, best.trace.length >> 1); width >= 1; width >>= 1) {
      for (let i = best.trace.length - width; i >= 0; i--) {
        const shorter = replay(cfg, [...best.trace.slice(0, i), ...best.trace.slice(i + width)], expect);
        if (shorter.why !== '' && shorter.trace.length < best.trace.length) {
          best = shorter;
          again = true;
        }
      }
    }
  }
  return best;
}

/** The kind of a violation: `I4`, `STALL`, `alarm AHEAD_OF_LEADER`, … */
function kindOf(why: string): string {
  return /^(I\d+|STALL)/.exec(why)?.[0] ?? /(raises|ends with) \w+/.exec(why)?.[0] ?? why;
}

export function narrate(cfg: ModelConfig, finding: Finding): string {
  const lines: string[] = [];
  replay(cfg, finding.trace, new RegExp(kindOf(finding.why)), (move, state) => {
    const node = move.node >= 0 ? ` node ${move.node + 1}` : '';
    const who = move.term >= 0 ? `term ${move.term + 1}` : 'fault';
    lines.push(
      (
        `${String(lines.length + 1).padStart(3)}. ${who.padEnd(9)} ` +
        `${move.kind}${node}${move.kind === 'start' ? ` (${beginningOf(move.arg)})` : ''}`
      ).padEnd(52) + picture(state),
    );
  });
  return [...lines, `     ${finding.why}`].join('\n');
}

function beginningOf(arg: number): string {
  const { height, quiet, list, nth } = chosen(arg);
  const known = nth > 0 ? `, knows the configuration before ${nth} newer` : '';
  return `store at ${height}${quiet ? ', repair' : ''}${list > 0 ? `, list ${list + 1}` : ''}${known}`;
}

/**
 * Reads a trace from text, one move on each line: `<term> <kind> [<node>] [@<arg>]`. Term 0 stands for faults. Failing
 * explorations are kept in this form.
 */
export function traceOf(text: string): Move[] {
  return text
    .trim()
    .split('\n')
    .map((line) => {
      const [, term, kind, node, arg] = /^\s*(\d) ([a-z ]*[a-z])(?: (\d))?(?: @(\d+))?$/.exec(line) ?? [];
      return {
        kind: kind as Move['kind'],
        term: Number(term) - 1,
        node: node === undefined ? -1 : Number(node) - 1,
        arg: Number(arg ?? 0),
      };
    });
}

export function textOf(trace: readonly Move[]): string {
  return trace
    .map(({ kind, term, node, arg }) => `${term + 1} ${kind}${node >= 0 ? ` ${node + 1}` : ''}${arg ? ` @${arg}` : ''}`)
    .join('\n');
}

function picture(state: State): string {
  const nodes = state.nodes.map(({ s }) => {
    if (s.record === null) return '[empty]';
    const entries = s.entries.map((entry) => `${entry.hash}@${entry.epoch}`).join(' ');
    return (
      `[${s.lock ? s.lock.owner.slice(1, 2) : '-'} ` +
      `e${s.epoch ?? '-'}/${s.record.claimant.slice(1, 2) || '-'} ` +
      `${entries}${s.record.pending ? ' admitting' : ''}${s.record.config.startsWith('0.0') ? '' : ` ${s.record.config.split(' ')[0]}`}]`
    );
  });
  const terms = state.terms.map(
    ({ t, out }) =>
      `${t.phase}${t.epoch ? ` E${t.epoch}` : ''}(${t.nodes.map((track, n) => `${track.standing}${out[n] ? ':' + (track.busy?.kind ?? '?') : ''}`).join(',')})`,
  );
  return `${nodes.join(' ')}  ${terms.join(' | ')}`;
}

// Does a lone leader always make progress while all nodes are up? Two checks start from a state, and no further fault
// happens:
// - A fresh term promotes, adopts and commits a block of its own. Afterwards all nodes are identical.
// - Each term that is under way and left alone ends, or comes to rest while every node is its own and identical. If it
//    ends to renew its term, the follow-up term gets there.
// Both depend on the nodes and on one term only. So each such combination is checked once.
import { code, isAdmitted, MAX_ADMISSIONS, printNames, type ModelConfig, type ModelTerm, type State } from './state.js';
import { FingerprintSet, Hasher } from './fingerprints.js';
import type { MemoryNodeState } from '../support/memory-node.js';
import type { TermState } from '../../src/core/protocol/term-state.js';
import { memberOf, type Configuration } from '../../src/core/protocol/configuration.js';
import {
  configurationsOn,
  interchangeable,
  knowledgeOf,
  listsOf,
  serverIds,
  versionCode,
  type Knowledge,
} from './members.js';
import { agreedHeight, gateEnds, Next, renewTerm, runAndAnswer, startTerm } from './moves.js';

const MAX_ROUNDS = 60;

export class Liveness {
  checks = 0;
  private readonly known = new FingerprintSet(12);
  private readonly hasher = new Hasher();
  private readonly calm: ModelConfig;

  constructor(cfg: ModelConfig) {
    this.calm = {
      ...cfg,
      terms: cfg.terms + 3,
      heights: cfg.heights + (cfg.rollbacks > 0 ? 6 : cfg.wipes + cfg.damages + cfg.twins + cfg.resizes > 0 ? 5 : 1),
      heldReplies: false,
      lazyProposals: false,
    };
  }

  /** Returns what is stuck, or ''. With `every` > 1 only that share of the combinations is checked. */
  check(state: State, every: number): string {
    if (state.violation !== '') return '';
    for (let p = -1; p < state.terms.length; p++) {
      if (p >= 0 && state.terms[p]!.t.phase === 'ended') continue;
      if (!this.isNew(state, p, every)) continue;
      this.checks += 1;
      const stuck = this.stuck(state, p);
      if (stuck !== '') return stuck;
    }
    return '';
  }

  /** p = −1 stands for a fresh term. */
  stuck(state: State, p: number): string {
    return p < 0 ? this.fresh(state) : this.alone(state, p);
  }

  private isNew(state: State, p: number, every: number): boolean {
    const { hasher, calm } = this;
    const ids = serverIds(calm);
    const names = state.nodes.map(({ s }) => printNames(s.record?.config ?? '', ids));
    const columns: [number, number][] = state.nodes.map((node, n) => {
      const m = p < 0 ? undefined : state.terms[p]!;
      const a = hasher
        .reset(8)
        .add(node.a)
        .add(names.reduce((sum, one) => (sum + (one?.a[n] ?? 0)) | 0, 0))
        .add(m ? m.columnA[n]! : 0)
        .finish().a;
      const b = hasher
        .reset(9)
        .add(node.b)
        .add(m ? m.columnB[n]! : 0)
        .finish().b;
      return [a, b];
    });
    sortAlike(columns, interchangeable(calm));
    hasher.reset(10).add(p);
    for (const [a, b] of columns) hasher.add(a).add(b);
    if (p >= 0) hasher.add(state.terms[p]!.a).add(state.terms[p]!.b);
    else for (const hash of state.agreed) hasher.add(code(hash));
    hasher.finish();
    if (every > 1 && (hasher.a >>> 0) % every !== 0) return false;
    return this.known.add(hasher.a, hasher.b);
  }

  private fresh(state: State): string {
    const { calm } = this;
    const expired = expireLocks(calm, state, '');
    const tops = agreedHeight(state);
    // A store below the retained range first catches up from a peer.
    const floor = Math.max(...state.nodes.map(({ s }) => s.record?.floor ?? 0));
    // If no quorum has the memory that counts, an operator has to act: this is not a stall.
    for (const knowledge of wellInformed(calm, expired)) {
      for (let height = calm.staleStores ? floor : tops; height <= tops; height++) {
        const started = startTerm(calm, { ...expired, agreed: [...expired.agreed, ''] }, knowledge, height);
        const stuck = this.through(started, started.terms.length - 1, true);
        if (stuck !== '')
          return `STALL: a fresh term, alone, its store at ${height}, list ${knowledge.list + 1}: ${stuck}`;
      }
    }
    return '';
  }

  private alone(state: State, p: number): string {
    const expired = expireLocks(this.calm, state, state.terms[p]!.t.settings.owner);
    let from: State = { ...expired, agreed: [...expired.agreed, ''] };
    const { t } = from.terms[p]!;
    if (t.phase === 'leading' && !t.inflight && !t.settings.quiet) {
      // A leader at rest writes another block. The replies tell it what has happened to its nodes.
      const next = new Next(this.calm, from);
      next.term(p).ready = t.committed.height + 1;
      next.produce(p);
      from = next.seal();
    }
    const stuck = this.through(from, p, false);
    return stuck === '' ? '' : `STALL: term ${p + 1}, left alone: ${stuck}`;
  }

  private through(from: State, term: number, mustLead: boolean): string {
    let state = from;
    let p = term;
    for (let renewals = 0; ; renewals++) {
      const run = this.untilDry(state, p);
      if (run.why !== '') return run.why;
      state = run.state;
      const m = state.terms[p]!;
      if (m.renewable) {
        if (renewals === 2) return 'it renews its term over and over';
        const knowledge = wellInformed(this.calm, state).find(({ servers }) => servers.join() === m.servers.join());
        if (!knowledge) return ''; // no quorum has the memory that counts: an operator has to act
        state = renewTerm(this.calm, state, knowledge, p);
        p = state.terms.length - 1;
        mustLead = true;
        continue;
      }
      if (m.t.phase === 'ended') return mustLead ? `it ended with ${m.t.ended!.code}: ${m.t.ended!.reason}` : '';
      return restOf(this.calm, state, p, mustLead);
    }
  }

  /** Runs and answers every call of the term, in turn, until nothing changes any more. */
  private untilDry(from: State, p: number): { why: string; state: State } {
    let state = from;
    for (let round = 0; round < MAX_ROUNDS; round++) {
      let moved = false;
      for (let n = 0; n < state.terms[p]!.out.length; n++) {
        for (let batch = 0; batch < 8; batch++) {
          // Backfills come in batches, so several of them run in one round.
          const out = state.terms[p]!.out[n];
          if (!out || (batch > 0 && out.kind !== 'backfill')) break;
          const next = out.held ? delivered(this.calm, state, p, n) : runAndAnswer(this.calm, state, p, n, out, false);
          if (!next || same(state, next, p)) break;
          moved = true;
          state = next;
          if (state.violation !== '') return { why: state.violation, state };
        }
      }
      if (state.terms[p]!.ready > 0) {
        const next = new Next(this.calm, state);
        next.produce(p);
        state = next.seal();
        moved = true;
      }
      if (state.violation !== '') return { why: state.violation, state };
      if (state.terms[p]!.t.phase === 'ended') return { why: '', state };
      if (!moved) {
        const { graceUntil, gateUntil } = state.terms[p]!.t;
        if (graceUntil === Infinity && gateUntil === null) return { why: '', state };
        const next = new Next(this.calm, state);
        next.step(p, { type: 'tick', now: gateUntil === null ? 1 : gateEnds(state.terms[p]!.t) });
        state = next.seal();
      }
    }
    return { why: 'it never comes to rest', state };
  }
}

/**
 * Checks a term at rest. A leader at rest has no block in flight. Every admitted node belongs to it and holds the same
 * blocks.
 */
function restOf(cfg: ModelConfig, state: State, p: number, mustCommit: boolean): string {
  const { t } = state.terms[p]!;
  if (!mustCommit && isLeftAlone(state, p)) return ''; // its lease will expire and end it
  if (t.phase !== 'leading') return `it rests in phase ${t.phase}`;
  if (t.settings.quiet) return repairedOf(state, p);
  const cutOff = (n: number): boolean =>
    // the model's own limit, not a stall
    t.nodes[n]!.busy?.kind === 'begin' && state.terms[p]!.admissions >= MAX_ADMISSIONS;
  const own = ownOf(state.terms[p]!);
  if (!mustCommit && own.some(({ n }) => cutOff(n))) return '';
  const allUp = own.every(({ at }) => isAdmitted(state.nodes[at]!.s));
  if (!allUp && !mustCommit) return ''; // its lease will expire and end it; then a fresh term leads
  // Another term has overtaken this term's re-admission of the node, which waits for a commit. Nothing tells this term
  // before its lease ends it.
  if (t.inflight && !mustCommit && t.nodes.some((track) => track.admission?.begun)) return '';
  // Another term's re-admission gave a node a new memory. This term lost that node's votes, and no refusal tells it
  // that it is fenced.
  if (t.inflight && !mustCommit && own.some(({ n, at }) => isReadmittedByOther(t, n, state.nodes[at]!.s))) return '';
  if (t.inflight) return `block ${t.inflight.block.hash} stays in flight`;
  if (mustCommit && t.committed.height < cfg.heights) return `it committed up to ${t.committed.height} only`;
  const up = own.filter(({ n }) => !cutOff(n));
  for (const { n, at } of up) {
    if (!isAdmitted(state.nodes[at]!.s)) return `node ${n + 1} is not admitted`;
    if (t.nodes[n]!.standing !== 'claimed') return `node ${n + 1} stays ${t.nodes[n]!.standing}: ${t.nodes[n]!.why}`;
    if (headers(state, own, at).join() !== headers(state, own, up[0]!.at).join())
      return `nodes differ: node ${n + 1} holds ${headers(state, own, at).join(' ') || 'nothing'}`;
  }
  return '';
}

/**
 * Whether too few nodes can help this term and nobody tells it. Fewer than a quorum can accept anything from it. At
 * least one of its nodes lost its memory or has another memory than the one that counts.
 */
function isLeftAlone(state: State, p: number): boolean {
  const { t } = state.terms[p]!;
  if (t.configuration === null) return false;
  const own = ownOf(state.terms[p]!).map(({ n, at }) => ({ s: state.nodes[at]!.s, named: t.nodes[n]!.named }));
  const counting = own.filter(({ s, named }) => isAdmitted(s) && s.record!.incarnation === named);
  const able = counting.filter(({ s }) => (s.epoch ?? 0) <= t.epoch);
  return counting.length < own.length && able.length < t.settings.quorum;
}

function isReadmittedByOther(t: TermState, n: number, s: MemoryNodeState): boolean {
  const { named } = t.nodes[n]!;
  return isAdmitted(s) && named !== null && s.record!.incarnation !== named && (s.epoch ?? 0) > t.epoch;
}

/** The members that the term knows, each with the server that it talks to. A stranger is left out. */
function ownOf(m: ModelTerm): { n: number; at: number }[] {
  const { configuration, settings } = m.t;
  return m.servers.flatMap((at, n) =>
    configuration === null || memberOf(configuration, settings.ids![n]!) ? [{ n, at }] : [],
  );
}

/** For each list that gets a quorum of votes: what a process knows after it has asked every node of its list. */
function wellInformed(cfg: ModelConfig, state: State): (Knowledge & { servers: readonly number[] })[] {
  return listsOf(cfg).flatMap(({ servers }, list) => {
    const [newest] = configurationsOn(servers.map((at) => state.nodes[at]!));
    return knowledgeOf(cfg, state.nodes)
      .filter((one) => one.list === list && sameVersion(one.configuration, newest ?? null))
      .map((one) => ({ ...one, servers }));
  });
}

function sameVersion(one: Configuration | null, other: Configuration | null): boolean {
  return versionCode(one) === versionCode(other);
}

/** Sorts the columns of interchangeable servers. All other columns keep their place. */
export function sortAlike(columns: [number, number][], alike: number): void {
  const sorted = columns.slice(0, alike).sort((x, y) => x[0] - y[0] || x[1] - y[1]);
  columns.splice(0, alike, ...sorted);
}

/**
 * Checks a repair at rest. It has written all that it can, and writes no more blocks, so it does not learn what others
 * did to a node since. So only the nodes that still belong to it are checked. They must be identical. No re-admission
 * of its own may be unfinished while a quorum of them can confirm its claim.
 */
function repairedOf(state: State, p: number): string {
  const { t } = state.terms[p]!;
  const { owner, quorum } = t.settings;
  if (t.inflight) return `block ${t.inflight.block.hash} stays in flight`;
  const all = ownOf(state.terms[p]!);
  const own = all.filter(({ n, at }) => {
    const { s } = state.nodes[at]!;
    return isAdmitted(s) && s.record!.claimant === owner && s.epoch === t.epoch && t.nodes[n]!.standing === 'claimed';
  });
  // the repair is not concerned with pending blocks above
  const settled = (at: number): string => headers(state, all, at).slice(0, t.committed.height).join(' ');
  for (const { n, at } of own)
    if (settled(at) !== settled(own[0]!.at))
      return `nodes differ: node ${n + 1} holds ${headers(state, all, at).join(' ') || 'nothing'}`;
  const undone = all.find(({ n, at }) => {
    const { record } = state.nodes[at]!.s;
    return record?.pendingOwner === owner && record.pendingEpoch === t.epoch && t.nodes[n]!.admission?.begun;
  });
  return undone && own.length >= quorum ? `node ${undone.n + 1} is not admitted` : '';
}

/** The entries of one node at the heights that all nodes retain. */
function headers(state: State, own: readonly { at: number }[], at: number): string[] {
  const floors = own.map((one) => state.nodes[one.at]!.s).map((s) => (isAdmitted(s) ? s.record!.floor : 0));
  const floor = Math.max(...floors);
  return state.nodes[at]!.s.entries.filter(({ height }) => height > floor).map(
    (entry) => `${entry.height}:${entry.hash}<${entry.parent}`,
  );
}

function expireLocks(cfg: ModelConfig, state: State, but: string): State {
  const next = new Next(cfg, state);
  state.nodes.forEach(({ s }, n) => {
    if (s.lock !== null && s.lock.owner !== but) next.node(n).lock = null;
  });
  return next.seal();
}

function delivered(cfg: ModelConfig, state: State, p: number, n: number): State {
  const next = new Next(cfg, state);
  const out = state.terms[p]!.out[n]!;
  next.deliver(p, n, out, out.held!);
  return next.seal();
}

function same(x: State, y: State, p: number): boolean {
  for (let n = 0; n < x.nodes.length; n++) {
    if (x.nodes[n]!.a !== y.nodes[n]!.a || x.nodes[n]!.b !== y.nodes[n]!.b) return false;
    if (x.terms[p]!.columnA[n] !== y.terms[p]!.columnA[n] || x.terms[p]!.columnB[n] !== y.terms[p]!.columnB[n])
      return false;
  }
  return x.terms[p]!.a === y.terms[p]!.a && x.terms[p]!.b === y.terms[p]!.b;
}

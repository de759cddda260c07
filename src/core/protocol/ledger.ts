// What the nodes' streams prove, height by height, and how far a follower may advance. This file only reads; it never
// decides what to write. A block is committed if the same (height, epoch, hash) is on q admitted nodes. It is also
// committed if a valid entry at the next height has its hash as parent (I5). At the head, copies of different epochs do
// not add up; below the head, copies are counted by hash. Unknown is never "empty". docs/PROTOCOL.md sections 3, 7 and
// 9.
import { enoughCopies, type Enough, type Shown } from './copies.js';
import { commits, mayBeCommitted, quorumOf } from './quorum.js';
import type { DamagedEntry, Epoch, Hash, Height, HeadFacts } from './types.js';

/** An entry without its payload. types.ts `Entry` fits. */
export interface LedgerEntry {
  height: Height;
  epoch: Epoch;
  hash: Hash;
  parent: Hash;
}

export type NodeLedger =
  /** The node gave no answer. */
  | { id: string; answered: false }
  | {
      id: string;
      answered: true;
      /**
       * 'unknown': entries were read, but nobody knows whether the node's memory is intact. The node counts for
       * nothing, and it may hold anything.
       */
      admitted: boolean | 'unknown';
      /**
       * null: not known. The facts and the entries were read at different moments. What lies beyond the entries read is
       * therefore unknown, not missing.
       */
      facts: HeadFacts | null;
      /** The node's epoch token, if it was read after the entries. An entry that is stamped above it is damage. */
      epoch?: Epoch;
      entries: readonly LedgerEntry[];
      damaged: readonly DamagedEntry[];
      /**
       * The heights that `entries` cover. Outside them nothing is known of this node. Absent: everything that it holds.
       */
      covers?: { from: Height; to: Height };
      /** The configuration that the node showed. Absent: none is known. Then every admitted node counts. */
      shown?: Shown | null;
    };

/** What one node has at one height. Only the cells of admitted nodes count. */
type Cell =
  | { is: 'copy'; hash: Hash; epoch: Epoch }
  /** Above the node's head. */
  | { is: 'absent' }
  /** At or below the node's floor. The hash is known only at the floor itself. */
  | { is: 'trimmed'; hash: Hash | null }
  /** Between the node's floor and head, but not there (I6 is broken). */
  | { is: 'missing' }
  | { is: 'damaged'; why: string }
  | { is: 'unknown' };

export type VerdictKind =
  | 'committed'
  | 'pending'
  | 'undetermined'
  | 'orphan'
  | 'conflict'
  | 'damaged'
  | 'missing'
  | 'trimmed'
  /** No block is there yet: the height is above every head, and the nodes without an answer are no quorum alone. */
  | 'empty';

export interface HeightVerdict {
  height: Height;
  verdict: VerdictKind;
  /** The committed block, or else the candidate with the most copies; null when there is none. */
  hash: Hash | null;
  /** The epoch of its commitment; 0 when only the commitment itself is known. Of a candidate: the epoch that counts. */
  epoch: Epoch;
  /** Every epoch its copies bear, ascending. */
  epochs: Epoch[];
  /**
   * The number of admitted nodes that hold the block. Below the head they count by hash; a pending block counts under
   * `epoch` only.
   */
  copies: number;
  n: number;
  holders: string[];
  /** Admitted nodes that answered and hold no copy of the block. Nodes that trimmed it are not among them. */
  lacking: string[];
  trimmed: string[];
  /** Nodes that gave no answer, or none about this height. */
  unknown: string[];
  /** Nodes that answered but are not admitted. They count for nothing. */
  leftOut: string[];
  /** Entries of other blocks at a height where a block is committed. */
  orphans: { node: string; hash: Hash; epoch: Epoch }[];
  damaged: { node: string; why: string }[];
  missing: string[];
  /** Every (hash, epoch) seen on admitted nodes, most copies first. */
  candidates: { hash: Hash; epoch: Epoch; nodes: string[] }[];
  /** The block is not proven committed. It would be, if the nodes hold it too that cannot be asked or believed. */
  mayBeCommitted: boolean;
  /** What proves the commitment. */
  evidence: 'quorum' | 'successor' | 'floor' | null;
  /** What contradicts what, when the verdict is a conflict. */
  why: string;
}

/**
 * One verdict per height, from `range.from` to `range.to` (inclusive), in order. `n` is the number of configured nodes;
 * `nodes` holds each node at most once.
 */
export function readLedger(
  nodes: readonly NodeLedger[],
  n: number,
  range: { from: Height; to: Height },
): HeightVerdict[] {
  const readings = nodes.map(readNode);
  const verdicts: HeightVerdict[] = [];
  const enough = enoughCopies(new Map(nodes.map((node) => [node.id, (node.answered && node.shown) || null])), n);
  const all = readings.map(({ id }) => id);
  const agreedUnder = new Map<Epoch, boolean>();
  const allAgree = (epoch: Epoch): boolean => {
    const known = agreedUnder.get(epoch) ?? enough(all, epoch);
    agreedUnder.set(epoch, known);
    return known;
  };
  for (let height = range.from; height <= range.to; height += 1)
    verdicts.push(agreed(height, readings, n, allAgree) ?? judge(height, readings, n, enough));
  return verdicts;
}

// One node

interface NodeReading {
  id: string;
  counts: boolean;
  answered: boolean;
  /** Every valid entry by height, highest epoch first. More than one breaks I6; they are still one vote. */
  valid: Map<Height, LedgerEntry[]>;
  damaged: Map<Height, string>;
  facts: HeadFacts | null;
  covers: { from: Height; to: Height };
  lowest: Height;
  highest: Height;
}

function readNode(node: NodeLedger): NodeReading {
  if (!node.answered) {
    return {
      id: node.id,
      counts: false,
      answered: false,
      valid: new Map(),
      damaged: new Map(),
      facts: null,
      covers: { from: 1, to: 0 },
      lowest: 0,
      highest: 0,
    };
  }
  const valid = new Map<Height, LedgerEntry[]>();
  const damaged = new Map<Height, string>();
  for (const bad of node.damaged) if (bad.height !== null) damaged.set(bad.height, bad.why);
  for (const entry of node.entries) {
    if (node.epoch !== undefined && entry.epoch > node.epoch) {
      damaged.set(entry.height, `its epoch ${entry.epoch} is above the node's ${node.epoch}`);
      continue;
    }
    const there = valid.get(entry.height);
    if (there === undefined) valid.set(entry.height, [entry]);
    else there.push(entry);
  }
  for (const [height, there] of valid) {
    there.sort((a, b) => b.epoch - a.epoch);
    if (there.some((entry) => entry.hash !== there[0]?.hash)) damaged.set(height, 'two blocks at one height');
  }
  breakLinks(valid, damaged, node.facts);
  const { lowest, highest } = boundsOf(valid);
  return {
    id: node.id,
    counts: node.admitted === true,
    answered: true,
    valid,
    damaged,
    facts: node.facts,
    covers: node.covers ?? { from: 0, to: Number.MAX_SAFE_INTEGER },
    lowest,
    highest,
  };
}

function boundsOf(valid: Map<Height, unknown>): { lowest: Height; highest: Height } {
  let lowest = Number.MAX_SAFE_INTEGER;
  let highest = 0;
  for (const height of valid.keys()) {
    lowest = Math.min(lowest, height);
    highest = Math.max(highest, height);
  }
  return { lowest, highest };
}

/**
 * A broken link inside one node says that one of the two entries is wrong, but not which one. So neither entry proves
 * anything.
 */
function breakLinks(valid: Map<Height, LedgerEntry[]>, damaged: Map<Height, string>, facts: HeadFacts | null): void {
  for (const [height, [entry]] of valid) {
    if (entry === undefined || damaged.has(height)) continue;
    if (facts !== null && height === facts.floor + 1 && entry.parent !== facts.floorHash) {
      damaged.set(height, 'its parent is not the block at the floor');
      continue;
    }
    const below = valid.get(height - 1);
    if (below === undefined || below.some((one) => one.hash === entry.parent)) continue;
    damaged.set(height, `its parent is not the block at height ${height - 1}`);
    if (!damaged.has(height - 1)) damaged.set(height - 1, `the block at height ${height} does not link to it`);
  }
}

function cellAt(node: NodeReading, height: Height): Cell {
  if (!node.answered || height < node.covers.from || height > node.covers.to) {
    return node.answered && node.facts !== null && height <= node.facts.floor
      ? floorCell(node.facts, height)
      : { is: 'unknown' };
  }
  const why = node.damaged.get(height);
  if (why !== undefined) return { is: 'damaged', why };
  const entry = node.valid.get(height)?.[0];
  if (entry !== undefined) return { is: 'copy', hash: entry.hash, epoch: entry.epoch };
  if (height > node.lowest && height < node.highest) return { is: 'missing' };
  if (node.facts === null) return { is: 'unknown' };
  if (height <= node.facts.floor) return floorCell(node.facts, height);
  // The node says that it holds this height, but the height was not read: the node grew or trimmed between the two
  // reads.
  return height > node.facts.head ? { is: 'absent' } : { is: 'unknown' };
}

function floorCell(facts: HeadFacts, height: Height): Cell {
  return { is: 'trimmed', hash: height === facts.floor ? facts.floorHash : null };
}

// One height

type Proof = { hash: Hash; epoch: Epoch; evidence: 'quorum' | 'successor' | 'floor' };

/**
 * A shortcut for nearly every height: all n nodes hold one block under one epoch, and nothing contradicts it. It
 * returns what `judge` would return. Null: `judge` must decide.
 */
function agreed(
  height: Height,
  nodes: readonly NodeReading[],
  n: number,
  allAgree: (epoch: Epoch) => boolean,
): HeightVerdict | null {
  const first = nodes[0]?.valid.get(height)?.[0];
  if (first === undefined || nodes.length !== n) return null;
  const { hash, epoch } = first;
  let successor = false;
  for (const node of nodes) {
    const there = node.valid.get(height);
    if (
      !node.counts ||
      there?.length !== 1 ||
      there[0]?.hash !== hash ||
      there[0].epoch !== epoch ||
      node.facts?.floor === height
    )
      return null;
    if (node.damaged.has(height) || height < node.covers.from || height > node.covers.to) return null;
    const above = node.valid.get(height + 1)?.[0];
    if ((above?.parent ?? hash) !== hash) return null;
    successor ||= above !== undefined && !node.damaged.has(height + 1);
  }
  const byCopies = allAgree(epoch);
  if (!byCopies && !successor) return null;
  const ids = nodes.map((node) => node.id);
  return {
    height,
    verdict: 'committed',
    hash,
    epoch: byCopies ? epoch : 0,
    epochs: [epoch],
    copies: n,
    n,
    holders: ids,
    lacking: [],
    trimmed: [],
    unknown: [],
    leftOut: [],
    orphans: [],
    damaged: [],
    missing: [],
    candidates: [{ hash, epoch, nodes: ids }],
    mayBeCommitted: false,
    evidence: byCopies ? 'quorum' : 'successor',
    why: '',
  };
}

function judge(height: Height, nodes: readonly NodeReading[], n: number, enough: Enough): HeightVerdict {
  const cells = nodes.map((node) => ({ node, cell: cellAt(node, height) }));
  const counted = cells.filter(({ node }) => node.counts);
  const ids = (of: typeof cells, is: Cell['is']): string[] =>
    of.filter(({ cell }) => cell.is === is).map(({ node }) => node.id);
  const candidates = candidatesAt(counted);
  const proofs = proofsAt(
    height,
    nodes.filter((node) => node.counts),
    candidates,
    n,
    enough,
  );
  const contradiction = contradictionAt(candidates, proofs);

  // A damaged node may have been one of the q. For the question "could it be committed?" it counts like a node that
  // gave no answer.
  const silent = n - counted.filter(({ cell }) => cell.is !== 'unknown' && cell.is !== 'damaged').length;
  const best = candidates[0];
  const base = {
    height,
    n,
    candidates,
    trimmed: ids(counted, 'trimmed'),
    unknown: cells
      .filter(({ node, cell }) => cell.is === 'unknown' && (!node.answered || node.counts))
      .map(({ node }) => node.id),
    leftOut: cells.filter(({ node }) => node.answered && !node.counts).map(({ node }) => node.id),
    damaged: counted.flatMap(({ node, cell }) => (cell.is === 'damaged' ? [{ node: node.id, why: cell.why }] : [])),
    missing: ids(counted, 'missing'),
    why: contradiction,
  };
  const proof = proofs[0];
  if (contradiction !== '' || proof === undefined) {
    const holders = best?.nodes ?? [];
    const unproven = {
      ...base,
      hash: best?.hash ?? null,
      epoch: best?.epoch ?? 0,
      epochs: epochsOf(candidates, best?.hash),
      copies: holders.length,
      holders,
      lacking: counted.filter(({ cell }) => isWithout(cell, best?.hash)).map(({ node }) => node.id),
      orphans: [],
      evidence: null,
      mayBeCommitted: mayBeCommitted(holders.length, silent, n),
    };
    const verdict = contradiction !== '' ? 'conflict' : unprovenKind(unproven, n - silent);
    return { ...unproven, verdict, mayBeCommitted: unproven.mayBeCommitted && verdict !== 'trimmed' };
  }
  const holders = counted
    .filter(({ cell }) => cell.is === 'copy' && cell.hash === proof.hash)
    .map(({ node }) => node.id);
  const orphans = counted.flatMap(({ node, cell }) =>
    cell.is === 'copy' && cell.hash !== proof.hash ? [{ node: node.id, hash: cell.hash, epoch: cell.epoch }] : [],
  );
  return {
    ...base,
    hash: proof.hash,
    epoch: proof.epoch,
    epochs: epochsOf(candidates, proof.hash),
    copies: holders.length,
    holders,
    orphans,
    lacking: counted.filter(({ cell }) => isWithout(cell, proof.hash)).map(({ node }) => node.id),
    evidence: proof.evidence,
    mayBeCommitted: false,
    verdict: holders.length > 0 ? 'committed' : orphans.length > 0 ? 'orphan' : committedElsewhere(base),
  };
}

/** The verdict for a committed height at which no node that counts shows the block itself. */
function committedElsewhere(base: { trimmed: string[]; damaged: unknown[]; missing: string[] }): VerdictKind {
  if (base.damaged.length > 0) return 'damaged';
  if (base.missing.length > 0) return 'missing';
  return base.trimmed.length > 0 ? 'trimmed' : 'committed';
}

function unprovenKind(
  v: {
    candidates: unknown[];
    trimmed: string[];
    damaged: unknown[];
    missing: string[];
    mayBeCommitted: boolean;
    n: number;
  },
  heard: number,
): VerdictKind {
  // Only committed blocks are trimmed. So the height is committed, although no answer says which block it holds.
  if (v.trimmed.length > 0 && v.candidates.length === 0) return 'trimmed';
  if (v.damaged.length > 0 && v.mayBeCommitted) return 'damaged';
  if (v.missing.length > 0 && v.candidates.length === 0) return 'missing';
  if (heard < quorumOf(v.n) && v.mayBeCommitted) return 'undetermined';
  if (v.candidates.length > 0) return 'pending';
  return 'empty';
}

/** Whether the node is known not to hold the block, under any epoch. */
function isWithout(cell: Cell, hash: Hash | undefined): boolean {
  return cell.is !== 'unknown' && cell.is !== 'trimmed' && !(cell.is === 'copy' && cell.hash === hash);
}

/**
 * Copies by (hash, epoch): each node has one vote. Of two candidates with equal votes the higher epoch comes first,
 * because a claimant would adopt that one.
 */
function candidatesAt(counted: { node: NodeReading; cell: Cell }[]): HeightVerdict['candidates'] {
  const found: HeightVerdict['candidates'] = [];
  for (const { node, cell } of counted) {
    if (cell.is !== 'copy') continue;
    const same = found.find((one) => one.hash === cell.hash && one.epoch === cell.epoch);
    if (same === undefined) found.push({ hash: cell.hash, epoch: cell.epoch, nodes: [node.id] });
    else same.nodes.push(node.id);
  }
  return found.sort((a, b) => b.nodes.length - a.nodes.length || b.epoch - a.epoch);
}

/**
 * Every block that is proven committed at this height, each once, the strongest evidence first. More than one is a
 * fork.
 */
function proofsAt(
  height: Height,
  counted: readonly NodeReading[],
  candidates: HeightVerdict['candidates'],
  n: number,
  enough: Enough,
): Proof[] {
  const proofs: Proof[] = [];
  const add = (proof: Proof): void => {
    if (!proofs.some((one) => one.hash === proof.hash)) proofs.push(proof);
  };
  for (const one of candidates)
    if (enough(one.nodes, one.epoch)) add({ hash: one.hash, epoch: one.epoch, evidence: 'quorum' });
  for (const one of doubledAt(height, counted, n)) add(one);
  for (const node of counted) {
    const above = node.damaged.has(height + 1) ? undefined : node.valid.get(height + 1)?.[0];
    if (above !== undefined) add({ hash: above.parent, epoch: 0, evidence: 'successor' });
  }
  for (const node of counted)
    if (node.facts?.floor === height) add({ hash: node.facts.floorHash, epoch: 0, evidence: 'floor' });
  return proofs;
}

/**
 * Nodes with two blocks at one height vote for neither. But if each of two blocks reached q nodes that way, both were
 * committed.
 */
function doubledAt(height: Height, counted: readonly NodeReading[], n: number): Proof[] {
  if (!counted.some((node) => (node.valid.get(height)?.length ?? 0) > 1)) return [];
  const nodesWith = new Map<string, { entry: LedgerEntry; nodes: Set<string> }>();
  for (const node of counted) {
    for (const entry of node.valid.get(height) ?? []) {
      const key = `${entry.epoch}/${entry.hash}`;
      const one = nodesWith.get(key) ?? { entry, nodes: new Set() };
      one.nodes.add(node.id);
      nodesWith.set(key, one);
    }
  }
  const reached = [...nodesWith.values()].filter((one) => commits(one.nodes.size, n)).map((one) => one.entry);
  if (new Set(reached.map((entry) => entry.hash)).size < 2) return [];
  return reached.sort((a, b) => a.epoch - b.epoch).map(({ hash, epoch }) => ({ hash, epoch, evidence: 'quorum' }));
}

function contradictionAt(candidates: HeightVerdict['candidates'], proofs: Proof[]): string {
  const [a, b] = proofs;
  if (a !== undefined && b !== undefined) return `two blocks are committed: ${short(a.hash)} and ${short(b.hash)}`;
  for (const one of candidates) {
    const other = candidates.find((two) => two.epoch === one.epoch && two.hash !== one.hash);
    if (other !== undefined) return `epoch ${one.epoch} has two blocks: ${short(one.hash)} and ${short(other.hash)}`;
  }
  return '';
}

function epochsOf(candidates: HeightVerdict['candidates'], hash: Hash | undefined): Epoch[] {
  return candidates
    .filter((one) => one.hash === hash)
    .map((one) => one.epoch)
    .sort((a, b) => a - b);
}

function short(hash: Hash): string {
  return hash.slice(0, 8);
}

// Following

/**
 * What a follower has read from one node: entries of its present incarnation, from the next height on. Drop them when
 * the incarnation changes.
 */
export interface FollowedNode {
  id: string;
  admitted: boolean;
  /** In any order. Heights at or below the follower's are ignored. */
  entries: readonly LedgerEntry[];
  /** The configuration that the node showed. Absent: none is known. Then every admitted node counts. */
  shown?: Shown | null;
}

export interface NewlyCommitted {
  height: Height;
  hash: Hash;
  /** 0 when only its commitment is known. */
  epoch: Epoch;
  /** Nodes that hold it, for fetching its payload. */
  holders: string[];
}

export type LedgerAnomaly =
  /**
   * Two blocks are committed at one height, or two blocks of one height bear the same epoch: an invariant is broken.
   */
  | { kind: 'conflict'; height: Height; why: string; nodes: string[] }
  /** The chain that the nodes prove does not continue the follower's chain. */
  | { kind: 'chain-mismatch'; height: Height; why: string; nodes: string[] }
  /** The next block is committed, but no node retains it: fetch it from a peer. */
  | { kind: 'not-retained'; height: Height; why: string; nodes: string[] };

/**
 * The blocks above (at.height, at.hash) that are now proven committed, in order and without a gap. It also returns the
 * anomalies found on the way.
 */
export function committedPrefix(
  nodes: readonly FollowedNode[],
  n: number,
  at: { height: Height; hash: Hash },
): { committed: NewlyCommitted[]; anomalies: LedgerAnomaly[] } {
  const committed: NewlyCommitted[] = [];
  const anomalies: LedgerAnomaly[] = [];
  const enough = enoughCopies(new Map(nodes.map(({ id, shown }) => [id, shown ?? null])), n);
  const readings = nodes.filter((node) => node.admitted).map((node) => readFollowed(node, at.height));
  let { height, hash } = at;
  for (;;) {
    const next = height + 1;
    // An entry proves its parent (I5). If it names another parent than my block, it contradicts my chain, even if the
    // entry itself is not committed.
    const foreign = readings.filter((node) => (node.valid.get(next)?.[0]?.parent ?? hash) !== hash);
    if (foreign.length > 0) {
      const why = `the block at height ${next} does not follow ${short(hash)}`;
      anomalies.push({ kind: 'chain-mismatch', height: next, why, nodes: foreign.map((node) => node.id) });
      break;
    }
    const cells = readings.map((node) => ({ node, cell: cellAt(node, next) }));
    const candidates = candidatesAt(cells);
    const proofs = proofsAt(next, readings, candidates, n, enough);
    const why = contradictionAt(candidates, proofs);
    if (why !== '') {
      anomalies.push({ kind: 'conflict', height: next, why, nodes: candidates.flatMap((one) => one.nodes) });
      break;
    }
    const proof = proofs[0];
    if (proof === undefined) {
      const beyond = readings.filter((node) => [...node.valid.keys()].some((known) => known > next + 1));
      if (candidates.length === 0 && beyond.length > 0) {
        anomalies.push({
          kind: 'not-retained',
          height: next,
          why: `no node shows height ${next}, though it is committed`,
          nodes: beyond.map((node) => node.id),
        });
      }
      break;
    }
    const holders = cells
      .filter(({ cell }) => cell.is === 'copy' && cell.hash === proof.hash)
      .map(({ node }) => node.id);
    if (holders.length === 0) {
      anomalies.push({
        kind: 'not-retained',
        height: next,
        why: `${short(proof.hash)} is committed at height ${next}, and no node shows it`,
        nodes: [],
      });
      break;
    }
    committed.push({ height: next, hash: proof.hash, epoch: proof.epoch, holders });
    height = next;
    hash = proof.hash;
  }
  return { committed, anomalies };
}

/**
 * A follower reads a node at several moments, and a head may have been superseded between them. Of two entries at one
 * height, the node now holds the one with the higher epoch. An entry that the next entry does not link to is gone,
 * because the node checked that link (I6).
 */
function readFollowed(node: FollowedNode, above: Height): NodeReading {
  const valid = new Map<Height, LedgerEntry[]>();
  for (const entry of node.entries) {
    if (entry.height <= above) continue;
    const there = valid.get(entry.height)?.[0];
    if (there === undefined || there.epoch < entry.epoch) valid.set(entry.height, [entry]);
  }
  for (const [height, [entry]] of [...valid].sort(([a], [b]) => b - a)) {
    const next = valid.get(height + 1)?.[0];
    if (next !== undefined && next.parent !== entry?.hash) valid.delete(height);
  }
  return {
    id: node.id,
    counts: true,
    answered: true,
    valid,
    damaged: new Map(),
    facts: null,
    covers: { from: 0, to: Number.MAX_SAFE_INTEGER },
    ...boundsOf(valid),
  };
}

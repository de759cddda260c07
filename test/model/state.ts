// What is one state of the exhaustive model? N nodes (the in-memory twin), the terms so far (the state of the
// production reducer), the network, and all that anybody has taken as committed. States share the parts that did not
// change. Ids, times and reasons do not count when two states are compared.
// The model uses these reductions. Each keeps every violation reachable:
// 1. The network is the set of all calls ever sent to a node. Any of them may run at any time, any number of times.
//    This covers late, repeated and reordered calls. A call is dropped when it can never change the node again (epochs
//    only rise, unless a node loses its memory).
// 2. A reply arrives together with the run of its call, or never. The term may be told `unknown` at any time, before or
//    after the run. "Ran, reply lost" is a late run, then `unknown`. A slow reply is the same as a slow term. The order
//    in which a term hears of two nodes matters only where it leaves a straggler behind. `unknown` and the grace tick
//    cover that. `heldReplies` switches this reduction off, for small spaces.
// 3. A term that pauses is one that gets no moves. A term whose lease deadline passes pauses for ever.
// 4. A lock may expire at any moment: a promotion may always take it. To a term, the refusal LOCK_HELD is the same as
//    no answer. In addition, up to `expiries` locks expire without a promotion, so that leaders lose and regain nodes.
//    release_lock counts as an expiry.
// 5. The pre-vote names every admitted node with its epoch at that moment. Fewer votes are the same as promotions that
//    never ran.
// 6. To its term, a refused promotion is the same as an unknown one that did not run.
// 7. The second and third try of a claim are given up together with the first. In between, only the number of tries
//    left differs.
// 8. A term begins at most MAX_ADMISSIONS re-admissions. The model renames their nonces in the order of use. The
//    producer and the local store answer at once (`lazyProposals` lets the producer take its time).
// 9. Nodes are interchangeable: states that differ by a permutation of nodes are one state. Terms start in the order of
//    their numbers.
// 10. A term that has ended leaves its calls on the network and its epoch (I1). If it ended to be renewed, it also
//    leaves its store.
// 11. Terms are interchangeable, too (`sameTerms`): their names are only compared for equality. States that differ by a
//    renaming of terms, with their tokens, blocks and nonces, are one state.
// 12. A term that promotes or claims gives up on no node (`patient`), except the stragglers that it leaves behind once
//    a quorum has answered. An earlier end changes nothing: if the quorum answers, both paths meet. If the term ends,
//    it is to all others like a term that pauses for ever.
// 13. A repair that is done steps down and releases its locks. This is the same as a repair that pauses for ever and
//    whose locks expire.
// 14. Once the bound on late runs is used up, the network can have no effect, and is dropped.
// 15. A process may have probed any server at any time. So a term begins under any configuration that a server knows,
//    with the votes of the nodes that know no later one (members.ts). Ids without a twin are interchangeable. What a
//    configuration says about a node goes into the fingerprint of that node. The fingerprint of its holder has the
//    version only.
import {
  cloneNodeState,
  emptyNodeState,
  newNodeState,
  type MemoryNodeState,
  type Mutant,
} from '../support/memory-node.js';
import { parseConfiguration } from '../../src/core/protocol/configuration.js';
import type { Block, NodeCall, NodeReply } from '../../src/core/protocol/types.js';
import type { LocalChain, TermSettings, TermState } from '../../src/core/protocol/term-state.js';
import { Hasher } from './fingerprints.js';
import { firstText, isAdmitted, listsOf, serverIds, versionCode, type Knowledge } from './members.js';

export { isAdmitted };

const CLUSTER = 'model.1';
export const GENESIS = 'g';
export const IDENTITY = { cluster: CLUSTER, genesis: GENESIS };

/** A rule of a term or a reader that is broken on purpose. `mutant` breaks rules of a node. */
type Variation =
  | ''
  /** The claim only reads: it raises no epoch and asks for no lock. */
  | 'plain-read'
  /** A claim also goes to nodes whose promotion was not acknowledged, where the lock is free. */
  | 'wide-claim'
  /** A reader adds up copies of a head from different epochs. */
  | 'mixed-epochs'
  /** A term re-admits a node without asking q others whether it still leads. */
  | 'unconfirmed-admission'
  /** A reader also counts copies on nodes that are not admitted. */
  | 'unadmitted-copies'
  /** A repair adopts the block that a person chose, even against a block of an epoch that the person never saw. */
  | 'choice-stands'
  /** Accepted writes prove an admission as well, and nothing is noted before the next block. */
  | 'proof-by-writes'
  /** The node that is being re-admitted counts among the nodes that have noted its new memory. */
  | 'note-on-self'
  /** A term counts a node whatever memory it answers with. */
  | 'any-memory'
  /** A term counts by the list of nodes that its process was started with. */
  | 'own-list'
  /** Two members leave at once. */
  | 'two-at-a-time'
  /** A term goes on under the changed set of members. */
  | 'resize-in-term'
  /** A reader counts by the configuration that a holder knows now, even if a later term made it. */
  | 'later-count'
  /** A term brings a change of its own with its claim: the first member is gone. */
  | 'joint-claim';

export interface ModelConfig {
  name: string;
  /** Member ids. Each has one server. Twins and strangers are further servers. */
  nodes: number;
  /** The nodes know a configuration. Only in clusters made by version 0.1.0 they know none. */
  configured: boolean;
  /** 1: a second, empty server answers for the last id, and every new term talks to one of the two. */
  twins: 0 | 1;
  /** A process may have a stranger in its list of nodes, or may name the last node only. */
  otherLists: boolean;
  terms: number;
  /** How often an operator may ask a leader to add a server or to remove a member. */
  resizes: number;
  /** Blocks are proposed up to this height. */
  heights: number;
  wipes: number;
  /** How often a leader may be told that a claimed node is damaged, although the node takes itself for intact. */
  damages: number;
  /** Locks that may expire on their own: see reduction 4. */
  expiries: number;
  /** How many terms may be repairs: quiet terms, which propose nothing of their own. */
  repairs: number;
  /** How often an operator may ask a leader to try a quarantined node again. */
  fixes: number;
  /** How many blocks the nodes retain. 0 = all. */
  window: number;
  /**
   * How often a node may come back with an earlier state: it restarted, or was a replica of another server for a while.
   * Each path has at most one snapshot of one node.
   */
  rollbacks: number;
  /**
   * Before the first term, nodes 1 and 2 hold different blocks of height 1 and of one epoch (I2 is broken). A repair
   * has chosen the block of node 1.
   */
  conflict: boolean;
  /**
   * How many epochs an operator may raise. The new epoch is one above the node's, or one above the highest anywhere. It
   * is for the holder of the lock, or for nobody.
   */
  raises: number;
  /** How many late runs a path may have. Infinity = no bound. */
  strays: number;
  /** How many calls the terms may give up in a path. Infinity = no bound. */
  giveUps: number;
  /** A follower's store may also be empty at the start. Otherwise it holds all that is known to be committed. */
  staleStores: boolean;
  lazyProposals: boolean;
  heldReplies: boolean;
  /** States that differ only by the names of the terms are one state (reduction 11). */
  sameTerms: boolean;
  /**
   * A term that promotes or claims gives up no call, except those of the stragglers that it leaves behind (reduction
   * 12).
   */
  patient: boolean;
  mutant: Mutant;
  variation: Variation;
}

export const BASE: ModelConfig = {
  name: '',
  nodes: 3,
  configured: true,
  twins: 0,
  otherLists: false,
  resizes: 0,
  terms: 2,
  heights: 1,
  wipes: 0,
  damages: 0,
  expiries: 0,
  repairs: 0,
  fixes: 0,
  window: 0,
  rollbacks: 0,
  conflict: false,
  raises: 0,
  strays: Infinity,
  giveUps: Infinity,
  staleStores: true,
  lazyProposals: false,
  heldReplies: false,
  sameTerms: true,
  patient: true,
  mutant: {},
  variation: '',
};

export interface StoredBlock extends Block {
  epoch: number;
}

/** A call that a term waits for. */
export interface Outstanding {
  id: number;
  kind: 'call' | 'backfill' | 'read';
  key: number;
  /** Not set for reads. */
  call?: NodeCall;
  from: number;
  to: number;
  /** The reply of a call that has run and has not arrived yet (heldReplies). */
  held?: NodeReply<unknown>;
}

export interface NetCall {
  term: number;
  key: number;
  call: NodeCall;
}

export interface ModelNode {
  /** The id that the server answers for. */
  id: string;
  s: MemoryNodeState;
  /** The reply to inspect. */
  view: NodeReply<unknown> | undefined;
  a: number;
  b: number;
}

export interface Network {
  calls: readonly NetCall[];
  a: number;
  b: number;
}

export interface ModelTerm {
  t: TermState;
  /** For each track: the server that its process talks to. */
  servers: readonly number[];
  out: (Outstanding | null)[];
  /** The local store. Block h is at index h − 1. */
  store: StoredBlock[];
  /** The epoch under which the term claimed a quorum. 0 = it has not. */
  claimedEpoch: number;
  /**
   * The highest epoch under which a quorum had been claimed when this term began. The epoch of this term must be higher
   * (I1).
   */
  mustExceed: number;
  /** The height that the producer was asked for and has not answered (lazyProposals). 0 = none. */
  ready: number;
  /** The term ended to be renewed, and no term has followed it yet. */
  renewable: boolean;
  /** How many re-admissions have begun. Their number is part of the nonces, and MAX_ADMISSIONS is the limit. */
  admissions: number;
  /** Fingerprints. `a` and `b`: what concerns no single node. The columns: what concerns each server. */
  a: number;
  b: number;
  columnA: number[];
  columnB: number[];
}

export interface State {
  nodes: ModelNode[];
  nets: Network[];
  terms: ModelTerm[];
  /** For each height (from 1): the hash that somebody has taken as committed, or ''. */
  agreed: string[];
  wipes: number;
  damages: number;
  expiries: number;
  raises: number;
  fixes: number;
  rollbacks: number;
  resizes: number;
  /** A snapshot of one node. */
  saved: { n: number; node: ModelNode } | null;
  strays: number;
  giveUps: number;
  violation: string;
}

export function ownerOf(term: number): string {
  return `s${term + 1}/${term + 1}`;
}

export function hashOf(term: number, height: number): string {
  return `${term + 1}.${height}`;
}

const EMPTY = new Uint8Array(0);
const blocks = new Map<string, Block>();

/** Blocks are shared: (term, height, parent) names one block. */
export function blockOf(term: number, height: number, parent: string): Block {
  const name = `${term}.${height}<${parent}`;
  let block = blocks.get(name);
  if (!block) {
    block = { height, hash: hashOf(term, height), parent, timestamp: 0, data: EMPTY };
    blocks.set(name, block);
  }
  return block;
}

export function settingsOf(
  cfg: ModelConfig,
  term: number,
  { list, configuration, quorum }: Knowledge,
  quiet: boolean,
  previousOwner?: string,
): TermSettings {
  const { ids } = listsOf(cfg)[list]!;
  return {
    ...(quiet
      ? {
          quiet,
          ...(cfg.conflict
            ? { chosen: { block: blockOf(CHOSEN, 1, GENESIS), over: cfg.variation === 'choice-stands' ? Infinity : 1 } }
            : {}),
        }
      : {}),
    owner: ownerOf(term),
    ...(previousOwner ? { previousOwner } : {}),
    nodes: ids.length,
    quorum,
    ...(configuration === null ? {} : { configuration }),
    ids,
    ttlMs: Infinity,
    usableLeaseMs: 1e12,
    nodeTimeoutMs: 1,
    graceMs: 1,
    retryMs: 0,
    regainMs: 0,
    renewNotBefore: [],
    maxAdopt: 1000,
    readmit: cfg.wipes > 0 || cfg.damages > 0 || cfg.rollbacks > 0 || cfg.twins > 0 || cfg.resizes > 0,
  };
}

/**
 * The retained range as production keeps it: exactly the newest blocks, and never past last committed − 1
 * (`local-chain.ts`).
 */
export function chainOf(store: readonly StoredBlock[], window: number): LocalChain {
  const hashAt = (height: number): string | undefined => (height === 0 ? GENESIS : store[height - 1]?.hash);
  return {
    head: () => {
      const last = store.at(-1);
      return last ? { height: last.height, hash: last.hash, timestamp: 0 } : { height: 0, hash: GENESIS, timestamp: 0 };
    },
    hashAt,
    trimFor: (next) => {
      const to = window === 0 ? 0 : Math.min(store.length - (window - 1), next.height - 2);
      const hash = to > 0 ? hashAt(to) : undefined;
      return hash === undefined ? undefined : { to, hash };
    },
    retainedFloor: () => {
      const height = window === 0 ? 0 : Math.max(0, Math.min(store.length - window, store.length - 1));
      return { height, hash: hashAt(height) ?? GENESIS };
    },
  };
}

export function initialState(cfg: ModelConfig): State {
  return {
    nodes: serverIds(cfg).map((id, n) => sealNode(firstNode(cfg, n), id)),
    nets: serverIds(cfg).map(() => sealNetwork([])),
    terms: [],
    agreed: new Array<string>(cfg.heights + 1).fill(''),
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
}

/** Terms before the first one (`conflict`). Their blocks carry the same epoch. */
const CHOSEN = 7;
const OTHER = 8;
export const RIVALS: readonly string[] = [hashOf(CHOSEN, 1), hashOf(OTHER, 1)];

/** Server n before anything has happened. */
export function firstNode(cfg: ModelConfig, n: number): MemoryNodeState {
  if (n >= cfg.nodes) return emptyNodeState('run');
  const s = newNodeState(serverIds(cfg)[n]!, CLUSTER, GENESIS, 'run', 'boot', firstText(cfg));
  if (!cfg.conflict) return s;
  s.epoch = 1;
  s.record!.claimant = ownerOf(n === 0 ? CHOSEN : OTHER);
  if (n > 1) return s;
  const block = blockOf(n === 0 ? CHOSEN : OTHER, 1, GENESIS);
  s.entries = [{ ...block, epoch: 1, owner: s.record!.claimant, damage: '' }];
  Object.assign(s.record!, { head: 1, headEpoch: 1, headHash: block.hash });
  return s;
}

/**
 * A node that comes back with an earlier state. Only the second half of its run identity differs (the replication id),
 * because a server that was a replica for a while never restarted.
 */
export function rolledBack(earlier: MemoryNodeState): MemoryNodeState {
  const s = cloneNodeState(earlier);
  s.runId = 'run+2';
  return s;
}

export const MAX_ADMISSIONS = 2;

/**
 * An operator's raise_epoch. Form 0 and 1 go above this node's epoch, form 2 and 3 above all. The odd forms are for the
 * holder of the lock, the even ones for nobody.
 */
export function raiseOf(
  form: number,
  s: MemoryNodeState,
  highestSeen: number,
): Extract<NodeCall, { script: 'raise_epoch' }> | null {
  const own = s.epoch ?? 0;
  const forHolder = form % 2 === 1;
  const value = (form < 2 ? own : highestSeen) + 1;
  if ((form >= 2 && own === highestSeen) || (forHolder && s.lock === null)) return null;
  return {
    script: 'raise_epoch',
    value,
    highestSeen,
    mayDepose: true,
    ...(forHolder ? { ofOwner: s.lock!.owner } : {}),
  };
}

// --- identity

const hasher = new Hasher();

const OWN_NAMES: readonly number[] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9];
let names = OWN_NAMES;

/**
 * Within `during`, fingerprints see term k (from 1) under the name given[k]. This works because terms are
 * interchangeable.
 */
export function named<T>(given: readonly number[], during: () => T): T {
  names = given;
  try {
    return during();
  } finally {
    names = OWN_NAMES;
  }
}

/**
 * Small numbers for hashes, owners and nonces. Hashes: 'g' 0, '2.1' 17, '' 255. Owners: 's2/t' 2. Nonces, as the model
 * renames them: 'boot' 1, 'n2.0' 18.
 */
export function code(hash: string): number {
  if (hash === '') return 255;
  return hash === GENESIS ? 0 : names[hash.charCodeAt(0) - 48]! * 8 + hash.charCodeAt(2) - 48;
}

function ownerCode(owner: string | undefined): number {
  return owner ? names[owner.charCodeAt(1) - 48]! : 0;
}

function nonceCode(nonce: string): number {
  if (nonce === '') return 0;
  return nonce === 'boot' ? 1 : names[nonce.charCodeAt(1) - 48]! * 8 + nonce.charCodeAt(3) - 48 + 2;
}

const SCRIPT_CODES: Partial<Record<NodeCall['script'], number>> = {
  rebase: 0,
  promote_leader: 1,
  claim: 2,
  write_block: 3,
  inspect: 4,
  admit: 5,
  begin_admission: 6,
  backfill: 7,
};

/** One number for each call that a term can send. */
export function keyOf(term: number, call: NodeCall): number {
  let rest = 0;
  let config: string | undefined;
  switch (call.script) {
    case 'promote_leader':
      rest = call.expectedEpoch;
      break;
    case 'claim':
      rest = call.epoch * 2 + (call.acquireTtlMs === undefined ? 0 : 1);
      config = call.config;
      break;
    case 'write_block':
      rest =
        (call.trim?.to ?? 0) * 2 ** 26 +
        (code(call.block.hash) * 64 + code(call.block.parent)) * 32 +
        call.entryEpoch * 2 +
        (call.mode === 'repair' ? 1 : 0);
      break;
    case 'rebase':
      rest = call.floor * 256 + code(call.floorHash);
      break;
    case 'begin_admission':
      rest =
        call.floor * 2 ** 17 +
        attemptOf(call.nonce) +
        (call.replaces === undefined ? 0 : 8) +
        (call.resume ? (code(call.resume.hash) * 16 + call.resume.head) * 16 : 0);
      config = call.config;
      break;
    case 'backfill':
      rest = (code(call.block.hash) * 64 + code(call.block.parent)) * 64 + call.entryEpoch * 4 + attemptOf(call.nonce);
      break;
    case 'admit':
      rest = code(call.headHash) * 8 + attemptOf(call.nonce);
      break;
    default:
      break;
  }
  const version = config ? versionCode(parseConfiguration(config)) : 0;
  return version * 2 ** 32 + ((names[term + 1]! - 1) * 8 + SCRIPT_CODES[call.script]!) * 2 ** 20 + rest;
}

function addKey(h: Hasher, key: number): Hasher {
  return h.add(key % 2 ** 32).add(Math.floor(key / 2 ** 32));
}

function attemptOf(nonce: string): number {
  return nonce.charCodeAt(3) - 48;
}

const known = new Map<string, ModelNode>();

/** One object for each distinct node: there are far fewer distinct nodes than states. */
export function sealNode(s: MemoryNodeState, id: string): ModelNode {
  const { a, b } = printNode(s);
  // The fingerprint has neither the id of the node nor the text of its configuration, so the key needs both.
  const key = `${id} ${a} ${b} ${s.record?.config ?? ''}`;
  let node = known.get(key);
  if (!node) {
    node = { id, s, view: undefined, a, b };
    known.set(key, node);
  }
  return node;
}

/** The fingerprint of a node, in the hasher that it returns. */
export function printNode(s: MemoryNodeState): Hasher {
  const h = hasher.reset(s.runId === 'run' ? 1 : 11);
  const r = s.record;
  h.add(ownerCode(s.lock?.owner)).add(s.epoch ?? 255);
  if (r === null) h.add(99);
  else {
    if (r.run !== s.runId) h.add(98);
    if (r.floor > 0) h.add(r.floor + 2000).add(code(r.floorHash));
    h.add(ownerCode(r.claimant)).add(nonceCode(r.incarnation)).add(nonceCode(r.pending));
    h.add(versionCode(parseConfiguration(r.config)));
    if (r.pending !== '') h.add(ownerCode(r.pendingOwner)).add(r.pendingEpoch);
    for (const nonce of r.usedNonces) h.add(nonceCode(nonce) + 100);
  }
  for (const entry of s.entries)
    h.add(entry.epoch)
      .add(code(entry.hash))
      .add(code(entry.parent) + 1000);
  return h.finish();
}

export function sealNetwork(calls: readonly NetCall[]): Network {
  let a = 0;
  let b = 0;
  for (const { key } of calls) {
    // A sum, because the order of calls does not matter.
    const print = printCall(key);
    a = (a + print.a) | 0;
    b = (b + print.b) | 0;
  }
  return { calls, a, b };
}

export function printCall(key: number): Hasher {
  return addKey(hasher.reset(2), key).finish();
}

/**
 * What a configuration says about each id, as fingerprints to add to those of the servers with that id. The fingerprint
 * of the holder has the version, and a version has one text within a history. So both together identify the
 * configuration. null: the configuration that all nodes knew at the start.
 */
export function printNames(text: string, ids: readonly string[]): { a: number[]; b: number[] } | null {
  const configuration = parseConfiguration(text);
  const version = versionCode(configuration);
  if (version === 0) return null;
  const prints = ids.map((id) => {
    const memory = configuration!.members.find((member) => member.id === id)?.memory;
    const { a, b } = hasher
      .reset(12)
      .add(version)
      .add(memory === undefined ? 251 : nonceCode(memory))
      .finish();
    return { a, b };
  });
  return { a: prints.map(({ a }) => a), b: prints.map(({ b }) => b) };
}

export function configOf(call: NodeCall): string {
  return ('config' in call ? call.config : undefined) ?? '';
}

const PHASES = { promoting: 1, claiming: 2, adopting: 3, settling: 4, leading: 5, ended: 6 } as const;
const STANDINGS = { promoting: 1, promoted: 2, claimed: 3, unclaimed: 4, quarantined: 5 } as const;
const KINDS = {
  promote: 1,
  claim: 2,
  regain: 3,
  inspect: 4,
  read: 5,
  write: 6,
  backfill: 7,
  rebase: 8,
  begin: 9,
  learn: 10,
  admit: 11,
  prove: 12,
  extend: 13,
} as const;

/** Calls whose reply says which configuration the node has noted. */
const CLAIMS = new Set(['claim', 'regain', 'prove']);

/** Computes the fingerprints of a term. They cover only what can still make a difference. */
export function sealTerm(m: ModelTerm): void {
  const { t } = m;
  const h = hasher.reset(3);
  h.add(PHASES[t.phase])
    .add(m.claimedEpoch)
    .add(m.mustExceed)
    .add((m.renewable ? 1 : 0) + (t.settings.quiet ? 2 : 0));
  if (t.phase === 'ended') {
    if (m.renewable) for (const block of m.store) h.add(code(block.hash)).add(block.epoch);
    h.finish();
    m.a = h.a;
    m.b = h.b;
    m.columnA.fill(0);
    m.columnB.fill(0);
    return;
  }
  h.add(ownerCode(t.settings.previousOwner))
    .add(t.epoch)
    .add(t.graceUntil === Infinity ? 0 : 1)
    .add(m.ready);
  h.add(t.committed.height)
    .add(code(t.committed.hash))
    .add(t.phase === 'settling' ? t.settleTo : 0);
  h.add(t.inflight ? code(t.inflight.block.hash) * 2 + (t.inflight.repair ? 1 : 0) : 254);
  if (t.adopt) {
    h.add(t.adopt.height + 50);
    for (const candidate of t.adopt.candidates)
      h.add(code(candidate.hash)).add(candidate.epoch === Infinity ? 253 : candidate.epoch);
  }
  for (const block of m.store) h.add(code(block.hash)).add(block.epoch + 300);
  h.add(m.admissions).add(t.gateUntil === null ? 0 : 1);
  h.add(versionCode(t.configuration)).add(t.nextTurn);
  if (t.change) h.add(t.change.next ? 2 : 1);
  h.finish();
  m.a = h.a;
  m.b = h.b;
  m.columnA.fill(0);
  m.columnB.fill(0);
  for (let n = 0; n < m.out.length; n++) {
    const track = t.nodes[n]!;
    const c = hasher.reset(4);
    c.add(STANDINGS[track.standing]).add(t.phase === 'promoting' ? track.promotedEpoch : 0);
    c.add((track.fenced ? 1 : 0) + (track.wantsRenewal ? 2 : 0) + (t.inflight && t.inflight.ackedAt[n]! >= 0 ? 4 : 0));
    const out = m.out[n];
    if (track.busy)
      addKey(
        c.add(KINDS[track.busy.kind]),
        !out ? 77 : names === OWN_NAMES || !out.call ? out.key : keyOf(t.settings.owner.charCodeAt(1) - 49, out.call),
      );
    c.add(nonceCode(track.named ?? ''));
    if (t.change && 'id' in t.change.change && t.change.change.id === t.settings.ids![n])
      c.add(700 + (t.change.candidate === n ? 1 : 0));
    c.add(
      (track.unnoted ? 1 : 0) + (CLAIMS.has(track.busy?.kind ?? '') && track.busy!.id < t.configurationFrom ? 2 : 0),
    );
    if (out?.held) c.add(replyCode(out.held));
    if (track.standing === 'claimed' || track.standing === 'promoted') c.add(nonceCode(track.incarnation));
    if (track.standing === 'claimed') {
      c.add(track.head)
        .add(code(track.headHash))
        .add((track.stampOwnEpoch ? 1 : 0) + track.floor * 2);
      if (t.phase === 'claiming' || t.phase === 'adopting') c.add(track.headEpoch + 20);
    }
    if (t.phase === 'adopting') {
      c.add(track.failures);
      t.adopt?.candidates.forEach((candidate, i) => c.add(candidate.nodes.includes(n) ? i + 600 : 599));
    }
    const { admission, damage } = track;
    if (damage) c.add(nonceCode(damage.incarnation) + 500).add(damage.counts ? 1 : 0);
    if (admission)
      c.add(nonceCode(admission.nonce))
        .add(admission.begun ? 1 : 0)
        .add(admission.begun ? admission.head : admission.floor);
    for (const other of t.nodes) {
      // For an admission or a damage report of another node: what node n has proven, and what its call under way would
      // prove.
      if (other.admission?.begun)
        c.add(
          ((other.admission.proof >> n) & 1) +
            (track.busy && track.busy.id >= other.admission.provesFrom ? 2 : 0) +
            800,
        );
      if (other.damage)
        c.add(((other.damage.proof >> n) & 1) + (track.busy && track.busy.id >= other.damage.provesFrom ? 2 : 0) + 900);
    }
    c.finish();
    m.columnA[m.servers[n]!] = c.a;
    m.columnB[m.servers[n]!] = c.b;
  }
}

function replyCode(reply: NodeReply<unknown>): number {
  const text = JSON.stringify(reply);
  let h = 0;
  for (let i = 0; i < text.length; i++) h = (Math.imul(h, 31) + text.charCodeAt(i)) | 0;
  return h;
}

// What would a repair write on which node, who may write it, and what cannot be decided (docs/PROTOCOL.md section 9)?
// Pure: evidence in, plan out. A proven block is never given up. Where an invariant is broken, only a person decides,
// block by block. A node that did not answer stays as it is. A block is written to a free node only when it is proven,
// or when the next term must adopt it.
import type { ErrorCode } from '../error-codes.js';
import { createHash } from 'node:crypto';
import { quorumOf } from '../config.js';
import { EXIT, SeqError } from '../errors.js';
import { NO_TERM_MADE_IT } from '../protocol/configuration.js';
import { MAX_EPOCH_LEAP, type Epoch, type Hash, type Height, type NodeView } from '../protocol/types.js';
import type { ClusterView, Finding, LeaderRow } from '../view/cluster-view.js';
import { saidByAll, standstill } from '../view/standstill.js';
import { mark, type EvidenceNode, type RepairEvidence } from './evidence.js';
import type { Contest, Copy } from './scan.js';
import { refuseSilentStores, type SilentStores } from './store-copies.js';

type StepKind =
  /** Committed blocks that it lacks. */
  | 'backfill'
  /** The same, from a new floor: its blocks are below the retained range. */
  | 'rebase'
  /** An uncommitted head gives way; it is kept in the node's orphans. */
  | 'supersede'
  /** A pending head is proposed again under a new epoch. */
  | 'settle'
  /** Its stream is damaged: set aside, filled anew, admitted. */
  | 'replace'
  /** It lost its memory: filled anew, admitted. */
  | 'readmit';

type StepClass = 'under-replicated' | 'pending' | 'orphaned' | 'missing' | 'divergent' | 'forgotten';

export interface RepairStep {
  node: string;
  kind: StepKind;
  class: StepClass;
  from: Height;
  to: Height;
  blocks: number;
  /** Sentences: what is written, what is removed and where it is kept, and why. */
  writes: string;
  removes: string;
  why: string;
  /** The incarnation that the step was planned for. Another one is not touched. */
  incarnation: string;
}

export interface Undecidable {
  node: string;
  height: Height | null;
  class: 'silent' | 'foreign' | 'by-hand' | 'conflict' | 'missing' | 'outnumbered';
  why: string;
  copies: Copy[];
  stores: { store: string; hash: Hash | null; why: string }[];
  next: string[];
}

export type Hand =
  | { by: 'leader'; leader: LeaderRow }
  /** A term of this command; `nodes` may be promoted. */
  | { by: 'own-term'; nodes: { id: string; epoch: Epoch }[] }
  | { by: 'nobody'; code: ErrorCode; why: string; next: string[]; retryable: boolean };

export interface RepairPlan {
  digest: string;
  cluster: string;
  hand: Hand;
  /** The head that every node will hold. With a leader it moves on. */
  goal: { height: Height; hash: Hash };
  /** Blocks that a person chose, by height. */
  chosen: { height: Height; hash: Hash; holders: string[] }[];
  steps: RepairStep[];
  undecidable: Undecidable[];
  /** Why nothing can be committed, whatever the streams hold. null when somebody leads, or may lead at any moment. */
  standstill: Finding | null;
}

export interface RepairWish extends SilentStores {
  /** Hashes, or their first digits. */
  choose: readonly string[];
  target: string;
}

export function planRepair(evidence: RepairEvidence, wish: RepairWish): RepairPlan {
  const { view, nodes, top, floor } = evidence;
  const chosen = chooseBlocks(evidence, wish);
  const undecidable: Undecidable[] = [];
  const replaced = new Map<string, { height: Height; why: string }>();
  let goal = top;
  let blocked = false;
  for (const contest of evidence.contests) {
    const mine = chosen.find((one) => one.height === contest.height);
    const atHead = nodes.every(
      (node) => node.view === null || node.view.admission !== 'admitted' || node.view.head <= contest.height,
    );
    if (contest.kind === 'conflict' && mine === undefined) {
      undecidable.push(undecided(contest, evidence, wish));
      blocked ||= atHead;
      continue;
    }
    const hash = mine?.hash ?? winner(contest).hash;
    if (atHead && view.leader === null) {
      goal = { height: contest.height, hash };
      continue;
    }
    for (const copy of contest.copies) {
      if (copy.hash !== hash)
        for (const id of copy.nodes)
          replaced.set(id, {
            height: contest.height,
            why: `it holds ${copy.hash.slice(0, 8)} at height ${contest.height}, ${hash.slice(0, 8)} was chosen`,
          });
    }
  }
  for (const height of evidence.nowhere) {
    undecidable.push({
      node: '',
      height,
      class: 'missing',
      why: `height ${height} is committed, and no node that answered holds it: a sequencer's store must have it`,
      copies: [],
      stores: [],
      next: [`seq stream tail --from ${height} --to ${height} ${wish.target}`.trim()],
    });
  }

  const steps: RepairStep[] = [];
  for (const node of nodes) {
    const open = openQuestion(node, view, wish) ?? writtenByHand(node, view);
    if (open !== null) undecidable.push(open);
    else {
      const step = stepFor(node, {
        quorum: view.quorum,
        goal,
        floor,
        leads: view.leader !== null,
        replaced: replaced.get(node.id),
        contests: evidence.contests,
      });
      if (step !== null) steps.push(step);
    }
  }
  const distrusted = new Set(steps.filter((step) => step.kind === 'replace').map((step) => step.node));
  const trusted = nodes.filter((node) => node.view?.admission === 'admitted' && !distrusted.has(node.id));
  if (distrusted.size > 0 && trusted.length < view.quorum) {
    for (const step of steps.filter((one) => one.kind === 'replace')) {
      undecidable.push({
        node: step.node,
        height: step.from,
        class: 'outnumbered',
        copies: [],
        stores: [],
        next: [`seq stream verify ${wish.target}`.trim()],
        why: `${step.why}; only ${trusted.length} of the ${view.quorum} nodes needed could vouch for what replaces it`,
      });
    }
  }
  const kept = trusted.length < view.quorum ? steps.filter((step) => step.kind !== 'replace') : steps;
  // An undecidable height at the head comes before everything else, because a term would have to decide it.
  const written = blocked && view.leader === null ? [] : kept;
  const hand = handOf(evidence, trusted, wish);
  const plan = { cluster: view.cluster, hand, goal, chosen, steps: written, undecidable, standstill: saidByAll(view) };
  return { digest: digestOf(evidence, plan), ...plan };
}

/** A claimant adopts the copy of the highest epoch. With one epoch only, the block with most copies counts. */
function winner(contest: Contest): Copy {
  return [...contest.copies].sort((a, b) => b.epoch - a.epoch || b.nodes.length - a.nodes.length)[0] as Copy;
}

function stepFor(
  node: EvidenceNode,
  plan: {
    goal: RepairPlan['goal'];
    floor: RepairEvidence['floor'];
    leads: boolean;
    replaced: { height: Height; why: string } | undefined;
    contests: readonly Contest[];
    quorum: number;
  },
): RepairStep | null {
  const { goal, floor, leads } = plan;
  const view = node.view as NodeView;
  const head = leads ? "the leader's head" : `height ${goal.height}`;
  const base = { node: node.id, incarnation: view.incarnation, to: goal.height };
  const anew = {
    from: floor.height + 1,
    blocks: Math.max(0, goal.height - floor.height),
    writes:
      goal.height > floor.height
        ? `committed blocks ${floor.height + 1} to ${head}, then its admission`
        : 'its admission: there is no block yet',
  };
  if (view.admission !== 'admitted') {
    return {
      ...base,
      ...anew,
      kind: 'readmit',
      class: 'forgotten',
      removes: view.length > 0 ? `its stream of ${view.length} entries is set aside for a day` : '',
      why: `it is ${view.admission}${view.admissionWhy === '' ? '' : `: ${view.admissionWhy}`}`,
    };
  }
  const [worst] = node.damage;
  if (worst !== undefined || plan.replaced !== undefined) {
    const why =
      plan.replaced?.why ??
      `height ${worst?.height}: ${worst?.why}${node.damaged > 1 ? ` (and ${node.damaged - 1} more)` : ''}`;
    const hole = plan.replaced === undefined && node.damage.every((one) => one.why === 'there is a hole');
    return {
      ...base,
      ...anew,
      kind: 'replace',
      class: hole ? 'missing' : 'divergent',
      removes: `its stream of ${view.length} entries is set aside for a day`,
      why,
    };
  }
  if (node.orphan !== null) {
    const { height, hash, epoch, owner } = node.orphan;
    return {
      ...base,
      kind: 'supersede',
      class: 'orphaned',
      from: height,
      blocks: Math.max(1, goal.height - height + 1),
      writes: `committed blocks ${height} to ${head}`,
      removes: `block ${height} ${hash.slice(0, 8)} of epoch ${epoch} (${owner}) is kept in its orphans`,
      why: `another block is committed at height ${height}`,
    };
  }
  const contest = leads ? undefined : plan.contests.find((one) => one.height === goal.height);
  const copy = contest?.copies.find((one) => one.nodes.includes(node.id));
  if (copy !== undefined && copy.hash !== goal.hash) {
    return {
      ...base,
      kind: 'supersede',
      class: contest?.kind === 'conflict' ? 'divergent' : 'orphaned',
      from: goal.height,
      blocks: 1,
      writes: `block ${goal.height} ${goal.hash.slice(0, 8)} under a new epoch`,
      removes:
        `block ${goal.height} ${copy.hash.slice(0, 8)} of epoch ${copy.epoch} (${copy.owner}) is kept in ` +
        'its orphans',
      why: `${goal.hash.slice(0, 8)} takes that height`,
    };
  }
  if (copy !== undefined) {
    return {
      ...base,
      kind: 'settle',
      class: 'pending',
      from: goal.height,
      blocks: 1,
      writes: `block ${goal.height} ${goal.hash.slice(0, 8)} again, under a new epoch`,
      removes: '',
      why:
        `${copy.nodes.length} hold it under epoch ${copy.epoch}` +
        (copy.nodes.length < plan.quorum
          ? `, ${plan.quorum} are needed`
          : ', from before the present members were noted'),
    };
  }
  const lacks = goal.height - view.head;
  if (lacks <= 0 || node.lacks + (contest === undefined ? 0 : 1) === 0) return null;
  const rebased = view.head < floor.height;
  return {
    ...base,
    kind: rebased ? 'rebase' : 'backfill',
    class: 'under-replicated',
    from: (rebased ? floor.height : view.head) + 1,
    blocks: goal.height - (rebased ? floor.height : view.head),
    writes: `blocks ${(rebased ? floor.height : view.head) + 1} to ${head}`,
    removes: rebased ? `its stream of ${view.length} entries below the retained range is set aside for a day` : '',
    why: `its head is ${view.head}`,
  };
}

/** A lock that was written by hand may never expire. */
function lastsText(pttlMs: number): string {
  return pttlMs < 0 ? 'for ever' : `${pttlMs} ms left`;
}

function openQuestion(node: EvidenceNode, view: ClusterView, { target }: RepairWish): Undecidable | null {
  const none = { node: node.id, height: null, copies: [], stores: [] };
  if (node.view === null)
    return {
      ...none,
      class: 'silent',
      why: `${node.id} did not answer (${node.why}): what it holds is not known, it is left as it is`,
      next: [`seq doctor --on ${node.id} ${target}`.trim()],
    };
  if (node.view.admission === 'foreign')
    return {
      ...none,
      class: 'foreign',
      why: `${node.id} belongs to something else: ${node.view.admissionWhy || node.view.cluster}`,
      next: judgedNext(node, view) ?? [`seq node list ${target}`.trim()],
    };
  return null;
}

/** What `seq status` names for this node. */
function judgedNext({ id }: EvidenceNode, { findings }: ClusterView): string[] | undefined {
  return findings.find(({ nodes, next }) => nodes.includes(id) && next.length > 0)?.next;
}

/** No leader can repair a node that holds what no term can have made. The judge says how to delete it. */
function writtenByHand(node: EvidenceNode, view: ClusterView): Undecidable | null {
  const row = view.nodes.find(({ id }) => id === node.id);
  const epoch = view.leader !== null && (row?.epoch ?? 0) > view.leader.epoch + MAX_EPOCH_LEAP;
  if (row === undefined || !(epoch || row.note.includes(NO_TERM_MADE_IT))) return null;
  const none = { height: null, copies: [], stores: [] };
  return {
    ...none,
    node: node.id,
    class: 'by-hand',
    why: `${node.id}: ${row.note}`,
    next: judgedNext(node, view) ?? [],
  };
}

function undecided(contest: Contest, evidence: RepairEvidence, { target }: RepairWish): Undecidable {
  return {
    node: '',
    height: contest.height,
    class: 'conflict',
    why: `height ${contest.height}: ${contest.why}; which one stays is for a person to choose`,
    copies: contest.copies,
    stores: evidence.stores
      .filter((one) => one.height === contest.height)
      .map(({ store, hash, why }) => ({ store, hash, why })),
    next: [...new Set(contest.copies.map((copy) => copy.hash))].map((hash) =>
      `seq repair plan --choose-block ${hash.slice(0, 16)} ${target}`.trim(),
    ),
  };
}

function chooseBlocks(evidence: RepairEvidence, wish: RepairWish): RepairPlan['chosen'] {
  return wish.choose.map((prefix) => {
    const found = evidence.contests.flatMap((contest) =>
      contest.copies.filter((copy) => copy.hash.startsWith(prefix.toLowerCase())).map((copy) => ({ contest, copy })),
    );
    const next = [`seq repair plan ${wish.target}`.trim()];
    if (new Set(found.map(({ copy }) => copy.hash)).size !== 1) {
      throw new SeqError({
        code: 'CHOICE_NOT_FOUND',
        exit: EXIT.notFound,
        message:
          `--choose-block ${prefix}: ` +
          (found.length === 0
            ? 'no contested height has a block of that hash'
            : 'more than one contested block begins with that'),
        why: 'only a block that stands against another one can be chosen',
        changed: 'nothing',
        next,
      });
    }
    const { contest, copy } = found[0] as { contest: Contest; copy: Copy };
    const against = evidence.stores.find(
      (one) => one.height === contest.height && one.hash !== null && one.hash !== copy.hash,
    );
    if (against !== undefined) {
      throw new SeqError({
        code: 'CHOICE_REFUSED',
        exit: EXIT.safety,
        message:
          `${copy.hash.slice(0, 8)} cannot be chosen for height ${contest.height}: ${against.store} holds ` +
          `${against.hash?.slice(0, 8)} as committed`,
        why: 'what a store holds was acknowledged; choosing against it would fork the chain',
        changed: 'nothing',
        next: [`seq repair plan --choose-block ${against.hash?.slice(0, 16)} ${wish.target}`.trim()],
      });
    }
    refuseSilentStores(
      evidence.stores.filter((one) => one.height === contest.height),
      `${copy.hash.slice(0, 8)} cannot be chosen for height ${contest.height} yet`,
      wish,
    );
    const holders = found.filter((one) => one.copy.hash === copy.hash).flatMap((one) => one.copy.nodes);
    return { height: contest.height, hash: copy.hash, holders };
  });
}

function handOf({ view, nodes }: RepairEvidence, trusted: readonly EvidenceNode[], { target }: RepairWish): Hand {
  const status = [`seq status ${target}`.trim()];
  const admitted = nodes.filter((node) => node.view?.admission === 'admitted').length;
  const { leader } = view;
  // A repair's term has no presence record and answers no request. So this repair waits for its end, or, if it was
  // killed, for the end of its locks.
  if (leader !== null && leader.id.startsWith('repair.') && !view.sequencers.some((one) => one.id === leader.id)) {
    return {
      by: 'nobody',
      code: 'LOCKS_HELD',
      why: `a repair (${leader.id}) is under way or was broken off; its locks end in ${leader.ttlMs} ms`,
      next: status,
      retryable: true,
    };
  }
  if (leader !== null) return { by: 'leader', leader };
  if (!view.leaderKnown)
    return {
      by: 'nobody',
      code: 'LEADER_UNKNOWN',
      why: `whether somebody leads cannot be told: ${view.reason}`,
      next: status,
      retryable: true,
    };
  if (admitted < quorumOf(view.configured)) {
    return {
      by: 'nobody',
      code: 'NO_QUORUM',
      why: `${admitted} of the ${view.quorum} nodes needed answer and are admitted`,
      // A node that may come back comes back first: a recovery without it may lose what only it holds.
      next: standstill(view)?.next ?? status,
      retryable: false,
    };
  }
  if (view.hold !== null)
    return {
      by: 'nobody',
      code: 'HELD',
      why: `promotions are on hold by ${view.hold.by}: ${view.hold.reason}`,
      next: [`seq resume ${target}`.trim()],
      retryable: false,
    };
  // A repair was killed while it promoted. Its node would be left out here, and the plan would stay unfinished.
  const rest = trusted.filter((node) => (node.view as NodeView).lock?.owner.startsWith('repair.'));
  if (rest.length > 0) {
    const leftMs = Math.max(...rest.map((node) => (node.view as NodeView).lock?.pttlMs ?? 0));
    return {
      by: 'nobody',
      code: 'LOCKS_HELD',
      why:
        `a repair is under way or was broken off: it holds ${rest.map((node) => node.id).join(', ')} for ` +
        `${leftMs} ms yet`,
      next: status,
      retryable: true,
    };
  }
  const free = trusted.filter((node) => (node.view as NodeView).lock === null);
  if (free.length < view.quorum) {
    const held = trusted
      .flatMap(({ id, view: seen }) => (seen === null || seen.lock === null ? [] : [{ id, lock: seen.lock }]))
      .map(({ id, lock }) => `${id} (${lock.owner}, ${lastsText(lock.pttlMs)})`);
    return {
      by: 'nobody',
      code: 'LOCKS_HELD',
      why:
        `${free.length} of the ${view.quorum} nodes needed are ` +
        `free${held.length === 0 ? '' : `; held: ${held.join(', ')}`}`,
      next: status,
      retryable: true,
    };
  }
  return { by: 'own-term', nodes: free.map((node) => ({ id: node.id, epoch: (node.view as NodeView).epoch })) };
}

/**
 * With a leader, heights move on by themselves. Then the digest depends on who leads, on every node's incarnation and
 * on what is wrong with it. Without a leader it depends on everything that every node shows.
 */
function digestOf(evidence: RepairEvidence, plan: Omit<RepairPlan, 'digest'>): string {
  const leads = plan.hand.by === 'leader';
  const nodes = evidence.nodes.map((node) => [
    node.id,
    node.why !== '',
    node.view === null ? '' : leads ? [node.view.admission, node.view.runId, node.view.incarnation] : mark(node.view),
    node.damage,
    node.orphan,
  ]);
  const steps = plan.steps.map((step) =>
    leads ? [step.node, step.kind] : [step.node, step.kind, step.from, step.to, step.removes],
  );
  return createHash('sha256')
    .update(
      JSON.stringify([
        plan.cluster,
        plan.hand.by,
        plan.hand.by === 'leader' ? [plan.hand.leader.owner, plan.hand.leader.epoch] : null,
        leads ? null : plan.goal,
        plan.chosen,
        nodes,
        steps,
        plan.undecidable.map((one) => [one.node, one.class, one.height, one.copies]),
      ]),
    )
    .digest('hex');
}

// Takes back the decision of a repair, as far as possible (docs/PROTOCOL.md sections 3, 5). Committed blocks that were
// filled in are never removed again. A repair may have settled a head against another block, which the nodes keep in
// their orphans. That other block can replace the head only while nothing depends on it: nobody leads, every node
// answers and ends with one of the two blocks, and no sequencer's store holds the head. A store that does not answer
// stops it, until the operator names that store. This sets I4 aside, by name.
import { createHash } from 'node:crypto';
import { EXIT, SeqError } from '../errors.js';
import { quorumOf } from '../protocol/quorum.js';
import type { Block, NodeReply, NodeView } from '../protocol/types.js';
import { recordChange } from '../nodes/audit-record.js';
import { bounded } from '../nodes/ask-all.js';
import { gatherEvidence, mark, type RepairEvidence } from './evidence.js';
import { planRepair, type RepairPlan, type RepairStep } from './plan.js';
import { askStores, refuseSilentStores } from './store-copies.js';
import { repairByTerm } from './by-own-term.js';
import { saidByAll } from '../view/standstill.js';
import { nobodyMay, plannedRepair, type RepairOptions } from './repair.js';

interface LastRepair {
  by: string;
  at: string;
  digest: string;
  before: string;
  outcome: string;
  height: number;
  hash: string;
}

export interface Undone {
  last: LastRepair;
  /** Null when nothing of this repair can be taken back, or need be. `why` says so. */
  plan: RepairPlan | null;
  why: string;
  done: { by: string; epoch: number } | null;
  warnings: string[];
}

const AUDIT_READ = 1000;
const ORPHANS_READ = 100;

export async function undoRepair(options: RepairOptions): Promise<Undone> {
  const { clock, nodes, limitMs, step } = options;
  step('reading what every node holds, and the last repair');
  const last = await lastRepair(options);
  const evidence = await gatherEvidence(options);
  const none = { last, plan: null, done: null, warnings: [] };
  const { found, silent } = await supersededBy(last, options);
  if (found === null && silent.length > 0)
    throw refused(
      `${silent.join(', ')} did not show what it keeps: the block that gave way may be there`,
      options.target,
    );
  if (found === null)
    return {
      ...none,
      why:
        'it decided against no block that is kept: it filled committed blocks in, and those are never ' +
        'taken from a node again',
    };
  refuseBuiltUpon(last, found.block, evidence, options);
  if (
    evidence.nodes.every((node) => node.view?.admission !== 'admitted' || node.view.headHash === found.block.hash) &&
    evidence.contests.length === 0
  )
    return {
      ...none,
      why: `it is undone: height ${found.block.height} is ${found.block.hash.slice(0, 8)} on every node`,
    };
  const warnings = await refuseInStore(last, evidence, options);
  const plan = planUndo(evidence, found, options);
  if (options.dryRun) return { ...none, plan, why: '', warnings };
  await options.confirm(plan);
  const result = await repairByTerm(plan, evidence, { ...options, block: found.block });
  options.changing(
    'some',
    result.nodes.filter((node) => node.done).map((node) => node.node),
  );
  step('reading every node again');
  const after = (await plannedRepair({ ...options, choose: [] })).plan;
  const bad = result.nodes.filter((node) => !node.done);
  const outcome =
    bad.length === 0
      ? `height ${found.block.height} is ${found.block.hash} again`
      : `not finished: ${bad.map((node) => `${node.node}: ${node.why}`).join('; ')}`;
  const warning = await recordChange(
    nodes,
    {
      what: 'repair undo',
      reason: options.reason,
      plan: plan.digest,
      outcome,
      epoch: String(result.epoch),
      before: `height ${last.height} ${last.hash}`,
      after: `height ${result.height} ${result.hash}`,
    },
    options.operator,
    clock,
    limitMs,
  );
  if (bad.length > 0 || after.steps.length > 0) {
    throw new SeqError({
      code: 'REPAIR_UNFINISHED',
      exit: EXIT.partial,
      message: `the repair was not undone everywhere: ${outcome}`,
      why: 'what was written is whole',
      changed: 'some',
      changedNodes: result.nodes.filter((node) => node.done).map((node) => node.node),
      next: [`seq repair plan ${options.target}`.trim()],
      retryable: true,
    });
  }
  return {
    last,
    plan,
    why: '',
    done: { by: result.owner, epoch: result.epoch },
    warnings: [...warnings, ...(warning === '' ? [] : [warning])],
  };
}

async function lastRepair({ nodes, limitMs, clock, target }: RepairOptions): Promise<LastRepair> {
  const reads = await Promise.all(
    nodes.map(async (node) =>
      node.readAudit === undefined ? null : bounded(node.readAudit(AUDIT_READ, limitMs), limitMs, clock),
    ),
  );
  const records = reads.flatMap((read) =>
    read?.outcome === 'accepted' ? read.value.filter((one) => one['what'] === 'repair') : [],
  );
  const answered = reads.filter((read) => read?.outcome === 'accepted').length;
  if (nodes.length - answered >= quorumOf(nodes.length)) {
    throw new SeqError({
      code: 'NO_QUORUM',
      exit: EXIT.noQuorum,
      message:
        `${answered} of ${nodes.length} nodes showed what operators changed: the last repair may be ` +
        'recorded on the others',
      why: 'a record is on a quorum of nodes',
      changed: 'nothing',
      next: [`seq status ${target}`.trim()],
      retryable: true,
    });
  }
  const newest = records.sort((a, b) => Number(b['at']) - Number(a['at']))[0];
  const after = /^height (\d+) ([0-9a-f]{64})/.exec(newest?.['after'] ?? '');
  if (newest === undefined || after === null) {
    throw new SeqError({
      code: 'NOTHING_TO_UNDO',
      exit: EXIT.notFound,
      message: 'no repair is recorded on the nodes that answered',
      why: 'the audit keeps the newest 10000 changes',
      changed: 'nothing',
      next: [`seq history ${target}`.trim()],
    });
  }
  const of = (name: string): string => newest[name] ?? '';
  return {
    by: of('by'),
    at: new Date(Number(of('at'))).toISOString(),
    digest: of('plan'),
    before: of('before'),
    outcome: of('outcome'),
    height: Number(after[1]),
    hash: after[2] as string,
  };
}

interface Superseded {
  block: Block;
  holders: string[];
}

/**
 * The block that gave way to the repair's head, from any node's orphans. Also the nodes that did not show their
 * orphans.
 */
async function supersededBy(
  last: LastRepair,
  { nodes, limitMs, clock }: RepairOptions,
): Promise<{ found: Superseded | null; silent: string[] }> {
  let found: Superseded | null = null;
  const silent: string[] = [];
  for (const node of nodes) {
    if (node.readOrphans === undefined || node.readOrphan === undefined) continue;
    const read = await bounded(node.readOrphans(ORPHANS_READ, limitMs), limitMs + 1000, clock);
    if (read.outcome !== 'accepted') {
      silent.push(node.id);
      continue;
    }
    const orphan = read.value.superseded.find(
      (one) => one.height === last.height && one.supersededBy === last.hash && one.damage === '',
    );
    if (orphan === undefined || (found !== null && found.block.hash !== orphan.hash)) continue;
    const block: NodeReply<Block> | null =
      found === null ? await bounded(node.readOrphan(orphan.id, limitMs), limitMs + 1000, clock) : null;
    if (block?.outcome === 'accepted' && block.value.hash === orphan.hash)
      found = { block: block.value, holders: [node.id] };
    else if (found !== null) found.holders.push(node.id);
    else silent.push(node.id);
  }
  return { found, silent };
}

/** Nodes that end with the other block come from an undo that was interrupted. This run continues it. */
function refuseBuiltUpon(last: LastRepair, other: Block, evidence: RepairEvidence, { target }: RepairOptions): void {
  const { view, nodes, top } = evidence;
  const { hand } = planRepair({ ...evidence, contests: [] }, { choose: [], target });
  if (hand.by === 'nobody' && hand.code === 'LOCKS_HELD') throw nobodyMay(hand);
  const silent = nodes.filter((node) => node.view === null).map((node) => node.id);
  const elsewhere = nodes
    .filter(
      ({ view: of }) =>
        of?.admission === 'admitted' &&
        !(of.head === last.height && (of.headHash === last.hash || of.headHash === other.hash)),
    )
    .map((node) => node.id);
  const why =
    view.leader !== null
      ? `${view.leader.id} leads since: what the repair settled is being built upon`
      : silent.length > 0
        ? `${silent.join(', ')} did not answer: something may stand on what the repair settled`
        : elsewhere.length > 0
          ? `${elsewhere.join(', ')} ended elsewhere than at height ${last.height} ${last.hash.slice(0, 8)}; ` +
            `the head is height ${top.height} ${top.hash.slice(0, 8)} now`
          : '';
  if (why !== '') throw refused(why, target);
}

/**
 * A store that holds the head has acknowledged it. A store whose chain ends below it is no objection. Returns a
 * sentence for each store that did not answer, and for which the operator answers.
 */
async function refuseInStore(last: LastRepair, evidence: RepairEvidence, options: RepairOptions): Promise<string[]> {
  const archives = (await options.archives?.(evidence.view)) ?? [];
  const copies = await askStores(archives, [last.height], options.signal);
  const holder = copies.find(({ hash }) => hash === last.hash);
  if (holder !== undefined)
    throw refused(
      `${holder.store} holds ${last.hash.slice(0, 8)} at height ${last.height} as committed`,
      options.target,
    );
  return refuseSilentStores(copies, `the repair of height ${last.height} cannot be undone yet`, options);
}

function refused(why: string, target: string): SeqError {
  return new SeqError({
    code: 'UNDO_REFUSED',
    exit: EXIT.safety,
    message: `the repair cannot be undone: ${why}`,
    why: 'a block that somebody may rely on stays (I4)',
    changed: 'nothing',
    next: [`seq stream orphans ${target}`.trim(), `seq status ${target}`.trim()],
  });
}

function planUndo(
  evidence: RepairEvidence,
  { block, holders }: { block: Block; holders: string[] },
  options: RepairOptions,
): RepairPlan {
  const { hand, undecidable, cluster } = planRepair(
    { ...evidence, contests: [] },
    { choose: [], target: options.target },
  );
  if (hand.by === 'nobody') throw nobodyMay(hand);
  if (hand.by === 'leader') throw refused('somebody leads', options.target);
  const { top } = evidence;
  const steps = evidence.nodes
    .filter((node) => node.view?.admission === 'admitted')
    .map((node): RepairStep => {
      const { incarnation, headHash } = node.view as NodeView;
      const there = headHash === block.hash;
      return {
        node: node.id,
        kind: there ? 'settle' : 'supersede',
        class: there ? 'pending' : 'orphaned',
        from: block.height,
        to: block.height,
        blocks: 1,
        incarnation,
        writes: `block ${block.height} ${block.hash.slice(0, 8)} under a new epoch`,
        removes: there ? '' : `block ${block.height} ${headHash.slice(0, 8)} is kept in its orphans`,
        why: there ? 'an undoing was broken off after it' : 'the repair is undone',
      };
    });
  const digest = createHash('sha256')
    .update(
      JSON.stringify([
        'undo',
        cluster,
        top,
        block.hash,
        evidence.nodes.map((node) => [node.id, node.view === null ? '' : mark(node.view)]),
      ]),
    )
    .digest('hex');
  return {
    digest,
    cluster,
    hand,
    goal: { height: block.height, hash: block.hash },
    chosen: [{ height: block.height, hash: block.hash, holders }],
    steps,
    undecidable,
    standstill: saidByAll(evidence.view),
  };
}

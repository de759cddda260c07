// Frees locks that no lease explains (docs/PROTOCOL.md section 4, "A stuck lock"). It is an expiry that comes earlier
// than the server's clock would have it, and no more: locks decide who tries when, epochs decide who counts (I9). Each
// holder is watched first. A lock that is renewed meanwhile, and a node that is written to, are left alone.
import { EXIT, SeqError } from '../errors.js';
import { bounded } from '../nodes/ask-all.js';
import { recordChange, type Operator } from '../nodes/audit-record.js';
import { changeOf, unexpected, type NodeChange } from '../nodes/change-all.js';
import { pause } from '../nodes/pause.js';
import type { Clock, NodePort } from '../ports.js';
import { sequencerOf, type Epoch, type Owner } from '../protocol/types.js';
import type { ClusterView, NodeRow } from '../view/cluster-view.js';
import { inspectCluster } from '../view/inspect.js';
import { leaseTiming } from '../view/lease.js';

interface StuckLock {
  node: string;
  owner: Owner;
  holder: string;
  why: string;
}

export interface FreeLocksPlan {
  locks: StuckLock[];
  /** The highest epoch of an admitted node. */
  epoch: Epoch;
  /** Living sequencers that could lead once the locks are gone. */
  candidates: string[];
}

export interface FreeLocksOptions {
  nodes: readonly NodePort[];
  limitMs: number;
  clock: Clock;
  signal?: AbortSignal;
  target: string;
  expectedCluster?: string;
  expectLeader?: string;
  expectEpoch?: Epoch;
  reason: string;
  operator: Operator;
  dryRun: boolean;
  /** The commands that start sequencers again, when they are known. */
  startSequencers?: () => string[];
  confirm: (plan: FreeLocksPlan) => Promise<void>;
  changing: (state: 'unknown' | 'some', nodes: string[]) => void;
  step: (doing: string) => void;
}

export interface FreedLocks {
  plan: FreeLocksPlan;
  /** [] in a dry run. */
  nodes: NodeChange[];
  warnings: string[];
  next: string[];
}

const MOST_WATCHED_MS = 2000;
/** Two readings of one countdown may differ by the time that the answers took. */
const COUNTDOWN_SLACK_MS = 50;

/** Null when no node shows a stuck lock. */
export async function freeLocks(options: FreeLocksOptions): Promise<FreedLocks | null> {
  const { nodes, clock, limitMs } = options;
  options.step('asking every node for its lock');
  const first = await readView(options);
  if (stuckRows(first).length === 0) return null;
  const startedAt = clock.now();
  options.step(`watching whether ${holdersOf(stuckRows(first)).join(', ')} still writes`);
  await pause(clock, watchMs(first), options.signal);
  options.signal?.throwIfAborted();
  const view = await readView(options);
  const plan = planFreeing(view, stillStuck(first, view, clock.now() - startedAt));
  refuseUnexpected(options, plan, stuckRows(first));
  if (options.dryRun) return { plan, nodes: [], warnings: [], next: [] };
  await options.confirm(plan);

  const changes: NodeChange[] = [];
  for (const { node: id, owner } of plan.locks) {
    const node = nodes.find((one) => one.id === id) as NodePort;
    options.step(`freeing the lock of ${id}`);
    options.changing('unknown', landed(changes));
    // The script deletes the lock only while it still has this very owner.
    changes.push(changeOf(id, await bounded(node.call({ script: 'release_lock', owner }, limitMs), limitMs, clock)));
  }
  const after = await readView(options);
  for (const change of changes) settle(change, plan, after);
  const outcome = changes.map(({ id, outcome: how, why }) => `${id}: ${how === 'accepted' ? 'freed' : why}`).join('; ');
  const warning = await recordChange(
    nodes,
    {
      what: 'stepdown --revoke',
      reason: options.reason,
      outcome,
      // With this field, history says that it ended the term. A lock beside a leader ends nobody's.
      ...(view.leader === null ? { epoch: String(plan.epoch) } : {}),
      before: plan.locks.map((lock) => `${lock.node}: ${lock.owner}`).join(', '),
      after: 'no lock of these owners',
    },
    options.operator,
    clock,
    limitMs,
  );
  failUnlessAll(changes, options);
  return { plan, nodes: changes, warnings: warning === '' ? [] : [warning], next: nextOf(options, plan) };
}

function readView({ nodes, limitMs, clock, expectedCluster, target }: FreeLocksOptions): Promise<ClusterView> {
  return inspectCluster({ nodes, limitMs, clock, expectedCluster, target });
}

function stuckRows(view: ClusterView): NodeRow[] {
  return view.nodes.filter((row) => row.lockStuck !== '');
}

function holdersOf(rows: readonly NodeRow[]): string[] {
  return [...new Set(rows.map((row) => row.holder ?? '?'))];
}

/** One and a half block times: a living holder has written a block by then. */
function watchMs(view: ClusterView): number {
  const times = holdersOf(stuckRows(view)).map((id) => leaseTiming(id, view.sequencers).blockTimeMs);
  return Math.min(MOST_WATCHED_MS, 1.5 * Math.max(...times));
}

/** The nodes that still show the same lock, counting down, and have taken nothing meanwhile. */
function stillStuck(before: ClusterView, now: ClusterView, elapsedMs: number): NodeRow[] {
  return stuckRows(now).filter((row) => {
    const then = before.nodes.find(({ id }) => id === row.id);
    if (then === undefined || then.owner !== row.owner || then.epoch !== row.epoch) return false;
    if (then.head !== row.head || then.headHash !== row.headHash) return false;
    const [was, is] = [then.ttlMs ?? 0, row.ttlMs ?? 0];
    return is < 0 ? was < 0 : is <= was - elapsedMs + COUNTDOWN_SLACK_MS + elapsedMs / 10;
  });
}

function planFreeing(view: ClusterView, rows: readonly NodeRow[]): FreeLocksPlan {
  return {
    locks: rows.map((row) => ({
      node: row.id,
      owner: row.owner ?? '',
      holder: sequencerOf(row.owner ?? ''),
      why: row.lockStuck,
    })),
    epoch: Math.max(0, ...view.nodes.flatMap((row) => (row.admitted && row.epoch !== null ? [row.epoch] : []))),
    candidates: view.sequencers.filter((one) => one.alive && one.role !== 'stopping').map(({ id }) => id),
  };
}

function refuseUnexpected(options: FreeLocksOptions, plan: FreeLocksPlan, first: readonly NodeRow[]): void {
  const { expectLeader, expectEpoch } = options;
  const holders = [...new Set(plan.locks.map(({ holder }) => holder))];
  if (plan.locks.length === 0)
    throw new SeqError({
      code: 'LEADER_ANSWERS',
      exit: EXIT.safety,
      message: `${holdersOf(first).join(', ')} is alive: its lock was renewed, or its node was written to`,
      why: '--revoke frees the locks of holders that do not write',
      changed: 'nothing',
      next: [commandIn(options, 'seq status')],
    });
  const wrong =
    expectLeader !== undefined && !holders.every((one) => one === expectLeader)
      ? `${holders.join(', ')} hold the locks, not ${expectLeader} alone`
      : expectEpoch !== undefined && expectEpoch !== plan.epoch
        ? `the epoch is ${plan.epoch}, not ${expectEpoch}`
        : '';
  if (wrong !== '') throw unexpected(wrong, [commandIn(options, 'seq status')]);
}

function landed(changes: readonly NodeChange[]): string[] {
  return changes.filter(({ outcome }) => outcome === 'accepted').map(({ id }) => id);
}

/** A read of the node says more than the answer of the call: a lock of this owner that is gone stays gone. */
function settle(change: NodeChange, plan: FreeLocksPlan, after: ClusterView): void {
  const row = after.nodes.find(({ id }) => id === change.id);
  const lock = plan.locks.find(({ node }) => node === change.id);
  if (row === undefined || row.admission === null || lock === undefined) return;
  if (row.owner !== lock.owner) Object.assign(change, { outcome: 'accepted', refusal: '', why: '' });
  else if (change.outcome !== 'refused')
    Object.assign(change, { outcome: 'refused', refusal: '', why: `its lock is still held by ${lock.holder}` });
}

function failUnlessAll(changes: readonly NodeChange[], options: FreeLocksOptions): void {
  const failed = changes.filter(({ outcome }) => outcome !== 'accepted');
  if (failed.length === 0) return;
  const freed = landed(changes);
  const open = failed.some(({ outcome }) => outcome === 'unknown');
  throw new SeqError({
    code: freed.length > 0 ? 'PARTIAL' : open ? 'OUTCOME_UNKNOWN' : 'CHANGE_REFUSED',
    exit: freed.length > 0 ? EXIT.partial : open ? EXIT.outcomeUnknown : EXIT.precondition,
    message:
      `${freed.length} of ${changes.length} locks are free; ` + failed.map(({ id, why }) => `${id}: ${why}`).join('; '),
    why: open ? 'a node did not answer: its lock may be gone' : 'a node refused',
    changed: open ? 'unknown' : freed.length > 0 ? 'some' : 'nothing',
    changedNodes: freed,
    // A lock that no sequencer can have written has no owner that a script accepts. It goes by hand.
    next: failed.some(({ refusal }) => refusal === 'BAD_ARGUMENT')
      ? failed.map(
          ({ id }) => `redis-cli -u ${options.nodes.find((one) => one.id === id)?.url ?? ''} del seq:leader:lock`,
        )
      : [commandIn(options, 'seq stepdown --revoke'), commandIn(options, 'seq status')],
    retryable: true,
  });
}

function nextOf(options: FreeLocksOptions, plan: FreeLocksPlan): string[] {
  const starts = options.startSequencers?.() ?? [];
  if (plan.candidates.length > 0) return [commandIn(options, 'seq wait --for leader'), ...starts];
  return starts.length > 0 ? starts : [commandIn(options, `seq run --id ${plan.locks[0]?.holder ?? 'seq-a'}`)];
}

function commandIn({ target }: FreeLocksOptions, command: string): string {
  return target === '' ? command : `${command} ${target}`;
}

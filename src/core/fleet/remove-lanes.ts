// Removes lanes (`seq lane rm`), docs/decisions/0015: closes the entries, waits until no sequencer announces itself in
// the lane, retires its memory on the nodes so that nobody can lead it any more, and only then deletes its keys. The
// entry stays, as removed. After a break the same command goes on.
import { createHash } from 'node:crypto';
import { quorumOf } from '../config.js';
import { EXIT, SeqError } from '../errors.js';
import { clusterNamed, familyOf, isRetired, REMOVED } from '../generation.js';
import { recordChange, type Operator } from '../nodes/audit-record.js';
import { pause } from '../nodes/pause.js';
import type { NodePort, Random } from '../ports.js';
import { describeReply } from '../protocol/describe.js';
import type { NodeView } from '../protocol/types.js';
import { namesText } from './add-lanes.js';
import { nextVersion, type LaneEntry, type LaneState, type Lanes } from './entries.js';
import { keepRegistry } from './keep-registry.js';
import { inTurns, probeLane, viewsOf, type LaneProbe } from './lane-nodes.js';
import { changeLanes, readRegistry, type Registry, type RegistryNodes } from './registry.js';

export interface RemovePlan {
  lanes: { name: string; state: LaneState; height: number; leader: string | null }[];
  digest: string;
}

export interface RemoveLanesOptions extends RegistryNodes {
  cluster: string;
  openLane: (lane: string, cluster?: string) => NodePort[];
  names: readonly string[];
  random: Random;
  operator: Operator;
  reason: string;
  dryRun: boolean;
  /** How long to wait until no sequencer announces itself in the lanes. */
  timeoutMs: number;
  signal: AbortSignal;
  confirm: (plan: RemovePlan) => Promise<void>;
  changing: (state: 'unknown' | 'some', nodes: string[]) => void;
  step: (doing: string) => void;
  command: string;
}

export interface RemoveLanesDone {
  plan: RemovePlan;
  /** Null: a dry run. */
  removed: string[] | null;
  warnings: string[];
}

const AT_ONCE = 16;
const POLL_MS = 250;

export async function removeLanes(options: RemoveLanesOptions): Promise<RemoveLanesDone> {
  const { names, command } = options;
  options.step('reading the lanes of the cluster');
  const registry = await readRegistry(options);
  const { lanes } = registry;
  const unknown = names.filter((name) => !lanes.has(name));
  if (unknown.length > 0) throw laneNotFound(unknown);
  options.step('asking every node what it holds of them');
  const probes = await inTurns(names, AT_ONCE, (name) => probed(name, options));
  const plan = planOf(names, lanes, probes, options.cluster);
  if (options.dryRun) return { plan, removed: null, warnings: [] };
  await options.confirm(plan);
  options.changing('unknown', []);
  await setState(options, (await keepRegistry(options)).registry, 'closed', [command]);
  options.changing(
    'some',
    options.nodes.map(({ id }) => id),
  );
  await untilNobodyIsThere(options);
  const left = await inTurns(names, AT_ONCE, (name) => deleteLane(name, options));
  await setState(options, (await keepRegistry(options)).registry, 'removed', [command]);
  const record = await recordChange(
    options.nodes,
    {
      what: 'lane rm',
      reason: options.reason,
      before: `${names.length} lanes`,
      after: namesText(names),
      outcome: 'removed',
    },
    options.operator,
    options.clock,
    options.limitMs,
  );
  const rest = left.flat();
  return { plan, removed: [...names], warnings: [...[...new Set(rest)], ...(record === '' ? [] : [record])] };
}

async function probed(name: string, { openLane, limitMs, clock }: RemoveLanesOptions): Promise<LaneProbe> {
  const nodes = openLane(name);
  const probe = await probeLane(nodes, limitMs, clock);
  await Promise.all(nodes.map((node) => node.close()));
  return probe;
}

function planOf(names: readonly string[], lanes: Lanes, probes: readonly LaneProbe[], cluster: string): RemovePlan {
  return {
    lanes: names.map((name, at) => {
      const views = viewsOf(probes[at]!);
      const leader = views.flatMap((view) => view.sequencers).find(({ role }) => role === 'leader');
      const height = Math.max(0, ...views.filter((view) => !isRetired(view)).map((view) => view.head));
      return { name, state: lanes.get(name)!.state, height, leader: leader?.id ?? null };
    }),
    // A lane that is led grows: its height is no part of the plan.
    digest: createHash('sha256')
      .update(JSON.stringify(['lane rm', familyOf(cluster), [...names].sort()]))
      .digest('hex')
      .slice(0, 16),
  };
}

/** Lanes that have that state, or went on to the next one, are left as they are. */
async function setState(
  options: RemoveLanesOptions,
  registry: Registry,
  state: 'closed' | 'removed',
  next: string[],
): Promise<void> {
  const { names, random, operator, clock } = options;
  const writer = random.hex(8);
  const entries = names.flatMap((name): LaneEntry[] => {
    const known = registry.lanes.get(name);
    if (known?.state === 'removed' || known?.state === state) return [];
    return [
      { name, version: nextVersion(registry, name), state, writer, by: operator.by, atMs: Math.floor(clock.wall()) },
    ];
  });
  if (entries.length > 0) await changeLanes(options, registry, entries, next);
}

async function untilNobodyIsThere(options: RemoveLanesOptions): Promise<void> {
  const { names, clock, timeoutMs, signal, command } = options;
  const endAt = clock.now() + timeoutMs;
  let open = [...names];
  for (;;) {
    options.step(`waiting until no sequencer announces itself in ${namesText(open)}`);
    const present = await inTurns(open, AT_ONCE, async (name) => {
      const views = viewsOf(await probed(name, options));
      // One that stops has released its lock, and does not lead again.
      const there = views.flatMap((view) => view.sequencers).filter(({ role }) => role !== 'stopping');
      return { name, ids: [...new Set(there.map(({ id }) => id))] };
    });
    const inUse = present.filter(({ ids }) => ids.length > 0);
    if (inUse.length === 0) return;
    if (clock.now() >= endAt) {
      const [{ name, ids }] = inUse as [(typeof inUse)[number]];
      throw new SeqError({
        code: 'LANE_IN_USE',
        exit: EXIT.tryAgain,
        message: `${inUse.length} of ${names.length} lanes are still in use: ${ids.join(', ')} in lane ${name}`,
        why: 'the lanes are closed now; a sequencer that was started for one lane alone does not read that',
        changed: 'some',
        changedNodes: options.nodes.map(({ id }) => id),
        next: [`stop ${ids.join(', ')}`, command],
        retryable: true,
      });
    }
    open = inUse.map(({ name }) => name);
    await pause(clock, POLL_MS, signal);
    signal.throwIfAborted();
  }
}

/** Returns what is left, as warnings. Throws unless q nodes gave the lane up: somebody could lead it again. */
async function deleteLane(name: string, options: RemoveLanesOptions): Promise<string[]> {
  const probe = await probed(name, options);
  const outcomes = await Promise.all(
    probe.nodes.map(async ({ id }, at) => {
      const reply = probe.replies[at]!;
      if (reply.outcome !== 'accepted') return { id, why: describeReply(reply) };
      return { id, why: await deleteOn(at, reply.value, name, options) };
    }),
  );
  const failed = outcomes.filter(({ why }) => why !== '');
  if (outcomes.length - failed.length >= quorumOf(outcomes.length))
    return failed.map(({ id, why }) => `${id} still holds what it has of these lanes: ${why}`);
  throw new SeqError({
    code: 'PARTIAL',
    exit: EXIT.partial,
    message: `lane ${name} is gone from ${outcomes.length - failed.length} of ${outcomes.length} nodes: ${failed
      .map(({ id, why }) => `${id}: ${why}`)
      .join('; ')}`,
    why: 'a lane is removed when a quorum of nodes has given it up',
    changed: 'some',
    changedNodes: outcomes.filter(({ why }) => why === '').map(({ id }) => id),
    next: [options.command],
    retryable: true,
  });
}

/** Why this node still holds something of the lane. '' when it does not. */
async function deleteOn(at: number, view: NodeView, name: string, options: RemoveLanesOptions): Promise<string> {
  const { openLane, cluster, limitMs } = options;
  // A node without any key of the lane has nothing to give up.
  if (view.admission === 'pristine') return '';
  const retired = isRetired(view);
  const own = clusterNamed(view.cluster);
  if (own !== '' && familyOf(own) !== familyOf(cluster)) return `it belongs to cluster ${own}`;
  // The script takes calls of the generation that the record names.
  const nodes = openLane(name, own === '' ? cluster : own);
  const node = nodes[at]!;
  try {
    if (!retired && own !== '') {
      const expect = view.pending || view.incarnation;
      const reply = await node.call({ script: 'retire_node', expect, movedTo: REMOVED }, limitMs);
      if (reply.outcome !== 'accepted') return describeReply(reply);
    }
    const reply = await node.call({ script: 'forget_lane' }, limitMs);
    return reply.outcome === 'accepted' ? '' : describeReply(reply);
  } finally {
    await Promise.all(nodes.map((one) => one.close()));
  }
}

function laneNotFound(names: readonly string[]): SeqError {
  return new SeqError({
    code: 'LANE_NOT_FOUND',
    exit: EXIT.notFound,
    message: `${namesText(names)}: the cluster has no lane of this name`,
    why: 'lanes are those that seq lane add has listed',
    changed: 'nothing',
    next: ['seq lane ls'],
  });
}

// Is a bootstrap safe when several people run `seq cluster init` at once (docs/PROTOCOL.md section 8)? A run may stop
// at any step, and nodes may lose their memory. From a quorum of admitted nodes on, a leader may exist. It re-admits
// the other nodes as if they were empty, whatever bootstrap mark they carry.
// Checked in every state:
// - Only one nonce ever admits nodes, and only after every node has shown it.
// - A run that reports success is right: every node is admitted or taken over by the leader.
// - A bootstrap never changes a node again that a leader has begun to use.
import { bootstrap } from '../../src/core/operate/bootstrap.js';
import type { NodeCall } from '../../src/core/protocol/types.js';
import { applyCall, emptyNodeState, type MemoryNodeState } from '../support/memory-node.js';
import { NODE_IDS, type ProcessConfig, type World } from './processes.js';

const CLUSTER = 'model.1';
const GENESIS = '0'.repeat(64);

const LEADER = 'lead/1';
const AT = { cluster: CLUSTER, genesis: GENESIS };
const EMPTY_CHAIN = { floor: 0, floorHash: GENESIS };

function run(s: MemoryNodeState, n: number, call: NodeCall): void {
  applyCall(s, call, AT, NODE_IDS[n]!, 0);
}

/**
 * One promotion on the admitted nodes: from then on these nodes have something to forget. The leader may re-admit the
 * nodes in `taken`.
 */
const happenings = (taken: readonly string[]): NonNullable<ProcessConfig['happens']> => [
  {
    name: 'a leader uses it',
    possible: ({ nodes }) => nodes.filter(isAdmitted).length >= (taken.length > 0 ? 2 : nodes.length),
    act: (nodes) =>
      nodes.forEach((s, n) => {
        if (isAdmitted(s) && (taken.length > 0 || n < 2))
          run(s, n, { script: 'promote_leader', owner: LEADER, expectedEpoch: 0, ttlMs: Infinity });
      }),
  },
  ...NODE_IDS.flatMap((id, n): NonNullable<ProcessConfig['happens']>[number][] =>
    taken.includes(id)
      ? [
          {
            name: `the leader begins with ${id}`,
            possible: ({ nodes }) => leads(nodes, n) && !isAdmitted(nodes[n]!),
            act: (nodes) =>
              run(nodes[n]!, n, {
                script: 'begin_admission',
                owner: LEADER,
                epoch: 1,
                nonce: `1-${id}`,
                ...EMPTY_CHAIN,
                keepMs: 1,
              }),
          },
          {
            name: `the leader admits ${id}`,
            possible: ({ nodes }) => leads(nodes, n) && nodes[n]!.record?.pending === `1-${id}`,
            act: (nodes) =>
              run(nodes[n]!, n, {
                script: 'admit',
                owner: LEADER,
                epoch: 1,
                nonce: `1-${id}`,
                ttlMs: Infinity,
                head: 0,
                headHash: GENESIS,
              }),
          },
        ]
      : [],
  ),
];

/** The leader has raised the epoch on a quorum of other nodes. */
function leads(nodes: readonly MemoryNodeState[], n: number): boolean {
  return nodes.filter((s, i) => i !== n && isAdmitted(s) && s.epoch === 1).length >= 2;
}

/**
 * `taken`: the nodes that the leader may re-admit. If it is not empty, a leader may exist from a quorum of admitted
 * nodes on. If it is empty, a leader exists only when all nodes are admitted.
 */
export function bootstrapConfig(
  by: number,
  faults: Pick<ProcessConfig, 'unknowns' | 'wipes' | 'restarts'>,
  taken: readonly string[] = [],
): ProcessConfig {
  return {
    genesis: GENESIS,
    nodes: NODE_IDS.map((id) => emptyNodeState(`run-${id}`)),
    ...faults,
    happens: happenings(taken),
    processes: Array.from({ length: by }, () => async ({ ports, clock, random }) => {
      await bootstrap({ nodes: ports(CLUSTER), cluster: CLUSTER, limitMs: 1, clock, random });
      return 'made';
    }),
    observe,
  };
}

/**
 * `memory` is JSON: the nonces that each node has shown, the nonce that admitted a node, and the nodes that a leader
 * has used.
 */
function observe(world: World, memory: string): { memory: string; why: string } {
  const known =
    memory === ''
      ? { shown: NODE_IDS.map((): string[] => []), admitting: '', used: NODE_IDS.map(() => false) }
      : (JSON.parse(memory) as { shown: string[][]; admitting: string; used: boolean[] });
  const { nodes, ended } = world;
  let why = '';
  nodes.forEach((s, n) => {
    const nonce = s.record === null ? '' : nonceOf(s.record.pending || s.record.incarnation);
    const shown = known.shown[n]!;
    if (nonce !== '' && !ofLeader(nonce) && !shown.includes(nonce)) shown.push(nonce);
    shown.sort();
    if ((s.epoch ?? 0) > 0) known.used[n] = true;
  });
  nodes.forEach((s, n) => {
    if (!isAdmitted(s)) return;
    const nonce = nonceOf(s.record!.incarnation);
    if (known.used[n] && s.epoch === 0)
      why ||= `I7: node ${n + 1} was used, forgot, and takes part again without a leader`;
    if (ofLeader(nonce)) return;
    if (known.admitting === '') known.admitting = nonce;
    if (known.admitting !== nonce) why ||= `node ${n + 1} is admitted by ${nonce}, another one by ${known.admitting}`;
    if (known.shown.some((one) => !one.includes(nonce)))
      why ||= `node ${n + 1} is admitted by ${nonce}, which not every node has shown`;
  });
  if (
    ended.includes('made') &&
    world.wipes === 0 &&
    world.restarts === 0 &&
    !nodes.every((s) => isAdmitted(s) || ofLeader(s.record?.pending ?? ''))
  )
    why ||= 'it is said to be made, and a node is neither admitted nor taken by the leader';
  return { memory: JSON.stringify(known), why };
}

function nonceOf(mark: string): string {
  return mark.replace('bootstrap:', '').replace(/\..*$/, '');
}

function ofLeader(nonce: string): boolean {
  return nonce.startsWith('1-');
}

function isAdmitted(s: MemoryNodeState): boolean {
  return s.record !== null && s.record.pending === '' && s.record.run === s.runId && s.epoch !== null;
}

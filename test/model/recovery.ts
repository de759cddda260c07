// Is `seq cluster recover` safe with one or two operators, when it may stop at any step and the old generation is still
// active (docs/PROTOCOL.md section 8)? The old leader holds one node of three. Its last admission and its block in
// flight may still arrive. A successor may be promoted and claim.
// Checked in every state:
// - Everything that a quorum of one generation ever showed has one block at each height.
// - Calls of the old generation change nothing on a node of the new one.
// - A run that reports a recovered cluster is right.
import { gather } from '../../src/core/recovery/gather.js';
import { decideRecovery } from '../../src/core/recovery/plan.js';
import { carryOut } from '../../src/core/recovery/recover.js';
import { recoveryExpectation, type Block, type NodeCall } from '../../src/core/protocol/types.js';
import { quorumOf } from '../../src/core/protocol/quorum.js';
import { newNodeState, type MemoryNodeState } from '../support/memory-node.js';
import { NODE_IDS, type Open, type ProcessConfig, type Request, type World } from './processes.js';

const CLUSTER = 'model.1';
const GENESIS = '0'.repeat(64);
const LEADER = 'seq-1/1';
const SUCCESSOR = 'seq-2/2';
const NONCE = 'nonce-1';
const NO_DATA = new Uint8Array(0);
const FIRST: Block = { height: 1, hash: '1'.repeat(64), parent: GENESIS, timestamp: 0, data: NO_DATA };
const SECOND: Block = { height: 2, hash: '2'.repeat(64), parent: FIRST.hash, timestamp: 0, data: NO_DATA };

/** A rule of the recovery that is broken on purpose. */
export type RecoveryBreak = '' | 'moved-nodes-are-marked';

/** The leader holds node a. Node b is about to be re-admitted. Node c restarted. No quorum is admitted. */
function oldLife(): MemoryNodeState[] {
  return NODE_IDS.map((id, n) => {
    const s = newNodeState(id, CLUSTER, GENESIS, `run-${id}`, 'boot');
    const r = s.record!;
    Object.assign(r, { claimant: LEADER, head: 1, headEpoch: 1, headHash: FIRST.hash });
    s.entries = [{ ...FIRST, epoch: 1, owner: LEADER, damage: '' }];
    s.epoch = 1;
    if (n === 0) s.lock = { owner: LEADER, expiresAtMs: null };
    if (n === 1)
      Object.assign(r, { incarnation: '', pending: NONCE, pendingOwner: LEADER, pendingEpoch: 1, usedNonces: [NONCE] });
    if (n === 2) s.runId = 'run-c-again';
    return s;
  });
}

function oldCalls(): { node: number; request: Request }[] {
  const write: NodeCall = {
    script: 'write_block',
    owner: LEADER,
    epoch: 1,
    ttlMs: Infinity,
    mode: 'append',
    block: SECOND,
    entryEpoch: 1,
  };
  const calls: [number, NodeCall][] = [
    [1, { script: 'admit', owner: LEADER, epoch: 1, nonce: NONCE, ttlMs: Infinity, head: 1, headHash: FIRST.hash }],
    [0, write],
    [1, write],
    [2, write],
    [0, { script: 'claim', owner: SUCCESSOR, epoch: 2 }],
    [1, { script: 'claim', owner: SUCCESSOR, epoch: 2 }],
    [1, { script: 'promote_leader', owner: SUCCESSOR, expectedEpoch: 1, ttlMs: Infinity }],
    [
      2,
      { script: 'begin_admission', owner: LEADER, epoch: 1, nonce: 'nonce-2', floor: 0, floorHash: GENESIS, keepMs: 1 },
    ],
    [2, { script: 'backfill', owner: LEADER, epoch: 1, nonce: 'nonce-2', block: FIRST, entryEpoch: 1 }],
    [2, { script: 'admit', owner: LEADER, epoch: 1, nonce: 'nonce-2', ttlMs: Infinity, head: 1, headHash: FIRST.hash }],
  ];
  return calls.map(([node, call]) => ({ node, request: { cluster: CLUSTER, kind: 'call', call } }));
}

async function recover({ ports, clock, random }: Open): Promise<string> {
  const readers = ports('');
  const signal = new AbortController().signal;
  const evidence = await gather({ nodes: ports(''), readers, limitMs: 1, clock, peers: [], signal });
  const decision = decideRecovery(evidence, CLUSTER);
  if (decision.outcome !== 'plan') return decision.outcome;
  const { plan } = decision;
  await carryOut(plan, evidence, {
    nodes: ports(plan.cluster),
    readers,
    limitMs: 1,
    clock,
    random,
    command: 'recover',
    step: () => undefined,
    changed: () => undefined,
  });
  return `recovered ${plan.cluster}`;
}

export function recoveryConfig(
  by: number,
  faults: Pick<ProcessConfig, 'unknowns' | 'restarts'>,
  broken: RecoveryBreak = '',
): ProcessConfig {
  return {
    genesis: GENESIS,
    nodes: oldLife(),
    old: oldCalls(),
    ...faults,
    observe,
    processes: new Array<typeof recover>(by).fill(recover),
    ...(broken === 'moved-nodes-are-marked'
      ? { altered: (call, s) => (call.script === 'recover_node' ? { ...call, expect: expectationOf(s) } : call) }
      : {}),
    mayAct: (s) => s.record === null || s.record.cluster === CLUSTER,
  };
}

/** `memory`: for each height, the hash that a reader of one generation has taken as committed. */
function observe({ nodes, ended, restarts }: World, memory: string): { memory: string; why: string } {
  const agreed = memory === '' ? ['', ''] : memory.split(' ');
  agreed[0] ||= FIRST.hash;
  let why = '';
  for (const s of nodes) {
    for (const entry of isAdmitted(s) ? s.entries : []) {
      const copies = nodes.filter(
        (other) =>
          isAdmitted(other) &&
          other.record!.cluster === s.record!.cluster &&
          other.entries.some(
            ({ height, hash, epoch }) => height === entry.height && hash === entry.hash && epoch === entry.epoch,
          ),
      ).length;
      if (copies < quorumOf(nodes.length)) continue;
      agreed[entry.height - 1] ||= entry.hash;
      if (agreed[entry.height - 1] !== entry.hash) why ||= `I4: FORK at height ${entry.height}`;
    }
  }
  // A promotion needs a quorum of one generation. So at least one node of each such quorum must hold every committed
  // block.
  for (const { record } of nodes) {
    const voters = nodes.filter((s) => isAdmitted(s) && s.record!.cluster === record?.cluster);
    agreed.forEach((hash, i) => {
      if (hash === '') return;
      const without = voters.filter((s) => s.entries[i]?.hash !== hash).length;
      if (without >= quorumOf(nodes.length))
        why ||= `I4: committed block ${i + 1} is on no node of a quorum of ${record!.cluster}`;
    });
  }
  for (const word of ended) {
    const [, cluster] = /^recovered (.*)$/.exec(word ?? '') ?? [];
    const admitted = nodes.filter((s) => isAdmitted(s) && s.record!.cluster === cluster).length;
    if (
      cluster !== undefined &&
      restarts === 0 &&
      admitted < quorumOf(nodes.length) &&
      !ended.some((other) => other !== word && other !== null)
    )
      why ||= `said to be recovered as ${cluster}: ${admitted} nodes are admitted there`;
  }
  return { memory: agreed.join(' '), why };
}

function isAdmitted(s: MemoryNodeState): boolean {
  return s.record !== null && s.record.pending === '' && s.record.run === s.runId && s.epoch !== null;
}

function expectationOf(s: MemoryNodeState): string {
  const r = s.record;
  return recoveryExpectation({
    runId: s.runId,
    cluster: r?.cluster ?? '',
    incarnation: r?.incarnation ?? '',
    pending: r?.pending ?? '',
    epoch: s.epoch ?? 0,
    head: r?.head ?? 0,
    headEpoch: r?.headEpoch ?? 0,
    headHash: r?.headHash ?? '',
    length: s.entries.length,
  });
}

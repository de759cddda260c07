// `seq cluster init` by several people at once, cut off anywhere, on nodes that may forget (docs/PROTOCOL.md section 8, bootstrap).
// Kept in every state: only one nonce ever admits a node, and none before every node showed it; whoever says that the cluster is made is
// right; what a leader has begun to use is never touched again.
import { bootstrap } from '../../src/core/engine/bootstrap.js';
import { applyCall, emptyNodeState, type MemoryNodeState } from '../support/memory-node.js';
import { NODE_IDS, type ProcessConfig, type World } from './processes.js';

const CLUSTER = 'model.1';
const GENESIS = '0'.repeat(64);

/** All nodes admitted and one promotion on a quorum: from here on a node has something to remember. */
const USED: NonNullable<ProcessConfig['happens']> = {
  name: 'a leader uses it',
  possible: ({ nodes }) => nodes.every(isAdmitted),
  act: (nodes) => nodes.slice(0, 2).forEach((s, n) => {
    const at = { cluster: CLUSTER, genesis: GENESIS };
    applyCall(s, { script: 'promote_leader', owner: 'seq/1', expectedEpoch: 0, ttlMs: Infinity }, at, NODE_IDS[n]!, 0);
    s.lock = null; // it expires sooner or later: nothing may rest on it
  }),
};

export function bootstrapConfig(by: number, faults: Pick<ProcessConfig, 'unknowns' | 'wipes' | 'restarts'>): ProcessConfig {
  return {
    genesis: GENESIS, nodes: NODE_IDS.map((id) => emptyNodeState(`run-${id}`)), ...faults, happens: USED,
    processes: Array.from({ length: by }, () => async ({ ports, clock, random }) => {
      await bootstrap({ nodes: ports(CLUSTER), cluster: CLUSTER, limitMs: 1, clock, random });
      return 'made';
    }),
    observe,
  };
}

/** Memory: the nonces each node has shown, the one that admitted a node, and which nodes a leader has raised. */
function observe(world: World, memory: string): { memory: string; why: string } {
  const known = memory === '' ? { shown: NODE_IDS.map((): string[] => []), admitting: '', used: NODE_IDS.map(() => false) } : JSON.parse(memory) as { shown: string[][]; admitting: string; used: boolean[] };
  const { nodes, ended } = world;
  let why = '';
  nodes.forEach((s, n) => {
    const nonce = s.record === null ? '' : nonceOf(s.record.pending || s.record.incarnation);
    const shown = known.shown[n]!;
    if (nonce !== '' && !shown.includes(nonce)) shown.push(nonce);
    shown.sort();
    if ((s.epoch ?? 0) > 0) known.used[n] = true;
  });
  nodes.forEach((s, n) => {
    if (!isAdmitted(s)) return;
    const nonce = nonceOf(s.record!.incarnation);
    if (known.admitting === '') known.admitting = nonce;
    if (known.admitting !== nonce) why ||= `node ${n + 1} is admitted by ${nonce}, another one by ${known.admitting}`;
    if (known.shown.some((one) => !one.includes(nonce))) why ||= `node ${n + 1} is admitted by ${nonce}, which not every node has shown`;
    if (known.used[n] && s.epoch === 0) why ||= `I7: node ${n + 1} was used, forgot, and takes part again without a leader`;
  });
  if (ended.includes('made') && world.wipes === 0 && world.restarts === 0 && !nodes.every(isAdmitted)) why ||= 'it is said to be made, and a node is not admitted';
  return { memory: JSON.stringify(known), why };
}

function nonceOf(mark: string): string {
  return mark.replace('bootstrap:', '').replace(/\..*$/, '');
}

function isAdmitted(s: MemoryNodeState): boolean {
  return s.record !== null && s.record.pending === '' && s.record.run === s.runId && s.epoch !== null;
}

// Handles what killed measurements have left. A key can get a lifetime only once it exists. A process that dies in
// between leaves a key without one. So the lane is recorded before it is created, and the next measurement gives its
// remaining keys a lifetime. Nothing is deleted, because the other measurement may still run.
import type { BenchServer, Clock, NodePort } from '../ports.js';
import { askAll } from '../nodes/ask-all.js';

const RECORDS = 200;
const MOST_LANES = 50;
const LANE = /\bbench-[0-9a-f]{8}\b/;

export interface LeftLanes {
  nodes: readonly NodePort[];
  servers: readonly { server: BenchServer }[];
  lifeMs: number;
  limitMs: number;
  clock: Clock;
}

export async function limitLeftLanes({ nodes, servers, lifeMs, limitMs, clock }: LeftLanes): Promise<void> {
  const reads = await askAll(
    nodes.filter((node) => node.readAudit !== undefined),
    (node) => node.readAudit!(RECORDS, limitMs),
    { limitMs, clock },
  );
  const records = reads
    .flatMap((read) => (read.outcome === 'accepted' ? read.value : []))
    .filter((record) => record['what'] === 'bench');
  const lanes = new Set(records.flatMap((record) => LANE.exec(record['outcome'] ?? '')?.[0] ?? []));
  for (const lane of [...lanes].slice(-MOST_LANES))
    await Promise.all(servers.map(({ server }) => server.limitLife(lifeMs, limitMs, lane)));
}

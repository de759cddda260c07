// A request to the leader is done once; its outcome goes to the audit stream and the request away, on every node that answers (docs/PROTOCOL.md section 2).
import type { Clock, NodePort } from '../ports.js';
import type { LeaderRequest } from '../protocol/words.js';

const LIMIT_MS = 100;
const AUDIT_RECORDS = 10_000;

export async function answerRequest(nodes: readonly NodePort[], request: LeaderRequest, outcome: string, leader: string, clock: Clock): Promise<void> {
  const record = {
    at: String(clock.wall()), what: 'request', id: request.id, kind: request.kind, to: request.to, by: request.by, reason: request.reason,
    epoch: String(request.epoch), leader, outcome,
  };
  await Promise.all(nodes.map(async (node) => {
    await node.call({ script: 'audit', record, maxRecords: AUDIT_RECORDS }, LIMIT_MS);
    await node.call({ script: 'clear_request', id: request.id }, LIMIT_MS);
  }));
}

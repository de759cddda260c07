// What the nodes keep as evidence: superseded entries, and a stream that was set aside (docs/PROTOCOL.md section 2). It
// only reads. A node that did not answer has a row; it never counts as "nothing there".
import { EXIT, SeqError } from '../errors.js';
import type { Clock, NodePort, OrphansRead } from '../ports.js';
import { describeReply } from '../protocol/describe.js';
import { bounded } from '../nodes/ask-all.js';

/** Time to move at most 32 MiB, on top of the node timeout. */
const MOVING_MS = 1000;

export interface NodeOrphans {
  id: string;
  url: string;
  read: OrphansRead | null;
  why: string;
}

export async function readOrphans(options: {
  nodes: readonly NodePort[];
  limitMs: number;
  clock: Clock;
  limit: number;
}): Promise<NodeOrphans[]> {
  const { nodes, limitMs, clock, limit } = options;
  const rows = await Promise.all(
    nodes.map(async (node): Promise<NodeOrphans> => {
      if (node.readOrphans === undefined) return { id: node.id, url: node.url, read: null, why: 'it keeps none' };
      const reply = await bounded(node.readOrphans(limit, limitMs), limitMs + MOVING_MS, clock);
      return reply.outcome === 'accepted'
        ? { id: node.id, url: node.url, read: reply.value, why: '' }
        : { id: node.id, url: node.url, read: null, why: describeReply(reply) };
    }),
  );
  if (rows.every(({ read }) => read === null)) {
    throw new SeqError({
      code: 'NO_ANSWER',
      exit: EXIT.noQuorum,
      message:
        `none of ${rows.length} nodes answered: ` +
        `${rows.map(({ id, url, why }) => `${id} (${url}): ${why}`).join('; ')}`,
      why: 'without an answer it is not known what they keep',
      changed: 'nothing',
      next: ['seq status'],
      retryable: true,
    });
  }
  return rows;
}

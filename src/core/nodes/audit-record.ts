// Writes a record of every operator's change on every node that answers (docs/PROTOCOL.md section 2, `seq:ops:audit`).
// When fewer than a quorum take the record, that is a warning, not a failure: the change itself has happened.
import { quorumOf } from '../config.js';
import type { Clock, NodePort } from '../ports.js';
import { askAll } from './ask-all.js';

const RECORDS = 10_000;

export interface Operator {
  /** user@host */
  by: string;
  host: string;
  /** The command as it was given, without secrets. */
  command: string;
}

export interface Change {
  /** The verb: stepdown, hold, resume, epoch heal … */
  what: string;
  reason: string;
  before: string;
  after: string;
  outcome: string;
  /** Epoch of the term that the change ended, if it ended one. */
  epoch?: string;
  /** Digest of the plan, if there was a plan. */
  plan?: string;
}

/** Returns a warning when fewer than a quorum took the record. '' otherwise. */
export async function recordChange(
  nodes: readonly NodePort[],
  change: Change,
  operator: Operator,
  clock: Clock,
  limitMs: number,
): Promise<string> {
  const record: Record<string, string> = { at: String(clock.wall()), ...operator, ...change, plan: change.plan ?? '' };
  const replies = await askAll(nodes, (node) => node.call({ script: 'audit', record, maxRecords: RECORDS }, limitMs), {
    limitMs,
    clock,
  });
  const taken = replies.filter((reply) => reply.outcome === 'accepted').length;
  return taken >= quorumOf(nodes.length)
    ? ''
    : `the audit record of this change is on ${taken} of ${nodes.length} nodes only`;
}

// How many answers decide. One tally for everything that needs a quorum: pre-vote, promotion, claim, write,
// commitment, an operator's request. Counts are always over the configured nodes, never over those that answered;
// unknown is never "no" (docs/PROTOCOL.md sections 1, 5, 6).
import type { NodeReply } from './types.js';

/** q = floor(N/2)+1 of the configured nodes: two quorums always share a node. */
export function quorumOf(nodes: number): number {
  return Math.floor(nodes / 2) + 1;
}

/**
 * Answers of n configured nodes. `unknown` holds those that gave no answer as well as those that have not given one
 * yet.
 */
export interface Votes {
  yes: number;
  no: number;
  unknown: number;
  n: number;
}

/** won: q said yes. lost: even if every unknown one said yes it would not be q. pending: the unknown ones decide. */
export type TallyOutcome = 'won' | 'lost' | 'pending';

export function tally(votes: Votes): TallyOutcome {
  const { yes, no, unknown, n } = votes;
  if (yes + no + unknown !== n || yes < 0 || no < 0 || unknown < 0) {
    throw new RangeError(`votes ${yes} yes, ${no} no, ${unknown} unknown do not add up to ${n} configured nodes`);
  }
  const q = quorumOf(n);
  if (yes >= q) return 'won';
  return yes + unknown < q ? 'lost' : 'pending';
}

/**
 * Replies as votes: accepted is yes, refused is no, unknown or not yet there (undefined) is unknown. One reply a
 * node.
 */
export function votesOf(replies: Iterable<NodeReply<unknown> | undefined>, n: number): Votes {
  let yes = 0;
  let no = 0;
  for (const reply of replies) {
    if (reply?.outcome === 'accepted') yes += 1;
    else if (reply?.outcome === 'refused') no += 1;
  }
  return { yes, no, unknown: n - yes - no, n };
}

/**
 * Refused as fenced by so many nodes that the others are no quorum: another term is or will be ahead, this one must
 * step down.
 */
export function fencedOut(fenced: number, n: number): boolean {
  return fenced > n - quorumOf(n);
}

/** Whether `copies` of the same (height, epoch, hash) on admitted nodes commit it. */
export function commits(copies: number, n: number): boolean {
  return copies >= quorumOf(n);
}

/** Whether it may be committed already, if every node that cannot be asked holds it too. */
export function mayBeCommitted(copies: number, unknown: number, n: number): boolean {
  return copies + unknown >= quorumOf(n);
}

/** Nodes in a set kept as bits. */
export function bitsOf(set: number): number {
  let nodes = 0;
  for (let rest = set; rest > 0; rest &= rest - 1) nodes += 1;
  return nodes;
}

/** How many more of the nodes that serve may be lost before there is no quorum; negative: so many are short. */
export function margin(serving: number, n: number): number {
  return serving - quorumOf(n);
}

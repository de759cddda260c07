// How many answers make a decision. There is one tally for everything that needs a quorum: pre-vote, promotion, claim,
// write, commitment, an operator's request. It always counts over the configured nodes, never over those that answered.
// An unknown answer is never "no" (docs/PROTOCOL.md sections 1, 5, 6).
import type { NodeReply } from './types.js';

/** q = floor(N/2)+1 of the configured nodes. Two quorums always share a node. */
export function quorumOf(nodes: number): number {
  return Math.floor(nodes / 2) + 1;
}

/**
 * Answers of n configured nodes. `unknown` counts the nodes that failed to answer and the nodes that have not answered
 * yet.
 */
export interface Votes {
  yes: number;
  no: number;
  unknown: number;
  n: number;
}

/**
 * won: q nodes said yes. lost: fewer than q would say yes, even if every unknown one did. pending: the unknown ones
 * decide.
 */
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
 * Replies as votes: accepted is yes, refused is no. A reply that is unknown or not there yet (undefined) is unknown.
 * Each node has one reply.
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
 * Whether so many nodes fenced this term that the others are no quorum. Another term is or will be ahead, so this one
 * must step down.
 */
export function fencedOut(fenced: number, n: number): boolean {
  return fenced > n - quorumOf(n);
}

/** Whether `copies` of the same (height, epoch, hash) on admitted nodes commit it. */
export function commits(copies: number, n: number): boolean {
  return copies >= quorumOf(n);
}

/** Whether the block may be committed already, if every node that cannot be asked holds it too. */
export function mayBeCommitted(copies: number, unknown: number, n: number): boolean {
  return copies + unknown >= quorumOf(n);
}

/** The number of nodes in a set of bits. */
export function bitsOf(set: number): number {
  let nodes = 0;
  for (let rest = set; rest > 0; rest &= rest - 1) nodes += 1;
  return nodes;
}

/** How many serving nodes may be lost before there is no quorum. A negative number is how many are missing. */
export function margin(serving: number, n: number): number {
  return serving - quorumOf(n);
}

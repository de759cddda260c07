// Tallies, replies and verdicts as sentences, for status, logs and errors: "2 of 3 hold it; r2 did not answer". It
// never guesses: it names the nodes that did not answer, and says whether they could change the verdict. Pure
// functions. docs/PROTOCOL.md section 9.
import type { HeightVerdict, LedgerAnomaly } from './ledger.js';
import { mayBeCommitted, quorumOf, tally, votesOf, type Votes } from './quorum.js';
import { refusalText } from './refusals.js';
import type { Hash, NodeReply, Unknown } from './types.js';

/** `r1`, `r1 and r2`, `r1, r2 and r3`. */
export function listed(words: readonly string[]): string {
  return words.length < 2 ? words.join('') : `${words.slice(0, -1).join(', ')} and ${words[words.length - 1]}`;
}

/** The first 8 digits. A person can tell two blocks of one height apart by them; a program must never rely on them. */
export function shortHash(hash: Hash): string {
  return hash.slice(0, 8);
}

/** `no answer at connect within 100 ms: ECONNREFUSED`. */
function describeUnknown(reply: Unknown): string {
  return (
    `no answer at ${reply.step}${reply.limitMs === undefined ? '' : ` within ${reply.limitMs} ms`}: ` + `${reply.cause}`
  );
}

/** One node's reply, without its name. */
export function describeReply(reply: NodeReply<unknown>): string {
  switch (reply.outcome) {
    case 'accepted':
      return 'accepted';
    case 'refused':
      return refusalText(reply);
    case 'unknown':
      return describeUnknown(reply);
  }
}

/**
 * `2 of 3 accepted, 2 are needed`, and what is still open: `1 of 3 accepted, 2 are needed; 1 refused, 1 did not
 * answer`.
 */
export function describeVotes(votes: Votes, accepted = 'accepted'): string {
  const { yes, no, unknown, n } = votes;
  const rest = [...(no > 0 ? [`${no} refused`] : []), ...(unknown > 0 ? [`${unknown} did not answer`] : [])];
  const open = tally(votes) === 'pending' ? `, which could still make it ${quorumOf(n)}` : '';
  return `${ofQuorum(yes, n, accepted)}${rest.length === 0 ? '' : `; ${rest.join(', ')}${open}`}`;
}

function ofQuorum(yes: number, n: number, accepted: string): string {
  const q = quorumOf(n);
  return `${yes} of ${n} ${accepted}, ${q} ${q === 1 ? 'is' : 'are'} needed`;
}

/**
 * The tally, and the reply of every node that did not accept: `1 of 3 accepted, 2 are needed; r2: LOCK_HELD by …; r3:
 * no answer …`.
 */
export function describeReplies(
  replies: readonly { node: string; reply: NodeReply<unknown> | undefined }[],
  n: number,
  accepted = 'accepted',
): string {
  const votes = votesOf(
    replies.map((one) => one.reply),
    n,
  );
  const others = replies.flatMap(({ node, reply }) =>
    reply === undefined
      ? [`${node}: no answer yet`]
      : reply.outcome === 'accepted'
        ? []
        : [`${node}: ${describeReply(reply)}`],
  );
  const unasked = n - replies.length;
  if (unasked > 0) others.push(`${unasked} ${unasked === 1 ? 'was' : 'were'} not asked`);
  return [ofQuorum(votes.yes, n, accepted), ...others].join('; ');
}

/** One height in one sentence. It names the nodes behind the verdict. */
export function describeVerdict(v: HeightVerdict): string {
  return [headline(v), ...besides(v)].join('; ');
}

function headline(v: HeightVerdict): string {
  const at = `height ${v.height}`;
  const block = v.hash === null ? '' : shortHash(v.hash);
  switch (v.verdict) {
    case 'committed':
      if (v.holders.length === 0) return `${at}: ${block} is committed, and no node that answered shows it`;
      return (
        `${at}: ${block} is committed, ${v.copies} of ${v.n} hold it` +
        (v.evidence === 'successor'
          ? ' (the next block proves it)'
          : v.evidence === 'floor'
            ? ' (a floor proves it)'
            : '')
      );
    case 'pending':
    case 'undetermined': {
      if (v.hash === null) return `${at}: undetermined, too few nodes answered to tell`;
      const epochs =
        v.epochs.length > 1 ? ` (it stands under epochs ${listed(v.epochs.map(String))}, which do not add up)` : '';
      const need = `${v.copies} of ${v.n} hold ${block} under epoch ${v.epoch}, ${quorumOf(v.n)} are needed${epochs}`;
      return (
        `${at}: ${v.verdict}, ` +
        `${need}${v.mayBeCommitted ? '; those that cannot be asked or believed could make it committed' : ''}`
      );
    }
    case 'orphan':
      return `${at}: an orphan, ${block} is committed there and retained by no node that answered`;
    case 'conflict':
      return `${at}: CONFLICT, ${v.why}`;
    case 'damaged':
      return `${at}: damaged, and too few sound copies to tell what is committed`;
    case 'missing':
      return `${at}: missing from a node that holds what is below and above it`;
    case 'trimmed':
      return `${at}: trimmed, committed and no longer retained`;
    case 'empty':
      return `${at}: nothing there`;
  }
}

function besides(v: HeightVerdict): string[] {
  const out: string[] = [];
  const damaged = v.damaged.map((one) => one.node);
  const orphans = v.orphans.map((one) => one.node);
  const without = v.lacking.filter((id) => !damaged.includes(id) && !orphans.includes(id) && !v.missing.includes(id));
  if (without.length > 0 && v.verdict !== 'empty' && v.hash !== null && v.verdict !== 'conflict') {
    out.push(`${listed(without)} ${without.length === 1 ? 'lacks' : 'lack'} it`);
  }
  if (orphans.length > 0)
    out.push(
      `${listed(v.orphans.map((one) => `${one.node} holds ${shortHash(one.hash)} of epoch ${one.epoch}`))}, an orphan`,
    );
  for (const one of v.damaged) out.push(`${one.node} is damaged there (${one.why})`);
  if (v.missing.length > 0) out.push(`${listed(v.missing)} ${v.missing.length === 1 ? 'has' : 'have'} a hole there`);
  if (v.trimmed.length > 0 && v.verdict !== 'trimmed')
    out.push(`${listed(v.trimmed)} ${v.trimmed.length === 1 ? 'has' : 'have'} trimmed it`);
  if (v.leftOut.length > 0)
    out.push(
      `${listed(v.leftOut)} ${v.leftOut.length === 1 ? 'is' : 'are'} not admitted and ` +
        `${v.leftOut.length === 1 ? 'counts' : 'count'} for nothing`,
    );
  if (v.unknown.length > 0) out.push(`${listed(v.unknown)} did not answer`);
  return out;
}

/** An anomaly that a follower found in the nodes' streams. */
export function describeAnomaly(anomaly: LedgerAnomaly): string {
  const where = anomaly.nodes.length === 0 ? '' : ` (${listed(anomaly.nodes)})`;
  switch (anomaly.kind) {
    case 'conflict':
      return `CONFLICT at height ${anomaly.height}: ${anomaly.why}${where}`;
    case 'chain-mismatch':
      return `CHAIN_MISMATCH at height ${anomaly.height}: ${anomaly.why}${where}`;
    case 'not-retained':
      return `height ${anomaly.height} has to come from a peer: ${anomaly.why}${where}`;
  }
}

/**
 * The known copies and the nodes that did not answer: `1 of 3 hold it; 1 did not answer and could make it committed`.
 */
export function describeCopies(copies: number, unknown: readonly string[], n: number): string {
  const could = mayBeCommitted(copies, unknown.length, n) && copies < quorumOf(n) ? ' and could make it committed' : '';
  return `${copies} of ${n} hold it${unknown.length === 0 ? '' : `; ${listed(unknown)} did not answer${could}`}`;
}

// The confirmed head: asks the leader, and waits for one.
import { EXIT, SeqError } from '../core/errors.js';
import { errorWord, inBetween, parseObject } from '../core/http-answer.js';
import { httpCall } from '../core/http-call.js';
import type { StatusAnswer } from '../core/nodes/sequencer-client.js';
import { Patience, noSequencer } from './retry.js';
import { refuseHopeless, whyNobody, type Sequencers } from './sequencers.js';
import type { ConfirmedHead } from './types.js';

const HEAD_MS = 10_000;
const MAX_REPLY_BYTES = 64 * 1024;

type Up = Extract<StatusAnswer, { answered: true }>;

export async function confirmedHead(
  sequencers: Sequencers,
  giveUpMs: number,
  signal: AbortSignal,
): Promise<ConfirmedHead> {
  const patience = new Patience(giveUpMs, signal);
  for (;;) {
    if (signal.aborted) throw interrupted();
    const answers = await sequencers.ask(signal);
    if (signal.aborted) throw interrupted();
    refuseHopeless(answers);
    const up = answers.flatMap((answer) => (answer.answered ? [answer] : []));
    if (up[0]) sequencers.meet(up[0].status);
    const leader = leaderOf(up);
    const answer = leader === '' ? whyNobody(answers) : await askHead(leader, sequencers, signal);
    if (typeof answer !== 'string') return answer;
    if (signal.aborted) throw interrupted();
    if (patience.isOver) {
      if (up.length === 0) throw noSequencer(giveUpMs, answer);
      throw new SeqError({
        code: 'NOT_CONFIRMED',
        exit: EXIT.tryAgain,
        message: `the committed head could not be confirmed for ${giveUpMs} ms`,
        why: answer,
        changed: 'nothing',
        next: [],
        retryable: true,
      });
    }
    await patience.wait();
  }
}

/** The address of the leader: one that was given, or the one that a follower names. '' when nobody names one. */
function leaderOf(up: readonly Up[]): string {
  const leading = up.filter(({ status }) => status.role === 'leader' && status.leaseMs > 0);
  const [first] = leading.sort((a, b) => b.status.epoch - a.status.epoch);
  if (first) return first.url;
  const seen = up.flatMap(({ status: { leader, id } }) =>
    leader !== null && leader.id !== id && leader.url !== '' ? [leader] : [],
  );
  return seen.sort((a, b) => b.epoch - a.epoch)[0]?.url ?? '';
}

/** The head, or why it is not known. */
async function askHead(url: string, { access }: Sequencers, signal: AbortSignal): Promise<ConfirmedHead | string> {
  const answer = await httpCall({
    url,
    path: '/v1/head',
    ...access,
    limitMs: HEAD_MS,
    connectMs: HEAD_MS,
    maxReplyBytes: MAX_REPLY_BYTES,
    signal,
  });
  if (answer.outcome !== 'answered') return answer.why;
  const said = parseObject(answer.body);
  const error = errorWord(said);
  if (error) return `${error.message} (${error.why})`;
  const { height, hash, epoch } = said ?? {};
  return answer.status === 200 &&
    Number.isSafeInteger(height) &&
    Number.isSafeInteger(epoch) &&
    typeof hash === 'string' &&
    /^[0-9a-f]{64}$/.test(hash)
    ? { height: height as number, hash, epoch: epoch as number }
    : inBetween(answer);
}

function interrupted(): SeqError {
  return new SeqError({
    code: 'INTERRUPTED',
    exit: EXIT.sigint,
    message: 'the call was ended by its signal',
    why: 'the caller asked for it',
    changed: 'nothing',
    next: [],
    retryable: true,
  });
}

// Asks running sequencers over HTTP: what is the status of each, and which one should a client use? It reports the
// answers and decides nothing else.
import { errorWord, inBetween, parseObject } from '../http-answer.js';
import { httpCall, type Agents, type ClientTls } from '../http-call.js';
import type { SequencerStatus } from '../ports.js';

export interface SequencerAccess {
  token?: string;
  tls?: ClientTls;
  agents?: Agents;
}

/** The answer of `/v1/status`: what the sequencer says about itself, and the limits of its HTTP server. */
export type RemoteStatus = SequencerStatus & {
  limits: {
    maxBlockBytes: number;
    maxItemBytes: number;
    maxKeyBytes: number;
    maxBatchItems: number;
    maxBodyBytes: number;
  };
};

/**
 * `code`: a sequencer answered with this error. `stranger`: a sequencer answered, but it is of another cluster or lane.
 * Nothing may be sent to it.
 */
export type StatusAnswer =
  | { url: string; answered: true; status: RemoteStatus }
  | { url: string; answered: false; why: string; code?: string; stranger?: true };

const MAX_STATUS_BYTES = 256 * 1024;

export async function askStatus(
  url: string,
  access: SequencerAccess,
  limitMs: number,
  signal?: AbortSignal,
): Promise<StatusAnswer> {
  const answer = await httpCall({
    url,
    path: '/v1/status',
    ...access,
    limitMs,
    connectMs: limitMs,
    maxReplyBytes: MAX_STATUS_BYTES,
    ...(signal ? { signal } : {}),
  });
  if (answer.outcome !== 'answered') return { url, answered: false, why: answer.why };
  const said = parseObject(answer.body);
  const error = errorWord(said);
  if (error) return { url, answered: false, why: `it answered ${answer.status} ${error.code}`, code: error.code };
  const status = said as RemoteStatus | undefined;
  if (
    answer.status !== 200 ||
    typeof status?.id !== 'string' ||
    typeof status.cluster !== 'string' ||
    typeof status.height !== 'number' ||
    typeof status.limits?.maxItemBytes !== 'number'
  ) {
    return { url, answered: false, why: inBetween(answer) };
  }
  return { url, answered: true, status };
}

export interface Choice {
  /** The best sequencer to send to. undefined when none can take items now. */
  target?: { url: string; status: RemoteStatus };
  answers: StatusAnswer[];
}

/**
 * Asks all sequencers at once. A leader with lease left is chosen as soon as it answers, so a hung sequencer delays
 * nobody. Otherwise it waits until all have answered or run out of time. Then it chooses one that is about to lead, a
 * follower that sees a leader with an address, or one that could lead. The last kind keeps the items until somebody
 * leads. `refusal` says why nothing may be sent to a sequencer. '' when sending is allowed.
 */
export async function chooseSequencer(
  urls: readonly string[],
  access: SequencerAccess,
  limitMs: number,
  signal: AbortSignal,
  refusal: (status: RemoteStatus) => string = () => '',
): Promise<Choice> {
  const answers: StatusAnswer[] = [];
  const leading = (answer: StatusAnswer) =>
    answer.answered && answer.status.role === 'leader' && answer.status.leaseMs > 0;
  await new Promise<void>((resolve) => {
    if (urls.length === 0) resolve();
    for (const url of urls) {
      void askStatus(url, access, limitMs, signal).then((given) => {
        const why = given.answered ? refusal(given.status) : '';
        const answer: StatusAnswer = why === '' ? given : { url, answered: false, why, stranger: true };
        answers.push(answer);
        if (leading(answer) || answers.length === urls.length) resolve();
      });
    }
  });
  const up = answers.filter((answer) => answer.answered);
  const best =
    up.filter(leading).sort((a, b) => b.status.epoch - a.status.epoch)[0] ??
    up.find(({ status }) => status.role === 'promoting') ??
    up
      .filter(
        ({ status }) =>
          status.role === 'follower' &&
          status.leader !== null &&
          status.leader.id !== status.id &&
          status.leader.url !== '',
      )
      .sort((a, b) => (b.status.leader?.epoch ?? 0) - (a.status.leader?.epoch ?? 0))[0] ??
    up.find(({ status }) => status.role === 'follower' && status.leader === null && status.ready);
  return { answers: [...answers], ...(best ? { target: { url: best.url, status: best.status } } : {}) };
}

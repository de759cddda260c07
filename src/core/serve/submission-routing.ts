// Routes a submission: to this sequencer while it leads, otherwise to the leader that it sees. While nobody leads, the
// submission waits for the next leader, as long as a lease and a takeover last. A submission that certainly was not
// accepted is offered again. A submission that may have been accepted is offered again only when all its items have
// keys, because the next leader recognises keys. Otherwise its outcome is unknown (I10).
import type { Item, SequencerApi, SequencerStatus, SubmitOutcome } from '../ports.js';
import type { ClientTls, HttpAnswer } from '../http-call.js';
import type { Answered } from '../http-answer.js';
import { failureOf, HttpError, outcomeUnknown, unavailable } from './envelope.js';
import { forward } from './forward.js';
import { readForwarded } from './forwarded-answer.js';

export interface RoutingOptions {
  api: SequencerApi;
  /** The token to send to the leader, as it is now. */
  outgoingToken?: () => string | undefined;
  /** The certificate authority to trust, as it is now. */
  outgoingTls?: () => ClientTls;
  /** A submission whose outcome is not known after this time is answered as unknown. */
  submitMs: number;
  connectMs: number;
  /** How long a submission is kept for the next leader when nobody accepts it. */
  holdMs: number;
}

export interface Submission {
  items: Item[];
  body: Buffer;
  /** Headers that are passed on to another sequencer. */
  headers: Record<string, string>;
  /**
   * The submission comes from a sequencer that took this one for the leader. Unless this one is about to lead, that
   * sequencer is told at once, and keeps the submission itself.
   */
  hopped: boolean;
  /** Aborted when the caller went away. Created on first use: most submissions are accepted here and never use it. */
  readonly gone: AbortSignal;
}

export type RoutedSubmission =
  | { by: 'self'; outcomes: SubmitOutcome[] }
  /**
   * `repeated`: an earlier offer may have been accepted. Then the duplicates in its receipts may be this very
   * submission.
   */
  | { by: 'leader'; id: string; answer: Answered; repeated: boolean };

type Taker = { name: string; leader: { id: string; url: string } | null };

/** A leader that did not accept is asked again after this time, as long as it is seen to lead. */
const SAME_AGAIN_MS = 500;
/** How long a stopping process waits to see the next leader. */
const STOPPING_HOLD_MS = 500;
/** A leader that was just succeeded still answers for what it committed, within this time. */
const LAST_ANSWER_MS = 100;

/** Null while no leader is known. */
function takerOf(status: SequencerStatus): Taker | null {
  const { id, role, epoch, leader } = status;
  if (role === 'leader') return { name: `${id}/${epoch}`, leader: null };
  if (role === 'promoting' || leader === null || leader.id === id || leader.url === '') return null;
  return { name: `${leader.id}/${leader.epoch}`, leader };
}

/** True when somebody leads, or is about to lead, as far as this sequencer knows. */
function worthKeeping(status: SequencerStatus): boolean {
  const { id, role, leader, ready } = status;
  if (leader !== null && leader.id !== id && role === 'follower') return leader.url !== '';
  return role === 'leader' || role === 'promoting' || ready;
}

/** Throws the answer when it is useless to read the submission or to keep it. */
export function refuseInVain(status: SequencerStatus, hopped: boolean): void {
  if (status.role === 'leader') return;
  if (hopped && status.role !== 'promoting')
    throw unavailable(
      'NOT_LEADER',
      `${status.id} does not lead`,
      'another sequencer took it for the leader; the lead has just changed',
      200,
    );
  if (!worthKeeping(status)) throw nobody(status);
}

function nobody(status: SequencerStatus): HttpError {
  const { id, role, leader, why } = status;
  if (role === 'stopping') return unavailable('STOPPING', `${id} is stopping`, 'send it to another sequencer');
  if (role === 'follower' && leader !== null && leader.id !== id && leader.url === '')
    return unavailable(
      'NO_LEADER',
      `the leader ${leader.id} has no address to forward to`,
      'it runs without --http, or its presence record has not been seen yet',
    );
  return unavailable(
    'NO_LEADER',
    'no sequencer leads right now',
    role === 'promoting'
      ? `${id} is being promoted`
      : why || 'the last lease ended or was released; a successor is about to be promoted',
    500,
  );
}

export async function routeSubmission(submission: Submission, options: RoutingOptions): Promise<RoutedSubmission> {
  const { api, holdMs, submitMs } = options;
  const { items, hopped } = submission;
  const keyed = items.every((item) => item.key !== undefined);
  const endAt = performance.now() + submitMs;
  let keepUntil = Infinity;
  let passed = { name: '', until: 0 };
  let mayBeIn = '';
  let refusal: HttpError | undefined;
  let submitted: Promise<SubmitOutcome[]> | undefined;
  for (;;) {
    const status = api.status();
    const taker = takerOf(status);
    if (submitted === undefined) {
      if (hopped) refuseInVain(status, hopped);
      if (taker?.leader === null && !skips(passed, taker)) submitted = api.submit(items);
    }
    if (submitted) {
      const outcomes = await settle(submitted, items.length, endAt - performance.now());
      submitted = undefined;
      passed = { name: taker?.name ?? '', until: performance.now() + SAME_AGAIN_MS };
      // It may be in a block that this sequencer cannot answer for any more. Whoever leads now knows it by its keys.
      const unknown = unknownOnly(outcomes);
      if (unknown !== undefined && keyed && api.status().role !== 'leader' && performance.now() < endAt) {
        if (hopped) throw new HttpError(outcomeUnknown(unknown, keyed));
        mayBeIn = unknown;
        continue;
      }
      const first = outcomes[0];
      // Nothing was accepted and the term is gone: the next leader may get the submission, as if it had just arrived.
      if (
        first?.outcome !== 'refused' ||
        !outcomes.every(
          (one) => one.outcome === 'refused' && (one.reason === 'not-leader' || one.reason === 'stopping'),
        )
      )
        return { by: 'self', outcomes };
      refusal = new HttpError(failureOf(first, keyed));
      continue;
    }
    if (taker?.leader && !skips(passed, taker)) {
      const answer = await passOn(submission, taker.leader, options, endAt - performance.now());
      if (answer.outcome === 'answered') {
        const read = readForwarded(answer, taker.leader, items.length);
        const why = read.word === 'unknown' ? read.why : keyed ? untold(answer, taker.leader.id) : '';
        if (why !== '') {
          if (!keyed || submission.gone.aborted) throw new HttpError(outcomeUnknown(why, keyed));
          mayBeIn = why;
        } else if (read.word === 'final')
          return { by: 'leader', id: taker.leader.id, answer, repeated: mayBeIn !== '' };
        else if (read.word === 'refused') {
          if (!read.refusal.failure.retryable && mayBeIn === '') throw read.refusal;
          refusal = read.refusal;
        }
      } else if (answer.outcome === 'unknown') {
        if (!keyed || submission.gone.aborted) throw new HttpError(outcomeUnknown(answer.why, keyed));
        mayBeIn = answer.why;
      } else {
        refusal = unavailable('NO_LEADER', `the leader ${taker.leader.id} could not be reached`, answer.why, 500);
      }
      passed = { name: taker.name, until: performance.now() + SAME_AGAIN_MS };
      continue;
    }
    const now = performance.now();
    keepUntil = Math.min(
      keepUntil,
      endAt,
      now + (status.role === 'stopping' ? Math.min(holdMs, STOPPING_HOLD_MS) : holdMs),
    );
    // It led a moment ago. Whoever takes over may not be seen yet.
    const worth = worthKeeping(status) || passed.name.startsWith(`${status.id}/`);
    if (now >= keepUntil || !worth || submission.gone.aborted)
      throw mayBeIn !== '' ? new HttpError(outcomeUnknown(mayBeIn, keyed)) : (refusal ?? nobody(status));
    ({ submitted } = await nextTaker(
      api,
      submission,
      passed,
      Math.min(keepUntil, taker ? passed.until : Infinity) - now,
    ));
  }
}

function skips(passed: { name: string; until: number }, taker: Taker): boolean {
  return taker.name === passed.name && performance.now() < passed.until;
}

/**
 * Resolves when another sequencer is seen to lead, when waiting becomes useless, or after `ms`. When this sequencer
 * itself begins to lead, the items are submitted within that very call, in the order in which submissions came. So they
 * are in its first block.
 */
function nextTaker(
  api: SequencerApi,
  { items, hopped, gone }: Submission,
  passed: { name: string },
  ms: number,
): Promise<{ submitted?: Promise<SubmitOutcome[]> }> {
  return new Promise((resolve) => {
    const finish = (found: { submitted?: Promise<SubmitOutcome[]> }): void => {
      stop();
      clearTimeout(timer);
      gone.removeEventListener('abort', none);
      resolve(found);
    };
    const none = (): void => finish({});
    const stop = api.onLeadership((status) => {
      const taker = takerOf(status);
      if (taker && taker.name !== passed.name) finish(taker.leader === null ? { submitted: api.submit(items) } : {});
      else if (!worthKeeping(status) || (hopped && status.role !== 'promoting')) finish({});
    });
    const timer = setTimeout(none, Math.max(0, ms));
    gone.addEventListener('abort', none, { once: true });
  });
}

/** The outcomes, or unknown for all when they do not come in time. */
function settle(submitted: Promise<SubmitOutcome[]>, count: number, limitMs: number): Promise<SubmitOutcome[]> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(
      () => {
        resolve(
          new Array<SubmitOutcome>(count).fill({
            outcome: 'unknown',
            why: `its commit was not established within ${Math.round(limitMs)} ms`,
          }),
        );
      },
      Math.max(0, limitMs),
    );
    submitted.finally(() => clearTimeout(timer)).then(resolve, reject);
  });
}

/** Why the outcome of some items is unknown, when nothing else prevented the others. */
function unknownOnly(outcomes: readonly SubmitOutcome[]): string | undefined {
  let why: string | undefined;
  for (const one of outcomes) {
    if (one.outcome === 'unknown') why ??= one.why;
    else if (one.outcome === 'refused' && one.reason !== 'not-leader' && one.reason !== 'stopping') return undefined;
  }
  return why;
}

/** One offer to the leader. It is aborted when the caller goes away, and soon after another leader is seen. */
async function passOn(
  submission: Submission,
  leader: { id: string; url: string },
  options: RoutingOptions,
  limitMs: number,
): Promise<HttpAnswer> {
  const { api, connectMs } = options;
  const [token, tls] = [options.outgoingToken?.(), options.outgoingTls?.()];
  const { body, headers, gone } = submission;
  const broken = new AbortController();
  let succeeded: NodeJS.Timeout | undefined;
  const stop = api.onLeadership((status) => {
    // Compare ids, not epochs: a leader that renewed its term still answers for what it accepted.
    const leads = status.role !== 'promoting' && status.leader?.id === leader.id;
    if (leads) clearTimeout(succeeded);
    succeeded = leads
      ? undefined
      : (succeeded ?? setTimeout(() => broken.abort(`${leader.id} no longer leads`), LAST_ANSWER_MS));
  });
  const left = (): void => broken.abort('the caller went away');
  gone.addEventListener('abort', left, { once: true });
  try {
    if (gone.aborted) left();
    return await forward({
      url: leader.url,
      body,
      headers,
      limitMs,
      connectMs,
      signal: broken.signal,
      ...(token === undefined ? {} : { token }),
      ...(tls === undefined ? {} : { tls }),
    });
  } finally {
    stop();
    clearTimeout(succeeded);
    gone.removeEventListener('abort', left);
  }
}

/** A leader that cannot tell the outcome may have ceased to lead. Its successor knows the items by their keys. */
function untold(answer: Extract<HttpAnswer, { outcome: 'answered' }>, leader: string): string {
  return answer.status === 504 ? `the leader ${leader} could not tell the outcome` : '';
}

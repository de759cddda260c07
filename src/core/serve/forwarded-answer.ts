// What does the answer to a forwarded submission say? Only receipts and a sequencer's own errors are a word, and only
// as a whole. Somebody in between who refuses took nothing in. Whoever answers anything else may have passed it on.
import type { ErrorCode } from '../error-codes.js';
import { errorWord, inBetween, parseObject, refusedOnTheWay, type Answered } from '../http-answer.js';
import { HttpError, unavailable } from './envelope.js';
import { ID_HEADER } from './forward.js';

export type ForwardedAnswer =
  /** The caller gets it as it is. */
  | { word: 'final' }
  /** Nothing was taken in. */
  | { word: 'refused'; refusal: HttpError }
  | { word: 'unknown'; why: string };

/** A 503 with one of these codes says that no item was accepted. */
const NOT_TAKEN: readonly ErrorCode[] = ['NOT_LEADER', 'NO_LEADER', 'STOPPING'];

export function readForwarded(answer: Answered, leader: { id: string; url: string }, items: number): ForwardedAnswer {
  const by = answer.headers[ID_HEADER];
  if (!isWhole(answer.body, items)) {
    const why = inBetween(answer);
    if (by !== undefined || !refusedOnTheWay(answer)) return { word: 'unknown', why };
    return {
      word: 'refused',
      refusal: answer.status === 413 ? tooLarge(leader, why) : otherAddress(leader, 'somebody in between', `${why}; `),
    };
  }
  // Another sequencer that took the items in is their leader by now.
  if (by !== undefined && by !== leader.id && answer.status === 503)
    return { word: 'refused', refusal: otherAddress(leader, String(by)) };
  const error = answer.status === 503 ? errorWord(parseObject(answer.body)) : undefined;
  const code = NOT_TAKEN.find((one) => one === error?.code);
  return error && code
    ? { word: 'refused', refusal: unavailable(code, error.message, error.why, 500) }
    : { word: 'final' };
}

/** One error for all, or a receipt or an error for each. A line of an answer is never empty. */
function isWhole(body: Buffer, items: number): boolean {
  const text = body.toString('utf8');
  const lines = text.split('\n');
  if (lines.at(-1) === '') lines.pop();
  const first = parseObject(lines[0] ?? '');
  if (lines.length === 1 && errorWord(first)) return true;
  return lines.length === items && isWord(first) && isWord(parseObject(lines.at(-1)!));
}

function isWord(line: Record<string, unknown> | undefined): boolean {
  return Number.isSafeInteger(line?.['height']) || errorWord(line) !== undefined;
}

function otherAddress({ id, url }: { id: string; url: string }, who: string, said = ''): HttpError {
  return unavailable(
    'LEADER_ADDRESS',
    `the leader ${id} announces ${url}, and ${who} answers there`,
    `${said}the address means another machine from here, or a proxy stands there: start the leader with --advertise`,
    500,
  );
}

function tooLarge({ id, url }: { id: string; url: string }, why: string): HttpError {
  return new HttpError({
    status: 413,
    code: 'BODY_TOO_LARGE',
    message: `the body is too large for what stands before the leader ${id} at ${url}`,
    why,
    next: ['send fewer items per request', 'raise the limit of that proxy', 'start the leader with --advertise'],
    retryable: false,
  });
}

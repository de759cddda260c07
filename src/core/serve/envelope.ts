// Errors of the HTTP interface: one JSON shape, and one status for each kind of failure. `retryable` means that the
// same request may be sent again: true only when nothing was accepted, or when its key makes that safe.
import type { SubmitOutcome } from '../ports.js';
import type { ErrorCode } from '../error-codes.js';
import { EXIT, SeqError } from '../errors.js';

export interface HttpFailure {
  status: number;
  code: ErrorCode;
  message: string;
  why: string;
  next: string[];
  retryable: boolean;
  retryAfterMs?: number;
  /** More facts for programs, e.g. `line`, `head`, `floor`. */
  facts?: Record<string, number | string>;
}

/** Thrown inside handlers; the server's error handler turns it into the reply. */
export class HttpError extends Error {
  constructor(readonly failure: HttpFailure) {
    super(failure.message);
    this.name = 'HttpError';
  }
}

export function envelope(failure: HttpFailure): { error: Record<string, unknown> } {
  const { code, message, why, next, retryable, facts } = failure;
  return { error: { code, message, why, next, retryable, ...facts } };
}

/** Retry-After counts whole seconds, and at least 1. */
export function retryAfter(failure: Pick<HttpFailure, 'status' | 'retryAfterMs'>): string | undefined {
  if (failure.status !== 503 && failure.retryAfterMs === undefined) return undefined;
  return String(Math.max(1, Math.ceil((failure.retryAfterMs ?? 1000) / 1000)));
}

export function malformed(
  message: string,
  why: string,
  next: string[] = [],
  facts?: Record<string, number | string>,
): HttpError {
  return new HttpError({
    status: 400,
    code: 'MALFORMED',
    message,
    why,
    next,
    retryable: false,
    ...(facts ? { facts } : {}),
  });
}

export function unavailable(code: ErrorCode, message: string, why: string, retryAfterMs = 1000): HttpError {
  return new HttpError({
    status: 503,
    code,
    message,
    why,
    next: ['send the same request again after the time in Retry-After'],
    retryable: true,
    retryAfterMs,
  });
}

export function outcomeUnknown(why: string, keyed: boolean): HttpFailure {
  return {
    status: 504,
    code: 'OUTCOME_UNKNOWN',
    message: 'whether this was sequenced is not known',
    why,
    retryable: keyed,
    next: keyed
      ? ['send it again with the same key: it is sequenced at most once and its receipt is returned']
      : ['look for it in the feed before sending it again: without a key a second copy is not recognised'],
  };
}

const REFUSED: Record<
  Extract<SubmitOutcome, { outcome: 'refused' }>['reason'],
  { status: number; code: ErrorCode; message: string; retryable: boolean; next: string }
> = {
  'not-leader': {
    status: 503,
    code: 'NOT_LEADER',
    message: 'this sequencer does not lead',
    retryable: true,
    next: 'send it again: another sequencer leads or is about to',
  },
  busy: {
    status: 503,
    code: 'BUSY',
    message: 'the inbox is full',
    retryable: true,
    next: 'send it again after the time in Retry-After',
  },
  stopping: {
    status: 503,
    code: 'STOPPING',
    message: 'this sequencer is stopping',
    retryable: true,
    next: 'send it to another sequencer',
  },
  'too-large': {
    status: 413,
    code: 'ITEM_TOO_LARGE',
    message: 'the item does not fit into one block',
    retryable: false,
    next: 'split the item, or raise --max-block-bytes on every sequencer',
  },
  'set-aside': {
    status: 422,
    code: 'ITEM_SET_ASIDE',
    message: 'the producer fails at this item, so it is in no block',
    retryable: false,
    next: 'change the item, or fix the producer and start the sequencers again',
  },
  'key-conflict': {
    status: 409,
    code: 'KEY_CONFLICT',
    message: 'this key was used for other bytes',
    retryable: false,
    next: 'use a new key for new content',
  },
};

/** The answer for an item that was not committed. */
export function failureOf(outcome: Exclude<SubmitOutcome, { outcome: 'committed' }>, keyed: boolean): HttpFailure {
  if (outcome.outcome === 'unknown') return outcomeUnknown(outcome.why, keyed);
  const { next, ...fixed } = REFUSED[outcome.reason];
  return {
    ...fixed,
    why: outcome.why,
    next: [next],
    ...(outcome.retryAfterMs === undefined ? {} : { retryAfterMs: outcome.retryAfterMs }),
  };
}

/** Accepts anything that a handler may throw. An unexpected error is reported as a bug, without its details. */
export function failureFrom(error: unknown): HttpFailure {
  if (error instanceof HttpError) return error.failure;
  if (error instanceof SeqError) {
    const status =
      error.exit === EXIT.notFound
        ? 404
        : error.exit === EXIT.data || error.exit === EXIT.usage
          ? 400
          : error.retryable
            ? 503
            : 500;
    return {
      status,
      code: error.code,
      message: error.message,
      why: error.why,
      next: error.next,
      retryable: error.retryable,
    };
  }
  const { statusCode, message } = (error ?? {}) as { statusCode?: unknown; message?: unknown };
  if (typeof statusCode === 'number' && statusCode >= 400 && statusCode < 500) {
    return {
      status: statusCode,
      code: 'BAD_REQUEST',
      message: String(message),
      why: 'the request does not follow HTTP or this API',
      next: [],
      retryable: false,
    };
  }
  return {
    status: 500,
    code: 'BUG',
    message: 'this request met a bug in the sequencer',
    why: 'see its log',
    next: ['report it with the log lines around this time'],
    retryable: false,
  };
}

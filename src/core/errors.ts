// Two kinds of errors: expected failures (SeqError: five parts, one exit code) and bugs (InvariantError). Outcomes of
// calls to nodes are data, never exceptions (protocol/types.ts).
import type { ErrorCode } from './error-codes.js';
import { withoutPasswords } from './url-password.js';

export const EXIT = {
  ok: 0,
  no: 1,
  critical: 2,
  unknown: 3,
  usage: 64,
  data: 65,
  notFound: 66,
  noQuorum: 69,
  bug: 70,
  output: 74,
  tryAgain: 75,
  precondition: 76,
  denied: 77,
  config: 78,
  partial: 79,
  outcomeUnknown: 80,
  safety: 81,
  sighup: 129,
  sigint: 130,
  sigterm: 143,
} as const;
export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

export interface SeqErrorParts {
  /** Stable and SCREAMING_SNAKE. `seq explain CODE` describes it. */
  code: ErrorCode;
  exit: ExitCode;
  /** What happened: one sentence that names the node, step and limit. */
  message: string;
  /** Why it happened, as far as seq knows. */
  why: string;
  changed: 'nothing' | 'some' | 'unknown';
  /** Which nodes changed, when `some`. */
  changedNodes?: string[];
  /** What to do next: exact commands where there are any. */
  next: string[];
  retryable?: boolean;
  cause?: unknown;
}

/** A failure that the operator can act on. It carries all that the five-part error and the JSON envelope show. */
export class SeqError extends Error {
  readonly code: ErrorCode;
  readonly exit: ExitCode;
  readonly why: string;
  readonly changed: 'nothing' | 'some' | 'unknown';
  readonly changedNodes: string[];
  readonly next: string[];
  readonly retryable: boolean;

  /**
   * The texts may quote an address that somebody typed, or wrote into a file or onto a node. The password of such an
   * address is hidden.
   */
  constructor(parts: SeqErrorParts) {
    super(withoutPasswords(parts.message), parts.cause === undefined ? undefined : { cause: parts.cause });
    this.name = 'SeqError';
    this.code = parts.code;
    this.exit = parts.exit;
    this.why = withoutPasswords(parts.why);
    this.changed = parts.changed;
    this.changedNodes = parts.changedNodes ?? [];
    this.next = parts.next.map(withoutPasswords);
    this.retryable = parts.retryable ?? false;
  }
}

/**
 * A bug: an invariant of docs/PROTOCOL.md section 3 does not hold. The message starts with its number, e.g. `I3: …`.
 */
export class InvariantError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'InvariantError';
  }
}

/** Throws InvariantError unless `holds`. This check also runs in production. */
export function invariant(holds: unknown, message: string): asserts holds {
  if (!holds) throw new InvariantError(message);
}

// What a program is told to do about a failure. The engine advises an operator, in flags of commands; here the same
// codes get the advice that a caller of the client can follow.
import type { ErrorCode } from '../core/error-codes.js';
import { EXIT, SeqError } from '../core/errors.js';

const SAME_KEYS = 'submit the same items again under the same keys: none is sequenced twice';

const NEXT: Partial<Record<ErrorCode, string[]>> = {
  OUTCOME_UNKNOWN: [SAME_KEYS],
  NO_PROGRESS: [SAME_KEYS, 'ask the cluster what it lacks: status()'],
  INTERRUPTED: ['make the same call again: an item is sequenced once for each key'],
  NO_SEQUENCER: ['compare `urls` with the addresses of the sequencers (--http of seq run)', 'status() tells why'],
  CERTIFICATE_NEEDED: ['pass `certificate`: a certificate of the authority that seq run has as --http-client-ca'],
  TOKEN_NEEDED: ['pass `token`: the content of the file that seq run has as --http-token-file'],
  WRONG_CLUSTER: ['name sequencers of one cluster in `urls`', 'or leave out `cluster` and `lane`'],
  KEY_CONFLICT: ['give this item a key of its own: its key was used for other bytes'],
  ITEM_TOO_LARGE: ['split the item, or raise --max-block-bytes on every sequencer'],
  BODY_TOO_LARGE: ['raise the limit of request bodies of the proxy', 'or name the sequencers themselves in `urls`'],
  NOT_CONFIRMED: ['call head() again', 'ask the cluster what it lacks: status()'],
  PEER_LACKS_BLOCKS: ['name a sequencer that has the whole chain in `urls`', 'or begin at a higher height: `from`'],
  CHAIN_MISMATCH: ['compare the sequencers: seq stream verify', 'use none of these blocks before that is understood'],
};

/** The same failure with advice for a program. Anything else is passed on as it is. */
export function told(error: unknown): unknown {
  if (!(error instanceof SeqError)) return error;
  const next = NEXT[error.code];
  if (next === undefined) return error;
  const { code, exit, message, why, changed, changedNodes, retryable } = error;
  return new SeqError({ code, exit, message, why, changed, changedNodes, next, retryable, cause: error.cause });
}

/** A call that cannot work. */
export function usage(message: string, next: string): SeqError {
  return new SeqError({
    code: 'USAGE',
    exit: EXIT.usage,
    message,
    why: 'the client was called with a value that it cannot use',
    changed: 'nothing',
    next: [next],
  });
}

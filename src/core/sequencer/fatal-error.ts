// Why can a sequencer not go on by itself? Makes the error that its process ends with.
import type { ErrorCode } from '../error-codes.js';
import { EXIT, SeqError } from '../errors.js';

export function fatalError(code: ErrorCode, detail: string, cause: unknown): SeqError {
  if (code === 'CLUSTER_RECOVERED') {
    return new SeqError({
      code,
      exit: EXIT.precondition,
      message: detail,
      why: 'no term of the old generation may act any more, so that nothing of it can reach the recovered nodes',
      changed: 'nothing',
      next: ['start this sequencer again: its store is as it was'],
    });
  }
  if (code === 'LANE_REMOVED') {
    return new SeqError({
      code,
      exit: EXIT.precondition,
      message: detail,
      why: 'seq lane rm has retired its memory on the nodes, so that nobody can lead it any more',
      changed: 'nothing',
      next: ['name another lane (--lane): seq lane ls lists them', 'its store is as it was'],
    });
  }
  if (code === 'DUPLICATE_ID') {
    return new SeqError({
      code,
      exit: EXIT.config,
      message: detail,
      why: 'each hides the other from the cluster, and submissions are forwarded to the wrong one',
      changed: 'nothing',
      next: ['give this sequencer an --id of its own, or stop the other process', 'seq status -o wide'],
      cause,
    });
  }
  if (code === 'SETTINGS_DIFFER') return otherProducer(detail);
  return cause instanceof SeqError
    ? cause
    : new SeqError({
        code,
        exit: code === 'CHAIN_MISMATCH' ? EXIT.precondition : EXIT.bug,
        message: detail,
        why:
          code === 'CHAIN_MISMATCH'
            ? "this store and the cluster hold different chains; one of them is not this cluster's history"
            : 'the process cannot go on safely',
        changed: 'nothing',
        next: ['seq status', 'keep the store directory; start with an empty one to follow the cluster'],
        cause,
      });
}

export function otherProducer(message: string): SeqError {
  return new SeqError({
    code: 'SETTINGS_DIFFER',
    exit: EXIT.config,
    message,
    why: 'a lane has one producer: who reads its blocks, and a child that applies them, knows one format',
    changed: 'nothing',
    next: [
      'start it with the producer of the lane (--producer batch, or --producer exec -- CMD …), or name another --lane',
      'to change the producer: seq cluster set --producer NAME, or seq run --adopt-producer where nobody leads',
    ],
  });
}

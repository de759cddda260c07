// The stable codes of a term: how it ended, and what it warned of. Logs, `seq history` and metrics show them, and
// `seq explain` describes them: without an entry in src/cli/codes the catalogue does not compile.
// docs/PROTOCOL.md section 5.
import type { Configuration } from './configuration.js';
import type { RefusalReason } from './types.js';

/** How a term ends by itself. */
type OwnEnd =
  | 'PROMOTION_LOST'
  | 'CLAIM_LOST'
  | 'CHOICE_OVERTAKEN'
  | 'CHAIN_MISMATCH'
  | 'BEHIND'
  | 'DAMAGED_HEADS'
  | 'BAD_PROPOSAL'
  | 'FENCED'
  | 'LEASE_EXPIRED'
  | 'RENEW'
  | 'RECONFIGURED';

/** Why the process around a term ends it (the event `stepdown`). */
const STEPDOWN_CODES = [
  // The process stops.
  'STOPPED',
  'SIGHUP',
  'SIGINT',
  'SIGTERM',
  'INTERRUPTED',
  'BUG',
  'CHAIN_MISMATCH',
  'CLUSTER_RECOVERED',
  'STORE_CLOSED',
  'STORE_FAILED',
  'STORE_UNREADABLE',
  'STORE_WRITE_FAILED',
  // Nothing is left to do, or somebody else is to lead.
  'REPAIRED',
  'REQUESTED',
  // No block can be proposed.
  'BLOCK_TOO_LARGE',
  'PRODUCER_FAILED',
  'PRODUCER_REVOKED',
  'RENEWAL_FAILED',
  'STORE_HOLE',
  'STORE_STALLED',
] as const;

export type StepdownCode = (typeof STEPDOWN_CODES)[number];
export type TermEndCode = OwnEnd | StepdownCode;

export interface TermEnd {
  code: TermEndCode;
  reason: string;
  /** A later configuration that this term met on a server that is no member. */
  learnt?: Configuration;
}

/** What a term warns of. A refusal that must not happen is a warning under its own word. */
export type TermAlarmCode =
  'AHEAD_OF_LEADER' | 'DAMAGED_ENTRY' | 'EPOCH_ABOVE_FENCE' | 'FLOOR_MISMATCH' | 'STORE_AHEAD' | RefusalReason;

const stepdownCodes: ReadonlySet<string> = new Set(STEPDOWN_CODES);

/** The code of an error as the code of a stepdown. An error that no term knows gets the code `otherwise`. */
export function stepdownCode(code: string, otherwise: StepdownCode): StepdownCode {
  return stepdownCodes.has(code) ? (code as StepdownCode) : otherwise;
}

// The events of a sequencer: each of its state changes is one of these. Logs, metrics, the TUI and the simulator's
// histories all use them.
import type { ErrorCode } from './error-codes.js';
import type { SeenNodeState } from './ports.js';
import type { StepdownCode, TermAlarmCode, TermEndCode } from './protocol/term-codes.js';
import type { Epoch, Hash, Height } from './protocol/types.js';

/** What a sequencer warns of: its term, its clock, its store's distance from the nodes, or a fetch that failed. */
export type AlarmCode =
  | TermAlarmCode
  | ErrorCode
  | 'CATCH_UP_FAILED'
  | 'NODE_ADDRESS'
  | 'NOT_CONFIGURED'
  | 'RETRY_BACKOFF'
  | 'STORE_STALLED'
  | 'LINK_TOO_SLOW'
  | 'READS_CUT';

/** Why a process stopped. */
export type StopCode = StepdownCode | ErrorCode;

export type SeqEvent =
  | { type: 'started'; id: string; cluster: string; lane: string; height: Height }
  | { type: 'role'; from: string; to: 'follower' | 'promoting' | 'leader' | 'stopping'; epoch: Epoch; reason: string }
  | { type: 'promotion-failed'; reason: string; code: TermEndCode }
  | { type: 'leadership-ended'; epoch: Epoch; code: TermEndCode; reason: string; heldMs: number }
  | { type: 'term-renewed'; from: Epoch; to: Epoch; reason: string }
  | { type: 'proposed'; height: Height; hash: Hash; epoch: Epoch; items: number }
  | {
      type: 'committed';
      height: Height;
      hash: Hash;
      epoch: Epoch;
      by: 'leader' | 'follower';
      items: number;
      bytes: number;
      commitMs: number;
    }
  | { type: 'stored'; height: Height }
  /** A block of the local store is damaged, or it is right again. */
  | { type: 'store'; state: 'damaged' | 'repaired'; height: Height; why: string }
  | { type: 'node'; node: string; state: SeenNodeState | 'moved' | 'member'; why: string }
  | { type: 'backfill'; node: string; from: Height; to: Height; head: Height }
  | { type: 'alarm'; code: AlarmCode; reason: string; node?: string; height?: Height }
  /**
   * The number of blocks that this leader keeps on the nodes (`to`), and the number that it was configured to keep
   * (`of`).
   */
  | { type: 'window'; from: number; to: number; of: number; why: string }
  | { type: 'producer'; state: 'ready' | 'failed' | 'restarted'; why: string }
  | { type: 'request'; id: string; kind: string; outcome: string; by: string }
  | { type: 'fatal-error'; code: ErrorCode; reason: string }
  | { type: 'stopped'; code: StopCode; reason: string };

export type EmitEvent = (event: SeqEvent) => void;

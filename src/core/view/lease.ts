// Which locks can be running leases, and is the leader's lease being renewed? Decided from what one probe shows: how
// long each lock still has, how long a lease is, and who announces itself (docs/PROTOCOL.md sections 4 and 9). A lock
// that no lease explains is stuck: its expiry was lengthened (a server's clock stepped back), or somebody wrote it by
// hand. A living leader renews its locks with every block, so a stuck lock is nobody's. Pure.
import { sequencerOf, type NodeView } from '../protocol/types.js';
import { duration } from '../duration.js';
import type { SequencerRow } from './presence.js';

/** A server counts a lease from the moment of the call, so no running lock has more than its ttl left. */
const COUNTDOWN_SLACK_MS = 50;
/** A renewal may be late by this much, or by half a block time, before anybody speaks of it. */
const LATE_MS = 250;
const BLOCK_TIME_MS = 1000;

export interface LeaseTiming {
  ttlMs: number | null;
  blockTimeMs: number;
}

/** The timing of one sequencer. Where it announces none, the longest that another one announces. */
export function leaseTiming(id: string, sequencers: readonly SequencerRow[]): LeaseTiming {
  const own = sequencers.find((one) => one.id === id);
  const longest = (values: (number | null)[]): number | null => {
    const known = values.filter((value) => value !== null);
    return known.length === 0 ? null : Math.max(...known);
  };
  return {
    ttlMs: own?.ttlMs ?? longest(sequencers.map((one) => one.ttlMs)),
    blockTimeMs: own?.blockTimeMs ?? longest(sequencers.map((one) => one.blockTimeMs)) ?? BLOCK_TIME_MS,
  };
}

/** Why this lock is stuck. '' when it may be a running lease, and when nobody says how long a lease is. */
export function whyStuck(lock: NodeView['lock'], sequencers: readonly SequencerRow[]): string {
  if (lock === null) return '';
  const { owner, pttlMs } = lock;
  const holder = sequencerOf(owner);
  if (pttlMs < 0) return `the lock of ${holder} never expires: no sequencer writes such a lock`;
  const { ttlMs } = leaseTiming(holder, sequencers);
  if (ttlMs === null || pttlMs <= ttlMs + Math.max(COUNTDOWN_SLACK_MS, ttlMs / 100)) return '';
  return `the lock of ${holder} expires in ${inWords(pttlMs)}, and no lease lasts longer than ${inWords(ttlMs)}`;
}

/** Whether a lease that was renewed this long ago should have been renewed again by now. */
export function isLate(renewedMs: number, { blockTimeMs }: LeaseTiming): boolean {
  return renewedMs > blockTimeMs + Math.max(LATE_MS, blockTimeMs / 2);
}

/** Seconds with one digit while that matters. */
export function inWords(ms: number): string {
  return ms < 60_000 ? `${(ms / 1000).toFixed(1)} s` : duration(ms);
}

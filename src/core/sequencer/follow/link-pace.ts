// Can this follower's link to the nodes carry what the cluster writes? The rate is that of its own reads, the need is
// what the leader says of its newest blocks. It says so, and decides nothing.
import type { NodeReading } from '../../ports.js';
import { admittedViews, type ProbeResult } from '../../nodes/probe.js';

export interface LinkPace {
  /** Bytes per second. Null: not known. */
  rate: number | null;
  need: number | null;
  tooSlow: boolean;
  /** '' when there is nothing to say. */
  text: string;
}

/** The nodes may share a link. The fastest of them shows what one payload a block costs. */
export function linkPace(readings: readonly (NodeReading | undefined)[], seen: ProbeResult): LinkPace {
  const rates = readings.flatMap((one) => (one?.bytesPerS == null ? [] : [one.bytesPerS]));
  const rate = rates.length === 0 ? null : Math.max(...rates);
  const need = neededBytesPerS(seen);
  const tooSlow = rate !== null && need !== null && rate < need;
  if (rate === null) return { rate, need, tooSlow, text: '' };
  const text =
    `it reads ${perSecond(rate)}` +
    (need === null ? '' : `, and the cluster writes ${perSecond(need)}`) +
    (tooSlow ? ': it cannot keep up over this link' : '');
  return { rate, need, tooSlow, text };
}

function neededBytesPerS(seen: ProbeResult): number | null {
  for (const view of admittedViews(seen))
    for (const { role, extra } of view.sequencers) {
      const [bytes, everyMs] = [Number(extra['blockBytes'] ?? NaN), Number(extra['blockEveryMs'] ?? NaN)];
      if (role === 'leader' && bytes >= 0 && everyMs > 0) return (1000 * bytes) / everyMs;
    }
  return null;
}

function perSecond(bytes: number): string {
  return bytes >= 100_000 ? `${(bytes / 1_000_000).toFixed(1)} MB/s` : `${Math.max(1, Math.round(bytes / 1000))} kB/s`;
}

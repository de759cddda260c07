// Which verdicts are reported, and which are normal in the fuel dialect (docs/FUEL.md)? Holes,
// disorder, the same bytes twice, heights that older scripts did not index, and minority orphans below the committed
// head are normal. Pure.
import type { FuelVerdict } from './classify.js';

export type ConcernCode =
  | 'DUPLICATE'
  | 'INDEX_MISMATCH'
  | 'REPAIRABLE'
  | 'SHADOWED'
  | 'UNDETERMINED'
  | 'UNWINNABLE_CONFLICT'
  | 'WINNABLE_CONFLICT';

export interface Concern {
  code: ConcernCode;
  verdict: 'WARN' | 'CRIT' | 'UNKNOWN';
}

/** Every concern, worst first. `above`: no higher height is known to be committed, so this height blocks the chain. */
export function concernsOf(
  v: Pick<FuelVerdict, 'class' | 'committed' | 'duplicates' | 'index'>,
  above: boolean,
): Concern[] {
  const found: Concern[] = [];
  if (v.class === 'unwinnable-conflict')
    found.push({ code: 'UNWINNABLE_CONFLICT', verdict: above || v.committed === null ? 'CRIT' : 'WARN' });
  if (v.class === 'unknown') found.push({ code: 'UNDETERMINED', verdict: 'UNKNOWN' });
  if (v.class === 'winnable-conflict') found.push({ code: 'WINNABLE_CONFLICT', verdict: 'WARN' });
  if (v.class === 'shadowed') found.push({ code: 'SHADOWED', verdict: 'WARN' });
  if (v.class === 'repairable' && above) found.push({ code: 'REPAIRABLE', verdict: 'WARN' });
  if (v.index.some((one) => one.is === 'only in the index')) found.push({ code: 'INDEX_MISMATCH', verdict: 'WARN' });
  if (v.duplicates.some((one) => !one.same)) found.push({ code: 'DUPLICATE', verdict: 'WARN' });
  return found;
}

// Which clocks differ from the median of the nodes' clocks? For nodes, the answers just now tell. For sequencers, their
// own statements in their presence records tell (docs/PROTOCOL.md section 6). Pure.
import { medianClock, readingOf, wrongBy } from '../nodes/node-clocks.js';
import type { NodeProbe } from './cluster-view.js';

/** The clock of a node, or of a sequencer. */
export type OffClock = { aheadMs: number } & (
  { node: string; sequencer?: undefined } | { node?: undefined; sequencer: string }
);

export function offClocks(probes: readonly NodeProbe[], quorum: number): OffClock[] {
  const views = probes.flatMap((probe) =>
    probe.reply.outcome === 'accepted' ? [{ ...probe, view: probe.reply.value }] : [],
  );
  const readings = views.flatMap(({ id, view, rttMs, askedAt }) =>
    rttMs === null || askedAt === undefined
      ? []
      : [{ node: id, reading: readingOf(view.timeMs, askedAt, askedAt + rttMs) }],
  );
  const median = medianClock(
    readings.map(({ reading }) => reading),
    quorum,
  );
  const nodes = readings.flatMap(({ node, reading }): OffClock[] => {
    const aheadMs = median === null ? null : wrongBy(reading, median);
    return aheadMs === null ? [] : [{ node, aheadMs }];
  });
  const said = new Map<string, number>();
  for (const { view } of views)
    for (const { id, extra } of view.sequencers) {
      const aheadMs = Number(extra['clockOffMs'] ?? NaN);
      if (Number.isFinite(aheadMs)) said.set(id, aheadMs);
    }
  return [...nodes, ...[...said].map(([sequencer, aheadMs]): OffClock => ({ sequencer, aheadMs }))];
}

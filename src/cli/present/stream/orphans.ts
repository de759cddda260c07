// Orphans of the nodes → Result. Pure. The names in `data` are a contract (schemas/stream.orphans.json).
import type { NodeOrphans } from '../../../core/stream/orphans.js';
import { sequencerOf } from '../../../core/protocol/types.js';
import type { Result } from '../result.js';
import { seconds } from '../cluster/cluster-view.js';

export function orphansResult(nodes: readonly NodeOrphans[], now: number): Result {
  const orphans = nodes.flatMap(({ id, read }) =>
    (read?.superseded ?? []).map(({ id: entry, ...one }) => ({
      node: id,
      entry,
      ...one,
      writer: sequencerOf(one.owner),
    })),
  );
  const rows = nodes.map(({ id, read, why }) => ({
    id,
    answered: read !== null,
    superseded: read?.total ?? null,
    setAside: read?.setAside == null ? null : asideData(read.setAside),
    note: why,
  }));
  return {
    data: { nodes: rows, orphans },
    tables: [
      {
        columns: [
          { key: 'node' },
          { key: 'height', align: 'right' },
          { key: 'epoch', align: 'right' },
          { key: 'writer' },
          { key: 'age', align: 'right' },
          { key: 'hash' },
          { key: 'supersededBy', label: 'SUPERSEDED BY' },
          { key: 'bytes', align: 'right', wide: true },
          { key: 'damage' },
        ],
        rows: orphans.map((one) => ({
          node: one.node,
          height: one.height,
          epoch: one.epoch,
          writer: one.writer,
          age: one.at === null ? null : seconds(now - one.at),
          hash: one.hash.slice(0, 16),
          supersededBy: one.supersededBy.slice(0, 16),
          bytes: one.size,
          damage: one.damage,
        })),
      },
      {
        columns: [
          { key: 'node' },
          { key: 'superseded', align: 'right' },
          { key: 'aside', label: 'SET ASIDE' },
          { key: 'note' },
        ],
        rows: rows.map(({ id, superseded, setAside, note }) => ({
          node: id,
          superseded,
          note,
          aside:
            setAside === null
              ? ''
              : `${setAside.entries} entries, ${setAside.heightFrom ?? '?'} to ${setAside.heightTo ?? '?'}` +
                (setAside.expiresMs === null ? '' : `, ${seconds(setAside.expiresMs)} left`),
        })),
      },
    ],
    items: orphans,
    warnings: rows
      .filter((row) => !row.answered)
      .map(({ id, note }) => `${id} did not answer: what it keeps is unknown (${note})`),
    meta: { nodesAsked: rows.length, nodesAnswered: rows.filter((row) => row.answered).length },
  };
}

function asideData({
  from,
  to,
  ...rest
}: {
  nonce: string;
  entries: number;
  from: number | null;
  to: number | null;
  expiresMs: number | null;
}) {
  return { ...rest, heightFrom: from, heightTo: to };
}

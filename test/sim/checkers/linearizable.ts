// Does the run behave like one append-only log? A checker of real processes (src/lab/chaos/checkers/linearizable.ts)
// asks the same question. Here, appends are submitted items with their places, and a confirmed head is a read. Whatever
// readers, tails and status showed must have been committed by then.
import {
  appendedTwice,
  outOfOrder,
  type Append,
  type Operation,
} from '../../../src/lab/chaos/checkers/linearizable.js';
import type { Anomaly, Checker, History } from '../history.js';

export const linearizable: Checker = (history) =>
  [...outOfOrder(operationsOf(history)), ...appendedTwice(placesByKey(history))].map(({ what, witness }): Anomaly => ({
    checker: 'linearizable',
    what,
    witness,
  }));

function placesByKey(history: History): Map<string, Append[]> {
  const places = new Map<string, Append[]>();
  const longest = [...history.final.stores].sort((a, b) => b.blocks.length - a.blocks.length)[0];
  for (const { height, keys } of longest?.blocks ?? [])
    keys.forEach((key, index) => places.set(key, [...(places.get(key) ?? []), { height, index }]));
  return places;
}

function operationsOf(history: History): Operation[] {
  const longest = [...history.final.stores].sort((a, b) => b.blocks.length - a.blocks.length)[0];
  const places = new Map(
    longest?.blocks.flatMap((block) => block.keys.map((key, index) => [key, { height: block.height, index }] as const)),
  );
  const items = new Map<string, Operation>();
  const operations: Operation[] = [];
  const shows = (what: string, t: number, height: number, entry: unknown): void =>
    void operations.push({ what, begin: Infinity, end: t, height, index: Infinity, entry });
  for (const entry of history.entries) {
    if (entry.is === 'submit') {
      for (const key of entry.keys) {
        const at = places.get(key);
        if (at && !items.has(key))
          items.set(key, {
            what: `${key} was appended at ${at.height}/${at.index}`,
            begin: entry.t,
            end: Infinity,
            ...at,
            entry,
          });
      }
    } else if (entry.is === 'answer' && entry.outcome === 'committed') {
      const item = items.get(entry.key);
      if (item && item.end === Infinity) item.end = entry.t;
    } else if (entry.is === 'confirm') {
      operations.push({
        what: `${entry.who} confirmed the head ${entry.height}`,
        begin: entry.from,
        end: entry.t,
        height: entry.height,
        index: Infinity,
        entry,
      });
    } else if (entry.is === 'read')
      shows(`${entry.reader} read block ${entry.height} from ${entry.who}`, entry.t, entry.height, entry);
    else if (entry.is === 'tail')
      shows(`the tail of the nodes showed block ${entry.height}`, entry.t, entry.height, entry);
    else if (entry.is === 'status')
      shows(`the status of ${entry.who} showed block ${entry.height}`, entry.t, entry.height, entry);
  }
  return [...operations, ...items.values()];
}

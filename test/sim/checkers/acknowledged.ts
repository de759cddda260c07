// Is every acknowledged item in the chain exactly once, at the place in its receipt? The items of one client must be in
// the order in which it sent them. An item without an answer may be there once or not at all. The chain holds nothing
// that nobody submitted.
import type { Anomaly, Checker } from '../history.js';

export const acknowledged: Checker = (history) => {
  const found: Anomaly[] = [];
  const bad = (what: string, ...witness: unknown[]): void =>
    void found.push({ checker: 'acknowledged', what, witness });
  const longest = [...history.final.stores].sort((a, b) => b.blocks.length - a.blocks.length)[0];
  const places = new Map<string, { height: number; index: number }[]>();
  for (const block of longest?.blocks ?? []) {
    block.keys.forEach((key, index) => {
      const there = places.get(key);
      if (there === undefined) places.set(key, [{ height: block.height, index }]);
      else there.push({ height: block.height, index });
    });
  }
  const submitted = new Set<string>();
  const order = new Map<string, string[]>();
  for (const entry of history.entries) {
    if (entry.is === 'submit') {
      const mine = order.get(entry.client) ?? [];
      order.set(entry.client, mine);
      for (const key of entry.keys) {
        if (!submitted.has(key)) mine.push(key);
        submitted.add(key);
      }
    }
    if (entry.is !== 'answer' || entry.outcome !== 'committed') continue;
    const there = places.get(entry.key) ?? [];
    if (there.length === 0) bad(`${entry.key} was acknowledged by ${entry.who} and is not in the chain`, entry);
    const { receipt } = entry;
    if (receipt && entry.synced < receipt.height)
      bad(
        `I10: ${entry.key} was acknowledged at height ${receipt.height} by ${entry.who}, whose store was ` +
          `synced up to ${entry.synced}`,
        entry,
      );
    if (receipt && there[0] && (there[0].height !== receipt.height || there[0].index !== receipt.index)) {
      bad(
        `the receipt of ${entry.key} says (${receipt.height}, ${receipt.index}), it is at ` +
          `(${there[0].height}, ${there[0].index})`,
        entry,
        there[0],
      );
    }
  }
  for (const [key, there] of places) {
    if (there.length > 1) bad(`${key} is in the chain ${there.length} times`, ...there);
    if (!submitted.has(key)) bad(`${key} is in the chain and nobody submitted it`, there[0]);
  }
  for (const [client, keys] of order) {
    let last: { key: string; height: number; index: number } | null = null;
    for (const key of keys) {
      const at = places.get(key)?.[0];
      if (!at) continue;
      if (last && (at.height < last.height || (at.height === last.height && at.index < last.index)))
        bad(`${client}: ${key} comes before ${last.key}, which was sent first`, last, { key, ...at });
      last = { key, ...at };
    }
  }
  // A refused item must be in no block, unless another attempt got it there.
  const sendings = new Map<string, { call: number; outcome: string }[]>();
  for (const entry of history.entries) {
    if (entry.is === 'submit')
      for (const key of entry.keys)
        sendings.set(key, [...(sendings.get(key) ?? []), { call: entry.call, outcome: 'unanswered' }]);
    if (entry.is === 'answer')
      for (const one of sendings.get(entry.key) ?? []) if (one.call === entry.call) one.outcome = entry.outcome;
  }
  for (const [key, tries] of sendings) {
    if (tries.every((one) => one.outcome === 'refused') && places.has(key))
      bad(`${key} was refused every time it was sent and is in the chain`, ...tries, ...places.get(key)!);
  }
  return found;
};

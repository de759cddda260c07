// Does the chain match what clients were told? Acknowledged items are in it once, where the receipt says. Refused items
// are not in it. Items of unknown outcome are in it at most once. Each client's items are in its order. There is no
// item that nobody sent, and no byte has changed.
import type { Anomaly, History, ItemFate } from '../history.js';
import { only } from '../history.js';

export interface Place {
  height: number;
  index: number;
}

/** Every place in the chain at which each token occurs. */
export function placesOf(history: Pick<History, 'chain'>): Map<string, (Place & { digest: string })[]> {
  const places = new Map<string, (Place & { digest: string })[]>();
  for (const { height, items } of history.chain) {
    items.forEach(({ token, digest }, index) => {
      const known = places.get(token);
      if (known === undefined) places.set(token, [{ height, index, digest }]);
      else known.push({ height, index, digest });
    });
  }
  return places;
}

export function itemsAsTold(history: History): Anomaly[] {
  const places = placesOf(history);
  const items = only(history, 'item');
  const anomalies: Anomaly[] = [];
  const say = (what: string, ...witness: unknown[]): void =>
    void anomalies.push({ checker: 'items as told', what, witness });
  for (const item of items) {
    const at = places.get(item.token) ?? [];
    if (at.length > 1) say(`${item.token} is in the chain ${at.length} times`, item, ...at);
    if (item.outcome === 'refused' && at.length > 0)
      say(`${item.token} was refused, and is in block ${at[0]!.height}`, item, ...at);
    if (item.outcome === 'committed' && at.length === 0)
      say(`${item.token} was acknowledged, and is not in the chain`, item);
    if (
      item.receipt !== null &&
      at.length > 0 &&
      !at.some(({ height, index }) => height === item.receipt!.height && index === item.receipt!.index)
    ) {
      say(
        `${item.token}: its receipt says ${item.receipt.height}/${item.receipt.index}, the chain has it ` +
          `at ${at[0]!.height}/${at[0]!.index}`,
        item,
        ...at,
      );
    }
    if (at.some(({ digest }) => digest !== item.digest)) say(`${item.token} has other bytes in the chain`, item, ...at);
  }
  const sent = new Set(items.map(({ token }) => token));
  for (const [token, at] of places)
    if (!sent.has(token)) say(`${JSON.stringify(token.slice(0, 60))} is in the chain, and no client sent it`, ...at);
  return anomalies;
}

/**
 * A client sends the next item when it knows the outcome of the one before. So its items are in the chain in that
 * order.
 */
export function clientOrder(history: History): Anomaly[] {
  const places = placesOf(history);
  const clients = new Map<string, ItemFate[]>();
  for (const item of only(history, 'item')) {
    const known = clients.get(item.client);
    if (known === undefined) clients.set(item.client, [item]);
    else known.push(item);
  }
  const anomalies: Anomaly[] = [];
  for (const [client, items] of clients) {
    let before: { item: ItemFate; at: Place } | null = null;
    for (const item of items.sort((a, b) => a.order - b.order)) {
      const at = places.get(item.token)?.[0];
      if (at === undefined) continue;
      // An unkeyed item of unknown outcome is never sent again. It may still be on its way when another sequencer takes
      // in the next one.
      if (!item.keyed && item.outcome === 'unknown') continue;
      if (before !== null && comparePlaces(at, before.at) < 0) {
        anomalies.push({
          checker: 'client order',
          what: `${client}: item ${item.order} stands before item ${before.item.order}`,
          witness: [before, { item, at }],
        });
      }
      before = { item, at };
    }
  }
  return anomalies;
}

function comparePlaces(a: Place, b: Place): number {
  return a.height - b.height || a.index - b.index;
}

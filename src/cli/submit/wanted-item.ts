// Which item does somebody mean who asks what happened to it?
import { keyProblem } from '../../core/chain/items.js';
import { usageError } from '../support/failure.js';

type WantedItem = { key: string } | { height: number; index: number };

/** Throws a usage error unless the item is named in exactly one way. */
export function wantedItem(key: string | undefined, height: number | undefined, index = 0): WantedItem {
  if ((key === undefined) === (height === undefined))
    throw usageError(key === undefined ? 'which item?' : 'an item is named by its key or by its height, not by both', [
      'seq trace KEY',
      'seq trace --height H --index I',
    ]);
  if (key === undefined) return { height: height!, index };
  const problem = keyProblem(key);
  if (problem !== null) throw usageError(`this is no key: ${problem}`, ['seq trace KEY']);
  return { key };
}

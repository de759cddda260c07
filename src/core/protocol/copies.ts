// How many copies commit a block (docs/PROTOCOL.md section 7)? The reader's own knowledge does not say: the members may
// have changed since. The holders of the copies say it: the term of those copies brought each of them its
// configuration.
import { memberOf, newest, parseConfiguration, quorumFor, type Configuration } from './configuration.js';
import { commits } from './quorum.js';
import type { Epoch, NodeView } from './types.js';

/** What one node has shown of itself. */
export interface Shown {
  configuration: Configuration;
  incarnation: string;
  /** Entries up to this epoch were on the node when it showed this. Entries of later epochs do not count yet. */
  epoch: Epoch;
}

/** What an `inspect` shows. `read`: the highest epoch among the entries that were read before it was sent. */
export function shownBy(view: Pick<NodeView, 'config' | 'incarnation' | 'headEpoch'>, read: Epoch = 0): Shown | null {
  const configuration = parseConfiguration(view.config);
  if (configuration === null) return null;
  return { configuration, incarnation: view.incarnation, epoch: Math.max(view.headEpoch, read) };
}

/** Whether these nodes commit what they hold under this epoch. */
export type Enough = (holders: readonly string[], epoch: Epoch) => boolean;

/**
 * The newest configuration among the holders says how many are needed. The term of that epoch has brought each of them
 * its own configuration, so none of them knows an earlier one. A configuration that a later term made says nothing of
 * this epoch's copies: then only a successor proves them. `n`: the number of nodes where no node knows a configuration.
 */
export function enoughCopies(shown: ReadonlyMap<string, Shown | null>, n: number): Enough {
  return (holders, epoch) => {
    const among = newest(...holders.map((id) => shown.get(id)?.configuration ?? null));
    if (among === null) return commits(holders.length, n);
    if (among.version.epoch > epoch) return false;
    const counted = holders.filter((id) => {
      const memory = memberOf(among, id)?.memory;
      const known = shown.get(id);
      return memory !== undefined && memory === known?.incarnation && epoch <= known.epoch;
    });
    return counted.length >= quorumFor(among);
  };
}

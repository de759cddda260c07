// What a chaos run needs from the rest of the program: its nodes opened without the proxies, and a reader for stores.
// Its nodes are named by hand, so that no configuration of the user can reach them.
import { openStoreReader } from '../../core/store/lmdb-reader.js';
import type { ChaosOptions } from '../../lab/chaos/run.js';
import { openCluster } from './open-cluster.js';
import { plainEnvironment } from './lab.js';
import { surroundings } from '../cluster/settings.js';

export function chaosOutside(): Pick<ChaosOptions, 'openNodes' | 'openStore'> {
  return {
    openNodes: async (nodes, directory) => {
      const opened = await openCluster(await surroundings({ node: nodes }, plainEnvironment(directory)));
      return { nodes: opened.nodes, cluster: opened.identity.cluster, close: () => opened.close() };
    },
    openStore: openStoreReader,
  };
}

// Where can blocks below the nodes' floor come from? From a named store, else from named peers, else from the announced
// feeds.
import type { ClusterView } from '../../core/view/cluster-view.js';
import type { Archive } from '../../core/stream/tail-archive.js';
import { peerArchive } from '../../core/stream/tail-peer.js';
import type { CallerAccess } from './caller.js';

export interface ArchiveOptions {
  store: string | undefined;
  peers: readonly string[];
  /**
   * Whether to ask sequencers that announce themselves. 'all': in addition to the peers. One without an address is an
   * archive that cannot answer.
   */
  announced: boolean | 'all';
  /** Read only where a sequencer is asked. */
  access: () => Promise<CallerAccess>;
  view: ClusterView;
  onClose: (close: () => Promise<void>) => void;
}

const PEER_LIMIT_MS = 5000;

export async function openArchives(options: ArchiveOptions): Promise<Archive[]> {
  const archives: Archive[] = [];
  if (options.store !== undefined) {
    const { openStoreReader } = await import('../../core/store/lmdb-reader.js');
    const reader = openStoreReader(options.store);
    options.onClose(() => reader.close());
    archives.push({
      name: `the store ${options.store}`,
      id: options.store,
      async *read(from, to) {
        yield* reader.range(from, to);
        if (from <= reader.head().height && reader.get(from) === undefined) throw new Error(`it has no block ${from}`);
      },
    });
  }
  const access = { limitMs: PEER_LIMIT_MS, ...(await options.access()) };
  const announced = options.view.sequencers.filter((s) => s.url !== '').sort((a, b) => b.height - a.height);
  if (options.announced === 'all') {
    const others = options.view.sequencers.filter(({ url }) => !options.peers.includes(url));
    archives.push(...options.peers.map((url) => peerArchive('', url, access)));
    archives.push(...others.map(({ id, url }) => (url === '' ? unreachable(id) : peerArchive(id, url, access))));
  } else if (options.peers.length > 0) archives.push(...options.peers.map((url) => peerArchive('', url, access)));
  else if (options.announced) archives.push(...announced.map((s) => peerArchive(s.id, s.url, access)));
  return archives;
}

function unreachable(id: string): Archive {
  return {
    name: id,
    id,
    // eslint-disable-next-line require-yield
    async *read() {
      throw new Error('it announces no address');
    },
  };
}

// The first start of a cluster (`seq run --bootstrap`), docs/PROTOCOL.md section 8. It is allowed only when everything
// is new. Empty nodes beside an existing chain have lost their memory: a new cluster on them would be another chain.
// The chain may be known to this machine's stores, to peers, or to sequencers that still run and announce themselves. A
// chain that none of these shows cannot be known here: all its sequencers are stopped, and their stores are elsewhere.
import type { ErrorCode } from '../../core/error-codes.js';
import { EXIT, SeqError } from '../../core/errors.js';
import type { SeqLog } from '../../core/log/log.js';
import { pause } from '../../core/nodes/pause.js';
import { systemClock, systemRandom } from '../../core/nodes/system-clock.js';
import { bootstrap } from '../../core/operate/bootstrap.js';
import { firstSettings } from './agreed-settings.js';
import { openNode, type Cluster } from './open-cluster.js';
import type { RunSettings } from './run-settings.js';

const PEER_LIMIT_MS = 1000;
/** A sequencer that runs has connected to an empty node again, and has announced itself there, within this time. */
const WATCH_MS = 2000;
/** After these errors the next attempt may find a cluster that another sequencer made. */
const BOOTSTRAP_AGAIN: readonly ErrorCode[] = [
  'BOOTSTRAP_BROKEN_OFF',
  'ALREADY_INITIALISED',
  'WRONG_CLUSTER',
  'NODE_UNREACHABLE',
];

/** Makes a cluster of empty nodes. Closes `cluster`: the caller opens it again under its new identity. */
export async function firstBootstrap(
  cluster: Cluster,
  settings: RunSettings,
  log: SeqLog,
  signal: AbortSignal,
): Promise<void> {
  const name = cluster.identity.cluster || `${systemRandom.hex(8)}.1`;
  await cluster.close();
  await refuseOldChain(
    settings,
    cluster.identity.cluster === '',
    name.slice(0, name.lastIndexOf('.')),
    cluster.identity.lane,
  );
  log.line('info', `the nodes are empty: watching ${WATCH_MS} ms for sequencers of an older chain`, {});
  await pause(systemClock, WATCH_MS, signal);
  if (signal.aborted) return;
  const nodes = await Promise.all(
    cluster.addresses.map((address) => openNode(address, { cluster: name, lane: cluster.identity.lane })),
  );
  try {
    const result = await bootstrap({
      nodes,
      cluster: name,
      limitMs: settings.timing.nodeTimeoutMs,
      clock: systemClock,
      random: systemRandom,
      settings: firstSettings(settings.agreed),
    });
    log.line('info', `made cluster ${result.cluster} of ${result.nodes.length} empty nodes`, {
      cluster: result.cluster,
    });
  } catch (error) {
    // Another sequencer does the same, or a node is not there yet. The next attempt judges the new state.
    if (!(error instanceof SeqError && BOOTSTRAP_AGAIN.includes(error.code))) throw error;
    log.line('warn', `bootstrap: ${error.message}; trying again`, { code: error.code }, error.code);
  } finally {
    await Promise.allSettled(nodes.map((node) => node.close()));
  }
}

/** Throws when the store or a peer still holds blocks of an older chain. */
async function refuseOldChain(
  settings: RunSettings,
  anyCluster: boolean,
  clusterId: string,
  lane: string,
): Promise<void> {
  const refuse = (where: string, recover = 'seq cluster recover --dry-run') =>
    new SeqError({
      code: 'ALREADY_INITIALISED',
      exit: EXIT.precondition,
      message: `the nodes are empty, but ${where}`,
      why:
        'the nodes of a cluster that has a chain have lost their memory: a new cluster on them would be ' +
        'another chain',
      changed: 'nothing',
      next: [
        recover,
        'or name an empty store by --store, and not that peer, when the old chain is not wanted any more',
      ],
    });
  const [{ openStoreReader }, { askStatus }] = await Promise.all([
    import('../../core/store/lmdb-reader.js'),
    import('../../core/nodes/sequencer-client.js'),
  ]);
  const dirs = [settings.storeDir(clusterId, lane), ...(anyCluster ? settings.formerStores() : [])];
  for (const dir of dirs) {
    let reader: ReturnType<typeof openStoreReader> | undefined;
    try {
      reader = openStoreReader(dir);
      const { height } = reader.head();
      if (height > 0 && reader.lane === lane)
        throw refuse(
          `the store ${dir} holds ${height} blocks of cluster ${reader.cluster}`,
          `seq cluster recover --store ${dir} --dry-run`,
        );
    } catch (error) {
      if (!(error instanceof SeqError && error.code === 'STORE_NOT_FOUND')) throw error;
    } finally {
      await reader?.close();
    }
  }
  const access = {
    ...(settings.files.token === undefined ? {} : { token: settings.files.token }),
    tls: settings.files.outgoing,
  };
  for (const answer of await Promise.all(settings.peers.map((url) => askStatus(url, access, PEER_LIMIT_MS)))) {
    if (answer.answered && answer.status.height > 0)
      throw refuse(`the peer ${answer.url} holds ${answer.status.height} blocks of cluster ${answer.status.cluster}`);
  }
}

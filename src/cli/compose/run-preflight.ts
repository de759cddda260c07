// What must be true before a sequencer starts: it may use the servers, they are one cluster, and a quorum of its
// members answers. The nodes decide how many members there are, not the list. Waits for conditions that may still
// become true; throws for the others.
import { createHash } from 'node:crypto';
import { EXIT, SeqError } from '../../core/errors.js';
import type { SeqLog } from '../../core/log/log.js';
import { systemClock } from '../../core/nodes/system-clock.js';
import { refuseUnfit } from '../../core/operate/bootstrap.js';
import type { NodePort } from '../../core/ports.js';
import type { AgreedSettings } from '../../core/protocol/configuration.js';
import { refusalText } from '../../core/protocol/refusals.js';
import type { NodeReply, NodeView } from '../../core/protocol/types.js';
import type { Surroundings } from '../cluster/settings.js';
import { agreedBy, firstSettings } from './agreed-settings.js';
import { checkNode, openCluster, type Cluster } from './open-cluster.js';
import { firstBootstrap } from './run-first-start.js';
import type { RunSettings } from './run-settings.js';

const RETRY_MS = 1000;
const RIGHTS_LIMIT_MS = 2000;
/** Errors that only a server in cluster mode gives. It will always refuse our scripts, so waiting is useless. */
const CLUSTER_MODE = /^(CROSSSLOT|CLUSTERDOWN|MOVED|ASK|TRYAGAIN)\b/;

/** One node and what it reported about itself. */
interface Answer {
  node: NodePort;
  reply: NodeReply<NodeView>;
}

/** A node that answered. */
interface Seen {
  port: NodePort;
  view: NodeView;
}

/**
 * Opens the nodes and waits while fewer than a quorum answer. Returns the cluster and the settings from its
 * configuration. Null: the process was told to stop meanwhile.
 */
export async function waitForCluster(
  around: Surroundings,
  settings: RunSettings,
  log: SeqLog,
  signal: AbortSignal,
): Promise<{ cluster: Cluster; agreed: AgreedSettings } | null> {
  for (;;) {
    if (signal.aborted) return null;
    const cluster = await openCluster(around, { signal });
    const replies = await Promise.all(
      cluster.nodes.map(async (node) => ({
        node,
        reply: await node.call({ script: 'inspect' }, cluster.nodeTimeoutMs),
      })),
    );
    try {
      if (await usable(cluster, replies, settings, log)) {
        const views = replies.flatMap(({ reply }) => (reply.outcome === 'accepted' ? [reply.value] : []));
        return { cluster, agreed: agreedBy(settings.agreed, views) ?? firstSettings(settings.agreed) };
      }
    } catch (error) {
      await cluster.close();
      throw error;
    }
    await cluster.close();
    await pause(RETRY_MS, signal);
  }
}

/** False: not yet; ask again. */
async function usable(
  cluster: Cluster,
  replies: readonly Answer[],
  settings: RunSettings,
  log: SeqLog,
): Promise<boolean> {
  const seen = replies.flatMap(({ node, reply }): Seen[] =>
    reply.outcome === 'accepted' ? [{ port: node, view: reply.value }] : [],
  );
  refuseStrangers(cluster, log);
  await refuseDenied(cluster, replies);
  refuseRedisCluster(replies);
  refuseUnfit(seen);
  // An identity that only few nodes reported is not enough to refuse a node: ask again.
  if (cluster.identity.cluster === '' && seen.some(({ view }) => view.cluster !== '')) return false;
  if (!sameCluster(cluster, seen, log)) return false;
  if (!quorumAnswers(cluster, replies, seen, log)) return false;
  if (!seen.some(({ view }) => view.cluster !== '' && view.admission !== 'bootstrap')) {
    if (!settings.bootstrap) throw notInitialised();
    await firstBootstrap(cluster, settings, log);
    return false; // opened again, under the identity it now has
  }
  await refuseMissingRights(cluster);
  // Where the nodes know who they are, no list decides anything.
  if (cluster.configuration === null) refuseDrift(cluster, seen, settings.id);
  return true;
}

/**
 * Throws when the list names a node that the cluster does not have. With its vote a minority could count as a quorum.
 */
function refuseStrangers(cluster: Cluster, log: SeqLog): void {
  const { configuration } = cluster;
  if (configuration === null) return;
  const members = configuration.members.map(({ id }) => id).join(', ');
  const named = cluster.strangers.filter(
    ({ port, listed }) => listed.id !== null || cluster.views.get(port.id)?.outcome === 'accepted',
  );
  if (named.length > 0) {
    const ids = named.map(({ port }) => `${port.id} (${port.url})`);
    throw new SeqError({
      code: 'NOT_MEMBER',
      exit: EXIT.config,
      message:
        `${ids.join(', ')} ${named.length === 1 ? 'is no member' : 'are no members'} of cluster ` +
        cluster.identity.cluster,
      why: `its nodes are ${members}: who counts is agreed by them, and a list of addresses changes nothing of it`,
      changed: 'nothing',
      next: [`name ${members} only, or some of them: the others are found`, 'seq status'],
    });
  }
  // A listed node without an answer and without an id cannot be identified. All members are known without it, so it is
  // ignored.
  for (const { port } of cluster.strangers)
    log.line('warn', `${port.url} does not answer, and no member has that address: it is left out`, {}, port.url);
  const found = cluster.nodes.filter((_, at) => cluster.listed[at] === null);
  if (found.length > 0) {
    const list = found.map(({ id, url }) => `${id} (${url})`).join(', ');
    log.line('info', `not listed, and a member of the cluster: ${list}`, { quorum: cluster.quorum }, list);
  }
}

async function refuseDenied(cluster: Cluster, replies: readonly Answer[]): Promise<void> {
  const denied = replies.find(
    ({ reply }) => reply.outcome === 'refused' && (reply.reason === 'NOAUTH' || reply.reason === 'NOPERM'),
  );
  if (denied && denied.reply.outcome === 'refused') {
    // Inside a script the server does not say which command was denied. Tried one by one, it does.
    if (denied.reply.reason === 'NOPERM') await refuseMissingRights(cluster);
    throw new SeqError({
      code: 'NODE_DENIED',
      exit: EXIT.denied,
      message: `${denied.node.id} (${denied.node.url}) refused: ${refusalText(denied.reply)}`,
      why: 'the server wants a user, a password or more rights than this one has',
      changed: 'nothing',
      next: [
        'give them by SEQ_USERNAME and SEQ_PASSWORD_FILE, or in the context (passwordFile, ' +
          'passwordCommand, passwordEnv)',
        'seq doctor --acl',
      ],
    });
  }
}

function refuseRedisCluster(replies: readonly Answer[]): void {
  const clustered = replies.find(
    ({ reply }) => reply.outcome === 'unknown' && reply.step === 'reply' && CLUSTER_MODE.test(reply.cause),
  );
  if (clustered) {
    throw new SeqError({
      code: 'REDIS_CLUSTER',
      exit: EXIT.config,
      message: `${clustered.node.id} (${clustered.node.url}) is part of a Redis Cluster`,
      why: 'it spreads keys over servers and fails over on its own; the nodes of seq are plain servers',
      changed: 'nothing',
      next: ['name independent redis-server processes, without cluster-enabled'],
    });
  }
}

/** False: a node has a guessed name, and its own record has another one. */
function sameCluster(cluster: Cluster, seen: readonly Seen[], log: SeqLog): boolean {
  for (const { port, view } of seen) {
    if (view.cluster === '') continue;
    if (family(view.cluster) !== family(cluster.identity.cluster)) {
      throw notThisNode(
        `${port.id} (${port.url}) belongs to cluster ${view.cluster}, the others to ${cluster.identity.cluster}`,
        port.url,
        'a node of another cluster has promised nothing to this one',
      );
    }
    if (view.node === port.id || view.node === '') continue;
    if (cluster.listed[cluster.nodes.indexOf(port)]?.id === null) {
      // it got a guessed name while it was silent, unless another node shows the same record
      log.line(
        'warn',
        `asking again: ${port.url} is called ${port.id} here, and its record says ${view.node}`,
        {},
        port.url,
      );
      return false;
    }
    throw notThisNode(
      `${port.url} is called ${port.id} here, but its own record says ${view.node}`,
      port.url,
      'an id stands for one memory: under another name its promises would count for another node',
    );
  }
  return true;
}

function quorumAnswers(cluster: Cluster, replies: readonly Answer[], seen: readonly Seen[], log: SeqLog): boolean {
  const silent = replies
    .filter(({ reply }) => reply.outcome !== 'accepted')
    .map(({ node, reply }) => `${node.id}: ${silenceOf(reply)}`);
  if (seen.length < cluster.quorum) {
    log.line(
      'warn',
      `waiting for a quorum of nodes: ${silent.join('; ')}`,
      { answered: seen.length, quorum: cluster.quorum },
      silent.join(),
    );
    return false;
  }
  return true;
}

function silenceOf(reply: NodeReply<NodeView>): string {
  if (reply.outcome === 'unknown') return `no answer at ${reply.step} (${reply.cause})`;
  return reply.outcome === 'refused' ? reply.reason : '';
}

function notInitialised(): SeqError {
  return new SeqError({
    code: 'NOT_INITIALISED',
    exit: EXIT.precondition,
    message: 'the nodes are empty: no cluster has been made of them yet',
    why: 'a sequencer never admits nodes by itself: an empty node may be one that lost its memory',
    changed: 'nothing',
    next: [
      'seq cluster init',
      'or seq run --bootstrap, when all of this is new',
      "or, when the nodes lost what sequencers' stores still hold: seq cluster recover --store DIR --dry-run",
    ],
  });
}

/** Throws when another sequencer runs with another list of nodes: each could reach a quorum of its own. */
function refuseDrift(cluster: Cluster, seen: readonly Seen[], ownId: string): void {
  const digest = nodeListDigest(cluster);
  for (const { port, view } of seen) {
    const other = view.sequencers.find(
      (one) => one.id !== ownId && one.configDigest !== '' && one.configDigest !== digest,
    );
    if (other) {
      throw new SeqError({
        code: 'CONFIG_DRIFT',
        exit: EXIT.config,
        message: `sequencer ${other.id} runs with another list of nodes than this one (seen on ${port.id})`,
        why: 'two sequencers that count different nodes can both reach a quorum',
        changed: 'nothing',
        next: [
          'give every sequencer the same nodes',
          'a record of a stopped sequencer is gone after some seconds: try again',
        ],
        retryable: true,
      });
    }
  }
}

function notThisNode(message: string, url: string, why: string): SeqError {
  return new SeqError({
    code: 'WRONG_CLUSTER',
    exit: EXIT.precondition,
    message,
    why,
    changed: 'nothing',
    next: ['name the right nodes', `seq status --node ${url}`],
  });
}

/**
 * A right that is missing in the middle of a script would leave a node half-changed. So every command is tried
 * beforehand, where the server can name it.
 */
async function refuseMissingRights(cluster: Cluster): Promise<void> {
  const checked = await Promise.all(
    cluster.nodes.map(async (node) => ({ node, reply: await checkNode(node, RIGHTS_LIMIT_MS) })),
  );
  for (const { node, reply } of checked) {
    if (reply.outcome !== 'accepted' || reply.value.denied === null || reply.value.denied.length === 0) continue;
    throw new SeqError({
      code: 'NODE_DENIED',
      exit: EXIT.denied,
      message: `${node.id} (${node.url}): user ${reply.value.user} may not run ${reply.value.denied.join('; ')}`,
      why: 'a script that is denied a command in its middle would leave the node half-changed',
      changed: 'nothing',
      next: ['seq doctor --acl'],
    });
  }
}

/** Two sequencers must count the same nodes. This is the digest of the node ids; order and host names do not matter. */
export function nodeListDigest(cluster: Pick<Cluster, 'nodes'>): string {
  return createHash('sha256')
    .update(
      cluster.nodes
        .map((node) => node.id)
        .sort()
        .join('\n'),
    )
    .digest('hex')
    .slice(0, 12);
}

function family(cluster: string): string {
  return cluster.slice(0, cluster.lastIndexOf('.'));
}

/** Removes its listener afterwards: the wait for a quorum may last for days. */
function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      cancel();
      signal.removeEventListener('abort', done);
      resolve();
    };
    const cancel = systemClock.after(ms, done);
    signal.addEventListener('abort', done, { once: true });
    if (signal.aborted) done();
  });
}

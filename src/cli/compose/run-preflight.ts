// What must be true before a sequencer starts: it may use the servers, they are one cluster, and a quorum of its
// members answers. The nodes decide how many members there are, not the list. Waits for conditions that may still
// become true; throws for the others.
import { EXIT, SeqError } from '../../core/errors.js';
import { familyOf, isRetired } from '../../core/generation.js';
import type { SeqLog } from '../../core/log/log.js';
import { systemClock } from '../../core/nodes/system-clock.js';
import { refuseUnfit } from '../../core/operate/bootstrap.js';
import type { AgreedSettings } from '../../core/protocol/configuration.js';
import type { NodeReply, NodeView } from '../../core/protocol/types.js';
import { nodeListDigest } from '../../core/sequencer/own-presence.js';
import type { Surroundings } from '../cluster/settings.js';
import { agreedBy, firstSettings } from './agreed-settings.js';
import {
  clusteredNodes,
  deniedNodes,
  nodesWithoutRights,
  unfitNodes,
  type Answer,
  type Fault,
  type Seen,
} from './node-faults.js';
import { openCluster, type Cluster } from './open-cluster.js';
import { firstBootstrap } from './run-first-start.js';
import type { RunSettings } from './run-settings.js';

const RETRY_MS = 1000;

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
      if (await usable(cluster, replies, settings, log, signal)) {
        const views = replies.flatMap(({ reply }) =>
          reply.outcome === 'accepted' && familyOf(reply.value.cluster) === familyOf(cluster.identity.cluster)
            ? [reply.value]
            : [],
        );
        return {
          cluster,
          agreed: agreedBy(settings.agreed, views, settings.adoptProducer) ?? firstSettings(settings.agreed),
        };
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
  signal: AbortSignal,
): Promise<boolean> {
  let seen = replies.flatMap(({ node, reply }): Seen[] =>
    reply.outcome === 'accepted' ? [{ port: node, view: reply.value }] : [],
  );
  refuseStrangers(cluster, log);
  const faults = [...(await deniedNodes(cluster, replies)), ...clusteredNodes(replies), ...unfitNodes(cluster, seen)];
  tolerate(cluster, replies, faults, log);
  seen = seen.filter(({ port }) => !faults.some(({ node }) => node === port));
  // Two names of one server are no fault of one node: its vote would count twice.
  refuseUnfit(seen);
  // An identity that only few nodes reported is not enough to refuse a node: ask again.
  if (cluster.identity.cluster === '' && seen.some(({ view }) => view.cluster !== '')) return false;
  if (!sameCluster(seen, log)) return false;
  if (!quorumAnswers(cluster, replies, seen, log)) return false;
  if (!seen.some(({ view }) => view.cluster !== '' && view.admission !== 'bootstrap')) {
    // A cluster is made of all its nodes.
    if (faults[0] !== undefined) throw faults[0].error;
    if (!settings.bootstrap) throw notInitialised();
    await firstBootstrap(cluster, settings, log, signal);
    return false; // opened again, under the identity it now has
  }
  tolerate(cluster, replies, [...faults, ...(await nodesWithoutRights(cluster))], log);
  // Where the nodes know who they are, no list decides anything.
  if (cluster.configuration === null) refuseDrift(cluster, seen, settings.id);
  return true;
}

/**
 * Throws when the list names a server that answers and that is no member: the operator counts on more nodes than there
 * are.
 */
function refuseStrangers(cluster: Cluster, log: SeqLog): void {
  const { configuration } = cluster;
  if (configuration === null) return;
  const members = configuration.members.map(({ id }) => id).join(', ');
  const named = cluster.strangers.filter(({ port }) => {
    const reply = cluster.views.get(port.id);
    return reply?.outcome === 'accepted' && !isRetired(reply.value);
  });
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
  // A removed node stays in a list until somebody edits it, and a sequencer that is started meanwhile must not stand
  // still for that. All members are known without it.
  for (const { port, listed } of cluster.strangers) {
    const reply = cluster.views.get(port.id);
    const what = listed.id === null ? port.url : `${port.id} (${port.url})`;
    const why = reply?.outcome === 'accepted' ? reply.value.admissionWhy : 'it does not answer';
    log.line('warn', `${what} is no member of the cluster, and is left out: ${why}`, { code: 'NOT_MEMBER' }, port.url);
  }
  for (const { id, from, to } of cluster.readdressed)
    log.line(
      'warn',
      `${id} is asked at ${to}: ${from} does not show the memory that counts as ${id}`,
      { node: id, code: 'NODE_ADDRESS' },
      `${id} ${to}`,
    );
  const found = cluster.nodes.filter((_, at) => cluster.listed[at] === null);
  if (found.length > 0) {
    const list = found.map(({ id, url }) => `${id} (${url})`).join(', ');
    log.line('info', `not listed, and a member of the cluster: ${list}`, { quorum: cluster.quorum }, list);
  }
}

/**
 * What a quorum tolerates while the sequencer runs, it tolerates at start: the node is named, and the others go on.
 * Throws the first fault when too few nodes are left, even if every silent one came back.
 */
function tolerate(cluster: Cluster, replies: readonly Answer[], faults: readonly Fault[], log: SeqLog): void {
  const faulty = new Set(faults.map(({ node }) => node));
  const [first] = faults;
  if (first === undefined) return;
  if (replies.length - faulty.size < cluster.quorum) throw first.error;
  for (const { node, error } of faults)
    log.line(
      'warn',
      `it goes on without ${node.id}, which would be refused alone: ${error.message}; ${error.why}; ` +
        `to fix it: ${error.next[0] ?? 'seq doctor'}`,
      { code: error.code, node: node.id },
      `${node.id} ${error.code}`,
    );
}

/** False: a node has a guessed name, and its own record has another one. */
function sameCluster(seen: readonly Seen[], log: SeqLog): boolean {
  // It got a guessed name while it was silent, unless another node shows the same record.
  const guessed = seen.find(({ port, view }) => view.cluster !== '' && view.node !== '' && view.node !== port.id);
  if (guessed === undefined) return true;
  const { port, view } = guessed;
  const text = `asking again: ${port.url} is called ${port.id} here, and its record says ${view.node}`;
  log.line('warn', text, {}, port.url);
  return false;
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
  const digest = nodeListDigest(cluster.nodes);
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

// What is wrong with one node alone: it asks for a password, lacks rights, is no fit server, or is of another cluster.
// Whether the others are enough without it is decided elsewhere (run-preflight.ts).
import { EXIT, SeqError } from '../../core/errors.js';
import { familyOf, isOfRemovedLane, isRetired } from '../../core/generation.js';
import { refuseUnfit } from '../../core/operate/bootstrap.js';
import type { NodePort } from '../../core/ports.js';
import { deniedText, grantOn } from '../../core/view/no-answer.js';
import { refusalText } from '../../core/protocol/refusals.js';
import type { NodeReply, NodeView } from '../../core/protocol/types.js';
import { checkNode, type Cluster } from './open-cluster.js';

const RIGHTS_LIMIT_MS = 2000;
/** Errors that only a server in cluster mode gives. It will always refuse our scripts, so waiting is useless. */
const CLUSTER_MODE = /^(CROSSSLOT|CLUSTERDOWN|MOVED|ASK|TRYAGAIN)\b/;

/** One node and what it reported about itself. */
export interface Answer {
  node: NodePort;
  reply: NodeReply<NodeView>;
}

/** A node that answered. */
export interface Seen {
  port: NodePort;
  view: NodeView;
}

/** Why one node would be refused alone. */
export interface Fault {
  node: NodePort;
  error: SeqError;
}

export async function deniedNodes(cluster: Cluster, replies: readonly Answer[]): Promise<Fault[]> {
  const denied = replies.flatMap(({ node, reply }) =>
    reply.outcome === 'refused' && (reply.reason === 'NOAUTH' || reply.reason === 'NOPERM') ? [{ node, reply }] : [],
  );
  if (denied.length === 0) return [];
  // Inside a script the server does not say which command was denied. Tried one by one, it does.
  const rights = denied.some(({ reply }) => reply.reason === 'NOPERM') ? await nodesWithoutRights(cluster) : [];
  return denied.map(
    ({ node, reply }) =>
      rights.find((fault) => fault.node === node) ?? {
        node,
        error: new SeqError({
          code: 'NODE_DENIED',
          exit: EXIT.denied,
          message: `${node.id} (${node.url}) refused: ${refusalText(reply)}`,
          why:
            reply.reason === 'NOPERM'
              ? 'without these rights nothing can be asked, and a script that is denied a command changes nothing'
              : 'the server wants a user or a password, or others than these',
          changed: 'nothing',
          next:
            reply.reason === 'NOPERM'
              ? [grantOn(node.url, reply.detail.grant)]
              : [
                  'give them by SEQ_USERNAME and SEQ_PASSWORD_FILE, or in the context (passwordFile, ' +
                    'passwordCommand, passwordEnv)',
                ],
        }),
      },
  );
}

export function clusteredNodes(replies: readonly Answer[]): Fault[] {
  return replies
    .filter(({ reply }) => reply.outcome === 'unknown' && reply.step === 'reply' && CLUSTER_MODE.test(reply.cause))
    .map(({ node }) => ({
      node,
      error: new SeqError({
        code: 'REDIS_CLUSTER',
        exit: EXIT.config,
        message: `${node.id} (${node.url}) is part of a Redis Cluster`,
        why: 'it spreads keys over servers and fails over on its own; the nodes of seq are plain servers',
        changed: 'nothing',
        next: ['name independent redis-server processes, without cluster-enabled'],
      }),
    }));
}

/** Servers that are not fit to be a node, and nodes of another cluster. */
export function unfitNodes(cluster: Cluster, seen: readonly Seen[]): Fault[] {
  return seen.flatMap(({ port, view }): Fault[] => {
    const ours = cluster.identity.cluster;
    if (isOfRemovedLane(view)) return [{ node: port, error: laneRemoved(cluster.identity.lane, port) }];
    if (isRetired(view)) {
      const why = 'a retired server refuses every call, for good: it can be a node again once it is empty';
      return [{ node: port, error: notThisNode(`${port.id} (${port.url}): ${view.admissionWhy}`, port.url, why) }];
    }
    if (view.cluster !== '' && ours !== '' && familyOf(view.cluster) !== familyOf(ours)) {
      const error = notThisNode(
        `${port.id} (${port.url}) belongs to cluster ${view.cluster}, the others to ${ours}`,
        port.url,
        'a node of another cluster has promised nothing to this one',
      );
      return [{ node: port, error }];
    }
    const named = cluster.listed[cluster.nodes.indexOf(port)]?.id !== null;
    if (view.cluster !== '' && view.node !== '' && view.node !== port.id && named) {
      const said = `${port.url} is called ${port.id} here, but its own record says ${view.node}`;
      const why = 'an id stands for one memory: under another name its promises would count for another node';
      return [{ node: port, error: notThisNode(said, port.url, why) }];
    }
    try {
      refuseUnfit([{ port, view }]);
      return [];
    } catch (error) {
      if (error instanceof SeqError) return [{ node: port, error }];
      throw error;
    }
  });
}

/**
 * A right that is missing in the middle of a script would leave a node half-changed. So every command is tried
 * beforehand, where the server can name it.
 */
export async function nodesWithoutRights(cluster: Cluster): Promise<Fault[]> {
  const checked = await Promise.all(
    cluster.nodes.map(async (node) => ({ node, reply: await checkNode(node, RIGHTS_LIMIT_MS) })),
  );
  return checked.flatMap(({ node, reply }): Fault[] => {
    if (reply.outcome !== 'accepted' || reply.value.denied === null || reply.value.denied.length === 0) return [];
    const error = new SeqError({
      code: 'NODE_DENIED',
      exit: EXIT.denied,
      message: `${node.id} (${node.url}): ${deniedText(reply.value.user, reply.value.denied)}`,
      why: 'a script that is denied a command in its middle would leave the node half-changed',
      changed: 'nothing',
      next: [grantOn(node.url, reply.value.grant)],
    });
    return [{ node, error }];
  });
}

function laneRemoved(lane: string, { id, url }: NodePort): SeqError {
  return new SeqError({
    code: 'LANE_REMOVED',
    exit: EXIT.precondition,
    message: `lane ${lane} was removed: ${id} (${url}) has given it up for good`,
    why: 'seq lane rm has retired its memory on the nodes, so that nobody can lead it any more',
    changed: 'nothing',
    next: ['name another lane (--lane): seq lane ls lists them'],
  });
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

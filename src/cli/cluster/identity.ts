// Which cluster do these nodes belong to? Ids and the cluster's identity are read from the nodes' admission records
// where nobody configured them (docs/PROTOCOL.md section 2).
import { quorumOf } from '../../core/config.js';
import { EXIT, SeqError } from '../../core/errors.js';
import type { NodePort } from '../../core/ports.js';
import type { NodeReply, NodeView } from '../../core/protocol/types.js';
import { clusterOf, configurationAmong, newestOf, type Answer } from '../../core/view/membership.js';
import type { Configuration, Member } from '../../core/protocol/configuration.js';
import { refuseSameServer } from './errors.js';
import type { ClusterSettings, NodeSettings } from './settings.js';
import type { NodeAddress } from './address.js';

/**
 * Why the cluster is opened. `read`: when too few nodes answer, the identity stays unknown and later probes decide it.
 * `act`: the identity must be known.
 */
export type Purpose = 'read' | 'act';

/** What the nodes report about themselves. Lists are in the order of the configured nodes. */
export interface FoundIdentity {
  ids: string[];
  /** '' when too few nodes answered to decide. */
  cluster: string;
  /** True where the id is a guess because the node gave no answer. */
  guessed: boolean[];
  replies: NodeReply<NodeView>[];
  /** The members according to the nodes that answered. Null when no node knows, or when too few answered. */
  configuration: Configuration | null;
}

/**
 * How often silent nodes are asked while fewer than a quorum have answered. Without a second attempt, one lost answer
 * would turn a node of this cluster into a stranger.
 */
const ROUNDS = { read: 2, act: 3 };

/** Asks every node once; with a purpose, asks silent nodes again. Throws when two addresses are one server. */
export async function findIdentity(
  nodes: readonly NodePort[],
  listed: readonly { address: NodeAddress }[],
  settings: ClusterSettings,
  purpose: Purpose | undefined,
): Promise<FoundIdentity> {
  const replies = await askWhose(nodes, settings.nodeTimeoutMs, purpose === undefined ? 1 : ROUNDS[purpose]);
  refuseSameServer(
    replies.flatMap((reply, at) =>
      reply.outcome === 'accepted' ? [{ url: listed[at]?.address.url ?? '', runId: reply.value.runId }] : [],
    ),
  );
  if (purpose === 'act') refuseUnnamed(settings, replies, listed);
  const first = nameNodes(settings.nodes, replies);
  const told = (ids: readonly string[]): Answer[] => replies.map((reply, at) => ({ id: ids[at] as string, reply }));
  // A listed node at the address of a member gets that member's name. After that the list is compared with the members.
  const known = newestOf(told(first), settings.cluster);
  const ids = known === null ? first : nameNodes(settings.nodes, replies, known.members);
  const configuration = configurationAmong(told(ids), settings.cluster);
  const answered = replies.filter((reply) => reply.outcome === 'accepted').length;
  const unsettled = purpose === 'read' && answered < quorumOf(nodes.length) && configuration === null;
  return {
    ids,
    replies,
    configuration,
    cluster: settings.cluster || (unsettled ? '' : clusterOf(told(ids))),
    guessed: ids.map(
      (_, at) => purpose === 'read' && settings.nodes[at]?.id === null && replies[at]?.outcome !== 'accepted',
    ),
  };
}

/** Asks each node; asks the silent ones again while fewer than a quorum have answered. */
async function askWhose(nodes: readonly NodePort[], limitMs: number, rounds: number): Promise<NodeReply<NodeView>[]> {
  const replies: NodeReply<NodeView>[] = await Promise.all(
    nodes.map((node) => node.call({ script: 'inspect' }, limitMs)),
  );
  for (
    let round = 1;
    round < rounds && replies.filter((reply) => reply.outcome !== 'unknown').length < quorumOf(nodes.length);
    round += 1
  ) {
    await Promise.all(
      nodes.map(async (node, at) => {
        if (replies[at]?.outcome === 'unknown') replies[at] = await node.call({ script: 'inspect' }, limitMs);
      }),
    );
  }
  return replies;
}

/** Refuses every change while no node has reported which cluster it belongs to. */
function refuseUnnamed(
  settings: ClusterSettings,
  replies: readonly NodeReply<NodeView>[],
  listed: readonly { address: NodeAddress }[],
): void {
  if (settings.cluster !== '' || replies.some((reply) => reply.outcome !== 'unknown')) return;
  const silent = replies.map((reply, at) => {
    const name = `${listed[at]?.address.id} (${listed[at]?.address.url})`;
    if (reply.outcome !== 'unknown') return `${name}: `;
    const limit = reply.limitMs === undefined ? '' : ` within ${reply.limitMs} ms`;
    return `${name}: no answer at ${reply.step}${limit}: ${reply.cause}`;
  });
  throw new SeqError({
    code: 'NO_ANSWER',
    exit: EXIT.noQuorum,
    message: `none of ${replies.length} nodes answered: ${silent.join('; ')}`,
    why: 'without an answer it is not known which cluster this is',
    changed: 'nothing',
    next: ['seq status', 'a longer --node-timeout'],
    retryable: true,
  });
}

/**
 * The name of each node: the configured id, else the id in its admission record, else the id of the member at its
 * address. Else the only remaining member, else the first free name of n1…nN. No name is given twice.
 */
export function nameNodes(
  nodes: (Pick<NodeSettings, 'id'> & { url?: string })[],
  replies: NodeReply<Pick<NodeView, 'node'>>[],
  members: readonly Pick<Member, 'id' | 'url'>[] = [],
): string[] {
  const names: (string | null)[] = nodes.map(({ id }) => id);
  const take = (at: number, id: string): void => {
    if (names[at] === null && id !== '' && !names.includes(id)) names[at] = id;
  };
  // The records come first: a silent node must not take the name of a node that answers.
  replies.forEach((reply, at) => take(at, reply.outcome === 'accepted' ? reply.value.node : ''));
  nodes.forEach(({ url }, at) => take(at, members.find((member) => member.url === url)?.id ?? ''));
  const unnamed = names.flatMap((name, at) => (name === null ? [at] : []));
  const free = members.filter(({ id }) => !names.includes(id));
  const [only] = unnamed;
  const reply = only === undefined ? undefined : replies[only];
  const blank = reply?.outcome !== 'accepted' || reply.value.node === '';
  const heard = replies.filter(({ outcome }) => outcome === 'accepted').length;
  if (only !== undefined && unnamed.length === 1 && free.length === 1 && blank && heard >= quorumOf(nodes.length))
    take(only, free[0]!.id);
  nodes.forEach((_, at) => {
    for (let step = 0; names[at] === null; step += 1)
      take(at, `n${step < nodes.length ? ((at + step) % nodes.length) + 1 : step + 1}`);
  });
  return names as string[];
}

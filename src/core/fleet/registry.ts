// Reads and writes the lane registry on the nodes (docs/decisions/0015). A change counts when q nodes stored it, and a
// reader merges the answers of q nodes. So a reader sees every change that counted.
import { quorumOf } from '../config.js';
import { EXIT, SeqError } from '../errors.js';
import { askAll } from '../nodes/ask-all.js';
import type { Clock, NodePort } from '../ports.js';
import { describeReply } from '../protocol/describe.js';
import type { NodeReply } from '../protocol/types.js';
import { entriesOf, entryText, mergeLanes, missingFrom, type LaneEntry, type Lanes } from './entries.js';

export interface RegistryNodes {
  nodes: readonly NodePort[];
  /** For one call. A large registry gets more time. */
  limitMs: number;
  clock: Clock;
}

export interface Registry {
  lanes: Lanes;
  /** What each node that answered has. */
  known: ReadonlyMap<string, Lanes>;
  /** Why a node did not answer, by node. */
  silent: readonly { node: string; why: string }[];
}

/** Entries that one call carries (lua/note_lanes.lua). */
const BATCH = 128;
/** Nobody waits for these calls: a registry of 10,000 lanes is about 1 MB. */
const LARGE_LIMIT_MS = 1000;

/** Throws NO_QUORUM when fewer than q nodes answered: a change that counted may be on the others alone. */
export async function readRegistry({ nodes, limitMs, clock }: RegistryNodes): Promise<Registry> {
  const limit = Math.max(limitMs, LARGE_LIMIT_MS);
  const replies = await askAll(nodes, (node) => node.call({ script: 'read_lanes' }, limit), { limitMs: limit, clock });
  const known = new Map<string, Lanes>();
  const silent: { node: string; why: string }[] = [];
  replies.forEach((reply, i) => {
    const node = nodes[i]!.id;
    if (reply.outcome === 'accepted') known.set(node, entriesOf(reply.value.entries));
    else silent.push({ node, why: describeReply(reply) });
  });
  const quorum = quorumOf(nodes.length);
  if (known.size < quorum)
    throw new SeqError({
      code: 'NO_QUORUM',
      exit: EXIT.noQuorum,
      message: `${known.size} of ${nodes.length} nodes showed their lanes, ${quorum} are needed: ${saidBy(silent)}`,
      why: 'a lane that was added may be known to the other nodes alone',
      changed: 'nothing',
      next: ['seq status'],
      retryable: true,
    });
  return { lanes: mergeLanes([...known.values()]), known, silent };
}

function saidBy(silent: Registry['silent']): string {
  return silent.map(({ node, why }) => `${node}: ${why}`).join('; ');
}

/** Which nodes have stored all of the entries, and why the others have not. */
export interface Noted {
  stored: string[];
  failed: { node: string; why: string }[];
}

/** Stores the entries on every node, in pieces. A node that fails at one piece is asked for no further one. */
async function noteLanes({ nodes, limitMs }: RegistryNodes, entries: readonly LaneEntry[]): Promise<Noted> {
  const texts = entries.map((entry) => ({ name: entry.name, text: entryText(entry) }));
  const failures = await Promise.all(
    nodes.map(async (node) => {
      for (let at = 0; at < texts.length; at += BATCH) {
        const part = texts.slice(at, at + BATCH);
        const limit = Math.max(limitMs, LARGE_LIMIT_MS);
        const reply: NodeReply<unknown> = await node.call({ script: 'note_lanes', entries: part }, limit);
        if (reply.outcome !== 'accepted') return describeReply(reply);
      }
      return '';
    }),
  );
  const named = nodes.map(({ id }, i) => ({ node: id, why: failures[i]! }));
  return {
    stored: named.filter(({ why }) => why === '').map(({ node }) => node),
    failed: named.filter(({ why }) => why !== ''),
  };
}

/** As `noteLanes`. Throws PARTIAL or OUTCOME_UNKNOWN when fewer than q nodes have stored them. */
export async function changeLanes(at: RegistryNodes, entries: readonly LaneEntry[], next: string[]): Promise<Noted> {
  const noted = await noteLanes(at, entries);
  const quorum = quorumOf(at.nodes.length);
  if (noted.stored.length >= quorum) return noted;
  const some = noted.stored.length > 0;
  throw new SeqError({
    code: some ? 'PARTIAL' : 'OUTCOME_UNKNOWN',
    exit: some ? EXIT.partial : EXIT.outcomeUnknown,
    message:
      `the lanes are stored on ${noted.stored.length} of ${at.nodes.length} nodes, ${quorum} are needed: ` +
      saidBy(noted.failed),
    why: 'a change of lanes counts when a quorum has it; the same command goes on from here',
    changed: some ? 'some' : 'unknown',
    changedNodes: noted.stored,
    next,
    retryable: true,
  });
}

/** Gives every node that answered what it lacks. Returns how many entries were written, by node. */
export async function healRegistry(at: RegistryNodes, { lanes, known }: Registry): Promise<Map<string, number>> {
  const healed = new Map<string, number>();
  await Promise.all(
    at.nodes.map(async (node) => {
      const has = known.get(node.id);
      const missing = has === undefined ? [] : missingFrom(has, lanes);
      if (missing.length === 0) return;
      const { stored } = await noteLanes({ ...at, nodes: [node] }, missing);
      if (stored.length > 0) healed.set(node.id, missing.length);
    }),
  );
  return healed;
}
